"""Coder–judge as a decision: each round the judge makes one point about a kernel and the coder rewrites it. Pure.

Method: CudaForge (arXiv 2511.01884). Beyond its released code: the judge is shown the profile of the kernel it judges,
the reference and the earlier rounds; a rewrite starts from the best kernel; a failure counts as a round. A step index
is called round here: round 0 is the first kernel, each later one a verdict of the judge and a rewrite.
"""

from __future__ import annotations

from dataclasses import dataclass, field

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
from engine.search.methods.accepted_line import AcceptedLine
from engine.search.methods.coder_judge import prompts
from engine.search.methods.kernel_in_work import NO_KERNEL
from engine.search.methods.options import option, read
from engine.search.methods.steered import (
    CORRECT,
    SYNTHESISE,
    Steered,
    end_with,
    failed,
    next_evaluation,
    none_correct,
    shows_profile,
    submission,
    wants_profile,
)
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.method_words import CallWords, MethodWords
from storage.run.record import Candidate, Record
from storage.run.settings import DepthOutcome, Origin, RunSettings, RunState, StepKind
from storage.run.steering.command_arguments import CONSULT
from storage.run.steering.verbs import CommandKind

JUDGE, REWRITE = "judge", "rewrite"
CALLS = (SYNTHESISE, JUDGE, REWRITE)
# A person's word on where to go on outranks the mending of what failed last.
CHOICES = (CommandKind.ROLL_BACK, CommandKind.SET_BASE, CommandKind.PIN)
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


@dataclass(slots=True)
class CoderJudgeState(AcceptedLine):
    """The fold. `subject_id`, `is_judged`, `current_id` and `spent` speak of the round being worked on.

    `subject_id` is the kernel that the judge looks at, `current_id` the one that came of it, `spent` why none can come.
    `failed_id` is a kernel that failed and is to be mended, `mends` the rounds in a row that have tried.
    """

    subject_id: str | None = None
    is_judged: bool = False
    current_id: str | None = None
    spent: str = ""
    failed_id: str | None = None
    mends: int = 0
    _failed: set[str] = field(default_factory=set)
    _problem: str = ""

    @classmethod
    def new(cls, record: Record) -> CoderJudgeState:
        """The state at the start of a run."""
        return cls()

    @property
    def has_begun(self) -> bool:
        """Whether the current round has anything of its own; a step in flight is the record's to tell."""
        return bool(self.subject_id or self.current_id or self.spent)

    def apply(self, event: ev.Event) -> None:
        """Take one event into account."""
        command = self.follow(event)
        if command is not None and command.kind in CHOICES:
            self.failed_id, self.mends = None, 0
        if (call := self.call_of(command)) is not None:
            self.current_id, self.spent = None, ""
            self.subject_id, self.is_judged = call.candidate_id, call.kind == REWRITE
        match event:
            case ev.StepStarted(kind=kind, candidate_id=name) if kind == JUDGE:
                self.subject_id = name
            case ev.ReviewWritten(problem=problem) if problem:
                self._problem = problem
            case ev.ReviewWritten():
                self.is_judged = True
            case ev.CandidateCreated(candidate_id=name):
                self.current_id = name
            case ev.Compiled(candidate_id=name, result=compiled) if not compiled.is_ok:
                self._failed.add(name)
            case ev.Checked(candidate_id=name, result=checked) if checked.verdict is not Verdict.PASSED:
                self._failed.add(name)
            case ev.StepFinished(kind=kind, outcome="unreadable") if kind == JUDGE:
                self.spent = f"the judge's reply could not be read: {self._problem}"
            case ev.StepFinished(kind=kind, outcome="patch_failed") if kind in CALLS:
                self.spent = NO_KERNEL
            case ev.DepthFinished():
                self._finish_round(event)
            case _:
                pass

    def _finish_round(self, event: ev.DepthFinished) -> None:
        tried, name = self.subject_id is not None and self.subject_id == self.failed_id, event.candidate_id
        if event.outcome is DepthOutcome.ACCEPTED:
            self.failed_id, self.mends = None, 0
        elif tried or name in self._failed:
            self.mends = self.mends + 1 if tried else 0
            self.failed_id = name if name in self._failed else self.failed_id
        self.subject_id, self.is_judged, self.current_id, self.spent = None, False, None, ""


class CoderJudge(Steered[CoderJudgeState]):
    """A judge names one point, a coder rewrites the kernel; profiled every round."""

    name, title, policy = "coder_judge", "coder–judge", "best"
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
        super().__init__(CoderJudgeState.new)

    def decide(self, record: Record, state: CoderJudgeState, current: Candidate | None) -> Action:
        """The round's kernel is evaluated, or the round goes on to bring one."""
        if current is not None and current.has_failed:
            return end_with(record, DepthOutcome.GIVEN_UP, current, failed(current))
        if current is not None:
            accepted = end_with(record, DepthOutcome.ACCEPTED, current, CORRECT)
            return next_evaluation(record, current, profiles=True) or accepted
        if state.spent:
            return Conclude(record.step_index, DepthOutcome.GIVEN_UP, None, _base(record, state), state.spent)
        if not state.has_begun and (reason := limits.reason_to_stop(record, state.fruitless, "round")):
            return _finish(record, state, reason)
        return self._work_on(record, state)

    def _work_on(self, record: Record, state: CoderJudgeState) -> Action:
        """The round's next call: a first kernel, the judge's word, or the rewrite that follows from it."""
        name = state.subject_id or _subject(record, state)
        if name is None:
            return self.first_kernel(record, state)
        if state.is_judged:
            return self.again(record, REWRITE, name)
        subject = record.candidates[name]
        if not subject.has_failed and wants_profile(record, subject):
            return Evaluate(StepKind.PROFILE, record.step_index, name)
        if record.asks_base and not subject.has_failed and (record.step_index, name) not in record.consulted:
            return self.again(record, CONSULT, name)
        return self.again(record, JUDGE, name)

    def step(self, record: Record, state: CoderJudgeState, label: str, kernel: Candidate) -> Step | None:
        """What judge and coder are asked about a kernel."""
        match label:
            case "consult":
                return Consult(record.step_index, kernel.candidate_id)
            case "judge":
                return _judge(record, kernel)
            case "rewrite":
                return _rewrite(record, kernel)
            case _:
                return None

    def take(self, record: Record, state: CoderJudgeState, parent_id: str | None) -> TakeSubmission:
        """A person's kernel; it starts from where any kernel would, where its parent is not timed."""
        return submission(record, parent_id, _base(record, state))

    def base_left(self, record: Record, state: CoderJudgeState) -> str | None:
        """What the next round starts from."""
        return _base(record, state)


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
        return Finish(RunState.FAILED, none_correct(record))
    return Finish(RunState.FINISHED, reason)


def _judge(record: Record, candidate: Candidate) -> Ask:
    return Ask(
        JUDGE,
        record.step_index,
        candidate.candidate_id,
        Expects.JSON,
        prompts.judge,
        shows_profile=shows_profile(record, candidate) and not candidate.has_failed,
        fields=FAULT if candidate.has_failed else BOTTLENECK,
    )


def _rewrite(record: Record, candidate: Candidate) -> Ask:
    created, name = candidate.created, candidate.candidate_id
    origin, base = (Origin.REPAIR, created.base_id) if candidate.has_failed else (Origin.OPTIMISATION, name)
    makes = NewCandidate(origin, base, 0, "Change", "rewrite")
    return Ask(REWRITE, record.step_index, name, Expects.SOURCE, prompts.rewrite, makes)
