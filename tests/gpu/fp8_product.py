"""A task: a product of two FP8 matrices that its text converts and scales."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor) -> torch.Tensor:
        return ((a.float() * scale_a) @ (b.float() * scale_b).t()).to(torch.bfloat16)


M, K, N = 64, 256, 96


def get_inputs() -> list[torch.Tensor]:
    a, b = ((torch.randn(rows, K) * 32).to(torch.float8_e4m3fn) for rows in (M, N))
    return [a, b, torch.rand(M, 1) / 32 + 0.01, torch.rand(1) / 32 + 0.01]


def get_init_inputs() -> list[torch.Tensor]:
    return []
