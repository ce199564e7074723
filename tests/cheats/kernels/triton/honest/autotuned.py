"""Tile and warps by autotune, with a function that leaves out what is too large.

Task: swish batch_size=4096 dim=16384
Verdict: passed
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


def fitting(configs, arguments, **_given):
    return [one for one in configs if one.kwargs["TILE"] <= max(512, arguments["n"])]


@triton.autotune(
    configs=[triton.Config({"TILE": tile}, num_warps=warps) for tile in (512, 2048, 4096) for warps in (4, 8)],
    key=["n"],
    prune_configs_by={"early_config_prune": fitting},
)
@triton.jit
def swish_kernel(x, y, n, TILE: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    v = tl.load(x + at, mask=at < n)
    tl.store(y + at, v * tl.sigmoid(v), mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        swish_kernel[lambda chosen: (triton.cdiv(x.numel(), chosen["TILE"]),)](x.contiguous(), y, x.numel())
        return y
