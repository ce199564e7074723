"""What a run has spent and how it ended, read from its journal as far as it goes. Folds nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field

from storage.run import events as ev
from storage.run import journal
from storage.run.cut_off import CutOff
from storage.run.folder import RunFolder
from storage.run.record import Usage
from storage.run.settings import LEFT, RunState
from storage.suites.records import CellState, Spent


@dataclass(slots=True)
class Meter:
    """Follows one run's journal; `ended` is its final event, None while an engine may go on. `settled` are the ids of
    commands that it has obeyed or refused."""

    folder: RunFolder
    offset: int = 0
    usage: Usage = field(default_factory=Usage)
    cut_off: CutOff = field(default_factory=CutOff)
    ended: ev.RunEnded | None = None
    settled: set[str] = field(default_factory=set)

    def read(self) -> Meter:
        """Take what is new."""
        while True:
            entries, offset = journal.read_from(self.folder.journal_file, self.offset)
            if offset == self.offset:
                return self
            self.offset = offset
            for entry in entries:
                self.usage.follow(self.cut_off, entry)
                self.usage.take(entry.event)
                if isinstance(entry.event, (ev.EngineStarted, ev.RunEnded)):
                    self.ended = entry.event if isinstance(entry.event, ev.RunEnded) else None
                elif isinstance(entry.event, (ev.CommandEffective, ev.CommandRefused)):
                    self.settled.add(entry.event.command_id)

    @property
    def spent(self) -> Spent:
        """What the run has spent, as a suite counts it."""
        usage = self.usage
        return Spent(usage.model_calls, usage.tokens + usage.assumed_tokens, usage.cost_usd, usage.worked_s)


def state_of(state: RunState, reason: str) -> CellState:
    """What a run that ended so makes of its cell."""
    if state is RunState.FINISHED:
        return CellState.FINISHED
    if state is RunState.FAILED:
        return CellState.FAILED
    return CellState.WAITING if reason.startswith(LEFT) else CellState.STOPPED
