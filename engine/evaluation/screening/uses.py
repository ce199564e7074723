"""What a candidate's Python does, one record per place. Written by the reader, judged by the rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from engine.evaluation.screening.values import Text, Values


class Act(StrEnum):
    """How something is used."""

    LOADED = "loaded"
    CALLED = "called"
    COMPUTED = "computed"
    STORED = "stored"
    IMPORTED = "imported"
    KEPT = "kept"
    DYNAMIC = "dynamic"
    KERNEL = "kernel"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class Use:
    """One act.

    Attributes:
        act: how.
        name: full dotted name of what; `torch.Tensor.relu` for methods of tensors.
        line: in the candidate's file.
        is_forward: it may run inside a call of the model.
        is_result: what it works on depends on the call's inputs.
        argument: folded text of the first argument or of the key stored to, where known.
        detail: further words, by act.
    """

    act: Act
    name: str
    line: int
    is_forward: bool = False
    is_result: bool = False
    argument: str | None = None
    detail: str = ""


@dataclass(slots=True)
class Reading:
    """All that the reader found."""

    uses: list[Use] = field(default_factory=list)
    sources: list[Text] = field(default_factory=list)
    returned: Values = frozenset()
    has_model: bool = False
    has_build: bool = False
    model_bases: tuple[str, ...] = ()
    called_classes: frozenset[str] = frozenset()
    made_classes: frozenset[str] = frozenset()
