"""What CuTeGen remembers of a run: the line of accepted kernels, and how far the depth is. Folded from events."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.search.methods.accepted_line import AcceptedLine
from storage.run import events as ev
from storage.run.record import Record
from storage.run.settings import Origin

SYNTHESISE, DIAGNOSE, REPAIR, OPTIMISE = "synthesise", "diagnose", "repair", "optimise"
# These cost no generation: what mends a kernel, and what is brought along.
FREE_ORIGINS = (Origin.REPAIR, Origin.IMPORTED, Origin.FORKED, Origin.COMPILED)


@dataclass(slots=True)
class CuteGenState(AcceptedLine):
    """The fold. `generations_used` and `current_id` speak of the depth being worked on.

    `base_id` is what the depth being worked on started from, None until it has. `repairs_tried` counts repairs of a
    kernel whose patches did not apply.
    """

    generations_used: int = 0
    current_id: str | None = None
    base_id: str | None = None
    repairs_tried: dict[str, int] = field(default_factory=dict)
    _made: dict[str, ev.CandidateCreated] = field(default_factory=dict)
    _started: ev.StepStarted | None = None

    @classmethod
    def new(cls, record: Record) -> CuteGenState:
        """The state at the start of a run."""
        return cls()

    @property
    def has_begun(self) -> bool:
        """Whether the current depth has anything of its own; a step in flight is the record's to tell."""
        return self.generations_used > 0 or self.current_id is not None

    @property
    def repairs_used(self) -> int:
        """Repairs spent in the current generation, failed patches included."""
        spent, name = 0, self.current_id
        while name in self._made:
            created = self._made[name]
            spent += self.repairs_tried.get(name, 0)
            if created.origin is not Origin.REPAIR:
                break
            spent, name = spent + 1, created.parent_id
        return spent

    def apply(self, event: ev.Event) -> None:
        """Take one event into account."""
        if (call := self.call_of(self.follow(event))) is not None:
            self.current_id = call.candidate_id if call.kind in (DIAGNOSE, REPAIR) else None
        match event:
            case ev.CandidateCreated(candidate_id=name):
                self._made[name] = event
                self.current_id = name
                self.generations_used += event.origin not in FREE_ORIGINS
            case ev.StepStarted():
                self._begin_step(event)
            case ev.StepFinished():
                self._finish_step(event)
            case ev.DepthFinished():
                self.generations_used, self.current_id, self.base_id = 0, None, None
            case _:
                pass

    def _begin_step(self, event: ev.StepStarted) -> None:
        self._started = event
        if event.kind == OPTIMISE and self.base_id is None:
            self.base_id = event.candidate_id

    def _finish_step(self, event: ev.StepFinished) -> None:
        started, self._started = self._started, None
        if event.outcome != "patch_failed" or started is None:
            return
        if started.kind == REPAIR and started.candidate_id in self._made:
            self.repairs_tried[started.candidate_id] = self.repairs_tried.get(started.candidate_id, 0) + 1
        else:
            self.generations_used, self.current_id = self.generations_used + 1, None
