import torch
import torch.nn as nn


class Model(nn.Module):
    """Layer normalisation over all dimensions but the first."""

    def __init__(self, normalized_shape):
        super().__init__()
        self.norm = nn.LayerNorm(normalized_shape)

    def forward(self, x):
        """x of shape (batch_size, features, dim1, dim2); returns the same shape."""
        return self.norm(x)


batch_size = 16
features = 64
dim1 = 256
dim2 = 256


def get_inputs():
    return [torch.rand(batch_size, features, dim1, dim2)]


def get_init_inputs():
    return [(features, dim1, dim2)]
