import torch
import torch.nn as nn


class Model(nn.Module):
    """A diagonal matrix times a matrix, C = diag(A) @ B."""

    def __init__(self):
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """A of shape (N,), B of shape (N, M); returns (N, M)."""
        return torch.diag(A) @ B


N = 4096
M = 4096


def get_inputs():
    A = torch.rand(N)
    B = torch.rand(N, M)
    return [A, B]


def get_init_inputs():
    return []
