"""What an arm launches, read from the CUDA graph of one call: kernels, grids, resources, scalar arguments, machine code.

Two arms that launch the same code with the same arguments are no change, whatever their knobs say.
"""

from __future__ import annotations

import ctypes
import gc
import hashlib
import sys
from collections.abc import Sequence
from typing import Any

from perfplan.measure.clock import Call
from perfplan.models.record import Launch


def read_launches(call: Call) -> list[Launch]:
    """The kernel launches of one call, in order. Empty where they cannot be read: no bindings, old torch, no capture."""
    try:
        from cuda.bindings import driver
    except ImportError:
        return []
    import torch

    try:
        graph = torch.cuda.CUDAGraph(keep_graph=True)
        with torch.cuda.graph(graph):
            call()
        return _kernels(driver, graph.raw_cuda_graph())
    except (TypeError, AttributeError, RuntimeError, _Refused):
        torch.cuda.synchronize()
        return []


def code_of(launches: Sequence[Launch]) -> str:
    """One hash over all launches; empty for none."""
    return _hash("\n".join(each.model_dump_json() for each in launches)) if launches else ""


class _Refused(Exception):
    """The driver has no answer."""


def _must(answer: Any) -> Any:
    if int(answer[0]) != 0:
        raise _Refused(str(answer[0]))
    return answer[1] if len(answer) == 2 else answer[1:]


def _kernels(driver: Any, graph: int) -> list[Launch]:
    _, count = _must(driver.cuGraphGetNodes(graph, 0))
    nodes, _ = _must(driver.cuGraphGetNodes(graph, count))
    machine_code = _triton_code()
    found = []
    for node in nodes:
        if _must(driver.cuGraphNodeGetType(node)) == driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL:
            found.append(_launch(driver, _must(driver.cuGraphKernelNodeGetParams(node)), machine_code))
    return found


def _launch(driver: Any, params: Any, machine_code: dict[int, str]) -> Launch:
    function = params.func if int(params.func) else _must(driver.cuKernelGetFunction(params.kern))
    attributes = driver.CUfunction_attribute

    def attribute(name: str) -> int:
        return int(_must(driver.cuFuncGetAttribute(getattr(attributes, f"CU_FUNC_ATTRIBUTE_{name}"), function)))

    name = _must(driver.cuFuncGetName(function))
    launch = Launch(
        name=name.decode() if isinstance(name, bytes) else str(name),
        grid=[params.gridDimX, params.gridDimY, params.gridDimZ],
        block=[params.blockDimX, params.blockDimY, params.blockDimZ],
        shared=attribute("SHARED_SIZE_BYTES") + params.sharedMemBytes,
        registers=attribute("NUM_REGS"),
        local=attribute("LOCAL_SIZE_BYTES"),
        scalars=_scalars(driver, function, int(params.kernelParams)),
    )
    described = f"{launch.name} {launch.registers} {launch.local} {attribute('SHARED_SIZE_BYTES')}"
    return launch.model_copy(update={"code": machine_code.get(int(function)) or _hash(described)})


def _scalars(driver: Any, function: Any, pointers: int) -> str:
    """Hash of the argument bytes; device addresses, which differ from allocation to allocation, count as one."""
    digest, index = hashlib.sha256(), 0
    while pointers:
        answer = driver.cuFuncGetParamInfo(function, index)
        if int(answer[0]) != 0:
            break
        size = int(answer[2])
        address = ctypes.c_void_p.from_address(pointers + index * ctypes.sizeof(ctypes.c_void_p)).value
        value = ctypes.string_at(address, size) if address else b""
        digest.update(b"address" if size == 8 and _is_address(driver, value) else value)
        digest.update(size.to_bytes(8, "little"))
        index += 1
    return digest.hexdigest()[:16] if index else ""


def _is_address(driver: Any, value: bytes) -> bool:
    number = int.from_bytes(value, "little")
    kind = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    return bool(number) and int(driver.cuPointerGetAttribute(kind, number)[0]) == 0


def _triton_code() -> dict[int, str]:
    """Function handle -> hash of the machine code, for every Triton kernel that is loaded."""
    compiler = sys.modules.get("triton.compiler.compiler")
    if compiler is None:
        return {}
    found = {}
    for each in gc.get_objects():
        if type(each) is compiler.CompiledKernel:
            handle, binary = each.__dict__.get("function"), each.__dict__.get("asm", {}).get("cubin")
            if handle and binary:
                found[int(handle)] = hashlib.sha256(binary).hexdigest()[:16]
    return found


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
