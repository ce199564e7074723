"""ConvNeXt (tiny; Liu and others, 2022) in plain PyTorch, float16, random weights from a fixed seed; 64 images."""

from __future__ import annotations

import torch
from torch import Tensor, nn

WIDTHS = (96, 192, 384, 768)
DEPTHS = (3, 3, 9, 3)
IMAGES = 64
PIXELS = 224
CLASSES = 1_000
SEED = 0


class ChannelNorm(nn.LayerNorm):
    """Layer norm over the channels of images (batch, channels, height, width)."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNeXtBlock(nn.Module):
    """A 7 x 7 convolution of each channel, a norm, and two products over channels, added to what came in."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.widen = nn.Linear(width, 4 * width)
        self.activation = nn.GELU()
        self.narrow = nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x: Tensor) -> Tensor:
        inner = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        inner = self.narrow(self.activation(self.widen(inner))) * self.scale
        return x + inner.permute(0, 3, 1, 2)


def halved(width: int, wider: int) -> nn.Sequential:
    """Half the height and width, and more channels."""
    return nn.Sequential(ChannelNorm(width, eps=1e-6), nn.Conv2d(width, wider, 2, stride=2))


class ConvNeXt(nn.Module):
    """Images (batch, 3, height, width) to logits (batch, classes)."""

    def __init__(self) -> None:
        super().__init__()
        parts: list[nn.Module] = [
            nn.Sequential(nn.Conv2d(3, WIDTHS[0], 4, stride=4), ChannelNorm(WIDTHS[0], eps=1e-6))
        ]
        for stage, (width, depth) in enumerate(zip(WIDTHS, DEPTHS, strict=True)):
            if stage:
                parts.append(halved(WIDTHS[stage - 1], width))
            parts.extend(ConvNeXtBlock(width) for _ in range(depth))
        self.parts = nn.Sequential(*parts)
        self.norm = nn.LayerNorm(WIDTHS[-1], eps=1e-6)
        self.head = nn.Linear(WIDTHS[-1], CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.norm(self.parts(images).mean((2, 3))))


def make() -> tuple[nn.Module, list[tuple[str, float, tuple[Tensor], dict[str, object]]]]:
    """The network in channels-last layout, which is its fastest in PyTorch, and one workload, for `network capture`."""
    torch.manual_seed(SEED)
    network = ConvNeXt().half().eval().to(memory_format=torch.channels_last)
    images = torch.randn(IMAGES, 3, PIXELS, PIXELS, dtype=torch.float16).contiguous(memory_format=torch.channels_last)
    return network, [("images", 1.0, (images,), {})]
