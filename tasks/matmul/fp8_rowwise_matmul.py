import torch
import torch.nn as nn


class Model(nn.Module):
    """Product of FP8 activations with a scale for each row and FP8 weights with a scale for each output, in bfloat16."""

    def __init__(self):
        super().__init__()

    def forward(
        self, x: torch.Tensor, weight: torch.Tensor, scale_x: torch.Tensor, scale_w: torch.Tensor
    ) -> torch.Tensor:
        """x of shape (M, K) and weight of shape (N, K) in float8_e4m3fn, scale_x (M, 1), scale_w (1, N); returns (M, N)."""
        return torch._scaled_mm(x, weight.t(), scale_x, scale_w, out_dtype=torch.bfloat16)


M = 2048
K = 4096
N = 6144


def get_inputs():
    x = (torch.randn(M, K) * 32).to(torch.float8_e4m3fn)
    weight = (torch.randn(N, K) * 32).to(torch.float8_e4m3fn)
    return [x, weight, torch.rand(M, 1) / 32 + 0.01, torch.rand(1, N) / 32 + 0.01]


def get_init_inputs():
    return []
