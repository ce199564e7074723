"""Which step index an event belongs to, where several are at work at once. Pure: knows events, not what they mean.

What is of no step index, such as a command, a limit or the run's state, is of the run and holds for every step index.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from storage.run import events as ev

# These have the number of a step only to say since when they hold.
_OF_THE_RUN = (ev.CommandAcknowledged, ev.CommandEffective, ev.CommandRefused)


@dataclass(slots=True)
class Owners:
    """A fold: the step index of each step so far. A step after the end of its step index, such as a look back at what
    that has brought, is of the run: what comes of it holds for every step index that begins later."""

    _index_of: dict[int, int] = field(default_factory=dict)
    _ended: set[int] = field(default_factory=set)

    def owner(self, event: ev.Event) -> int | None:
        """The step index that the next event of a journal belongs to; None for one of the run."""
        if isinstance(event, ev.DepthFinished):
            self._ended.add(event.depth)
            return event.depth
        if isinstance(event, ev.PlaceTaken):
            return event.depth
        if isinstance(event, _OF_THE_RUN):
            return None
        step = getattr(event, "step", None)
        if isinstance(event, ev.StepStarted | ev.ApprovalAsked):
            self._index_of[event.step] = event.depth
        index = None if step is None else self._index_of.get(step)
        return None if index in self._ended else index


def in_turn(events: Iterable[ev.Event]) -> list[ev.Event]:
    """Events as if the step indexes had been worked on one after the other, in the order in which they ended; those
    that have not ended stand last. What reads a run one event after the other reads it in this order."""
    owners, ended = Owners(), list[ev.Event]()
    at_work = dict[int, list[ev.Event]]()
    for event in events:
        index = owners.owner(event)
        if index is None:
            ended.append(event)
            continue
        at_work.setdefault(index, []).append(event)
        if isinstance(event, ev.DepthFinished):
            ended += at_work.pop(index)
    return ended + [event for unended in at_work.values() for event in unended]
