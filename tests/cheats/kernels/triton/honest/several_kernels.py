"""A softmax in three launches: the parts of each row, what they make together, and the result.

Task: softmax batch_size=8192 dim=16384
Verdict: passed
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def part_kernel(x, peaks, totals, cols, parts, TILE: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    at = part * TILE + tl.arange(0, TILE)
    v = tl.load(x + row.to(tl.int64) * cols + at, mask=at < cols, other=float("-inf"))
    peak = tl.max(v, 0)
    tl.store(peaks + row * parts + part, peak)
    tl.store(totals + row * parts + part, tl.sum(tl.exp(v - tl.where(peak == float("-inf"), 0.0, peak)), 0))


@triton.jit
def row_kernel(peaks, totals, tops, scales, parts, PARTS: tl.constexpr):
    row, part = tl.program_id(0), tl.arange(0, PARTS)
    peak = tl.load(peaks + row * parts + part, mask=part < parts, other=float("-inf"))
    total = tl.load(totals + row * parts + part, mask=part < parts, other=0.0)
    top = tl.max(peak, 0)
    base = tl.where(top == float("-inf"), 0.0, top)
    tl.store(tops + row, top)
    tl.store(scales + row, 1.0 / tl.sum(total * tl.exp(peak - base), 0))


@triton.jit
def result_kernel(x, tops, scales, y, cols, TILE: tl.constexpr):
    row, at = tl.program_id(0), tl.program_id(1) * TILE + tl.arange(0, TILE)
    place = row.to(tl.int64) * cols + at
    v = tl.load(x + place, mask=at < cols)
    tl.store(y + place, tl.exp(v - tl.load(tops + row)) * tl.load(scales + row), mask=at < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        (rows, cols), y = x.shape, torch.empty_like(x)
        parts = triton.cdiv(cols, 2048)
        peaks, totals = torch.empty(2, rows, parts, dtype=x.dtype, device=x.device)
        tops, scales = torch.empty(2, rows, dtype=x.dtype, device=x.device)
        part_kernel[(rows, parts)](x, peaks, totals, cols, parts, TILE=2048)
        row_kernel[(rows,)](peaks, totals, tops, scales, parts, PARTS=triton.next_power_of_2(parts))
        result_kernel[(rows, parts)](x, tops, scales, y, cols, TILE=2048)
        return y
