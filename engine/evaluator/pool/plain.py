"""A request and what came of it as text, so that another process or host can answer. Knows neither."""

from __future__ import annotations

import json
from typing import Any

from engine import errors
from engine.errors import BaselineUnavailable, EngineError, ProfileUnavailable, TaskError, ToolchainError
from engine.evaluator.machine.turns import Share
from engine.evaluator.pool import Evaluation
from engine.evaluator.request import KINDS, Request, Result
from storage import codec

# What may be wrong with a task, a kernel or a machine; anything else is a fault of ours and told as a ToolchainError.
FAILURES = (TaskError, ProfileUnavailable, BaselineUnavailable, ToolchainError)


def request_text(asked: Evaluation[Any]) -> str:
    """An evaluation as one line."""
    return codec.dumps({"act": asked.request.act, **codec.to_plain(asked)})


def read_request(text: str) -> Evaluation[Any]:
    """An evaluation out of its line."""
    plain = json.loads(text)
    request = codec.from_plain(KINDS[plain.pop("act")], plain.pop("request"))
    return Evaluation(request, share=codec.from_plain(Share, plain.pop("share")), **plain)


def result_text(result: Any) -> str:
    """A result as one line."""
    return codec.dumps({"result": codec.to_plain(result)})


def failure_text(error: EngineError) -> str:
    """An exception of the engine as one line."""
    kind = next((failure.__name__ for failure in FAILURES if isinstance(error, failure)), ToolchainError.__name__)
    return codec.dumps({"failed": kind, "message": str(error)})


def read_result(request: type[Request[Result]] | Request[Result], text: str) -> Result:
    """What was answered, or the exception that was told.

    Raises:
        EngineError: as there.
    """
    answer = json.loads(text)
    if "failed" in answer:
        raise getattr(errors, answer["failed"])(answer["message"])
    result: Result = request.read(answer["result"])
    return result
