"""What the knowledge base offers for a run's best kernel: its state by the rules, and techniques that apply. Asks no
model; what a run itself was told stands in its journal."""

from __future__ import annotations

from dataclasses import dataclass

from engine.knowledge import consulting, evidence, states
from engine.knowledge.consulting import Need
from engine.knowledge.states import Found
from engine.search.steps.knowledge import need_of
from storage.knowledge.base import Base
from storage.knowledge.records import Advised
from storage.run.record import Record

MOST = 6


@dataclass(frozen=True, slots=True)
class StateForm:
    """What holds a kernel back, by the rules on its profile; `state` is empty where they say nothing, and `why` says
    so."""

    state: str
    bottleneck: str
    confidence: float
    why: str


@dataclass(frozen=True, slots=True)
class ToTry:
    """Techniques for a state, that which promises most first; of all states' where the state is not known."""

    state: StateForm
    techniques: tuple[Advised, ...]


def to_try(record: Record, base: Base) -> ToTry | None:
    """For the best kernel; None before there is one."""
    if record.best is None:
        return None
    return offered(states.of_profile(*evidence.profile_of(record, record.best)), need_of(record), base)


def offered(found: Found, need: Need, base: Base) -> ToTry:
    """What the base has for a state; of all states' where the rules are not sure of it."""
    name = found.state if found.is_sure else ""
    return ToTry(state_form(found), consulting.advise(base, name, need)[:MOST])


def state_form(found: Found) -> StateForm:
    """What the rules have found."""
    return StateForm(found.state, str(found.bottleneck or ""), found.confidence, found.why)
