"""Kernels of a network's package in the place of operators that torch.compile traces, several beside each other."""

from __future__ import annotations

import copy
import importlib
import shutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from engine.networks import drafting, fusing, graphs, task_text
from engine.packaging import networks, packing
from engine.packaging.template.package._entries import Entry, Input, Region

NAME = "tilewright_fused_test"
CHANNELS, PIXELS, WIDER = 8, 6, 32
HEADS, ROOM = 2, 5

CONV_AND_NORM = f"""
import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.depthwise = nn.Conv2d({CHANNELS}, {CHANNELS}, 3, padding=1, groups={CHANNELS})
        self.norm = nn.LayerNorm({CHANNELS})

    def forward(self, x):
        seen = F.conv2d(x, self.depthwise.weight, self.depthwise.bias, [1, 1], [1, 1], [1, 1], {CHANNELS})
        return F.layer_norm(seen.permute([0, 2, 3, 1]), [{CHANNELS}], self.norm.weight, self.norm.bias, 1e-5)


def get_inputs():
    return [torch.randn(2, {PIXELS}, {PIXELS}, {CHANNELS}).permute(0, 3, 1, 2)]
"""

LINEAR_AND_GELU = """
import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn({outer}, {inner})), nn.Parameter(torch.randn({outer}))

    def forward(self, x):
        return F.gelu(F.linear(x, self.weight, self.bias))


def get_inputs():
    return [torch.randn({rows}, {inner})]
"""
MADE = """

def get_init_inputs():
    return []


made, ModelNew, example_inputs = Model, Model, get_inputs
"""


class Block(nn.Module):
    """A convolution of each channel, a norm, and a product with an activation, each reading the one before."""

    def __init__(self) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, groups=CHANNELS)
        self.norm = nn.LayerNorm(CHANNELS)
        self.widen, self.narrow = nn.Linear(CHANNELS, WIDER), nn.Linear(WIDER, CHANNELS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        inner = self.narrow(functional.gelu(self.widen(inner)))
        out: torch.Tensor = x + inner.permute(0, 3, 1, 2)
        return out


class Network(nn.Module):
    """Two blocks, then three equal products with activations, each reading the one before."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(Block(), Block())
        self.row = nn.ModuleList([nn.Linear(CHANNELS, CHANNELS) for _ in range(3)])

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x: torch.Tensor = self.blocks(images).mean((2, 3))
        for linear in self.row:
            x = functional.gelu(linear(x))
        return x


class Keeping(nn.Module):
    """Rotary queries over keys that it keeps in place."""

    kept: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.queries, self.keys = (nn.Linear(CHANNELS, CHANNELS, bias=False) for _ in range(2))
        self.register_buffer("kept", torch.randn(HEADS, ROOM, CHANNELS // HEADS))

    def forward(self, x: torch.Tensor, turn: torch.Tensor) -> torch.Tensor:
        queries = self.queries(x).view(1, HEADS, -1).transpose(0, 1)
        first, second = queries.chunk(2, dim=-1)
        queries = queries * turn.to(x.dtype) + torch.cat((-second, first), -1)
        self.kept[:, 2:3] = self.keys(x).view(1, HEADS, -1).transpose(0, 1)
        out: torch.Tensor = (queries.reshape(HEADS, 1, -1) @ self.kept.transpose(1, 2)).softmax(-1)
        return out


def kept_inputs() -> tuple[torch.Tensor, ...]:
    return torch.randn(1, CHANNELS), torch.randn(1, CHANNELS // HEADS)


def captured_text() -> str:
    """What a capture writes of the queries of `Keeping`."""
    network, inputs = Keeping(), kept_inputs()
    graph = graphs.trace(network, inputs, {})
    run = next(run for run in fusing.runs(graph) if run.state and graph.state[run.state[0]] == "queries.weight")
    values = graphs.run(graph, inputs, wanted=graph.nodes) | dict(zip(graph.inputs, inputs, strict=True))
    part = drafting.of_runs(network, graph, [run], values, 1).part
    assert part is not None
    return task_text.written(part).partition("\n\ndef get_init_inputs")[0]


TEXTS = {
    "conv and norm": CONV_AND_NORM,
    "widen": LINEAR_AND_GELU.format(rows=f"2, {PIXELS}, {PIXELS}", inner=CHANNELS, outer=WIDER),
    "row": LINEAR_AND_GELU.format(rows=2, inner=CHANNELS, outer=CHANNELS),
    "rotary": captured_text(),
}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """A package whose kernels are the very operators that they replace."""
    folder = tmp_path_factory.mktemp("fused")
    (folder / NAME).mkdir()
    for ours, theirs in networks.OURS.items():
        shutil.copyfile(packing.TEMPLATE / "package" / ours, folder / NAME / theirs)
    for number, text in enumerate(TEXTS.values()):
        (folder / NAME / f"module_{number}.py").write_text(text + MADE)
    entries = tuple(entry(number, text + MADE) for number, text in enumerate(TEXTS.values()))
    regions = tuple(Region(name, (number,)) for number, name in enumerate(TEXTS))
    (folder / NAME / "_table.py").write_text(
        f"from ._entries import Entry, Input, Region\nPACKAGE, SINGLE_CHILD = {NAME!r}, {{}}\n"
        f"ENTRIES = {entries!r}\nREGIONS = {regions!r}\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield importlib.import_module(NAME)


def entry(number: int, text: str) -> Entry:
    """What the table says of a kernel that is its own reference."""
    names: dict[str, Any] = {}
    exec(text, names)
    given, state = names["get_inputs"](), names["Model"]().state_dict()
    inputs = [f"x_{place}" if place else "x" for place in range(len(given))]
    return Entry(
        f"module_{number}", f"module_{number}", f"forward_{number}", "python", "cpu",
        tuple(
            Input(name, "float32", tuple(x.shape), () if x.is_contiguous() else x.stride())
            for name, x in zip(inputs, given, strict=True)
        ),
        tuple(Input(name, "float32", tuple(value.shape)) for name, value in state.items()), 0,
    )  # fmt: skip


def counted(
    package: ModuleType, network: nn.Module, given: torch.Tensor | tuple[torch.Tensor, ...], *names: str
) -> dict[tuple[str, str], int]:
    """What the package counts in a call with these regions' kernels, whose result is that of the network alone."""
    torch._dynamo.reset()
    counts = package._dispatch.counts
    counts.clear()
    inputs = (given,) if isinstance(given, torch.Tensor) else given
    with torch.no_grad():
        compiled = package.compile(copy.deepcopy(network), names, inner=package.EAGER)
        torch.testing.assert_close(compiled(*inputs), network(*inputs))
    return dict(counts)


@pytest.fixture
def images() -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(2, CHANNELS, PIXELS, PIXELS).contiguous(memory_format=torch.channels_last)


def test_a_kernel_takes_what_another_kernel_gives(package: ModuleType, images: torch.Tensor) -> None:
    network = Network().eval()
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    for names in (["conv and norm", "widen"], ["widen"], ["conv and norm", "widen", "row"]):
        found = counted(package, network, images, *names)
        places = {"conv and norm": 2, "widen": 2, "row": 3}
        assert found == {("kernel", f"{name}: {places[name]} in a compiled graph"): 1 for name in names}


def test_why_operators_are_left_to_pytorch_is_counted(package: ModuleType, images: torch.Tensor) -> None:
    network = Network().eval()
    contiguous = images.contiguous()
    assert counted(package, network, contiguous, "conv and norm", "widen") == {
        ("reference", "conv and norm: x lies otherwise in memory than the kernel was judged with"): 1,
        ("kernel", "widen: 2 in a compiled graph"): 1,
    }
    assert counted(package, network.double(), images.double(), "row") == {
        ("reference", "row: x is float64, the kernel takes float32"): 1
    }
    larger = torch.randn(3, CHANNELS, PIXELS, PIXELS)
    assert counted(package, network.float(), larger, "row") == {
        ("reference", f"row: {package._fused.OTHER_SIZES}"): 1
    }  # fmt: skip
    assert counted(package, Block().norm, torch.randn(2, CHANNELS), "row") == {
        ("reference", f"row: {package._fused.NOT_FOUND}"): 1
    }


def test_operators_of_a_network_that_keeps_keys_in_place_are_found_and_its_order_is_kept(package: ModuleType) -> None:
    assert ".split(" in TEXTS["rotary"]  # torch.export has taken the network's chunk apart
    assert counted(package, Keeping().eval(), kept_inputs(), "rotary") == {
        ("kernel", "rotary: 1 in a compiled graph"): 1
    }


class Overwriting(Keeping):
    """It changes what the queries are made of while they are made."""

    def forward(self, x: torch.Tensor, turn: torch.Tensor) -> torch.Tensor:
        x = x + 0.0
        queries = self.queries(x).view(1, HEADS, -1).transpose(0, 1)
        first, second = queries.chunk(2, dim=-1)
        turned = queries * turn
        x.mul_(2.0)
        out: torch.Tensor = turned + torch.cat((-second, first), -1)
        return out


def test_a_kernel_does_not_read_what_is_changed_in_place_between_its_operators(package: ModuleType) -> None:
    assert counted(package, Overwriting().eval(), kept_inputs(), "rotary") == {
        ("reference", f"rotary: {package._fused.CHANGED_BETWEEN}"): 1
    }
