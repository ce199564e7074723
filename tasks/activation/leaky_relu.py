import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """x where it is positive, a hundredth of x elsewhere."""

    def __init__(self):
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x of any shape; returns the same shape."""
        return F.leaky_relu(x, negative_slope=0.01)


batch_size = 4096
dim = 393216


def get_inputs():
    x = torch.rand(batch_size, dim)
    return [x]


def get_init_inputs():
    return []
