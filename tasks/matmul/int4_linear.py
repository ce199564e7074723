import torch
import torch.nn as nn


class Model(nn.Module):
    """Product with weights of 4 bits: each group of inputs has a scale for each output."""

    def __init__(self, group: int):
        super().__init__()
        self.group = group

    def forward(self, x: torch.Tensor, packed: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        """x of shape (M, K) in bfloat16, packed (N, K / 2) in uint8, scales (N, K / group); returns (M, N).

        A byte holds two weights, the first in its lower half; 8 stands for zero.
        """
        numbers = torch.stack((packed & 15, packed >> 4), dim=-1).flatten(1).to(x.dtype) - 8
        weight = numbers.unflatten(1, (-1, self.group)) * scales.unsqueeze(-1)
        return x @ weight.flatten(1).t()


M = 16
K = 8192
N = 8192
group = 128


def get_inputs():
    x = torch.randn(M, K, dtype=torch.bfloat16)
    packed = torch.randint(0, 256, (N, K // 2), dtype=torch.uint8)
    scales = torch.rand(N, K // group).mul(0.01).add(0.005).to(torch.bfloat16)
    return [x, packed, scales]


def get_init_inputs():
    return [group]
