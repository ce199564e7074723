"""Compiles candidates without a device: for a machine that has nvcc and nothing to run kernels on."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path
from types import TracebackType

from engine.evaluation.judging import Judging
from engine.evaluation.limits import Limits, Times
from engine.toolchains.device import installation
from storage import codec
from storage.folder import home
from storage.policy import Policy
from storage.records import CompileResult

LIMIT_S = 900.0


class CompileGate:
    """Screens, builds and imports candidates for `arch` (None: the device here). No kernel runs."""

    def __init__(self, arch: str | None = None, policy: Policy | None = None) -> None:
        """Raises ToolchainError when something is missing, or no architecture is named and there is no device."""
        self._here = installation.find(arch)
        self._policy = policy or Policy()
        self._scratch = Path(tempfile.mkdtemp(prefix="tilewright."))
        self._judging = Judging(len(os.sched_getaffinity(0)))

    def __enter__(self) -> CompileGate:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._judging.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def prepare(self) -> None:
        """Start the processes and build what all candidates share."""
        self._ask("prepare", "")

    def compile(self, source: str) -> CompileResult:
        """Screen, build and import one candidate."""
        result: CompileResult = codec.from_plain(CompileResult, self._ask("compile", source))
        return result

    def _ask(self, act: str, source: str) -> object:
        request = {
            "act": act,
            "device": "cuda",
            "device_files": (),
            "task_source": "",
            "policy": codec.to_plain(self._policy),
            "source": source,
            "installation": asdict(self._here),
            "cache": str(cache_folder()),
            "scratch": str(self._scratch),
            "times": asdict(Times()),
            "limits": asdict(Limits()),
        }
        return self._judging.ask(request, LIMIT_S)


def cache_folder() -> Path:
    """Libraries built for devices; safe to delete."""
    return home() / "cache" / "cuda"
