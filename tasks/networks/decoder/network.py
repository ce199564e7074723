"""A decoder of the Llama kind in plain PyTorch, bfloat16: 8 blocks of width 2,048, random weights from a fixed seed.

It is served as one serves such a network: each block keeps keys and values of its sequences in place. Workloads: a
prompt of 2,048 tokens (`prefill`), and the token after 2,047 others (`decode`), which comes 200 times as often.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

VOCABULARY = 32_000
WIDTH = 2_048
HEADS = 16
KEY_HEADS = 4  # each serves four heads of queries
HEAD_WIDTH = WIDTH // HEADS
HIDDEN = 5_632  # width of the feed-forward part
BLOCKS = 8
TOKENS = 2_048  # room for each sequence
DECODED, PROMPTED = 0, 1  # sequence that `decode` continues, sequence that `prefill` fills
SEED = 0


class RMSNorm(nn.Module):
    """Each row over its root mean square, in float32, times a weight."""

    def __init__(self, width: int, eps: float = 1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        upcast = x.float()
        return self.weight * (upcast * torch.rsqrt(upcast.pow(2).mean(-1, keepdim=True) + self.eps)).type_as(x)


class CacheAttention(nn.Module):
    """One query of each head over all kept keys; without parameters."""

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Queries (heads, head width); keys and values (key heads, tokens, head width)."""
        # of three ways to write it the fastest on an H200: with the heads of a group as rows of one product it takes
        # 1.4 times as long under torch.compile, as rows of queries 4 times
        mixed = functional.scaled_dot_product_attention(
            queries.view(1, HEADS, 1, HEAD_WIDTH), keys[None], values[None], enable_gqa=True
        )
        return mixed.view(HEADS, HEAD_WIDTH)


class SwiGLU(nn.Module):
    """Feed-forward part: a gated product, and one back to the width."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.up = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(functional.silu(self.gate(x)) * self.up(x))


def turned(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Rotary embedding of x (heads, tokens, head width)."""
    first, second = x.chunk(2, dim=-1)
    return x * cosines + torch.cat((-second, first), -1) * sines


class Block(nn.Module):
    """Attention and feed-forward part, each after a norm and added to what came in."""

    def __init__(self) -> None:
        super().__init__()
        self.attention_norm = RMSNorm(WIDTH)
        self.queries = nn.Linear(WIDTH, WIDTH, bias=False)
        self.keys = nn.Linear(WIDTH, KEY_HEADS * HEAD_WIDTH, bias=False)
        self.values = nn.Linear(WIDTH, KEY_HEADS * HEAD_WIDTH, bias=False)
        self.attention = CacheAttention()
        self.output = nn.Linear(WIDTH, WIDTH, bias=False)
        self.feed_norm = RMSNorm(WIDTH)
        self.feed = SwiGLU()
        kept = torch.randn(2, 2, KEY_HEADS, TOKENS, HEAD_WIDTH)  # keys and values of two sequences
        self.register_buffer("kept", kept, persistent=False)

    def forward(self, x: Tensor, cosines: Tensor, sines: Tensor, first: int) -> Tensor:
        """The same for x (tokens, width); `first` is the position of the first token."""
        tokens = x.size(0)
        normed = self.attention_norm(x)
        queries = self.queries(normed).view(tokens, HEADS, HEAD_WIDTH).transpose(0, 1)
        keys = self.keys(normed).view(tokens, KEY_HEADS, HEAD_WIDTH).transpose(0, 1)
        values = self.values(normed).view(tokens, KEY_HEADS, HEAD_WIDTH).transpose(0, 1)
        queries, keys = turned(queries, cosines, sines), turned(keys, cosines, sines)
        sequence = DECODED if tokens == 1 else PROMPTED
        kept_keys, kept_values = self.kept[sequence, 0], self.kept[sequence, 1]
        kept_keys[:, first : first + tokens] = keys
        kept_values[:, first : first + tokens] = values
        if tokens == 1:
            mixed = self.attention(queries.reshape(HEADS, HEAD_WIDTH), kept_keys, kept_values).view(1, WIDTH)
        else:
            heads = functional.scaled_dot_product_attention(
                queries[None], keys[None], values[None], is_causal=True, enable_gqa=True
            )
            mixed = heads[0].transpose(0, 1).reshape(tokens, WIDTH)
        x = x + self.output(mixed)
        return x + self.feed(self.feed_norm(x))


class Decoder(nn.Module):
    """Tokens to the logits of the token after them."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.norm = RMSNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        angles = torch.outer(
            torch.arange(TOKENS).float(), 10_000.0 ** -(torch.arange(0, HEAD_WIDTH, 2).float() / HEAD_WIDTH)
        )
        self.register_buffer("cosines", torch.cat((angles, angles), -1).cos(), persistent=False)
        self.register_buffer("sines", torch.cat((angles, angles), -1).sin(), persistent=False)

    def forward(self, tokens: Tensor, first: int) -> Tensor:
        x = self.embedding(tokens)
        end = first + tokens.size(0)
        for block in self.blocks:
            x = block(x, self.cosines[first:end], self.sines[first:end], first)
        return self.head(self.norm(x[-1:]))


def make() -> tuple[nn.Module, list[tuple[str, float, tuple[Tensor], dict[str, int]]]]:
    """The network with its workloads, for `network capture`."""
    torch.manual_seed(SEED)
    network = Decoder().to(torch.bfloat16).eval()
    prompt = torch.randint(VOCABULARY, (TOKENS,))
    return network, [
        ("prefill", 1.0, (prompt,), {"first": 0}),
        ("decode", 200.0, (prompt[-1:],), {"first": TOKENS - 1}),
    ]
