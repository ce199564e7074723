"""What ran in a kernel's calls, PyTorch's operators and kernels on a GPU, as values of a result's evidence. Knows no
operator."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass

KEY = "operators"
KERNELS = "kernels"
OWN, COPY, COMPUTES = "own", "copy", "computes"


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


@dataclass(frozen=True, slots=True)
class ObservedKernel:
    """One kernel or copy on a GPU, per call of the candidate.

    Attributes:
        name: with its template arguments and parameters, as the driver's records give it.
        origin: `own`, `PyTorch`, `copy` or `foreign`.
        by: the operator that launched it; empty when none did.
        launches: how often.
        microseconds: on the device.
        share: of the time of all of them.
    """

    name: str
    origin: str
    by: str
    launches: float
    microseconds: float
    share: float


def to_text(rows: Sequence[ObservedOperator] | Sequence[ObservedKernel]) -> str:
    """The rows as the text that evidence keeps."""
    return json.dumps([astuple(row) for row in rows])


def of(evidence: Mapping[str, str]) -> list[ObservedOperator] | None:
    """What was observed; None for results of versions that did not look, and for what cannot be read."""
    try:
        return [ObservedOperator(*row) for row in json.loads(evidence[KEY])]
    except (KeyError, ValueError, TypeError):
        return None


def kernels_of(evidence: Mapping[str, str]) -> list[ObservedKernel] | None:
    """What ran on the device; None where nobody looked, and for what cannot be read."""
    try:
        return [ObservedKernel(*row) for row in json.loads(evidence[KERNELS])]
    except (KeyError, ValueError, TypeError):
        return None


def launched(evidence: Mapping[str, str]) -> float | None:
    """How many kernels a call launches, copies left out; None where nobody looked, or not all kinds were kept."""
    kernels = kernels_of(evidence)
    if not kernels or sum(kernel.share for kernel in kernels) < 0.999:
        return None
    return sum(kernel.launches for kernel in kernels if kernel.origin != COPY)


def own_share(evidence: Mapping[str, str]) -> float | None:
    """The share of a call that a kernel's own code takes, 0..1: on a GPU of the device's time, else what PyTorch's
    operators that compute leave of the call's; None where nobody looked."""
    if kernels := kernels_of(evidence):
        return min(1.0, sum(kernel.share for kernel in kernels if kernel.origin == OWN))
    shares = [row.share for row in of(evidence) or () if row.does == COMPUTES]
    known = [share for share in shares if share is not None]
    return max(0.0, 1.0 - sum(known)) if of(evidence) is not None and len(known) == len(shares) else None
