"""The kernel that a step index is working on, folded from events. Shared by methods whose step index is one kernel and
its repairs; knows nothing of how a method chooses what the kernel is written from."""

from __future__ import annotations

from dataclasses import dataclass

from engine.actions import Evaluate
from engine.record import Candidate, Record
from engine.strategies.accepted_line import AcceptedLine
from storage import events as ev
from storage.records import CommandKind, Origin, StepKind, Switch

SYNTHESISE, REPAIR = "synthesise", "repair"
NO_KERNEL = "the reply holds no kernel"


@dataclass(slots=True)
class KernelInWork(AcceptedLine):
    """The fold. `current_id` is the newest kernel of the present step index, `spent` why no further one can come of
    it, `repairs` how many of them are repairs. `latest_id` is the newest kernel of the run, whatever became of it, or
    the one that a person went back to since."""

    current_id: str | None = None
    latest_id: str | None = None
    spent: str = ""
    repairs: int = 0

    @classmethod
    def new(cls, record: Record) -> KernelInWork:
        """As a run starts."""
        return cls()

    @property
    def has_begun(self) -> bool:
        """Whether the present step index has anything of its own; a step in flight is the record's to tell."""
        return bool(self.current_id or self.spent)

    def apply(self, event: ev.Event) -> None:
        """Take one event into account."""
        command = self.follow(event)
        if command is not None and command.kind is CommandKind.ROLL_BACK:
            self.latest_id = command.argument
        if (call := self.call_of(command)) is not None:
            self.current_id, self.spent = (call.candidate_id if call.kind == REPAIR else None), ""
        match event:
            case ev.CandidateCreated(candidate_id=name, origin=origin):
                self.current_id, self.latest_id, self.spent = name, name, ""
                self.repairs += origin is Origin.REPAIR
            case ev.StepFinished(outcome="patch_failed"):
                self.spent = NO_KERNEL
            case ev.DepthFinished():
                self.current_id, self.spent, self.repairs = None, "", 0
            case _:
                pass


def next_evaluation(record: Record, candidate: Candidate, *, profiles: bool) -> Evaluate | None:
    """What a kernel that has not failed still lacks: compile, check, time, and a profile where `profiles` says so or a
    person asks for one. None when it has everything."""
    stage, wish = candidate.next_stage, record.steering.collect
    wants_profile = wish is Switch.ON or (profiles and wish is not Switch.OFF)
    if stage is None and wants_profile and not candidate.is_profile_tried:
        stage = StepKind.PROFILE
    return Evaluate(stage, record.step_index, candidate.candidate_id) if stage is not None else None


def all_done(record: Record, most: int, word: str) -> str | None:
    """Why no further kernel is begun by a method that writes at most so many, one a step index from 0 on; None while
    there is one left. `word` is what the method calls one."""
    count = record.step_index
    if count < min(most, record.budget.depths + 1):
        return None
    return f"all {count} {word}s are done" if count > 1 else f"the {word} is done"
