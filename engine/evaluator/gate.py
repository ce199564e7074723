"""Screens a candidate before anything of it runs; its text is read in a child, for it may be endless or deep."""

from __future__ import annotations

import functools
from pathlib import Path

from engine.evaluation.candidate_failures import WorkerEnded
from engine.evaluation.screening import (
    Finding,
    Rule,
    imported_symbols,
    rule_checks,
    screen,
    screen_library,
    verdict_message,
)
from engine.evaluator.channel import Channel
from engine.evaluator.worker import Worker
from engine.evaluator.worker_pair import EvaluationRequest
from storage import codec
from storage.policy import Policy
from storage.proof import Proof

SCREEN_S = 30.0


class Gate:
    """The findings on one candidate: of its text, and of each library as it is built."""

    def __init__(self, request: EvaluationRequest) -> None:
        self._request = request
        self.findings: list[Finding] = []

    @property
    def is_shut(self) -> bool:
        """True when something found is a breach."""
        return any(one.is_refusal for one in self.findings)

    @property
    def message(self) -> str:
        """What the model is told."""
        return verdict_message(self.findings)

    @property
    def checks(self) -> tuple[Proof, ...]:
        """One per rule."""
        return rule_checks(self.findings)

    def read_text(self, folder: Path) -> None:
        """Screen the source; one that breaks or outlasts the reader is refused."""
        request = self._request
        body = functools.partial(_answer, request.source, request.policy, request.task_source)
        reader = Worker.fork(body, request.limits, folder / "screening", isolation=request.isolation)
        try:
            told = reader.ask({"ask": "screen"}, SCREEN_S)
            self.findings += [codec.from_plain(Finding, plain) for plain in told["findings"]]
        except WorkerEnded as ended:
            why = f"the file cannot be read within limits ({ended.death.ending}): write the candidate plainly"
            self.findings.append(Finding(Rule.DYNAMIC, None, why, is_refusal=True))
        finally:
            reader.end()

    def read_library(self, library: Path) -> str:
        """Screen what a built library takes from others; returns the refusal, or an empty text."""
        try:
            self.findings += screen_library(imported_symbols(library), self._request.policy)
        except ValueError as error:
            why = f"the built library cannot be read: {error}"
            self.findings.append(Finding(Rule.DYNAMIC, None, why, is_refusal=True))
        return self.message if self.is_shut else ""


def _answer(source: str, policy: Policy, reference: str, line: Channel) -> None:
    number = line.receive()["number"]
    findings = screen(source, policy, reference)
    line.send({"findings": codec.to_plain(findings), "number": number})
