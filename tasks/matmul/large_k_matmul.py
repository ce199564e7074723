import torch
import torch.nn as nn


class Model(nn.Module):
    """Matrix multiplication C = A @ B, small result, long sums."""

    def __init__(self):
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """A of shape (M, K), B of shape (K, N); returns (M, N)."""
        return torch.matmul(A, B)


M = 256
N = 256
K = 524288


def get_inputs():
    A = torch.rand(M, K)
    B = torch.rand(K, N)
    return [A, B]


def get_init_inputs():
    return []
