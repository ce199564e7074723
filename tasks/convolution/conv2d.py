import torch
import torch.nn as nn


class Model(nn.Module):
    """A convolution with a square kernel, stride 1, without padding or bias."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x of shape (batch_size, in_channels, height, width); returns (batch_size, out_channels, ...)."""
        return self.conv(x)


batch_size = 16
in_channels = 16
out_channels = 128
kernel_size = 3
height = 1024
width = 1024


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size]
