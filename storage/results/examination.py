"""What a task is found to be before a kernel is judged on it: decidable or not, and why. Knows no file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

SHOWN = 3


class Standing(StrEnum):
    """Whether kernels can be judged on a task."""

    DECIDED = "decided"
    UNDECIDABLE = "undecidable"
    NOTHING_TO_DO = "nothing to do"


@dataclass(frozen=True, slots=True)
class Examination:
    """A reference examined at its sizes, under one policy."""

    standing: Standing
    why: str = ""
    """What keeps it from being decided, as a sentence; empty where it is decided."""
    remedies: tuple[str, ...] = ()
    """What mends it, each the beginning of a sentence or a whole one; empty where it is decided."""
    remarks: tuple[str, ...] = ()
    """What a person should know of a task that is decided."""
    varied: Mapping[str, str] = field(default_factory=dict)
    """Tensors of the state that get other values between trials, and how."""
    stays: Mapping[str, str] = field(default_factory=dict)
    """Tensors of the state that keep their values between trials, and why."""
    is_blurred: bool = False
    """Whether it is rounding that leaves nothing to compare."""
    inner: tuple[str, ...] = ()
    """Modules whose outputs are compared beside those of the whole, by name."""
    allowed: float | None = None
    """The largest error allowed in a trial with the task's own inputs, relative to |answer| + rms."""
    idle: float | None = None
    """The least that an answer that does nothing is off in such a trial, in the same unit."""
    hidden: tuple[str, ...] = ()
    """Classes of modules whose forward lies where no prompt can show it, by name. Kernels can be judged on it."""

    def hidden_unless(self, imports: Sequence[str]) -> Hidden | None:
        """What no prompt can show and kernels may not import either; None where there is nothing of that."""
        names = [name for name in self.hidden if not any(f"{name}.".startswith(f"{module}.") for module in imports)]
        return Hidden(tuple(names)) if names else None

    @property
    def is_decided(self) -> bool:
        """Whether a run on the task may start."""
        return self.standing is Standing.DECIDED

    @property
    def refusal(self) -> str:
        """Why not, with what mends it."""
        words = {Standing.UNDECIDABLE: "This task cannot be judged as given", Standing.NOTHING_TO_DO: "Nothing to do"}
        return "" if self.is_decided else f"{words[self.standing]}: {with_remedies(self.why, self.remedies)}"


@dataclass(frozen=True, slots=True)
class Hidden:
    """Classes of modules that a model would have to replace unseen, by name."""

    names: tuple[str, ...]

    @property
    def why(self) -> str:
        """What is wrong with it, as a sentence."""
        rest = f" and {len(self.names) - SHOWN} more" if len(self.names) > SHOWN else ""
        return (
            f"the forward of {', '.join(self.names[:SHOWN])}{rest} lies in the code of {self._packages}, which no "
            "prompt can show and no kernel may import"
        )

    @property
    def remedies(self) -> tuple[str, ...]:
        """What mends it."""
        return (
            "`python -m engine network capture FILE.py:make --output FOLDER` writes what it computes as a task",
            f"`imports` under [policy] in the TOML file beside the task, with {self._packages}, lets kernels import it",
        )

    @property
    def _packages(self) -> str:
        return ", ".join(dict.fromkeys(name.partition(".")[0] for name in self.names))


def with_remedies(why: str, remedies: Sequence[str]) -> str:
    """Why not, and what mends it, as sentences."""
    return f"{why}." + (f" What mends it: {'; '.join(remedies)}." if remedies else "")
