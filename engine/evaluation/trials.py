"""The trials of a check and their order: which inputs, from which seed. Decides nothing and calls nothing."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass

from engine.evaluation.poison import Poison
from engine.evaluation.values import Style


@dataclass(frozen=True, slots=True)
class Trial:
    """One set of inputs. A repeat uses the seed of the trial it repeats. Essential trials are never left out."""

    name: str
    style: Style
    seed_name: str
    is_essential: bool = False


def _own(number: int, is_essential: bool = False) -> Trial:
    return Trial(f"own {number}", Style.OWN, f"own {number}", is_essential)


def _styled(style: Style, is_essential: bool = False) -> Trial:
    return Trial(str(style), style, str(style), is_essential)


FIRST = _own(1, is_essential=True)
REPEAT = Trial("own 1 again", Style.OWN, FIRST.seed_name, is_essential=True)
ESSENTIAL = (FIRST, _styled(Style.WIDE, is_essential=True), REPEAT, _styled(Style.NORMAL, is_essential=True))
FURTHER = (
    _own(2),
    _own(3),
    _styled(Style.SHIFTED),
    _styled(Style.HUGE),
    _styled(Style.TINY),
    _styled(Style.CONSTANT),
    _styled(Style.WHOLE),
    _styled(Style.MIXED),
    _styled(Style.ONE_HOT),
    _styled(Style.OUTLIERS),
)
PLAN = (*ESSENTIAL, *FURTHER)
SHORT_PLAN = (FIRST, _styled(Style.NORMAL, is_essential=True))
SPECIAL = _styled(Style.SPECIAL)


def ordered(plan: tuple[Trial, ...], seed: int) -> tuple[Trial, ...]:
    """Essential trials first and as written; the others in an order that only the secret seed tells."""
    further = [trial for trial in plan if not trial.is_essential]
    random.Random(f"{seed} order").shuffle(further)
    return (*(trial for trial in plan if trial.is_essential), *further)


def seed_of(seed: int, name: str) -> int:
    """The seed of one trial's inputs, from the secret seed of the whole check."""
    return int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:7], "little")


def poison_of(number: int) -> Poison:
    """What lies in unwritten memory in a trial; the repeat of a trial meets another one than the trial did."""
    return (Poison.NAN, Poison.HIGH, Poison.LOW)[number % 3]
