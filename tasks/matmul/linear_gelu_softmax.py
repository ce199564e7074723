import torch
import torch.nn as nn


class Model(nn.Module):
    """A linear layer, then GELU, then softmax over its features."""

    def __init__(self, in_features: int, out_features: int):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x of shape (batch_size, in_features); returns (batch_size, out_features), rows summing to one."""
        return torch.softmax(torch.nn.functional.gelu(self.linear(x)), dim=1)


batch_size = 1024
in_features = 8192
out_features = 8192


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features]
