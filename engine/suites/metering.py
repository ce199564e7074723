"""What a run has spent and how it ended, read from its journal as far as it goes. Folds nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field

from storage.run import events as ev
from storage.run import journal
from storage.run.folder import RunFolder
from storage.run.record import Usage
from storage.suites.records import Spent


@dataclass(slots=True)
class Meter:
    """Follows one run's journal; `ended` is its final event, None while an engine may go on."""

    folder: RunFolder
    offset: int = 0
    usage: Usage = field(default_factory=Usage)
    ended: ev.RunEnded | None = None

    def read(self) -> Meter:
        """Take what is new."""
        while True:
            entries, offset = journal.read_from(self.folder.journal_file, self.offset)
            if offset == self.offset:
                return self
            self.offset = offset
            for entry in entries:
                self._take(entry.event)

    def _take(self, event: ev.Event) -> None:
        match event:
            case ev.EngineStarted():
                self.ended = None
            case ev.ModelCalled():
                self.usage.count(event)
            case ev.CallFailed(is_charged=True):
                self.usage.count(event)
            case ev.StepFinished(seconds=seconds):
                self.usage.engine_s += seconds or 0.0
            case ev.RunEnded():
                self.ended = event

    @property
    def spent(self) -> Spent:
        """What the run has spent, as a suite counts it."""
        usage = self.usage
        return Spent(usage.model_calls, usage.tokens + usage.assumed_tokens, usage.cost_usd, usage.engine_s)
