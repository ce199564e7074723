"""Coder–judge as a decision: each round the judge makes one point about a kernel and the coder rewrites it. Pure.

Method: CudaForge (arXiv 2511.01884). Beyond its released code: the judge is shown the profile of the kernel it judges,
the reference and the earlier rounds; a rewrite starts from the best kernel; a failure counts as a round. A step index
is called round here: round 0 is the first kernel, each later one a verdict of the judge and a rewrite.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.errors import EngineError
from engine.search import limits
from engine.search.actions import (
    Action,
    Ask,
    Conclude,
    Consult,
    Evaluate,
    Expects,
    Finish,
    NewCandidate,
    Step,
    TakeSubmission,
)
from engine.search.methods import Fold, accepted_line, evaluation_again
from engine.search.methods.coder_judge import prompts
from engine.search.methods.coder_judge.state import JUDGE, REWRITE, SYNTHESISE, CoderJudgeState
from engine.search.methods.options import option, read
from engine.search.steps.conversation import synthesise
from storage.results.vocabulary import FAILED
from storage.run.method_words import CallWords, MethodWords
from storage.run.record import Candidate, Record
from storage.run.settings import DepthOutcome, Origin, RunSettings, RunState, StepKind, Switch
from storage.run.steering.command_arguments import CONSULT, Submission
from storage.run.steering.verbs import Command, CommandKind

FAULT, BOTTLENECK = ("problem", "cause", "mend"), ("bottleneck", "change", "plan")


@dataclass(frozen=True, slots=True)
class CoderJudgeSettings:
    """Settings of the method. The number of rounds is the run's own limit."""

    max_mends: int = option(
        2, "rounds in a row spent on mending one failed kernel before the best one is taken up again",
        label="Maximum rounds per failed kernel", least=0,
    )  # fmt: skip


def settings_of(settings: RunSettings) -> CoderJudgeSettings:
    """Coder–judge's part of a run's settings."""
    return read(CoderJudgeSettings, settings.strategy_options)


class CoderJudge:
    """A judge names one point, a coder rewrites the kernel; profiled every round."""

    name = "coder_judge"
    options = CoderJudgeSettings
    words = MethodWords(
        "round", "rounds", "the judge's points, each with a rewrite",
        "A round is one point of the judge and the kernel that is rewritten by it: it starts from the best kernel, or "
        "from one that failed, and ends when the result is correct and timed, or has failed. Round 0 is the first "
        "kernel.",
        collected="for every correct kernel", shown="to the judge in every round",
        own_calls={
            JUDGE: CallWords(
                "judge the kernel", "Ask the judge about", "The model is judging {kernel}",
                has_rules=True, can_show_profile=True,
            ),
            REWRITE: CallWords(
                "rewrite the kernel as the judge says", "Ask the model to rewrite", "The model is rewriting {kernel}",
                "Rewrote", has_rules=True,
            ),
        },
    )  # fmt: skip

    def __init__(self) -> None:
        self._fold = Fold(CoderJudgeState.new)

    def next(self, record: Record) -> Action:
        """What the loop does next."""
        state = self._fold.of(record)
        if record.redo is not None:
            return self.again(record, record.redo.kind, record.redo.candidate_id)
        current = record.candidates.get(state.current_id or "")
        is_being_evaluated = current is not None and not current.has_failed
        if (submitted := record.pending(CommandKind.SUBMIT)) and not is_being_evaluated:
            return self._take(record, Submission.parse(submitted[0].argument).parent_id)
        if current is not None:
            return _evaluate(record, current)
        if state.spent:
            return Conclude(record.step_index, DepthOutcome.GIVEN_UP, None, _base(record, state), state.spent)
        if not state.has_begun and (reason := limits.reason_to_stop(record, state.fruitless, "round")):
            return _finish(record, state, reason)
        return self._work_on(record, state)

    def _work_on(self, record: Record, state: CoderJudgeState) -> Action:
        """The round's next call: a first kernel, the judge's word, or the rewrite that follows from it."""
        name = state.subject_id or _subject(record, state)
        if name is None:
            return self.again(record, SYNTHESISE, None)
        if state.is_judged:
            return self.again(record, REWRITE, name)
        subject = record.candidates[name]
        if not subject.has_failed and not subject.is_profile_tried and record.steering.collect is not Switch.OFF:
            return Evaluate(StepKind.PROFILE, record.step_index, name)
        if record.asks_base and not subject.has_failed and (record.step_index, name) not in record.consulted:
            return self.again(record, CONSULT, name)
        return self.again(record, JUDGE, name)

    def again(self, record: Record, label: str, about: str | None) -> Step:
        """A step to be taken once more.

        Raises:
            EngineError: coder–judge has no such step, or the run no such kernel.
        """
        index = record.step_index
        if label == SYNTHESISE:
            makes = NewCandidate(Origin.SYNTHESIS, None, 0, "Approach", "first kernel")
            return Ask(SYNTHESISE, index, None, Expects.SOURCE, synthesise, makes)
        if label == StepKind.SUBMIT:
            return self._take(record, about)
        if (evaluation := evaluation_again(record, label, about)) is not None:
            return evaluation
        candidate = record.candidates[about or ""]
        match label:
            case "consult":
                return Consult(index, candidate.candidate_id)
            case "judge":
                return _judge(record, candidate)
            case "rewrite":
                return _rewrite(record, candidate)
            case _:
                raise EngineError(f"coder–judge has no step {label!r}")

    def abandon(self, record: Record, reason: str) -> Conclude | None:
        """The round is given up; what it has tried stays."""
        state = self._fold.of(record)
        if not state.has_begun and record.in_flight is None:
            return None
        return Conclude(record.step_index, DepthOutcome.GIVEN_UP, state.current_id, _base(record, state), reason)

    def refusal(self, record: Record, command: Command) -> str | None:
        """Coder–judge honours every verb."""
        return None

    def note(self, record: Record, command: Command) -> str | None:
        """From which round on a choice of the base kernel, or of what the judge is shown, holds."""
        upcoming = record.step_index + self._fold.of(record).has_begun
        return accepted_line.note(record, command, word="round", upcoming=upcoming, policy="best")

    def _take(self, record: Record, parent_id: str | None) -> TakeSubmission:
        """A submission starts from its parent where that is correct and timed, else from where any kernel would."""
        parent, base = record.candidates.get(parent_id or ""), _base(record, self._fold.of(record))
        if parent is not None and parent.timed is not None:
            base = parent.candidate_id
        return TakeSubmission(record.step_index, parent_id, base, 0)


def _base(record: Record, state: CoderJudgeState) -> str | None:
    """The correct kernel that a round starts from: a person's choice, else the best; None when none is correct."""
    chosen = record.steering.next_base or record.steering.pinned
    return chosen or state.fastest or (state.line[-1] if state.line else None)


def _subject(record: Record, state: CoderJudgeState) -> str | None:
    """The kernel that a new round is about: one that failed, while it is worth mending, else the base."""
    base = _base(record, state)
    is_worth_it = base is None or state.mends < settings_of(record.settings).max_mends
    return state.failed_id if state.failed_id is not None and is_worth_it else base


def _finish(record: Record, state: CoderJudgeState, reason: str) -> Finish:
    if not state.line and record.step_index > record.budget.depths:
        return Finish(RunState.FAILED, f"no correct kernel in {record.step_index} rounds")
    return Finish(RunState.FINISHED, reason)


def _evaluate(record: Record, candidate: Candidate) -> Action:
    name, index, base = candidate.candidate_id, record.step_index, candidate.created.base_id
    if candidate.verdict is not None and candidate.has_failed:
        return Conclude(index, DepthOutcome.GIVEN_UP, name, base, f"the kernel {FAILED[candidate.verdict]}")
    stage = candidate.next_stage
    if stage is None and record.steering.collect is not Switch.OFF and not candidate.is_profile_tried:
        stage = StepKind.PROFILE
    if stage is not None:
        return Evaluate(stage, index, name)
    return Conclude(index, DepthOutcome.ACCEPTED, name, base, "correct and timed")


def _judge(record: Record, candidate: Candidate) -> Ask:
    has_profile = candidate.profiled is not None and not candidate.profiled.disturbance
    shows_profile = has_profile and not candidate.has_failed and record.steering.expose is not Switch.OFF
    return Ask(
        JUDGE,
        record.step_index,
        candidate.candidate_id,
        Expects.JSON,
        prompts.judge,
        shows_profile=shows_profile,
        fields=FAULT if candidate.has_failed else BOTTLENECK,
    )


def _rewrite(record: Record, candidate: Candidate) -> Ask:
    created, name = candidate.created, candidate.candidate_id
    origin, base = (Origin.REPAIR, created.base_id) if candidate.has_failed else (Origin.OPTIMISATION, name)
    makes = NewCandidate(origin, base, 0, "Change", "rewrite")
    return Ask(REWRITE, record.step_index, name, Expects.SOURCE, prompts.rewrite, makes)
