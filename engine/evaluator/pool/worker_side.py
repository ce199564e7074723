"""What runs on a worker's host: its own pool of one device, asked with texts. Writes no journal."""

from __future__ import annotations

import socket
from dataclasses import replace

from engine.errors import EngineError
from engine.evaluator.pool.local import LocalPool, torch_version
from engine.evaluator.pool.plain import failure_text, read_request, result_text
from storage import codec, device_use
from storage.device_use import DEVICE, VERSIONS, KnownDevice
from storage.results.evaluation_results import CheckResult, TimingResult
from storage.results.profile_results import ProfileResult


class WorkerSide:
    """Answers for one device. `place` tells it from other workers of its host."""

    def __init__(self, toolchain: str, place: str) -> None:
        self._pool = LocalPool()
        device = self._pool.known(toolchain)[0]
        self._here = device.device
        host = socket.gethostname()
        self._device = replace(device, device=f"{device.device} on {host} {place}".rstrip(), host=host)

    def device(self) -> str:
        """Its device as it stands, as one line; one that was taken out is looked at again."""
        if self._standing().out:
            self._pool.look_again()
        now = self._standing()
        return codec.dumps(replace(self._device, out=now.out, out_since=now.out_since))

    def _standing(self) -> KnownDevice:
        return next((device for device in device_use.devices() if device.device == self._here), self._device)

    def ask(self, request: str) -> str:
        """The answer to a request."""
        try:
            result = self._pool.evaluate(read_request(request))
        except EngineError as error:
            return failure_text(error)
        if isinstance(result, CheckResult | TimingResult | ProfileResult):
            evidence = {VERSIONS: torch_version(), **result.evidence}
            result = replace(result, evidence={**evidence, DEVICE: self._device.device})
        return result_text(result)
