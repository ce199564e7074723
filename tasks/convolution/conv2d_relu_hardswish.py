import torch
import torch.nn as nn


class Model(nn.Module):
    """A convolution with bias, then ReLU, then x * clamp((x + 3) / 6, 0, 1): three operators that one kernel can do."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x of shape (batch_size, in_channels, height, width); returns (batch_size, out_channels, ...)."""
        x = torch.relu(self.conv(x))
        return x * torch.clamp((x + 3) / 6, 0, 1)


batch_size = 128
in_channels = 8
out_channels = 64
kernel_size = 3
height = 128
width = 128


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size]
