import torch
import torch.nn as nn


class Model(nn.Module):
    """Each matrix of a stack times the same matrix."""

    def __init__(self):
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """A of shape (N, M, K), B of shape (K, L); returns (N, M, L)."""
        return torch.matmul(A, B)


N = 16
M = 1024
K = 2048
L = 768


def get_inputs():
    A = torch.rand(N, M, K)
    B = torch.rand(K, L)
    return [A, B]


def get_init_inputs():
    return []
