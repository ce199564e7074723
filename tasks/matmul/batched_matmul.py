import torch
import torch.nn as nn


class Model(nn.Module):
    """One matrix product per batch entry, C = A @ B."""

    def __init__(self):
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """A of shape (batch_size, m, k), B of shape (batch_size, k, n); returns (batch_size, m, n)."""
        return torch.bmm(A, B)


batch_size = 128
m = 512
k = 1024
n = 2048


def get_inputs():
    A = torch.rand(batch_size, m, k)
    B = torch.rand(batch_size, k, n)
    return [A, B]


def get_init_inputs():
    return []
