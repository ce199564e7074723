"""A run with several step indexes at work at once, as a fold: what each of them sees. Pure; decides nothing.

A step index sees the run as it was when it began, its own events since, and those of the run (commands, limits). What
others do meanwhile it does not see: when it ends, its events follow those that had ended before. So each is decided as
if it were alone, any order in which they end is a legal one, and the same journal leads to the same answer. All that it
sees of the others is the place that each has taken so far.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from storage.run import events as ev
from storage.run.owners import Owners
from storage.run.record import Record


@dataclass(slots=True)
class Lane:
    """A step index at work. `record` is the run as it sees it, `own` are its events."""

    index: int
    record: Record
    own: list[ev.Event] = field(default_factory=list)

    @property
    def place(self) -> str:
        """What it has taken for itself; empty as long as it has taken nothing."""
        return self.record.places.get(self.index, "")


class Lanes:
    """The fold. `whole` is the record of all events as they come, `ended` one of those that are of the run or of step
    indexes that have ended, `open` are the step indexes at work."""

    def __init__(self, whole: Record, events: Iterable[ev.Event] = ()) -> None:
        self.whole = whole
        self.open: dict[int, Lane] = {}
        self.ended = self._view(None, ())
        self._owners = Owners()
        self._begun = 0
        self._next: Lane | None = None
        for event in events:
            self.apply(event)

    def next(self) -> Lane:
        """The step index that would begin now. It is at work from its first event on."""
        if self._next is None:
            self._next = Lane(self._begun, self._view(self._begun, self.ended.events))
        return self._next

    def apply(self, event: ev.Event) -> None:
        """Take one event into account, which the record of the whole run has taken already."""
        index = self._owners.owner(event)
        if index is None:
            self._apply_to_all(event)
            return
        if index not in self.open:
            self._open(index)
        lane = self.open[index]
        lane.own.append(event)
        lane.record.apply(event)
        if isinstance(event, ev.PlaceTaken):
            self._tell(index, event.place)
        if isinstance(event, ev.DepthFinished):
            for kept in self.open.pop(index).own:
                self.ended.apply(kept)
            self._next = None

    def _apply_to_all(self, event: ev.Event) -> None:
        self.ended.apply(event)
        for lane in self.open.values():
            lane.record.apply(event)
        if self._next is not None:
            self._next.record.apply(event)

    def _open(self, index: int) -> None:
        lane = self.next()
        if lane.index != index:
            lane = Lane(index, self._view(index, self.ended.events))
        self.open[index], self._next = lane, None
        self._begun = max(self._begun, index + 1)

    def _tell(self, index: int, place: str) -> None:
        others = [lane for lane in self.open.values() if lane.index != index]
        for lane in [*others, self._next] if self._next else others:
            lane.record.beside[index] = place

    def _view(self, index: int | None, events: Iterable[ev.Event]) -> Record:
        view = Record.at_start(self.whole.settings)
        view.index, view.is_view, view.usage = index, True, self.whole.usage
        view.beside = {lane.index: lane.place for lane in self.open.values()}
        for event in list(events):
            view.apply(event)
        return view
