"""Repeated sampling as a decision: first kernels that know nothing of each other, of which the best stands. Pure.

The baseline of every comparison: what a model reaches without feedback. A step index is called sample here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.errors import EngineError
from engine.search import limits
from engine.search.actions import Action, Ask, Conclude, Expects, Finish, NewCandidate, Rank, Step
from engine.search.context import RunContext
from engine.search.llm import Message
from engine.search.methods import Fold, evaluation_again
from engine.search.methods.kernel_in_work import (
    REPAIR,
    SYNTHESISE,
    KernelInWork,
    all_done,
    draws_option,
    next_evaluation,
)
from engine.search.methods.options import Value, option, read
from engine.search.steps.conversation import as_code, hint_section, open_conversation, rule_section, sample
from engine.search.steps.evaluate import describe_failure
from storage.results.vocabulary import FAILED
from storage.run.method_words import MethodWords
from storage.run.record import Candidate, Record
from storage.run.settings import DepthOutcome, Origin, RunState
from storage.run.steering.command_arguments import RANK
from storage.run.steering.verbs import Command, CommandKind


@dataclass(frozen=True, slots=True)
class BestOfSettings:
    """Settings of the method. The run's limit of samples holds beside them."""

    samples: int = option(
        8, "first kernels that are written independently, 1 for one-shot; no more than the run's limit of samples and "
        "one", label="Samples", least=1,
    )  # fmt: skip
    max_repairs: int = option(
        0, "rewrites of a sample that failed, with its error", label="Repairs per sample", least=0
    )
    draws: int = draws_option("sample")


class BestOf:
    """Repeated sampling: independent first kernels, of which the best counts; one sample is one-shot."""

    name = "best_of"
    options = BestOfSettings
    independent: Mapping[str, Value] = {}
    words = MethodWords(
        "sample", "samples", "independent first kernels",
        "A sample is a kernel that is written from the task alone. It knows of no other one, and ends when it is "
        "correct and timed, or has failed.",
        collected="only where a person asks for it", counts_first=True,
    )  # fmt: skip
    refuses: Mapping[CommandKind, str] = {
        CommandKind.SUBMIT: "each sample is the model's own: fork the run to go on from a kernel by hand",
        CommandKind.EXPOSE: "no prompt of this method is about a kernel that was profiled",
        **dict.fromkeys(
            (CommandKind.ROLL_BACK, CommandKind.SET_BASE, CommandKind.PIN, CommandKind.UNPIN),
            "each sample is written from nothing: fork the run to go on from a kernel",
        ),
    }

    def __init__(self) -> None:
        self._fold = Fold(KernelInWork.new)

    def next(self, record: Record) -> Action:
        """What the loop does next."""
        state, index = self._fold.of(record), record.step_index
        if record.redo is not None:
            return self.again(record, record.redo.kind, record.redo.candidate_id)
        current, most = state.current(record), _settings(record).draws
        if state.wants_draw(record, most):
            return self.again(record, SYNTHESISE, None)
        if (step := state.wants_order(record, most)) is not None:
            return step
        if current is None and state.spent:
            return Conclude(index, DepthOutcome.GIVEN_UP, None, None, state.spent)
        if current is None:
            reason = all_done(record, _settings(record).samples, "sample") or limits.reason_to_stop(record, 0, "sample")
            return _finish(record, reason) if reason else self.again(record, SYNTHESISE, None)
        if current.has_failed:
            is_mended = not state.spent and state.repairs < _settings(record).max_repairs
            return self.again(record, REPAIR, current.candidate_id) if is_mended else _give_up(record, current)
        accepted = Conclude(index, DepthOutcome.ACCEPTED, current.candidate_id, None, "correct and timed")
        return next_evaluation(record, current, profiles=False) or accepted

    def again(self, record: Record, label: str, about: str | None) -> Step:
        """A step to be taken once more.

        Raises:
            EngineError: the method has no such step, or the run no such kernel.
        """
        if label == SYNTHESISE:
            makes = NewCandidate(Origin.SYNTHESIS, None, 0, "Approach", "sample")
            return Ask(SYNTHESISE, record.step_index, None, Expects.SOURCE, sample, makes)
        if label == RANK:
            return Rank(record.step_index, tuple(self._fold.of(record).drawn))
        if (evaluation := evaluation_again(record, label, about)) is not None:
            return evaluation
        if label != REPAIR:
            raise EngineError(f"repeated sampling has no step {label!r}")
        created = record.candidates[about or ""].created
        makes = NewCandidate(Origin.REPAIR, None, 0, "Fix", "repair", created.repair + 1)
        return Ask(REPAIR, record.step_index, about, Expects.SOURCE, repair, makes)

    def abandon(self, record: Record, reason: str) -> Conclude | None:
        """The sample is given up."""
        state = self._fold.of(record)
        left = Conclude(record.step_index, DepthOutcome.GIVEN_UP, state.current_id, None, reason)
        return left if state.has_begun or record.in_flight is not None else None

    def refusal(self, record: Record, command: Command) -> str | None:
        """What it never honours stands in `refuses`."""
        return None

    def note(self, record: Record, command: Command) -> str | None:
        """No command changes what a later sample starts from."""
        return None


def repair(context: RunContext, ask: Ask) -> list[Message]:
    """A sample that failed once more, with its error."""
    candidate, record = context.candidate(ask.about), context.record
    return open_conversation(
        context,
        ask,
        "best_of/repair.md",
        task=as_code(context.task.source),
        failure=describe_failure(candidate),
        kernel=as_code(context.source(candidate)),
        rules=rule_section(record.steering.rules),
        hint=hint_section(record.pending_hints),
    )


def _settings(record: Record) -> BestOfSettings:
    return read(BestOfSettings, record.settings.strategy_options)


def _finish(record: Record, reason: str) -> Finish:
    return Finish(RunState.FINISHED if record.best else RunState.FAILED, reason)


def _give_up(record: Record, candidate: Candidate) -> Conclude:
    why = FAILED[candidate.verdict] if candidate.verdict else "failed"
    return Conclude(record.step_index, DepthOutcome.GIVEN_UP, candidate.candidate_id, None, f"the kernel {why}")
