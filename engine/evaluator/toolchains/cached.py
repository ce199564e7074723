"""Remembers: the same source on the same task and machine is judged once. Knows no inner workings."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from engine.evaluator import tasks
from engine.evaluator.machine import lease
from engine.evaluator.request import (
    Baseline,
    Check,
    Compile,
    CompileAll,
    Evaluator,
    Profile,
    Request,
    Result,
    Time,
)
from engine.evaluator.toolchains import remembered
from storage import codec
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult
from storage.results.profile_results import ProfileResult
from storage.results.vocabulary import Verdict

# By these names files are called. The rest is not remembered here: toolchains keep their measurements themselves, runs
# journal what the compiler writes, and a brief timing is none to be remembered.
REMEMBERED = {
    Compile: "compile",
    Check: "check",
    Time: "time",
    Baseline: "baseline",
    Profile: "profile",
}
# A busy machine can cause these; asking again may answer otherwise.
UNSTEADY = (Verdict.TIMEOUT, Verdict.OUT_OF_MEMORY)
# Nor does a module that is not found, or that finds no library, say anything of the kernel.
OF_THE_MACHINE = ("ModuleNotFoundError", "ImportError")


class CachedToolchain(Evaluator):
    """Asks `inner` only what `folder` does not hold. A remembered result says so: `is_cached`, or evidence `cached`."""

    def __init__(self, inner: Evaluator, folder: Path) -> None:
        self._inner = inner
        self._folder = folder
        self.name = inner.name

    @property
    def fingerprint(self) -> str:
        """That of the inner one."""
        return self._inner.fingerprint

    @property
    def lease_files(self) -> lease.Files:
        """The lock files of the inner evaluator."""
        return self._inner.lease_files

    def evaluate(self, request: Request[Result]) -> Result:
        """The answer from memory, or that of the inner evaluator."""
        if isinstance(request, CompileAll):
            return cast(Result, self._compile_all(request))
        if type(request) not in REMEMBERED:
            return self._inner.evaluate(request)
        file = self._file(request)
        if (earlier := remembered.read(file, request.answer)) is not None:
            return cast(Result, _told(earlier))
        result = self._inner.evaluate(request)
        return _kept(file, result) if isinstance(result, request.answer) else result  # a failed timing is asked again

    def close(self) -> None:
        """End the inner one's children."""
        self._inner.close()

    def _compile_all(self, request: CompileAll) -> list[CompileResult]:
        """Candidates that are not in memory are built together."""
        files = [self._file(Compile(request.task, source)) for source in request.candidates]
        earlier = [remembered.read(file, CompileResult) for file in files]
        new = tuple(source for source, result in zip(request.candidates, earlier, strict=True) if result is None)
        built = iter(self._inner.evaluate(CompileAll(request.task, new)) if new else ())
        return [
            _told(result) if result is not None else _kept(file, next(built))
            for file, result in zip(files, earlier, strict=True)
        ]

    def _file(self, request: Request[Any]) -> Path:
        task, source = request.task, "".join(request.sources)
        words: list[Any] = [REMEMBERED[type(request)], self.name, self.fingerprint, task.source]
        policy = replace(task.policy, baselines=())  # what else is timed changes no result
        words += [
            codec.to_plain(policy),
            task.language,
            source,
            *([request.how] if isinstance(request, Baseline) else []),
        ]
        words += filter(None, [tasks.imported.contents(task.source, source)])
        return self._folder / f"{hashlib.sha256(json.dumps(words).encode()).hexdigest()}.json"


def _kept(file: Path, result: Result) -> Result:
    """The result, kept if asking again would give the same."""
    match result:
        case CompileResult() | CheckResult() if result.verdict in UNSTEADY or _is_of_the_machine(result):
            return result
        case TimingResult() if result.untrusted:
            return result
        case ProfileResult() if result.disturbance:
            return result
        case CompileResult() | CheckResult() | TimingResult() | ProfileResult():
            remembered.keep(file, replace(result, timeline=None))  # it takes no time to remember it
    return result


def _is_of_the_machine(result: CompileResult | CheckResult) -> bool:
    said = result.diagnostics if isinstance(result, CompileResult) else result.message
    return result.verdict is not Verdict.PASSED and any(name in said for name in OF_THE_MACHINE)


def _told(result: Any) -> Any:
    """A result out of memory, which says so."""
    if isinstance(result, CompileResult):
        return replace(result, is_cached=True)
    return (
        result if isinstance(result, ProfileResult) else replace(result, evidence={**result.evidence, "cached": "yes"})
    )
