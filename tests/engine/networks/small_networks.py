"""Two small networks with the traits of real ones: names for arguments, dicts in and out, numbered layers, one scale of
epsilon that differs, tied weights, integers, in-place operators, running statistics, a part that no graph holds."""

from typing import Any

import torch
from torch import nn
from torch.nn import functional

WIDTH = 64
Made = tuple[nn.Module, list[tuple[str, float, tuple[Any, ...], dict[str, Any]]]]


class Norm(nn.Module):
    def __init__(self, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


class Attention(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number  # no work depends on it
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor | None = None) -> tuple[torch.Tensor, None]:
        q, k, v = (part.unflatten(-1, (4, -1)).transpose(1, 2) for part in self.qkv(hidden).chunk(3, -1))
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        out: torch.Tensor = self.out(mixed.transpose(1, 2).flatten(2))
        return out, None


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate, self.up = nn.Linear(WIDTH, 2 * WIDTH, bias=False), nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.down = nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.down(functional.silu(self.gate(x)) * self.up(x))
        return out


class Layer(nn.Module):
    def __init__(self, number: int, eps: float) -> None:
        super().__init__()
        self.first, self.second = Norm(), Norm(eps)
        self.attention, self.feed = Attention(number), Gated()

    def forward(self, hidden: torch.Tensor, *, mask: torch.Tensor | None = None) -> torch.Tensor:
        hidden = hidden + self.attention(hidden=self.first(hidden), mask=mask)[0]
        out: torch.Tensor = hidden + self.feed(self.second(hidden))
        return out


class Speaker(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(100, WIDTH)
        self.layers = nn.ModuleList([Layer(number, 1e-3 if number == 2 else 1e-5) for number in range(3)])
        self.norm, self.head = Norm(), nn.Linear(WIDTH, 100, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
        hidden = self.embed(tokens)
        for layer in self.layers:
            hidden = layer(hidden, mask=mask)
        return {"logits": self.head(self.norm(hidden)), "hidden": hidden}


class Seer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True))
        self.bag, self.sequence = nn.EmbeddingBag(50, 16, mode="sum"), nn.LSTM(16, 16, batch_first=True)
        self.pick, self.head = Pick(), nn.Linear(16, 5)

    def forward(self, batch: dict[str, torch.Tensor]) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        seen = self.stem(batch["image"]).flatten(2).transpose(1, 2)
        steps, _ = self.sequence(seen)
        tags = self.bag(batch["tags"], batch["starts"])
        return self.head(steps[:, -1] + tags), {"picked": self.pick(steps)}


class Pick(nn.Module):
    """As many rows as are positive: no graph has that."""

    def forward(self, steps: torch.Tensor) -> torch.Tensor:
        return steps[steps.mean(-1) > 0].sum(0)


def speaker() -> Made:
    tokens = torch.randint(0, 100, (2, 48))
    mask = torch.ones(48, 48, dtype=torch.bool).tril()
    return Speaker(), [
        ("prefill", 1.0, (tokens,), {"mask": mask}),
        ("one more", 8.0, (), {"tokens": tokens[:, :1]}),
    ]


def seer() -> Made:
    network = Seer()
    for name, buffer in network.named_buffers():
        if name.endswith(("_mean", "_var")):
            buffer.uniform_(0.5, 1.5)
    batch = {"image": torch.randn(4, 3, 32, 32), "tags": torch.randint(0, 50, (12,)), "starts": torch.arange(0, 12, 3)}
    return network, [("picture", 1.0, (batch,), {})]


def half() -> Made:
    network, workloads = speaker()
    return network.to(torch.bfloat16), workloads


def nothing() -> Made:
    return Speaker(), []


def failing() -> Made:
    network, _ = speaker()
    return network, [("wrong", 1.0, (torch.full((2, 4), 1000),), {})]
