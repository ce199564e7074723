"""The closed sets that results and tasks share: how an evaluation ends, and of which class a kernel is."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class KernelClass(StrEnum):
    """Chooses the optimisation guide and the default profiling schedule."""

    MATMUL = "matmul"
    CONVOLUTION = "convolution"
    ATTENTION = "attention"
    REDUCTION = "reduction"
    ACTIVATION = "activation"
    LOSS = "loss"
    OTHER = "other"


class Verdict(StrEnum):
    """How an evaluation ended. Everything but PASSED carries a message and has no latency."""

    PASSED = "passed"
    COMPILE_ERROR = "compile_error"
    INCORRECT = "incorrect"
    RUNTIME_ERROR = "runtime_error"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    REFUSED = "refused"


# What a kernel did that failed, after its name.
FAILED: Mapping[Verdict, str] = {
    Verdict.COMPILE_ERROR: "does not compile",
    Verdict.INCORRECT: "gives wrong results",
    Verdict.RUNTIME_ERROR: "crashed",
    Verdict.TIMEOUT: "took too long",
    Verdict.OUT_OF_MEMORY: "ran out of memory",
    Verdict.REFUSED: "was refused",
}
