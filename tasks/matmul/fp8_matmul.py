import torch
import torch.nn as nn


class Model(nn.Module):
    """Product of two FP8 matrices with one scale each, in bfloat16."""

    def __init__(self):
        super().__init__()

    def forward(
        self, A: torch.Tensor, B: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor
    ) -> torch.Tensor:
        """A of shape (M, K) and B of shape (N, K) in float8_e4m3fn, scales of shape (1,); returns A @ B.T of shape (M, N)."""
        return torch._scaled_mm(A, B.t(), scale_a, scale_b, out_dtype=torch.bfloat16)


M = 4096
K = 4096
N = 4096


def get_inputs():
    A = (torch.randn(M, K) * 32).to(torch.float8_e4m3fn)
    B = (torch.randn(N, K) * 32).to(torch.float8_e4m3fn)
    return [A, B, torch.rand(1) / 32 + 0.01, torch.rand(1) / 32 + 0.01]


def get_init_inputs():
    return []
