"""Tiles through descriptors that the kernel makes, with memory that an allocator gives.

Task: swish batch_size=4096 dim=16384
Verdict: passed
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


def memory(size, alignment, stream):
    return torch.empty(size, dtype=torch.int8, device="cuda")


@triton.jit
def swish_kernel(x, y, rows, cols, DOWN: tl.constexpr, ACROSS: tl.constexpr):
    row, col = tl.program_id(1) * DOWN, tl.program_id(0) * ACROSS
    source = tl.make_tensor_descriptor(x, shape=[rows, cols], strides=[cols, 1], block_shape=[DOWN, ACROSS])
    target = tl.make_tensor_descriptor(y, shape=[rows, cols], strides=[cols, 1], block_shape=[DOWN, ACROSS])
    v = source.load([row, col])
    target.store([row, col], v * tl.sigmoid(v))


class ModelNew(nn.Module):
    def forward(self, x):
        (rows, cols), y = x.shape, torch.empty_like(x)
        triton.set_allocator(memory)
        swish_kernel[(triton.cdiv(cols, 64), triton.cdiv(rows, 16))](x.contiguous(), y, rows, cols, DOWN=16, ACROSS=64)
        return y
