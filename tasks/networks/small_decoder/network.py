"""A small decoder of the Llama kind in plain PyTorch, float32, with random weights from a fixed seed.

`make()` is what `network capture` wants. Norm, rotary embedding, attention and activation are written out in
operators.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

VOCABULARY = 512
WIDTH = 128
HEADS = 4
HIDDEN = 768  # width of the feed-forward part
BLOCKS = 3
SEED = 0


class RMSNorm(nn.Module):
    """Each row over its root mean square, times a weight."""

    def __init__(self, width: int, eps: float = 1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        upcast = x.float()
        mean_square = upcast.pow(2).mean(-1, keepdim=True)
        return self.weight * (upcast * torch.rsqrt(mean_square + self.eps)).type_as(x)


class Rotary(nn.Module):
    """Rotary embedding: turns pairs of elements of a head by angles that grow with the position."""

    def __init__(self, head_width: int, base: float = 10_000.0):
        super().__init__()
        exponents = torch.arange(0, head_width, 2).float() / head_width
        self.register_buffer("frequencies", base**-exponents, persistent=False)

    def forward(self, x: Tensor) -> Tensor:  # (batch, heads, tokens, head width)
        positions = torch.arange(x.size(-2), device=x.device, dtype=torch.float32)
        angles = torch.outer(positions, self.frequencies)
        cosines, sines = torch.cat((angles, angles), -1).cos(), torch.cat((angles, angles), -1).sin()
        first, second = x.chunk(2, dim=-1)
        return x * cosines + torch.cat((-second, first), -1) * sines


class CausalAttention(nn.Module):
    """Softmax of scaled scores over the keys up to each query, times the values; without parameters."""

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:  # each (batch, heads, tokens, width)
        scores = torch.matmul(queries, keys.transpose(-2, -1)) / math.sqrt(queries.size(-1))
        positions = torch.arange(queries.size(-2), device=queries.device)
        later = positions[None, :] > positions[:, None]
        return torch.matmul(scores.masked_fill(later, float("-inf")).softmax(-1), values)


class SelfAttention(nn.Module):
    """Projections around the attention of all heads."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width, bias=False)
        self.output = nn.Linear(width, width, bias=False)
        self.rotary = Rotary(width // heads)
        self.attention = CausalAttention()

    def forward(self, x: Tensor) -> Tensor:
        queries, keys, values = (self._heads(project(x)) for project in (self.query, self.key, self.value))
        mixed = self.attention(self.rotary(queries), self.rotary(keys), values)
        return self.output(mixed.transpose(1, 2).reshape(x.shape))

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class SwiGLU(nn.Module):
    """The activation of the feed-forward part; without parameters."""

    def forward(self, gate: Tensor, up: Tensor) -> Tensor:
        return nn.functional.silu(gate) * up


class FeedForward(nn.Module):
    """Two products, their activation, and the product back to the width."""

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)
        self.activation = SwiGLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.activation(self.gate(x), self.up(x)))


class Block(nn.Module):
    """Attention and feed-forward, each behind a norm and added to what came in."""

    def __init__(self):
        super().__init__()
        self.attention_norm = RMSNorm(WIDTH)
        self.attention = SelfAttention(WIDTH, HEADS)
        self.feed_forward_norm = RMSNorm(WIDTH)
        self.feed_forward = FeedForward(WIDTH, HIDDEN)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.feed_forward_norm(x))


class Decoder(nn.Module):
    """Tokens (batch, tokens) to logits (batch, tokens, vocabulary)."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.norm = RMSNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def make() -> tuple[nn.Module, list[tuple[str, float, tuple[Tensor, ...], dict[str, object]]]]:
    """The network and its workloads: two long prompts, and half as often four short ones."""
    torch.manual_seed(SEED)
    network = Decoder().eval()
    for parameter in network.parameters():
        if parameter.dim() == 1:  # the weights of norms, which are all one at first
            nn.init.uniform_(parameter, 0.5, 1.5)
    long_prompts = torch.randint(VOCABULARY, (2, 512))
    short_prompts = torch.randint(VOCABULARY, (4, 32))
    return network, [("prefill", 1.0, (long_prompts,), {}), ("short prompts", 0.5, (short_prompts,), {})]
