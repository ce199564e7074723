"""A product of tiles through descriptors that the host makes.

Task: square_matmul N=1024
Verdict: passed
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def matmul_kernel(a, b, c, N, TILE: tl.constexpr, DEPTH: tl.constexpr):
    m, n = tl.program_id(0) * TILE, tl.program_id(1) * TILE
    total = tl.zeros((TILE, TILE), tl.float32)
    for k in range(0, N, DEPTH):
        total += tl.dot(a.load([m, k]), b.load([k, n]), input_precision="tf32x3")
    c.store([m, n], total)


class ModelNew(nn.Module):
    def forward(self, a, b):
        c, N = torch.empty_like(a), a.shape[0]
        from_a = TensorDescriptor.from_tensor(a.contiguous(), [64, 32])
        from_b = TensorDescriptor.from_tensor(b.contiguous(), [32, 64])
        to_c = TensorDescriptor.from_tensor(c, [64, 64])
        matmul_kernel[(triton.cdiv(N, 64), triton.cdiv(N, 64))](from_a, from_b, to_c, N, TILE=64, DEPTH=32)
        return c
