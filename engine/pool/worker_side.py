"""What runs on a worker's host: its own pool of one device, asked with texts. Writes no journal."""

from __future__ import annotations

import socket
from dataclasses import replace
from importlib import metadata

from engine.errors import EngineError
from engine.pool.local import LocalPool
from engine.pool.plain import failure_text, read_request, result_text
from storage import codec
from storage.device_use import DEVICE
from storage.evaluation_results import CheckResult, TimingResult
from storage.profile_results import ProfileResult


class WorkerSide:
    """Answers for one device. `place` tells it from other workers of its host."""

    def __init__(self, toolchain: str, place: str) -> None:
        self._pool = LocalPool()
        known = self._pool.known(toolchain)[0]
        host = socket.gethostname()
        self._device = replace(known, device=f"{known.device} on {host} {place}".rstrip(), host=host)

    def device(self) -> str:
        """Its device, as one line."""
        return codec.dumps(self._device)

    def ask(self, request: str) -> str:
        """The answer to a request."""
        try:
            result = self._pool.evaluate(read_request(request))
        except EngineError as error:
            return failure_text(error)
        if isinstance(result, CheckResult | TimingResult | ProfileResult):
            result = replace(
                result, evidence={**result.evidence, DEVICE: self._device.device, "versions": self._versions()}
            )
        return result_text(result)

    def _versions(self) -> str:
        driver = f", driver {self._device.driver}" if self._device.driver else ""
        return f"torch {metadata.version('torch')}{driver}"
