import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Attention of one new token for each sequence over keys and values kept in FP8, which groups of heads share."""

    def __init__(self):
        super().__init__()

    def forward(
        self,
        query: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        key_scale: torch.Tensor,
        value_scale: torch.Tensor,
    ) -> torch.Tensor:
        """query of shape (batch_size, heads, 1, width) in bfloat16; keys and values (batch_size, kv_heads, length, width)
        in float8_e4m3fn, their scales (kv_heads, 1, 1); returns the query's shape."""
        k = keys.to(query.dtype) * key_scale.to(query.dtype)
        v = values.to(query.dtype) * value_scale.to(query.dtype)
        return F.scaled_dot_product_attention(query, k, v, enable_gqa=True)


batch_size = 64
heads = 32
kv_heads = 8
length = 4096
width = 128


def get_inputs():
    query = torch.randn(batch_size, heads, 1, width, dtype=torch.bfloat16)
    keys, values = (
        (torch.randn(batch_size, kv_heads, length, width) * 32).to(torch.float8_e4m3fn) for _ in range(2)
    )
    scales = [(torch.rand(kv_heads, 1, 1) + 0.5) / 32 for _ in range(2)]
    return [query, keys, values, *scales]


def get_init_inputs():
    return []
