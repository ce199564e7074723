"""Networks as a capture would have left them: a small transformer with two workloads, and as many regions as asked; and
proofs of kernels in them, in every state that one can be left in."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum

from storage import files as disk
from storage.networks import files
from storage.networks.files import NetworkFolder
from storage.networks.records import (
    COMPILED,
    EAGER,
    CaptureEnded,
    CaptureStarted,
    ChosenKernel,
    CompiledKernel,
    Engaged,
    Event,
    Form,
    LeftOut,
    ModuleFacts,
    Network,
    OriginalTimed,
    Parity,
    PlaceTime,
    ProofEnded,
    ProofProgressed,
    ProofStarted,
    Region,
    RegionLimited,
    RegionRun,
    RegionTried,
    RegionUse,
    Speed,
    StackMeasured,
    TensorFacts,
    Verdict,
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


class Left(StrEnum):
    """How a proof was left."""

    AT_WORK = "at work"
    BROKEN_OFF = "broken off"
    NOTHING_KEPT = "nothing kept"
    WHOLE = "whole"


# What came of each region's kernel, in the order of the trials, and the whole's speed-up with it in place.
TRIALS = {
    "attn": (Verdict.KEPT, 1.062, "1.062x the network (1.059 to 1.065), torch.compile"),
    "mlp_act": (Verdict.KEPT, 1.041, "1.041x the network (1.038 to 1.044), torch.compile"),
    "mlp_up": (Verdict.NO_GAIN, 1.001, "1.001x the network (0.998 to 1.004), torch.compile: within the noise"),
    "mlp_down": (Verdict.WRONG, None, "decode: logits is 0.012 away from float64, and the network itself 3.1e-07; "
                 "2e-06 is allowed"),
    "norm1": (Verdict.NOT_ENGAGED, None, "decode: 5 of 6 calls reach the kernel"),
    "embed": (Verdict.UNFIT, None, "Embedding is called with, or returns, an object that is no tensor, number, tuple, "
              "list or dict"),
    "attn_one_token": (Verdict.CRASHED, None, "its process ended by SIGSEGV"),
    "add_layer_norm": (Verdict.KEPT, 1.012, "1.012x the network (1.009 to 1.015), torch.compile"),
}  # fmt: skip
COVERED = "attn_out"
SWITCHED_OFF = "mlp_act_one_token"


def speed(workload: str, way: str, factor: float, *, before_way: str = "", noise: float = 0.003) -> Speed:
    """A way with kernels that make it so much faster, against the same way, or another one, without."""
    eager = 22.4 * SCALE[workload] + 0.3
    before = eager * (0.72 if (before_way or way) == COMPILED else 1.0)
    low, high = factor - noise, factor + noise
    return Speed(workload, before_way or way, way, before, before / factor, factor, low, high, 240, 31 << 26, 30 << 26)


def chosen(region: str) -> ChosenKernel:
    """The kernel of a region's run."""
    return ChosenKernel(region, f"run-{region.replace('_', '-')}", "k1", 1.84, 1.81, 1.87)


def tried(region: str, verdict: Verdict, factor: float | None, why: str, beside: tuple[str, ...] = ()) -> RegionTried:
    """A trial as it ends with this verdict."""
    seen = 5 if verdict is Verdict.NOT_ENGAGED else LAYERS
    engaged = tuple(Engaged(name, LAYERS, seen if name == "decode" else LAYERS, 2 * seen) for name in SCALE)
    error = 0.012 if verdict is Verdict.WRONG else 4.2e-7
    parity = tuple(Parity(name, "logits", error, 3.1e-7, 2e-6, "float64", 1.0) for name in SCALE)
    speeds = tuple(speed(name, COMPILED, factor) for name in SCALE) if factor else ()
    is_called = verdict not in (Verdict.UNFIT, Verdict.CRASHED, Verdict.LEFT_OUT)
    is_compared = is_called and verdict is not Verdict.NOT_ENGAGED
    return RegionTried(
        region, verdict, why, beside, engaged if is_called else (), parity if is_compared else (), speeds
    )


def stack(kept: tuple[str, ...], factor: float) -> StackMeasured:
    """All that was kept, faster by this factor."""
    ways = [(EAGER, factor + 0.15), (COMPILED, factor)]
    speeds = tuple(speed(name, way, faster) for way, faster in ways for name in SCALE)
    left_out = tuple(LeftOut(name, 1.01 + 0.02 * n, 1.006 + 0.02 * n, 1.014 + 0.02 * n) for n, name in enumerate(kept))
    parity = tuple(Parity(name, "logits", 4.4e-7, 3.1e-7, 2e-6, "float64", 1.0) for name in SCALE)
    return StackMeasured(kept, speeds, speeds[2:], parity, (), left_out, "24 of 24 greedy tokens are the same")


def proof_events(left: Left, number: int = 1) -> list[Event]:
    """A proof from its start to where it was left."""
    started = ProofStarted(number, tuple(map(chosen, TRIALS)), (SWITCHED_OFF,), (EAGER, COMPILED))
    events: list[Event] = [started]
    events.append(RegionTried(COVERED, Verdict.LEFT_OUT, "attn has work in common and saves more"))
    events += [OriginalTimed(name, way, 22.0) for way in started.ways for name in SCALE]
    kept: tuple[str, ...] = ()
    for count, (region, (verdict, factor, why)) in enumerate(TRIALS.items()):
        events.append(ProofProgressed(f"putting back {region}", region))
        if left in (Left.AT_WORK, Left.BROKEN_OFF) and count == len(TRIALS) // 2:
            return events
        if left is Left.NOTHING_KEPT and verdict is Verdict.KEPT:
            verdict, factor, why = Verdict.NO_GAIN, 0.993, "0.993x the network (0.990 to 0.996): it costs time in place"
        events.append(tried(region, verdict, factor, why, kept))
        kept += (region,) if verdict is Verdict.KEPT else ()
    events.append(stack(kept, 1.115) if kept else StackMeasured((), (), ()))
    return [*events, ProofEnded()]


def write_proof(folder: NetworkFolder, left: Left, number: int = 1) -> int | None:
    """Journal a proof; the lock of one at work, which is for the caller to close."""
    lock = files.hold_proof(folder) if left is Left.AT_WORK else None
    files.append(folder, *(RegionRun(region, chosen(region).run_id) for region in TRIALS), *proof_events(left, number))
    return lock
