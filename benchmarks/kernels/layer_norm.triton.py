import torch
import torch.nn as nn
import triton
import triton.language as tl

# Two launches: mean and squared distance of every tile, then each program merges the tiles of its sample and normalises one.
TILE = 8192


@triton.jit
def tile_kernel(x, means, fars, TILE: tl.constexpr):
    tile = tl.program_id(0).to(tl.int64)
    v = tl.load(x + tile * TILE + tl.arange(0, TILE))
    mean = tl.sum(v) / TILE
    tl.store(means + tile, mean)
    tl.store(fars + tile, tl.sum((v - mean) * (v - mean)))


@triton.jit
def norm_kernel(
    x, means, fars, weight, bias, y, per_sample, eps, TILE: tl.constexpr, MOST: tl.constexpr
):
    tile = (tl.num_programs(0) - 1 - tl.program_id(0)).to(tl.int64)  # backwards: the end of x is still in L2
    sample, part = tile // per_sample, tile % per_sample
    one = tl.arange(0, MOST)
    is_tile = one < per_sample
    of_tiles = tl.load(means + sample * per_sample + one, mask=is_tile, other=0.0)
    mean = tl.sum(of_tiles) / per_sample
    shift = tl.where(is_tile, of_tiles - mean, 0.0)
    far = tl.sum(tl.load(fars + sample * per_sample + one, mask=is_tile, other=0.0) + TILE * shift * shift)
    scale = tl.rsqrt(far / per_sample / TILE + eps)
    at = tl.arange(0, TILE)
    v = tl.load(x + tile * TILE + at)
    w = tl.load(weight + part * TILE + at)
    b = tl.load(bias + part * TILE + at)
    tl.store(y + tile * TILE + at, (v - mean) * scale * w + b)


class ModelNew(nn.Module):
    def __init__(self, normalized_shape):
        super().__init__()
        self.norm = nn.LayerNorm(normalized_shape)

    def forward(self, x):
        x, each = x.contiguous(), self.norm.weight.numel()
        if each % TILE:
            raise ValueError(f"expected samples of a multiple of {TILE} elements")
        y, count = torch.empty_like(x), x.numel() // TILE
        means = torch.empty(count, dtype=torch.float32, device=x.device)
        fars = torch.empty(count, dtype=torch.float32, device=x.device)
        tile_kernel[(count,)](x, means, fars, TILE=TILE, num_warps=8)
        norm_kernel[(count,)](
            x, means, fars, self.norm.weight, self.norm.bias, y, each // TILE, self.norm.eps,
            TILE=TILE, MOST=triton.next_power_of_2(each // TILE), num_warps=8,
        )
        return y
