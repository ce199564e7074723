import torch
import torch.nn as nn


class Model(nn.Module):
    """Lower triangular matrices multiplied; so is the product."""

    def __init__(self):
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """A and B of shape (M, M), zero above the diagonal; returns (M, M)."""
        return torch.tril(torch.matmul(A, B))


M = 4096


def get_inputs():
    A = torch.tril(torch.rand(M, M))
    B = torch.tril(torch.rand(M, M))
    return [A, B]


def get_init_inputs():
    return []
