"""One model on the GPU and its private input buffers: load, go, store. Runs in both workers, so both pay the same.

A turn is several calls, each on inputs of its own and after the L2 cache has been overwritten: one alone would be too
short for the judge's clock.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

import torch

from engine.evaluation.callee import SPARE, Callee, leaves_of, storages_of
from engine.evaluation.poison import Poison, fill
from engine.machine import device_memory, shared_tensors
from engine.machine.shared_tensors import SharedTensors, TensorSpec

# Twice, so that nothing of the inputs survives whatever the replacement rule.
FLUSHES = 2

_synchronize = torch.cuda.synchronize
_Event: Any = torch.cuda.Event


class DeviceCallee(Callee):
    """Calls one model on the inputs of each slot; slot 0 is what `store`, `keep` and `recall` are about."""

    def __init__(self, model: Any, shared: SharedTensors, specs: Sequence[TensorSpec], outputs_group: str) -> None:
        super().__init__(model, shared, specs, outputs_group)
        self._specs = specs
        self._slots = [self._buffers]
        self._marks = [_marks()]
        self._results: list[Any] = []
        cache = torch.cuda.get_device_properties().L2_cache_size
        self._flush = torch.empty(FLUSHES * cache, dtype=torch.uint8, device=shared.device)

    def load(self, leaves: Sequence[Mapping[str, Any]], poisoned: Poison | None, slots: int) -> dict[str, Any]:
        """Copy contents into every slot's buffers, and tell where those lie."""
        while len(self._slots) < slots:
            self._slots.append([shared_tensors.private_copy(spec, self._shared.device) for spec in self._specs])
            self._marks.append(_marks())
        del self._slots[slots:], self._marks[slots:]
        for buffers in self._slots:
            for buffer, source in zip(buffers, self._shared["inputs"], strict=True):
                buffer.copy_(source)
        self._calls = [
            [buffers[leaf["tensor"]] if "tensor" in leaf else leaf["value"] for leaf in leaves]
            for buffers in self._slots
        ]
        if poisoned:
            self._poison_free_memory(poisoned)
        return {"loaded": True, "buffers": [[_claim(buffer) for buffer in buffers] for buffers in self._slots]}

    def go(self) -> dict[str, Any]:
        """A turn: nanoseconds of its calls on the device in all, and where each call's outputs lie."""
        results = []
        with torch.no_grad():
            for arguments, (begin, end) in zip(self._calls, self._marks, strict=True):
                self._flush.zero_()
                begin.record()
                results.append(self._model(*arguments))
                end.record()
            _synchronize()
        nanoseconds = sum(begin.elapsed_time(end) for begin, end in self._marks) * 1e6
        calls = self._told_of(results)
        self._results, self._outputs, self._described = results, results[0], calls[0]["outputs"]
        return {"ns": max(1, round(nanoseconds)), **calls[0], "calls": calls}

    def _told_of(self, results: list[Any]) -> list[dict[str, Any]]:
        lent = storages_of(buffer for buffers in self._slots for buffer in buffers)
        held = storages_of(leaf for one in (*self._results, self._outputs, self._kept) for leaf in leaves_of(one))
        told = []
        for found in results:
            leaves = leaves_of(found)
            outputs = [self._told(leaf, lent, held) for leaf in leaves]
            told.append({"outputs": outputs, "container": type(found).__name__})
            held |= storages_of(leaves)
        return told

    def _told(self, leaf: Any, lent: Container[int], held: Container[int]) -> dict[str, Any]:
        told = super()._told(leaf, lent, held)
        if told.get("device") == "cuda" and leaf.numel():
            told["address"] = _claim(leaf)
        return told

    def _poison_free_memory(self, poisoned: Poison) -> None:
        """What `empty` hands out next has held poison; the results of the turn before make room for it."""
        self._results = []
        self._outputs = None
        blocks = [
            torch.empty(target.numel() + SPARE, dtype=target.dtype, device=target.device)
            for _ in self._slots
            for target in self._shared[self._outputs_group]
        ]
        fill(blocks, poisoned)


def _marks() -> tuple[Any, Any]:
    """Begin and end of a call. Recorded once, because an event comes into being then: not while the clock runs."""
    begin, end = (_Event(enable_timing=True) for _ in range(2))
    begin.record()
    end.record()
    return begin, end


def _claim(tensor: torch.Tensor) -> dict[str, Any]:
    handle, offset = device_memory.export(tensor.data_ptr())
    return {"handle": handle.hex(), "offset": offset}
