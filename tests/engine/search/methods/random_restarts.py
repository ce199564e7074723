"""A strategy that is not ours: a new kernel from nothing at every step index, whatever became of the last one."""

from dataclasses import dataclass
from typing import ClassVar

from engine.errors import EngineError
from engine.search import limits
from engine.search.actions import Action, Ask, Conclude, Evaluate, Expects, Finish, NewCandidate, Step
from engine.search.methods.options import option, read
from engine.search.steps.conversation import synthesise
from storage.run.record import Candidate, Record
from storage.run.settings import EVALUATIONS, DepthOutcome, Origin, RunState, StepKind
from storage.run.steering.verbs import Command
from storage.run.steering.verbs import CommandKind as K


@dataclass(frozen=True, slots=True)
class Settings:
    most_failures: int | None = option(None, "failed kernels that end the run", label="Maximum failures", least=1)


class RandomRestarts:
    """Random restarts: writes a kernel, evaluates it, and begins anew until a limit is reached."""

    name, options = "random_restarts", Settings
    refuses: ClassVar = dict.fromkeys((K.SUBMIT, K.RETRY, K.ROLL_BACK, K.SET_BASE, K.PIN), "every kernel is new here")
    refuses |= dict.fromkeys((K.COLLECT, K.EXPOSE), "no kernel is profiled here")

    def next(self, record: Record) -> Action:
        index, made = record.step_index, self._made(record)
        if made is None:
            most = read(Settings, record.settings.strategy_options).most_failures
            failed = sum(one.has_failed for one in record.candidates.values())
            reason = f"{failed} kernels failed" if most and failed >= most else limits.reason_to_stop(record, 0)
            return Finish(RunState.FINISHED, reason) if reason else self.again(record, "write", None)
        if made.has_failed:
            return Conclude(index, DepthOutcome.GIVEN_UP, made.candidate_id, None, str(made.verdict))
        if made.next_stage is not None:
            return Evaluate(made.next_stage, index, made.candidate_id)
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
        left = Conclude(record.step_index, DepthOutcome.GIVEN_UP, made.candidate_id if made else None, None, reason)
        return left if made is not None or record.in_flight is not None else None

    def refusal(self, record: Record, command: Command) -> str | None: ...

    def note(self, record: Record, command: Command) -> str | None: ...

    def _made(self, record: Record) -> Candidate | None:
        return next((c for c in record.candidates.values() if c.created.depth == record.step_index), None)
