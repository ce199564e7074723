"""What coder–judge remembers of a run: how far the round is, and which kernel it works on. Folded from events."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.search.methods.accepted_line import AcceptedLine
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.record import Record
from storage.run.settings import DepthOutcome
from storage.run.steering.verbs import CommandKind

SYNTHESISE, JUDGE, REWRITE = "synthesise", "judge", "rewrite"
CALLS = (SYNTHESISE, JUDGE, REWRITE)
NO_KERNEL = "the reply holds no kernel"
# A person's word on where to go on outranks the mending of what failed last.
CHOICES = (CommandKind.ROLL_BACK, CommandKind.SET_BASE, CommandKind.PIN)


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
