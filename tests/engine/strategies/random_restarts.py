"""A strategy that is not ours: a new kernel from nothing at every step index, whatever became of the last one."""

from __future__ import annotations

from typing import ClassVar

from engine import limits
from engine.actions import Action, Ask, Conclude, Evaluate, Expects, Finish, NewCandidate, Step
from engine.errors import EngineError
from engine.record import Candidate, Record
from engine.steps.conversation import synthesise
from storage.records import EVALUATIONS, Command, CommandKind, DepthOutcome, Origin, RunState, StepKind


class RandomRestarts:
    """Writes, evaluates, and begins anew until a limit is reached."""

    name = "random_restarts"
    refuses: ClassVar = dict.fromkeys((CommandKind.SET_BASE, CommandKind.PIN), "random restarts have no base kernel")

    def next(self, record: Record) -> Action:
        index, made = record.step_index, self._made(record)
        if made is None and (reason := limits.reason_to_stop(record, 0)):
            return Finish(RunState.FINISHED, reason)
        if made is None:
            return self.again(record, "write", None)
        if made.has_failed:
            return Conclude(index, DepthOutcome.GIVEN_UP, made.candidate_id, None, str(made.verdict))
        known = (made.compiled, made.checked, made.timed)
        for stage, result in zip((StepKind.COMPILE, StepKind.CHECK, StepKind.TIME), known, strict=True):
            if result is None:
                return Evaluate(stage, index, made.candidate_id)
        return Conclude(index, DepthOutcome.ACCEPTED, made.candidate_id, None, "correct and timed")

    def again(self, record: Record, label: str, about: str | None) -> Step:
        if label in EVALUATIONS and about is not None:
            return Evaluate(StepKind(label), record.step_index, about)
        if label != "write":
            raise EngineError(f"random restarts have no step {label!r}")
        makes = NewCandidate(Origin.SYNTHESIS, None, 0, "Approach", "a new kernel")
        return Ask("write", record.step_index, None, Expects.SOURCE, synthesise, makes)

    def abandon(self, record: Record, reason: str) -> Conclude | None:
        made = self._made(record)
        if made is None and record.in_flight is None:
            return None
        name = made.candidate_id if made else None
        return Conclude(record.step_index, DepthOutcome.GIVEN_UP, name, None, reason)

    def refusal(self, record: Record, command: Command) -> str | None:
        return None

    def note(self, record: Record, command: Command) -> str | None:
        return None

    def _made(self, record: Record) -> Candidate | None:
        return next((c for c in record.candidates.values() if c.created.depth == record.step_index), None)
