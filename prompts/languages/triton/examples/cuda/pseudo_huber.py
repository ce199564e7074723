import torch
import torch.nn as nn
import triton
import triton.language as tl

# Example: the mean of a function of two tensors. Programs stay and walk over the whole tensor with a tile of partial sums in
# registers; a second small launch adds up what each of them found, in a fixed order.

PROGRAMS, TILE = 1024, 2048


@triton.jit
def partial_sums(x, y, partial, n, TILE: tl.constexpr):
    total = tl.zeros((TILE,), tl.float32)
    step = tl.num_programs(0).to(tl.int64) * TILE
    for first in range(tl.program_id(0).to(tl.int64) * TILE, n, step):
        at = first + tl.arange(0, TILE)
        # Equal values where nothing is there: their loss is 0.
        off = tl.load(x + at, mask=at < n, other=0.0) - tl.load(y + at, mask=at < n, other=0.0)
        square = off * off
        total += square / (1.0 + tl.sqrt(1.0 + square))
    tl.store(partial + tl.program_id(0), tl.sum(total, axis=0))


@triton.jit
def mean_of_partials(partial, out, n, PROGRAMS: tl.constexpr):
    tl.store(out, tl.sum(tl.load(partial + tl.arange(0, PROGRAMS)), axis=0) / n)


def pseudo_huber(x, y):
    partial = torch.empty(PROGRAMS, dtype=torch.float32, device=x.device)
    out = torch.empty((), dtype=torch.float32, device=x.device)
    partial_sums[(PROGRAMS,)](x, y, partial, x.numel(), TILE=TILE, num_warps=8)
    mean_of_partials[(1,)](partial, out, x.numel(), PROGRAMS=PROGRAMS)
    return out


class ModelNew(nn.Module):
    def forward(self, x, y):
        return pseudo_huber(x.contiguous(), y.contiguous())
