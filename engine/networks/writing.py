"""A region's folder: the task's text, what stands beside it, and the tensors that it had in the network; and proof that
the text computes what the network's own operators do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from engine.networks import graphs, recorded, task_text
from engine.networks.task_text import Part
from storage import files
from storage.networks.records import TensorFacts

TASK, POLICY = "task.py", "task.toml"
HALVES = (torch.float16, torch.bfloat16)
MOST_DIFFERENCE = 1e-6
MOST_DIFFERENCE_OF_HALVES = 2e-2


class NoTask(Exception):
    """A region whose text does not compute what the network does; the message is the end of a sentence."""


@dataclass(frozen=True, slots=True)
class Written:
    """What was written, and how exactly the text computes what the network did."""

    text: str
    text_error: float
    own_error: float | None
    recorded_bytes: int


def part_text(part: Part) -> tuple[str, float]:
    """The readable text, or where that is wrong the plain one, and how far it is from the network.

    Raises:
        NoTask: both are wrong.
    """
    reason = ""
    for is_plain in (False, True):
        text = task_text.written(part, is_plain=is_plain)
        try:
            error = max(_difference(_result_of(text, part, inputs), outputs) for inputs, outputs in part.calls)
        except Exception as failure:  # noqa: BLE001 - any failure of a text is a reason not to write it
            reason = f"its text fails: {graphs.reason_of(failure)}"
            continue
        if error <= _most(part):
            return text, error
        reason = f"its text is {error:.1e} away from the network, so a call depends on more than its arguments"
    raise NoTask(reason)


def _result_of(text: str, part: Part, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    names: dict[str, Any] = {"__name__": "task"}
    exec(compile(text, "task.py", "exec"), names)
    device = inputs[0].device if inputs else next(iter(part.values.values())).device
    model = names["Model"]().to(device)
    model.load_state_dict({name: part.values[name] for name in part.state.values()})
    with torch.no_grad():
        result = model(*inputs)
        for tensor in names["get_inputs"]():
            if not isinstance(tensor, torch.Tensor):
                raise TypeError("an input is drawn that is no tensor")
        model(*(tensor.to(device) for tensor in names["get_inputs"]()))
    return list(result) if isinstance(result, tuple) else [result]


def _difference(out: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> float:
    worst = 0.0
    for mine, theirs in zip(out, expected, strict=True):
        if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
            raise TypeError(f"{tuple(mine.shape)} {mine.dtype} in place of {tuple(theirs.shape)} {theirs.dtype}")
        if not theirs.numel():
            continue
        wide = [
            torch.nan_to_num(tensor.to(torch.complex128 if tensor.is_complex() else torch.float64))
            for tensor in (mine, theirs)
        ]
        largest = float(wide[1].abs().max()) or 1.0
        worst = max(worst, float((wide[0] - wide[1]).abs().max()) / largest)
    return worst


def _most(part: Part) -> float:
    has_halves = any(tensor.dtype in HALVES for _, outputs in part.calls for tensor in outputs)
    return MOST_DIFFERENCE_OF_HALVES if has_halves else MOST_DIFFERENCE


def own_error(part: Part) -> float | None:
    """How far the network's own arithmetic is from float64 on the first recorded call; None where it cannot be told."""
    graph, (inputs, outputs) = part.graph, part.calls[0]
    try:
        with torch.no_grad():
            wide = graphs.run(
                graph, list(map(_wide, inputs)), state={name: _wide(value) for name, value in part.values.items()}
            )
        return _difference([tensor.double() for tensor in outputs], [wide[node].double() for node in part.outputs])
    except Exception:  # noqa: BLE001 - an operator that fixes its dtype meets float64
        return None


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor


def write(folder: Path, part: Part, *, is_training: bool) -> Written:
    """Write a region's folder.

    Raises:
        NoTask: no text computes what the network does.
        OSError: the disk is full or may not be written.
    """
    text, error = part_text(part)
    held = recorded.tensors(part.calls, {name: part.values[name] for name in dict.fromkeys(part.state.values())})
    files.make_folder(folder)
    name = recorded.write(folder, held)
    files.replace(folder / TASK, text)
    files.replace(folder / POLICY, policy_text(part, folder.name, name, is_training=is_training))
    return Written(text, error, own_error(part), recorded.bytes_of(held))


def policy_text(part: Part, region: str, recorded_name: str, *, is_training: bool) -> str:
    """The TOML file beside the task. Its place is told once all regions are known."""
    dtypes = {tensor.dtype for inputs, outputs in part.calls for tensor in (*inputs, *outputs)}
    dtypes |= {tensor.dtype for tensor in part.values.values()}
    precision = "half" if dtypes & set(HALVES) else "tf32" if _is_tf32(part) else "fp32"
    lines = [f"name = {json.dumps(region)}", f"title = {json.dumps(part.title)}", 'place = ""', "", "[policy]"]
    lines += [f'precision = "{precision}"', f'recorded = "{recorded_name}"']
    return "\n".join([*lines, *(["backward = true"] if is_training else []), ""])


def _is_tf32(part: Part) -> bool:
    is_on_gpu = any(tensor.is_cuda for inputs, _ in part.calls for tensor in inputs)
    return is_on_gpu and bool(torch.backends.cuda.matmul.allow_tf32) and any(map(graphs.is_product, part.nodes))


def facts_of(name: str, first: torch.Tensor, *, is_constant: bool = False) -> TensorFacts:
    """A tensor as it was met."""
    low = high = None
    if first.numel() and not first.is_complex():
        wide = first.double()
        finite = wide[torch.isfinite(wide)]
        low, high = (float(finite.min()), float(finite.max())) if finite.numel() else (None, None)
    dtype = str(first.dtype).removeprefix("torch.")
    return TensorFacts(name, tuple(first.shape), dtype, tuple(first.stride()), low, high, is_constant)
