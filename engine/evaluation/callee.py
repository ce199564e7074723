"""One model and its private input buffers: load, go, store. Runs in both workers, so both sides pay the same."""

from __future__ import annotations

import time
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import torch

from engine.evaluation import poison
from engine.evaluation.poison import Poison
from engine.machine import shared_tensors
from engine.machine.shared_tensors import SharedTensors, TensorSpec

# An aligned allocation needs a hole somewhat larger than itself.
SPARE = 1024
_clock = time.perf_counter_ns


class Callee:
    """Calls one model on inputs from the arena's group `inputs`; its outputs go to `outputs_group`."""

    def __init__(self, model: Any, shared: SharedTensors, specs: Sequence[TensorSpec], outputs_group: str) -> None:
        self._model = model
        self._shared = shared
        self._buffers = [shared_tensors.private_copy(spec, shared.device) for spec in specs]
        self._outputs_group = outputs_group
        self._outputs: Any = None
        self._kept: Any = None
        self._described: list[dict[str, Any]] = []

    def load(self, leaves: Sequence[Mapping[str, Any]], poisoned: Poison | None, slots: int) -> dict[str, Any]:
        """Copy contents into the same private buffers. `leaves` are get_inputs' items, tensors by number.

        On the host every call is asked for by itself, so there is one slot.
        The answer says where the buffers lie: the judge may put other contents there before the call.
        """
        for buffer, source in zip(self._buffers, self._shared["inputs"], strict=True):
            buffer.copy_(source)
        self._arguments = [self._buffers[leaf["tensor"]] if "tensor" in leaf else leaf["value"] for leaf in leaves]
        if poisoned:
            self._poison_free_memory(poisoned)
        return {"loaded": True, "buffers": [buffer.data_ptr() for buffer in self._buffers]}

    def go(self) -> dict[str, Any]:
        """The timed call, and where its outputs lie. They stay until the next call's have been told from them."""
        arguments = self._arguments
        with torch.no_grad():
            start = _clock()
            outputs = self._model(*arguments)
            nanoseconds = _clock() - start
        lent, held = storages_of(self._buffers), storages_of([*leaves_of(self._outputs), *leaves_of(self._kept)])
        self._described = [self._told(leaf, lent, held) for leaf in leaves_of(outputs)]
        self._outputs = outputs
        return {"ns": nanoseconds, "outputs": self._described, "container": type(outputs).__name__}

    def store(self, hold: bool, copies: bool) -> dict[str, Any]:
        """Describe the outputs and, if asked and they fit, copy them and the input buffers out for the judge."""
        found = self._outputs
        if copies:
            self._copy_out(found)
            for buffer, source in zip(self._buffers, self._shared["inputs"], strict=True):
                source.copy_(buffer)
        if not hold:
            self._outputs = None
        return {"outputs": self._described, "container": type(found).__name__}

    def keep(self) -> dict[str, Any]:
        """Go on holding the outputs stored last, however many calls follow."""
        self._kept = self._outputs
        return {"kept": True}

    def recall(self) -> dict[str, Any]:
        """Copy the outputs kept out once more."""
        self._copy_out(self._kept)
        return {"recalled": True}

    def _copy_out(self, found: Any) -> None:
        leaves, targets = leaves_of(found), self._shared[self._outputs_group]
        if len(leaves) == len(targets):
            for leaf, target in zip(leaves, targets, strict=True):
                if type(leaf) is torch.Tensor and leaf.shape == target.shape and leaf.dtype == target.dtype:
                    target.copy_(leaf)

    def _told(self, leaf: Any, lent: Container[int], held: Container[int]) -> dict[str, Any]:
        if type(leaf) is not torch.Tensor:
            return {"type": f"{type(leaf).__module__}.{type(leaf).__qualname__}"[:200]}
        if leaf.layout is not torch.strided:
            return {"type": f"tensor of layout {leaf.layout}"}
        address = storage_of(leaf)
        return {
            "type": "torch.Tensor",
            "shape": list(leaf.shape),
            "dtype": str(leaf.dtype).removeprefix("torch."),
            "device": leaf.device.type,
            "stride": list(leaf.stride()),
            "is_contiguous": leaf.is_contiguous(),
            "address": leaf.data_ptr(),
            "is_input": address in lent,
            "is_reused": address in held,
        }

    def _poison_free_memory(self, poisoned: Poison) -> None:
        """What `empty` hands out next has held poison, so that a forgotten write cannot pass by an old right answer."""
        blocks = [
            torch.empty(target.numel() + SPARE, dtype=target.dtype) for target in self._shared[self._outputs_group]
        ]
        poison.fill(blocks, poisoned)


def leaves_of(outputs: Any) -> list[Any]:
    """The tensors of a flat result."""
    return list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]


def storage_of(tensor: torch.Tensor) -> int:
    """Address of the memory that a tensor and its views share; 0 if they have none."""
    return int(tensor.untyped_storage().data_ptr())


def storages_of(leaves: Iterable[Any]) -> set[int]:
    """Addresses of the memory of those leaves that have some."""
    plain = (leaf for leaf in leaves if type(leaf) is torch.Tensor and leaf.layout is torch.strided)
    return {storage_of(leaf) for leaf in plain} - {0}
