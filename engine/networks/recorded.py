"""What a region was given and gave in the network, as a safetensors file beside its task: inputs and outputs of a few
calls, the weights of one place. Its name holds the hash of its content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors.torch import save

from engine.evaluator.checks.recordings import WEIGHT, input_name
from storage import files

HASH_LENGTH = 16


def tensors(
    calls: Sequence[tuple[Sequence[torch.Tensor], Sequence[torch.Tensor]]], weights: Mapping[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """What the file holds: of each call its inputs and outputs, and the weights by their names in the task."""
    held = {f"{WEIGHT}{name}": tensor for name, tensor in weights.items()}
    for number, (inputs, outputs) in enumerate(calls):
        held |= {input_name(number, place): tensor for place, tensor in enumerate(inputs)}
        held |= {f"call{number}.output{place}": tensor for place, tensor in enumerate(outputs)}
    return {name: tensor.detach().cpu().contiguous().clone() for name, tensor in held.items()}


def bytes_of(held: Mapping[str, torch.Tensor]) -> int:
    """What they take on disk."""
    return sum(tensor.numel() * tensor.element_size() for tensor in held.values())


def write(folder: Path, held: Mapping[str, torch.Tensor]) -> str:
    """Write the file, and return its name.

    Raises:
        OSError: the disk is full or may not be written.
    """
    content = save(dict(held))
    name = f"recorded-{hashlib.sha256(content).hexdigest()[:HASH_LENGTH]}.safetensors"
    files.replace(folder / name, content)
    return name
