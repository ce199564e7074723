import torch
import torch.nn as nn


class Model(nn.Module):
    """Layer normalisation over all dimensions but the first, with a weight and a bias per element."""

    def __init__(self, shape: tuple):
        super().__init__()
        self.norm = nn.LayerNorm(shape)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x of shape (batch_size, features, height, width); returns the same shape."""
        return self.norm(x)


batch_size = 16
features = 64
height = 256
width = 256


def get_inputs():
    return [torch.rand(batch_size, features, height, width)]


def get_init_inputs():
    return [(features, height, width)]
