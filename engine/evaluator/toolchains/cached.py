"""A toolchain that remembers: the same source on the same task and machine is judged once. Knows no inner workings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from engine.evaluator import tasks
from engine.evaluator.machine import lease
from engine.evaluator.tasks import Task
from engine.evaluator.toolchains import CompiledStart, Toolchain, remembered
from storage import codec
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult
from storage.results.examination import Examination
from storage.results.hardware_limit import HardwareLimit
from storage.results.profile_results import ProfileResult
from storage.results.vocabulary import Verdict

Record = TypeVar("Record", CompileResult, CheckResult, TimingResult, ProfileResult)

# A busy machine can cause these; asking again may answer otherwise.
UNSTEADY = (Verdict.TIMEOUT, Verdict.OUT_OF_MEMORY)


class CachedToolchain:
    """Asks `inner` only what `folder` does not hold. A remembered result says so: `is_cached`, or evidence `cached`."""

    def __init__(self, inner: Toolchain, folder: Path) -> None:
        self._inner = inner
        self._folder = folder
        self.name = inner.name

    @property
    def fingerprint(self) -> str:
        """That of the inner toolchain."""
        return self._inner.fingerprint

    @property
    def lease_files(self) -> lease.Files:
        """Those of the inner toolchain."""
        return self._inner.lease_files

    def examine(self, task: Task) -> Examination:
        """Not remembered here: the toolchain does it itself."""
        return self._inner.examine(task)

    def examine_confined(self, task: Task) -> Examination:
        """Likewise."""
        return self._inner.examine_confined(task)

    def limit(self, task: Task) -> HardwareLimit:
        """Not remembered here: the toolchain keeps its measurement itself."""
        return self._inner.limit(task)

    def compile(self, task: Task, source: str) -> CompileResult:
        """As the inner toolchain, or from memory."""
        file = self._file("compile", task, source)
        if (kept := remembered.read(file, CompileResult)) is not None:
            return replace(kept, is_cached=True)
        return _kept(file, self._inner.compile(task, source))

    def compile_all(self, task: Task, sources: Sequence[str]) -> list[CompileResult]:
        """As the inner toolchain, of those that are not in memory."""
        files = [self._file("compile", task, source) for source in sources]
        kept = [remembered.read(file, CompileResult) for file in files]
        new = [source for source, known in zip(sources, kept, strict=True) if known is None]
        built = iter(self._inner.compile_all(task, new) if new else ())
        return [
            replace(known, is_cached=True) if known else _kept(file, next(built))
            for file, known in zip(files, kept, strict=True)
        ]

    def check(self, task: Task, source: str) -> CheckResult:
        """As the inner toolchain, or from memory."""
        file = self._file("check", task, source)
        if (kept := remembered.read(file, CheckResult)) is not None:
            return _flagged(kept)
        return _kept(file, self._inner.check(task, source))

    def time(self, task: Task, source: str) -> TimingResult | CheckResult:
        """As the inner toolchain, or from memory; a failed timing is asked again."""
        file = self._file("time", task, source)
        if (kept := remembered.read(file, TimingResult)) is not None:
            return replace(kept, evidence={**kept.evidence, "cached": "yes"})
        result = self._inner.time(task, source)
        return _kept(file, result) if isinstance(result, TimingResult) else result

    def time_briefly(self, task: Task, source: str) -> TimingResult | CheckResult:
        """As the inner toolchain: it is no timing to be remembered."""
        return self._inner.time_briefly(task, source)

    def compiled_baseline(self, task: Task) -> TimingResult:
        """As the inner toolchain, or from memory."""
        file = self._file("compiled baseline", task, "")
        if (kept := remembered.read(file, TimingResult)) is not None:
            return replace(kept, evidence={**kept.evidence, "cached": "yes"})
        return _kept(file, self._inner.compiled_baseline(task))

    def compiler_source(self, task: Task) -> str:
        """As the inner toolchain: runs journal it."""
        return self._inner.compiler_source(task)

    def compiled_start(self, task: Task) -> CompiledStart:
        """As the inner toolchain: runs journal it."""
        return self._inner.compiled_start(task)

    def profile(self, task: Task, source: str, timed: TimingResult | None = None) -> ProfileResult:
        """As the inner toolchain, or from memory; a disturbed one is asked again."""
        file = self._file("profile", task, source)
        if (kept := remembered.read(file, ProfileResult)) is not None:
            return kept
        result = self._inner.profile(task, source, timed)
        return result if result.disturbance else _kept(file, result)

    def close(self) -> None:
        """End the inner toolchain's children."""
        self._inner.close()

    def _file(self, act: str, task: Task, source: str) -> Path:
        words = [act, self.name, self.fingerprint, task.source, codec.to_plain(task.policy), task.language, source]
        words += filter(None, [tasks.imported.contents(task.source, source)])
        return self._folder / f"{hashlib.sha256(json.dumps(words).encode()).hexdigest()}.json"


def _kept(file: Path, result: Record) -> Record:
    if getattr(result, "verdict", None) not in UNSTEADY:
        remembered.keep(file, replace(result, timeline=None))  # it takes no time to remember it
    return result


def _flagged(kept: CheckResult) -> CheckResult:
    evidence: dict[str, Any] = {**kept.evidence, "cached": "yes"}
    return replace(kept, evidence=evidence)
