"""K is split over programs, which add their parts to zeros.

Task: square_matmul N=1000
Verdict: passed
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(a, b, c, N, PART, TILE: tl.constexpr, DEPTH: tl.constexpr):
    m = tl.program_id(0) * TILE + tl.arange(0, TILE)
    n = tl.program_id(1) * TILE + tl.arange(0, TILE)
    begin = tl.program_id(2) * PART
    total = tl.zeros((TILE, TILE), tl.float32)
    for first in range(begin, min(begin + PART, N), DEPTH):
        k = first + tl.arange(0, DEPTH)
        u = tl.load(a + m[:, None] * N + k[None, :], mask=(m < N)[:, None] & (k < N)[None, :], other=0.0)
        v = tl.load(b + k[:, None] * N + n[None, :], mask=(k < N)[:, None] & (n < N)[None, :], other=0.0)
        total += tl.dot(u, v, input_precision="ieee")
    tl.atomic_add(c + m[:, None] * N + n[None, :], total, mask=(m < N)[:, None] & (n < N)[None, :])


class ModelNew(nn.Module):
    def forward(self, a, b):
        N = a.shape[0]
        c = torch.zeros(N, N, dtype=a.dtype, device=a.device)
        grid = (triton.cdiv(N, 64), triton.cdiv(N, 64), triton.cdiv(N, 512))
        matmul_kernel[grid](a.contiguous(), b.contiguous(), c, N, 512, TILE=64, DEPTH=32)
        return c
