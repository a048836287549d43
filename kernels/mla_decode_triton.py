"""The Triton kernels of `mla_decode.py`, which has the formula and the shapes: `_partial`, `_merge` and their launcher.

Softmax runs in base 2 (`exp2` is one instruction): scores are scaled by log2(e) / sqrt(512), `lse` is to base 2.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
import triton.language as tl

LOG2E = math.log2(math.e)
MERGE_ROWS = 2  # output rows of a merge CTA
INTERPRETED = triton.knobs.runtime.interpret  # TRITON_INTERPRET=1 when this file was loaded


@triton.jit
def _rows(table_ptr, request, table_stride, start, length, PAGE: tl.constexpr, BLOCK_N: tl.constexpr):
    """Pool rows of positions start .. start + BLOCK_N - 1. Past the end the last row repeats, so loads need no mask."""
    last = tl.maximum(length - 1, 0)
    position = tl.minimum(start + tl.arange(0, BLOCK_N), last)
    if PAGE == 0:
        rows = request * table_stride + position
    elif PAGE % BLOCK_N == 0:  # a tile lies in one page
        page = tl.minimum(start, last) // PAGE
        rows = tl.load(table_ptr + request * table_stride + page) * PAGE + (position - page * PAGE)
    else:
        rows = tl.load(table_ptr + request * table_stride + position // PAGE) * PAGE + position % PAGE
    return rows.to(tl.int64)


@triton.jit
def _partial(
    q_ptr, kv_ptr, table_ptr, lengths_ptr, sink_ptr, out_ptr, mean_ptr, lse_ptr,
    heads, nsplit, table_stride, kv_stride, scale,
    PAGE: tl.constexpr, DIRECT: tl.constexpr,
    BLOCK_H: tl.constexpr, BLOCK_N: tl.constexpr, ROW: tl.constexpr,
):  # fmt: skip
    """One run of KV rows for BLOCK_H heads. Grid: (head blocks, nsplit, batch): CTAs that share rows run together."""
    split = tl.program_id(1)
    request = tl.program_id(2)
    length = tl.load(lengths_ptr + request)
    run = tl.cdiv(tl.cdiv(length, BLOCK_N), nsplit) * BLOCK_N
    begin = split * run
    end = tl.minimum(begin + run, length)

    head = tl.program_id(0) * BLOCK_H + tl.arange(0, BLOCK_H)
    column = tl.arange(0, ROW)
    here = (request * heads + head).to(tl.int64)[:, None] * ROW + column[None, :]
    q = tl.load(q_ptr + here, mask=head[:, None] < heads, other=0.0)
    peak = tl.full([BLOCK_H], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_H], tl.float32)
    acc = tl.zeros([BLOCK_H, ROW], tl.float32)

    # Indices are read one tile ahead: a tile's loads then wait for nothing, and num_stages counts tiles in flight
    rows = _rows(table_ptr, request, table_stride, begin, length, PAGE, BLOCK_N)
    for start in tl.range(begin, end, BLOCK_N):
        kv = tl.load(kv_ptr + rows[:, None] * kv_stride + column[None, :])
        rows = _rows(table_ptr, request, table_stride, start + BLOCK_N, length, PAGE, BLOCK_N)
        score = tl.dot(q, tl.trans(kv)) * scale
        # The branch also keeps the compiler from laying the first dot out for the second, which would have both warp
        # groups of a 64 x 64 tile compute all of it
        if start + BLOCK_N > end:
            score = tl.where((start + tl.arange(0, BLOCK_N) < end)[None, :], score, float("-inf"))
        higher = tl.maximum(peak, tl.max(score, 1))
        weight = tl.exp2(score - higher[:, None])
        fade = tl.exp2(peak - higher)
        total = total * fade + tl.sum(weight, 1)
        acc = tl.dot(weight.to(kv.dtype), kv, acc * fade[:, None])
        peak = higher

    if DIRECT:
        sink = tl.load(sink_ptr + head, mask=head < heads, other=0.0) * 1.4426950408889634  # log2(e)
        higher = tl.maximum(peak, sink)
        fade = tl.exp2(peak - higher)
        acc = acc * (fade / (total * fade + tl.exp2(sink - higher)))[:, None]
        tl.store(out_ptr + here, acc.to(out_ptr.dtype.element_ty), mask=head[:, None] < heads)
    else:
        slot = (request * nsplit + split).to(tl.int64) * heads + head
        tl.store(lse_ptr + slot, peak + tl.log2(total), mask=head < heads)  # -inf for an empty run
        acc = acc / total[:, None]
        written = tl.where(begin < end, heads, 0)  # the merge skips the mean of an empty run
        tl.store(mean_ptr + slot[:, None] * ROW + column[None, :], acc, mask=head[:, None] < written)


@triton.jit
def _merge(
    mean_ptr, lse_ptr, sink_ptr, out_ptr, heads, count,
    NSPLIT: tl.constexpr, SPLITS: tl.constexpr, BLOCK: tl.constexpr, ROW: tl.constexpr,
):  # fmt: skip
    """The sum of the runs' means, weighed by log-sum-exp, for BLOCK of the batch x heads output rows."""
    item = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = item < count
    head = item % heads
    slot = (item // heads).to(tl.int64) * NSPLIT * heads + head  # of split 0; the next split's is `heads` further
    split = tl.arange(0, SPLITS)
    there = live[:, None] & (split < NSPLIT)[None, :]
    lse = tl.load(lse_ptr + slot[:, None] + split[None, :] * heads, mask=there, other=float("-inf"))
    sink = tl.load(sink_ptr + head, mask=live, other=0.0) * 1.4426950408889634  # log2(e)
    peak = tl.maximum(tl.max(lse, 1), sink)
    total = tl.sum(tl.exp2(lse - peak[:, None]), 1) + tl.exp2(sink - peak)

    column = tl.arange(0, ROW)
    acc = tl.zeros([BLOCK, ROW], tl.float32)
    for s in tl.static_range(NSPLIT):
        lse_s = tl.load(lse_ptr + slot + s * heads, mask=live, other=float("-inf"))
        weight = tl.exp2(lse_s - peak) / total
        mask = (lse_s > float("-inf"))[:, None]  # the mean of an empty run was never written
        mean = tl.load(mean_ptr + (slot + s * heads)[:, None] * ROW + column[None, :], mask=mask, other=0.0)
        acc += weight[:, None] * mean
    out = out_ptr + item.to(tl.int64)[:, None] * ROW + column[None, :]
    tl.store(out, acc.to(out_ptr.dtype.element_ty), mask=live[:, None])


def decode(
    q: torch.Tensor, kv: torch.Tensor, table: torch.Tensor | None, lengths: torch.Tensor, sink: torch.Tensor,
    out: torch.Tensor, mean: torch.Tensor | None, lse: torch.Tensor | None, *,
    scale: float, nsplit: int, block_h: int, block_n: int, num_warps: int, num_stages: int,
) -> Any:  # fmt: skip
    """Launch the kernels on the current stream; shapes as in `mla_decode.py`. Returns the handle of the partial kernel.

    mean: [batch, nsplit, heads, 512] fp32 and lse: [batch, nsplit, heads] fp32 are scratch, None where nsplit is 1.
    Nothing is allocated and nothing waits, so the launches can be captured in a CUDA graph.
    """
    batch, heads, row = q.shape
    if kv.shape[-1] != row or kv.dtype != q.dtype or out.shape != q.shape:
        shapes = f"q {tuple(q.shape)} {q.dtype}, kv {tuple(kv.shape)} {kv.dtype}, out {tuple(out.shape)}"
        raise ValueError(f"{shapes}: do not fit together")
    if not (q.is_contiguous() and kv.is_contiguous() and out.is_contiguous()):
        raise ValueError("q, kv and out must be contiguous")
    if nsplit > 1 and (mean is None or lse is None or mean.shape != (batch, nsplit, heads, row)):
        raise ValueError(f"nsplit {nsplit} needs scratch of shape {(batch, nsplit, heads, row)}")
    handle = _partial[(triton.cdiv(heads, block_h), nsplit, batch)](
        q, kv, lengths if table is None else table, lengths, sink, out, mean, lse,
        heads, nsplit, kv.shape[1] if table is None else table.stride(0), row, scale * LOG2E,
        PAGE=0 if table is None else kv.shape[1], DIRECT=nsplit == 1,
        BLOCK_H=block_h, BLOCK_N=block_n, ROW=row, num_warps=num_warps, num_stages=num_stages,
    )  # fmt: skip
    if nsplit > 1:
        _merge[(triton.cdiv(batch * heads, MERGE_ROWS),)](
            mean, lse, sink, out, heads, batch * heads,
            NSPLIT=nsplit, SPLITS=triton.next_power_of_2(nsplit), BLOCK=MERGE_ROWS, ROW=row, num_warps=4,
        )  # fmt: skip
    return handle


def ctas_per_sm(
    heads: int, dtype: torch.dtype, page: int, *, block_h: int, block_n: int, num_warps: int, num_stages: int
) -> int:
    """CTAs of the partial kernel (nsplit > 1) that an SM of the current GPU holds. Compiles it, launches nothing."""
    fp32, int32 = torch.float32, torch.int32
    handle = _partial.warmup(
        dtype, dtype, int32, int32, fp32, dtype, fp32, fp32, heads, 2, 64, 512, 1.0,
        PAGE=page, DIRECT=False, BLOCK_H=block_h, BLOCK_N=block_n, ROW=512,
        num_warps=num_warps, num_stages=num_stages, grid=(1,),
    )  # fmt: skip
    try:
        handle._init_handles()  # loads the code; the registers are known only then
    except triton.runtime.errors.OutOfResources:
        return 1  # the launch will say so
    gpu = torch.cuda.get_device_properties()
    shared = gpu.shared_memory_per_multiprocessor // (-(-(handle.metadata.shared + 1024) // 128) * 128)
    registers = gpu.regs_per_multiprocessor // 4 // (-(-handle.n_regs * 32 // 256) * 256) * 4 // num_warps
    return max(1, min(shared, registers, gpu.max_threads_per_multi_processor // (32 * num_warps)))
