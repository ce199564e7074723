"""What a module was given in a real network, out of the file that a capture wrote beside a task. Decides nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

WEIGHT = "weight."
_INPUT = re.compile(r"call(\d+)\.input(\d+)")


def input_name(call: int, number: int) -> str:
    """Of a tensor in the file; both count from 0."""
    return f"call{call}.input{number}"


class Unreadable(Exception):
    """A file that is not there or holds something else; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Recording:
    """Inputs of a few calls, in the order of the task's tensors, and the weights by the task's names."""

    calls: tuple[tuple[torch.Tensor, ...], ...]
    weights: Mapping[str, torch.Tensor]


def read(path: str) -> Recording:
    """What the file holds.

    Raises:
        Unreadable: it cannot be read here.
    """
    if not Path(path).is_file():
        raise Unreadable(
            f"there is no {path}, which holds what the network gave this module: judge it where the network was "
            "captured, or take `recorded` out of the task's [policy]"
        )
    try:
        held = load_file(path)
    except (SafetensorError, OSError) as error:
        raise Unreadable(f"{path} cannot be read ({error}): capture the network again") from error
    calls: dict[int, dict[int, torch.Tensor]] = {}
    for name, tensor in held.items():
        if match := _INPUT.fullmatch(name):
            calls.setdefault(int(match[1]), {})[int(match[2])] = tensor
    ordered = tuple(tuple(inputs[place] for place in sorted(inputs)) for _, inputs in sorted(calls.items()))
    weights = {name.removeprefix(WEIGHT): tensor for name, tensor in held.items() if name.startswith(WEIGHT)}
    return Recording(ordered, weights)
