import torch
import torch.nn as nn


class Model(nn.Module):
    """Matrix multiplication C = A @ B, large result, short sums."""

    def __init__(self):
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """A of shape (M, K), B of shape (K, N); returns (M, N)."""
        return torch.matmul(A, B)


M = 32768
N = 32768
K = 64


def get_inputs():
    A = torch.rand(M, K)
    B = torch.rand(K, N)
    return [A, B]


def get_init_inputs():
    return []
