"""Networks as a capture would have left them: a small transformer with two workloads, and as many regions as asked."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from storage import files as disk
from storage.networks import files
from storage.networks.files import NetworkFolder
from storage.networks.records import (
    CaptureEnded,
    CaptureStarted,
    CompiledKernel,
    Event,
    Form,
    ModuleFacts,
    Network,
    PlaceTime,
    Region,
    RegionLimited,
    RegionUse,
    TensorFacts,
    WorkloadFacts,
)

GPU = "NVIDIA H100 80GB HBM3"
LAYERS = 6
SCALE = {"prefill": 1.0, "decode": 0.05}
# Of one call of prefill, in milliseconds, by what a layer is made of.
PARTS = {
    "norm1": ("LayerNorm", 0.11), "attn": ("Attention", 0.40), "attn.qkv": ("Linear", 0.52),
    "attn.out": ("Linear", 0.18), "norm2": ("LayerNorm", 0.11), "mlp": ("MLP", 0.04), "mlp.up": ("Linear", 0.70),
    "mlp.act": ("NewGELU", 0.36), "mlp.down": ("Linear", 0.68),
}  # fmt: skip
TASK = '''"""NewGELU as tiny calls it."""

import math

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


def get_inputs():
    return [torch.randn(8, 512, 3072)]


def get_init_inputs():
    return []
'''


def network(name: str = "tiny", *, is_gpu: bool = True) -> Network:
    """What a capture of the transformer found."""
    layers = [f"layers.{number}" for number in range(LAYERS)]
    modules = [ModuleFacts("", "TinyLM", 42_000_000), ModuleFacts("embed", "Embedding", 8_000_000)]
    modules += [ModuleFacts("layers", "ModuleList"), ModuleFacts("head", "Linear", 8_000_000)]
    modules += [ModuleFacts(layer, "Block", 4_000_000) for layer in layers]
    modules += [ModuleFacts(f"{layer}.{part}", kind) for layer in layers for part, (kind, _) in PARTS.items()]
    return Network(
        name, "app.py:make", "eval", GPU if is_gpu else "cpu", 0, time.time() - 3600, 94.0,
        {"torch": "2.9.0"},
        tuple(map(_workload if is_gpu else _on_a_processor, SCALE)), tuple(modules),
        tuple(one for workload in SCALE for one in _times(workload)),
        tuple(one for workload in SCALE for one in _regions(workload)),
        tuple(one for workload in SCALE for one in _kernels(workload)), "",
        ("decode: torch.compile broke the graph at `past_key_values.update`, so it is compiled in 2 pieces.",),
    )  # fmt: skip


def _workload(name: str) -> WorkloadFacts:
    eager = 22.4 * SCALE[name] + 0.3
    return WorkloadFacts(
        name, 1.0 if name == "prefill" else 8.0, (eager, 1.01 * eager, 0.99 * eager), 1.02 * eager,
        0.93 * eager if name == "prefill" else 0.74 * eager, round(3.1e9 * (0.2 + SCALE[name])),
        (0.72 * eager, 0.73 * eager, 0.715 * eager), "", 0 if name == "prefill" else 1,
    )  # fmt: skip


def _on_a_processor(name: str) -> WorkloadFacts:
    failed = "torch.compile failed: no C++ compiler was found"
    return replace(_workload(name), device_ms=None, peak_bytes=None, compiled_ms=(), compiled_note=failed)


def _times(workload: str) -> Iterator[PlaceTime]:
    scale = SCALE[workload]
    total = 0.0
    for path, ms in (("embed", 0.2), ("head", 1.9)):
        total += ms * scale
        yield PlaceTime(workload, path, 1, ms * scale, ms * scale)
    for number in range(LAYERS):
        layer = f"layers.{number}"
        inclusive = 0.0
        for part, (_, ms) in PARTS.items():
            inner = sum(other for name, (_, other) in PARTS.items() if name.startswith(f"{part}."))
            inclusive += ms * scale
            yield PlaceTime(workload, f"{layer}.{part}", 1, (ms + inner) * scale, ms * scale)
        total += inclusive + 0.02 * scale
        yield PlaceTime(workload, layer, 1, inclusive + 0.02 * scale, 0.02 * scale)
    yield PlaceTime(workload, "", 1, total + 0.05 * scale, 0.05 * scale)


def _use(workload: str, calls: int, ms: float, *, is_shared: bool = False) -> tuple[RegionUse, ...]:
    eager = calls * ms * SCALE[workload]
    return (RegionUse(workload, calls, eager, 0.6 * eager if ms > 0.1 else None, is_shared),)


def _regions(workload: str) -> Iterator[Region]:
    suffix, tokens = ("", 512) if workload == "prefill" else ("_one_token", 1)
    hidden = TensorFacts("x", (8, tokens, 3072), "float32", (tokens * 3072, 3072, 1), -4.8, 4.7)
    weight = TensorFacts("weight", (3072, 768), "float32", (768, 1), -0.11, 0.12, is_constant=True)
    for part, kind, kernel_class, reason in (
        ("mlp.act", "NewGELU", "activation", ""), ("attn", "Attention", "attention", ""),
        ("mlp.up", "Linear", "matmul", ""), ("mlp.down", "Linear", "matmul", ""),
        ("norm1", "LayerNorm", "reduction", ""), ("attn.out", "Linear", "matmul", ""),
        ("norm2", "LayerNorm", "reduction", "it draws random numbers, and a task must give one answer"),
    ):  # fmt: skip
        inner = PARTS["attn.qkv"][1] + PARTS["attn.out"][1] if part == "attn" else 0.0
        name = part.replace(".", "_") + suffix
        yield Region(
            name, Form.MODULE, kind, tuple(f"layers.{n}.{part}" for n in range(LAYERS)),
            _use(workload, LAYERS, PARTS[part][1] + inner, is_shared=part == "norm1"),
            operators={"mul": 4, "pow": 1, "tanh": 1, "add": 2}, inputs=(hidden,),
            outputs=(replace(hidden, name="output", low=-0.17),), parameters=(weight,) if kind == "Linear" else (),
            flop=19_327_352_832 if kind == "Linear" else 0, min_bytes=100_663_296, kernel_class=kernel_class,
            before=("linear",), after=("linear", "layer_norm"), inside=f"attn{suffix}" if part == "attn.out" else "",
            task="" if reason else f"{files.REGIONS}/{name}/task.py", reason=reason, recorded_bytes=201_326_592,
            own_error=3.1e-7, text_error=2.2e-8,
        )  # fmt: skip
    name = f"add_layer_norm{suffix}"
    yield Region(
        name, Form.FUSED, "add+layer_norm", tuple(f"layers.{n}" for n in range(LAYERS)),
        _use(workload, LAYERS, 0.15), tuple(f"layers.{n}{part}" for n in range(LAYERS) for part in ("", ".norm2")),
        {"add": 1, "layer_norm": 1}, (hidden,), kernel_class="reduction", task=f"{files.REGIONS}/{name}/task.py",
    )  # fmt: skip
    name = f"embed{suffix}"
    yield Region(
        name, Form.MODULE, "Embedding", ("embed",), _use(workload, 1, 0.2),
        operators={"embedding": 1}, kernel_class="other", task=f"{files.REGIONS}/{name}/task.py",
    )  # fmt: skip


def _kernels(workload: str) -> Iterator[CompiledKernel]:
    scale = SCALE[workload]
    for part in ("attn.qkv", "attn.out", "mlp.up", "mlp.down"):
        places = tuple(f"layers.{n}.{part}" for n in range(LAYERS))
        yield CompiledKernel(workload, "ampere_sgemm_128x64_tn", LAYERS, LAYERS * PARTS[part][1] * 0.95 * scale, places)
    fused = tuple(f"layers.{n}.{part}" for n in range(LAYERS) for part in ("mlp.act", "mlp", "norm2"))
    yield CompiledKernel(workload, "triton_poi_fused_add_gelu_native_layer_norm_3", LAYERS, 1.1 * scale, fused)
    yield CompiledKernel(workload, "Memcpy DtoD (Device -> Device)", 2, 0.04 * scale)


# Of one call of prefill.
LIMITS = {"mlp_act": 0.11, "attn": 0.31, "mlp_up": 0.40, "mlp_down": 0.38, "norm1": 0.03, "add_layer_norm": 0.05}


def _limits(found: Network) -> Iterator[RegionLimited]:
    for region in found.regions:
        name = region.name.removesuffix("_one_token")
        if name in LIMITS:
            scale = SCALE[region.uses[0].workload]
            yield RegionLimited(region.name, LIMITS[name] * scale, "memory", found.device)


def begin(name: str, *events: Event) -> NetworkFolder:
    """The folder of a capture that has come as far as these events."""
    folder = files.folder_of(name)
    disk.make_folder(folder.path)
    files.append(folder, *events)
    return folder


def write_network(found: Network, *, has_limits: bool = True) -> NetworkFolder:
    """Lay the folder out as a capture that is whole has left it."""
    folder = begin(found.name, CaptureStarted(found.entry, found.mode, found.device, 1))
    for region in found.regions:
        if region.task:
            path = folder.path / region.task
            path.parent.mkdir(parents=True, exist_ok=True)
            disk.replace(path, TASK)
    files.write_network(folder, found)
    files.append(folder, CaptureEnded())
    if has_limits:
        files.append(folder, *_limits(found))
    return folder


def with_regions(count: int, name: str = "many") -> Network:
    """A network of so many regions, each of one place, the first of them the longest."""
    base = network(name)
    paths = [f"blocks.{number}" for number in range(count)]
    lengths = [1 / (1 + number) for number in range(count)]
    scale = 20.0 / (sum(lengths) or 1.0)
    times, regions = [], []
    for workload in SCALE:
        root = sum(lengths) * scale * SCALE[workload]
        times += [PlaceTime(workload, "", 1, root, 0.0)]
        for path, length in zip(paths, lengths, strict=True):
            times.append(
                PlaceTime(workload, path, 1, length * scale * SCALE[workload], length * scale * SCALE[workload])
            )
    for number, (path, length) in enumerate(zip(paths, lengths, strict=True)):
        regions.append(Region(
            f"block_{number:03d}", Form.MODULE, "Block", (path,), _use("prefill", 1, length * scale),
            operators={"relu": 1}, kernel_class="activation", task=f"{files.REGIONS}/block_{number:03d}/task.py",
        ))  # fmt: skip
    modules = (base.modules[0], ModuleFacts("blocks", "ModuleList"), *(ModuleFacts(path, "Block") for path in paths))
    return replace(base, modules=modules, times=tuple(times), regions=tuple(regions), kernels=())
