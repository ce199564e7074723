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
        # Scales of keys and values act on the query and on the result: the caches are converted exactly, and only once.
        query = (query.float() * key_scale.repeat_interleave(query.shape[1] // keys.shape[1], dim=0)).to(query.dtype)
        mixed = F.scaled_dot_product_attention(query, keys.to(query.dtype), values.to(query.dtype), enable_gqa=True)
        return (mixed.float() * value_scale.repeat_interleave(query.shape[1] // keys.shape[1], dim=0)).to(query.dtype)


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
