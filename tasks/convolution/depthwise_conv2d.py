import torch
import torch.nn as nn


class Model(nn.Module):
    """Each channel is convolved with a kernel of its own."""

    def __init__(self, channels: int, kernel_size: int):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, kernel_size, groups=channels, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x of shape (batch_size, channels, height, width); returns (batch_size, channels, ...)."""
        return self.conv(x)


batch_size = 16
channels = 64
kernel_size = 3
height = 512
width = 512


def get_inputs():
    return [torch.rand(batch_size, channels, height, width)]


def get_init_inputs():
    return [channels, kernel_size]
