"""Which way of calling a model a device needs, and how a worker waits for it. Runs in both workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from engine.evaluation.callee import Callee
from engine.evaluation.device.callee import DeviceCallee
from engine.machine.shared_tensors import SharedTensors, TensorSpec

# Taken before a candidate's code runs, which may put something else in its place.
_synchronize: Callable[[], None] = torch._C._cuda_synchronize if torch.version.cuda else lambda: None
_is_initialized: Callable[[], bool] = torch.cuda.is_initialized


def of(model: Any, shared: SharedTensors, specs: Sequence[TensorSpec], outputs_group: str) -> Callee:
    """The callee for the device that the arena is on."""
    kind = Callee if shared.device == "cpu" else DeviceCallee
    return kind(model, shared, specs, outputs_group)


def settle() -> None:
    """Wait for what this process asked of its GPU; an error of a kernel launched earlier shows here.

    Raises:
        RuntimeError: as torch names the device's error.
    """
    if _is_initialized():
        _synchronize()
