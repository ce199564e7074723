"""What PyTorch ran in a kernel's calls, as one value of a result's evidence. Knows no operator."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass

KEY = "operators"


@dataclass(frozen=True, slots=True)
class ObservedOperator:
    """One operator, per call of the kernel.

    Attributes:
        name: with its namespace, `aten::copy_`.
        does: `computes`, `copies`, `allocates`, `views` or `looks`.
        calls: how often.
        elements: of its largest inputs in all; None where nobody can tell.
        share: of the call's time, threads of its own included; None where it is not known.
    """

    name: str
    does: str
    calls: float
    elements: float | None
    share: float | None


def to_text(rows: Sequence[ObservedOperator]) -> str:
    """As evidence keeps it."""
    return json.dumps([astuple(row) for row in rows])


def of(evidence: Mapping[str, str]) -> list[ObservedOperator] | None:
    """What was observed; None for results of versions that did not look, and for what cannot be read."""
    try:
        return [ObservedOperator(*row) for row in json.loads(evidence[KEY])]
    except (KeyError, ValueError, TypeError):
        return None
