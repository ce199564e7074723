"""An evaluation and what came of it as text, so that another process or host can do it. Knows neither."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from engine import errors
from engine.errors import BaselineUnavailable, EngineError, ProfileUnavailable, TaskError, ToolchainError
from engine.evaluator.pool import Act, Evaluation
from engine.evaluator.toolchains import CompiledStart
from storage import codec
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult
from storage.results.examination import Examination
from storage.results.hardware_limit import HardwareLimit
from storage.results.profile_results import ProfileResult

RESULTS: Mapping[Act, Any] = {
    Act.EXAMINE: Examination, Act.EXAMINE_CONFINED: Examination, Act.LIMIT: HardwareLimit,
    Act.COMPILE: CompileResult, Act.COMPILE_ALL: list[CompileResult],
    Act.CHECK: CheckResult, Act.TIME: TimingResult, Act.TIME_BRIEFLY: TimingResult,
    Act.COMPILED_BASELINE: TimingResult, Act.COMPILER_SOURCE: str, Act.COMPILED_START: CompiledStart,
    Act.PROFILE: ProfileResult,
}  # fmt: skip
# What may be wrong with a task, a kernel or a machine; anything else is a fault of ours and told as a ToolchainError.
FAILURES = (TaskError, ProfileUnavailable, BaselineUnavailable, ToolchainError)


def request_text(asked: Evaluation) -> str:
    """An evaluation as one line."""
    return codec.dumps(asked)


def read_request(text: str) -> Evaluation:
    """The same back."""
    asked: Evaluation = codec.from_plain(Evaluation, json.loads(text))
    return asked


def result_text(result: Any) -> str:
    """A result as one line."""
    return codec.dumps({"result": codec.to_plain(result)})


def failure_text(error: EngineError) -> str:
    """An exception of the engine as one line."""
    kind = next((one.__name__ for one in FAILURES if isinstance(error, one)), ToolchainError.__name__)
    return codec.dumps({"failed": kind, "message": str(error)})


def read_result(act: Act, text: str) -> Any:
    """What was answered, or the exception that was told.

    Raises:
        EngineError: as there.
    """
    answer = json.loads(text)
    if "failed" in answer:
        raise getattr(errors, answer["failed"])(answer["message"])
    plain = answer["result"]
    kind = CheckResult if RESULTS[act] is TimingResult and "verdict" in plain else RESULTS[act]
    return plain if kind is str else codec.from_plain(kind, plain)
