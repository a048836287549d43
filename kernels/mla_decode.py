"""Split-KV decode attention over one shared latent row a token (MLA as DeepSeek-V4 uses it), with attention sinks.

For request b (one query token), head h and the rows x_j (j < length[b]) of its KV cache, where row j is key and value:

    s_j = <q[b, h], x_j> / sqrt(512)
    out[b, h] = sum_j exp(s_j) x_j / (sum_j exp(s_j) + exp(sink[h]))

    q        [batch, heads, 512]       bf16, fp16 (torch back end: also fp32); 512 = 448 without position + 64 with
    kv       [batch, kv_len, 512]      layout contiguous, dtype of q
             [pages, page_size, 512]   layout paged: a pool bigger than needed
    table    [batch, pages a request]  int32, layout paged: the page that holds positions p * page_size and on
    lengths  [batch]                   int32, 0..kv_len; a request of length 0 gives zeros
    sink     [heads]                   fp32, a logit: it only adds to the denominator
    out      [batch, heads, 512]       dtype of q

The rows of a request are cut into `nsplit` runs of whole tiles of `block_n` rows. One CTA takes one run for `block_h`
heads and leaves the run's softmax-weighted mean and log-sum-exp; the merge weighs the means by exp(lse - max lse), the
sink being one more run, of mean 0. With nsplit 1 the first kernel finishes the job itself. The Triton kernels are in
`mla_decode_triton.py`; here are the torch back end, the reference and what perfplan asks of a kernel.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Mapping
from typing import Any

import torch

try:
    import triton
except ImportError:  # the torch back end works without
    triton = None
else:
    from kernels import mla_decode_triton

ROW = 512
LOG2E = math.log2(math.e)
SCALE = ROW**-0.5
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
MOST_WAVE_SPLITS = 16  # wave-aware looks no further: a split costs the merge 2 KB a head, which the rule leaves out
MOST_SPLITS = 128  # the merge is unrolled over them
SHARED_BYTES = {"80": 167936, "86": 102400, "89": 102400, "90": 233472, "100": 233472, "120": 102400}  # of an SM
REGISTER_BYTES = 262144  # of an SM


def cdiv(a: int, b: int) -> int:
    """a / b, rounded up."""
    return -(-a // b)


def row_indices(table: torch.Tensor | None, position: torch.Tensor, kv: torch.Tensor) -> torch.Tensor:
    """Rows of kv.view(-1, 512) that hold `position` [batch, n] of each request."""
    if table is None:
        return torch.arange(kv.shape[0], device=kv.device)[:, None] * kv.shape[1] + position
    page_size = kv.shape[1]
    return table.gather(1, position // page_size) * page_size + position % page_size


def decode_torch(
    q: torch.Tensor, kv: torch.Tensor, table: torch.Tensor | None, lengths: torch.Tensor, sink: torch.Tensor,
    out: torch.Tensor, *, nsplit: int, block_n: int, longest: int,
) -> None:  # fmt: skip
    """The same computation in torch: runs of whole tiles, one after the other, then the merge; arithmetic in fp32."""
    query = q.float() * (SCALE * LOG2E)
    run = ((lengths + block_n - 1) // block_n + nsplit - 1) // nsplit * block_n  # rows of a run, for each request
    width = cdiv(cdiv(longest, block_n), nsplit) * block_n
    means, lses = [], []
    for split in range(nsplit):
        begin = run * split
        position = begin[:, None] + torch.arange(width, device=q.device)
        valid = position < torch.minimum(begin + run, lengths)[:, None]
        position = torch.minimum(position, (lengths - 1).clamp(min=0)[:, None]).long()
        rows = kv.view(-1, ROW)[row_indices(table, position, kv)].float()
        score = torch.where(valid[:, None], query @ rows.transpose(1, 2), -math.inf)
        lse = torch.logsumexp(score * math.log(2), 2) * LOG2E
        weight = torch.exp2(score - lse.nan_to_num(neginf=0.0)[..., None])  # an empty run: exp2(-inf - 0) = 0
        means.append(weight @ rows)
        lses.append(lse)
    parts = torch.stack([*lses, (sink * LOG2E).expand_as(lses[0])])  # the sink is one more run, of mean 0
    share = torch.softmax(parts * math.log(2), 0)[:-1]
    merged = (torch.stack(means) * share[..., None]).sum(0)
    out.copy_(torch.where((lengths > 0)[:, None, None], merged, 0.0))


def reference_float64(
    q: torch.Tensor, kv: torch.Tensor, table: torch.Tensor | None, lengths: torch.Tensor, sink: torch.Tensor
) -> torch.Tensor:
    """The formula at the top in float64, request by request, from the inputs as they are."""
    out = torch.zeros(q.shape, dtype=torch.float64, device=q.device)
    for request, length in enumerate(lengths.tolist()):
        if length:
            position = torch.arange(length, device=q.device).expand(q.shape[0], length)
            rows = kv.view(-1, ROW)[row_indices(table, position, kv)[request]].double()
            score = torch.cat([q[request].double() @ rows.T * SCALE, sink.double()[:, None]], 1)
            out[request] = torch.softmax(score, 1)[:, :-1] @ rows
    return out


def wave_aware_nsplit(base: int, slots: int, tiles: int) -> int:
    """The split count with the fewest waves x iterations; the smaller one of equals.

    base: CTAs of one split; slots: CTAs that run at once; tiles: KV tiles of a request.
    waves = ceil(base * nsplit / slots), iterations = ceil(tiles / nsplit).
    """
    return min(
        range(1, max(1, min(tiles, MOST_WAVE_SPLITS)) + 1),
        key=lambda nsplit: cdiv(base * nsplit, slots) * cdiv(tiles, nsplit),
    )


class MlaDecode:
    """Split-KV MLA decode attention of DeepSeek-V4-Flash: 64 query heads over one shared latent KV row of 512."""

    axes: Mapping[str, Any] = {
        "batch": int,
        "kv_len": int,
        "heads": 64,
        "dtype": ["bf16", "fp16", "fp32"],
        "layout": ["contiguous", "paged"],
        "page_size": 64,
        "lengths": ["full", "ragged"],
    }
    knobs: Mapping[str, Any] = {
        "nsplit": {
            "default": 2,
            "type": int,
            "min": 1,
            "words": ["wave-aware"],
            "help": "runs that KV rows are cut into",
        },
        "block_h": {"default": 32, "min": 16, "help": "heads of a CTA, a power of 2; wgmma needs 64"},
        "block_n": {"default": 32, "min": 16, "help": "KV rows of a tile, a power of 2"},
        "num_warps": [4, 2, 8, 16],
        "num_stages": {"default": 3, "min": 1, "help": "KV tiles in flight, the one in use counted"},
        "backend": {
            "default": "auto",
            "choices": ["auto", "triton", "torch"],
            "help": "auto: triton on a GPU, else torch",
        },
    }
    tolerance = 6.7e-3

    def inputs(self, point: Mapping[str, Any], seed: int, device: str) -> dict[str, torch.Tensor]:
        """Normal q, kv and sink. Ragged lengths are spread evenly over 0..kv_len (both occur), in random order."""
        batch, kv_len, heads, dtype = point["batch"], point["kv_len"], point["heads"], DTYPES[point["dtype"]]
        generator = torch.Generator(device).manual_seed(seed)
        lengths = torch.tensor(_lengths(point), dtype=torch.int32, device=device)
        tensors = {
            "q": torch.empty(batch, heads, ROW, dtype=dtype, device=device).normal_(generator=generator),
            "lengths": lengths[torch.randperm(batch, generator=generator, device=device)],
            "sink": torch.empty(heads, device=device).normal_(generator=generator),
        }
        if point["layout"] == "paged":
            pages, size = cdiv(kv_len, point["page_size"]), _pool_pages(point)
            shuffled = torch.randperm(size, generator=generator, device=device)[: batch * pages]
            tensors["table"] = shuffled.view(batch, pages).int()
            shape = (size, point["page_size"], ROW)
        else:
            shape = (batch, kv_len, ROW)
        tensors["kv"] = torch.empty(shape, dtype=dtype, device=device).normal_(generator=generator)
        return tensors

    def adversarial(self, point: Mapping[str, Any], seed: int, device: str) -> dict[str, torch.Tensor]:
        """Hard inputs: nearly one-hot softmax, ties over a whole request, empty and short requests, dominant sinks."""
        tensors = self.inputs({**point, "lengths": "ragged"}, seed, device)
        tensors["q"] *= 8
        tensors["kv"][0] = tensors["kv"][0, :1].clone()
        tensors["sink"][0] = 40.0
        tensors["sink"][-1] = -40.0
        return tensors

    def outputs(self, point: Mapping[str, Any]) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
        """out [batch, heads, 512] in the dtype of q."""
        return {"out": ((point["batch"], point["heads"], ROW), DTYPES[point["dtype"]])}

    def reference(self, point: Mapping[str, Any], inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """out in float64."""
        return {"out": reference_float64(**_arguments(inputs))}

    def prepare(
        self,
        point: Mapping[str, Any],
        config: Mapping[str, Any],
        inputs: Mapping[str, torch.Tensor],
        outputs: Mapping[str, torch.Tensor],
    ) -> Callable[[], Any]:
        """The call to be timed. Scratch is allocated here; the torch back end allocates its temporaries in the call."""
        arguments = {**_arguments(inputs), "out": outputs["out"]}
        q, nsplit = inputs["q"], config["nsplit"]
        backend = _backend(config, q.device.type)
        _check(point, config, backend, q.device.type)
        if backend == "torch":
            longest = int(inputs["lengths"].max())
            tile = {"nsplit": nsplit, "block_n": config["block_n"], "longest": longest}
            return functools.partial(decode_torch, **arguments, **tile)
        shape = (point["batch"], nsplit, point["heads"])
        mean = q.new_empty((*shape, ROW), dtype=torch.float32) if nsplit > 1 else None
        lse = q.new_empty(shape, dtype=torch.float32) if nsplit > 1 else None
        scratch = {"mean": mean, "lse": lse}
        launch = mla_decode_triton.decode
        return functools.partial(launch, **arguments, **scratch, scale=SCALE, nsplit=nsplit, **_tile(config))

    def resolve(self, point: Mapping[str, Any], config: Mapping[str, Any], device: Mapping[str, Any]) -> dict[str, Any]:
        """nsplit wave-aware -> a number: slots = SMs x CTAs an SM, base = batch x head blocks.

        The torch back end works through a batch item by item: there a slot is a processor core and base is the batch.
        """
        if config["nsplit"] != "wave-aware":
            return dict(config)
        tiles = cdiv(point["kv_len"], config["block_n"])
        if _backend(config, device["kind"]) == "torch":
            nsplit = wave_aware_nsplit(point["batch"], os.cpu_count() or 1, tiles)
        else:
            slots = device["sm_count"] * self.ctas_per_sm(point, config, device)
            nsplit = wave_aware_nsplit(self.grid(point, {**config, "nsplit": 1}, device), slots, tiles)
        return {**config, "nsplit": nsplit}

    def ctas_per_sm(self, point: Mapping[str, Any], config: Mapping[str, Any], device: Mapping[str, Any]) -> int:
        """CTAs of the partial kernel that an SM holds.

        Read from the compiled kernel where `device` is the GPU of this process. Elsewhere assumed: shared memory for q
        and the KV tiles in flight (num_stages - 1, or num_stages with wgmma), registers for twice the accumulator.
        """
        if triton and torch.cuda.is_available() and torch.cuda.get_device_name() == device.get("name"):
            page = point["page_size"] if point["layout"] == "paged" else 0
            return mla_decode_triton.ctas_per_sm(point["heads"], DTYPES[point["dtype"]], page, **_tile(config))
        arch = "".join(filter(str.isdigit, str(device.get("arch", ""))))
        wgmma = arch == "90" and config["block_h"] >= 64
        tiles = config["num_stages"] if wgmma else max(config["num_stages"] - 1, 1)
        taken = (config["block_h"] + tiles * config["block_n"]) * ROW * DTYPES[point["dtype"]].itemsize + 2048
        registers = REGISTER_BYTES // (2 * config["block_h"] * ROW * 4)
        return max(1, min(SHARED_BYTES.get(arch, 0) // taken, registers))

    def work(self, point: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, int]:
        """bytes: KV rows, q and out once (scratch may stay in L2); flops: two products of heads x rows x 512."""
        rows = sum(_lengths(point))
        row_bytes = ROW * DTYPES[point["dtype"]].itemsize
        moved = (rows + 2 * point["batch"] * point["heads"]) * row_bytes
        return {"bytes": moved, "flops": 4 * point["heads"] * rows * ROW}

    def grid(self, point: Mapping[str, Any], config: Mapping[str, Any], device: Mapping[str, Any]) -> int:
        """CTAs of the partial kernel: batch x head blocks x nsplit."""
        return point["batch"] * cdiv(point["heads"], config["block_h"]) * config["nsplit"]

    def memory(self, point: Mapping[str, Any]) -> int:
        """Bytes of an input set with its output, and scratch for as many splits as wave-aware may choose."""
        paged = point["layout"] == "paged"
        rows = _pool_pages(point) * point["page_size"] if paged else point["batch"] * point["kv_len"]
        items = point["batch"] * point["heads"]
        scratch = items * MOST_WAVE_SPLITS * (ROW + 1) * 4
        return (rows + 2 * items) * ROW * DTYPES[point["dtype"]].itemsize + scratch


def _lengths(point: Mapping[str, Any]) -> list[int]:
    """Lengths of the requests, in rising order: kv_len each, or spread evenly over 0..kv_len."""
    batch, kv_len = point["batch"], point["kv_len"]
    if point["lengths"] == "full" or batch == 1:
        return [kv_len] * batch
    return [kv_len * index // (batch - 1) for index in range(batch)]


def _pool_pages(point: Mapping[str, Any]) -> int:
    """Pages of the paged pool: a quarter more than the requests need."""
    needed: int = point["batch"] * cdiv(point["kv_len"], point["page_size"])
    return needed + needed // 4 + 1


def _arguments(inputs: Mapping[str, torch.Tensor]) -> dict[str, Any]:
    return {name: inputs.get(name) for name in ("q", "kv", "table", "lengths", "sink")}


def _tile(config: Mapping[str, Any]) -> dict[str, int]:
    return {name: config[name] for name in ("block_h", "block_n", "num_warps", "num_stages")}


def _backend(config: Mapping[str, Any], device_kind: str) -> str:
    if config["backend"] != "auto":
        return str(config["backend"])
    return "triton" if triton and device_kind != "cpu" else "torch"


def _check(point: Mapping[str, Any], config: Mapping[str, Any], backend: str, device_kind: str) -> None:
    """Raise ValueError for a configuration that cannot work. Too much shared memory is left to Triton to report."""
    if not isinstance(config["nsplit"], int):
        raise ValueError(f"nsplit {config['nsplit']!r} is a policy: resolve() turns it into a number")
    for knob, least in (("nsplit", 1), ("block_n", 16), ("block_h", 16), ("num_warps", 1), ("num_stages", 1)):
        if config[knob] < least:
            raise ValueError(f"{knob} {config[knob]}: at least {least}")
    for knob in ("block_h", "block_n", "num_warps"):
        if config[knob] & (config[knob] - 1):
            raise ValueError(f"{knob} {config[knob]}: must be a power of 2")
    if backend == "torch":
        return
    if triton is None:
        raise ValueError("backend triton: Triton is not installed; backend torch runs without")
    if config["nsplit"] > MOST_SPLITS:
        raise ValueError(f"nsplit {config['nsplit']}: the merge takes at most {MOST_SPLITS}")
    if point["dtype"] == "fp32":
        raise ValueError("dtype fp32: for the torch back end only; use bf16 or fp16")
    if mla_decode_triton.INTERPRETED and point["dtype"] == "bf16":
        raise ValueError("Triton's interpreter silently gets bf16 products wrong: check numerics with dtype fp16")
    if device_kind == "cpu" and not mla_decode_triton.INTERPRETED:
        raise ValueError("backend triton needs a GPU; use backend torch, or TRITON_INTERPRET=1 to check numerics")
