"""The values that a call passes on. Knows no call."""

from __future__ import annotations

from engine.evaluation.screening.values import NOTHING, Load, Values, loads, texts


class Arguments:
    """The values a call passes on."""

    def __init__(self, plain: list[Values], named: dict[str, Values], is_loose: bool) -> None:
        self.plain, self.named, self.is_loose = plain, named, is_loose

    @property
    def all(self) -> list[Values]:
        """Places, then names."""
        return [*self.plain, *self.named.values()]

    def at(self, place: int, name: str = "") -> Values:
        """One argument by place or name."""
        return self.plain[place] if place < len(self.plain) else self.named.get(name, NOTHING)

    @property
    def load(self) -> Load | None:
        """The most that a tensor among them holds; None without tensors."""
        return max((load for values in self.all for load in loads(values)), default=None)

    @property
    def text(self) -> str | None:
        """The first argument, if it is a known string."""
        found = texts(self.at(0)) if self.plain else []
        return found[0] if found else None
