"""Tensors in a worker's device memory, read and written by the judge past any code of the worker.

That an allocation holds what the worker says is a claim; what lies there is true at that moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from engine.evaluation.device import driver
from engine.evaluation.device.driver import DriverRefused
from engine.evaluation.memory import BadClaim, dense_extent


class DeviceMemory:
    """The allocations of one worker that are mapped here."""

    def __init__(self) -> None:
        self._attached: dict[str, int] = {}
        self._used: set[str] = set()

    def view(self, claim: Any, like: torch.Tensor, stride: Any) -> torch.Tensor:
        """The worker's own memory as a tensor with the shape and dtype of `like`.

        Raises:
            BadClaim: no such tensor can be there.
        """
        if not isinstance(claim, Mapping) or not isinstance(claim.get("handle"), str):
            raise BadClaim("its place is none a tensor on the device can have")
        offset, span = claim.get("offset"), dense_extent(stride, like)
        base = self._attach(claim["handle"])
        _, size = driver.extent(base)
        if (
            not isinstance(offset, int)
            or offset < 0
            or offset % like.itemsize
            or offset + span * like.itemsize > size
        ):
            raise BadClaim("it does not lie inside the memory it names")
        return driver.tensor_at(base + offset, (span,), like.dtype).as_strided(like.shape, stride)

    def forget(self) -> None:
        """Let go of what was not looked at since the last time: the worker may have given it back."""
        for handle in set(self._attached) - self._used:
            driver.detach(self._attached.pop(handle))
        self._used.clear()

    def _attach(self, handle: str) -> int:
        self._used.add(handle)
        if handle not in self._attached:
            try:
                self._attached[handle] = driver.attach(bytes.fromhex(handle))
            except (ValueError, DriverRefused) as error:
                self._used.discard(handle)
                raise BadClaim(f"the memory it names cannot be mapped: {error}") from error
        return self._attached[handle]
