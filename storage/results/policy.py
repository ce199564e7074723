"""What a task allows a candidate to do. Fixed in a run's settings when it starts; knows no file and no check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

EVERYTHING = "*"
"""The value of `library_operators` that allows all of PyTorch."""


PRECISIONS = ("fp32", "tf32", "half")
"""From the most exact class on: what one allows, those after it allow too."""
OWN_DTYPE, DTYPES = "own", ("bf16", "fp16")
"""As a task is written, and what its tensors may be converted to instead."""
NOTHING = "nothing: own kernels only"
BOTH_PASSES = ", forward and backward"


def arithmetic_of(measured: str) -> str:
    """The class of arithmetic, one of PRECISIONS, of a policy that `Policy.measured` tells in words."""
    first_word = measured.partition(",")[0]
    return "half" if first_word in DTYPES else first_word


RULES = 2
"""Version of the rules that kernels are judged by. 1: with weights as constructed, whatever the names of a kernel's
weights, on any task that runs. 2: what this file says."""
MODES = ("eval", "train")
IN_MODE: Mapping[str, str] = {"": "", "eval": ", evaluation mode", "train": ", training mode"}


def kept_rules(version: int) -> str:
    """How kernels are judged by rules of before, in words; empty for those that hold now."""
    return "judged with constructed weights only" if version < RULES else ""


class Weights(StrEnum):
    """Whether parameters, and buffers that training changes, get other values between trials and between turns."""

    VARY = "vary"
    FIXED = "fixed"


class StateDict(StrEnum):
    """Whose names, shapes and dtypes the `state_dict` of a kernel's module has."""

    REFERENCE = "reference"
    ANY = "any"


class Strides(StrEnum):
    """How inputs lie in memory: as `get_inputs` returns them, or in one trial also with gaps or channels last."""

    OWN = "own"
    ANY = "any"


class Draws(StrEnum):
    """What becomes of a task whose forward draws random numbers that its answer depends on.

    With SEEDED both sides are seeded alike before each call, and a kernel is right that draws what the reference draws.
    """

    REFUSED = "refused"
    SEEDED = "seeded"


class SpecialValues(StrEnum):
    """What becomes of a candidate that treats NaN and infinities unlike the reference."""

    REPORTED = "reported"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of one task."""

    precision: str = "fp32"
    """Arithmetic the outputs must be as good as: `fp32`; `tf32` where products may round their operands to 11 bits;
    `half` where they may round them to bfloat16 or float16."""
    library_operators: tuple[str, ...] = ()
    """PyTorch operators a candidate may leave to the library (`conv2d`), `*` for all of them. Any other that computes
    when forward is called is a library fall-back and refused."""
    imports: tuple[str, ...] = ()
    """Python modules a candidate may import beyond those every candidate may."""
    special_values: SpecialValues = SpecialValues.REPORTED
    """Whether NaN and infinities decide or are only reported."""
    other_sizes: tuple[Mapping[str, int | float], ...] = ()
    """Further sizes, by module-level name, at which a candidate must be right too."""
    workloads: tuple[Mapping[str, int | float], ...] = ()
    """Several sizes, by module-level name, that are each checked and timed; the speed-up is the geometric mean of
    theirs. Empty where the task has its own sizes alone; those are one of them."""
    suspicious_speedup: float = 10.0
    """A larger one is measured again in a fresh process on fresh inputs."""
    counts_operations: bool | float = True
    """Share of the reference's products that the task needs at least, from 0 to 1, true for all of them: less where it
    multiplies by zeros that are there by the task's making. With false only memory limits a kernel."""
    backward: bool = False
    """Whether a call is forward and backward: gradients of inputs and parameters are checked as outputs are, and both
    passes are timed together."""
    dtype: str = ""
    """One of DTYPES that floating-point inputs, parameters and buffers are converted to, on both sides; empty where
    they stay as the task is written. Such a dtype is a precision class of its own."""
    mode: str = ""
    """One of MODES that both sides' modules are put into after construction; empty where they stay as the constructor
    leaves them, which is training mode."""
    weights: Weights = Weights.VARY
    state_dict: StateDict = StateDict.REFERENCE
    strides: Strides = Strides.OWN
    draws: Draws = Draws.REFUSED
    compare_modules: int = 0
    """Up to how many names deep (`layer1.0` is two) the outputs of modules are compared too, each on the inputs that it
    had, so that an error made in one is not carried into the next; 0 for the whole's alone."""
    secret_sizes: bool = False
    """Whether a kernel must be right at a size near the task's own that nobody is told, too."""
    baselines: tuple[str, ...] = ()
    """What a speed-up is told over beside eager, names of storage.results.baselines; empty for those that are usual on
    the toolchain."""
    recorded: str = ""
    """A safetensors file of what a network gave the module: judged on too, with the weights that it had there. Its name
    holds the hash of its content. In a task's file its path from there."""
    rules: int = RULES
    """The version of the judging rules that hold."""

    @property
    def measured(self) -> str:
        """What figures hold for, in words: the precision class, the mode and the passes. Figures of two such do not
        compare."""
        return f"{self.dtype or self.precision}{self._how}"

    @property
    def variant(self) -> str:
        """What a task's name is followed by, so that no figure of the one stands unmarked beside one of the other."""
        modules = f"modules{self.compare_modules}" if self.compare_modules else ""
        words = (self.dtype, self.mode, "backward" if self.backward else "", modules)
        return "".join(f"-{word}" for word in words if word)

    @property
    def baseline(self) -> str:
        """What the name of a baseline is followed by."""
        return f"{f', {self.dtype}' if self.dtype else ''}{self._how}"

    @property
    def _how(self) -> str:
        modules = ", compared module by module" if self.compare_modules else ""
        return f"{IN_MODE.get(self.mode, '')}{BOTH_PASSES if self.backward else ''}{modules}"

    @property
    def arithmetic(self) -> str:
        """The class of arithmetic that the tensors are for, one of PRECISIONS."""
        return "half" if self.dtype else self.precision

    @property
    def is_judged_as_constructed(self) -> bool:
        """Whether the first rules hold, which know one set of weights."""
        return self.rules < 2

    @property
    def passes(self) -> str:
        """What a call is."""
        return "forward and backward" if self.backward else "forward"

    @property
    def library_in_words(self) -> str:
        """What PyTorch may compute in a kernel's calls."""
        if EVERYTHING in self.library_operators:
            return "anything"
        return ", ".join(self.library_operators) or NOTHING


def as_of_now(policy: Policy) -> Policy:
    """A policy of before under the rules that hold now, for a kernel that is judged again."""
    if policy.rules >= RULES:
        return policy
    now = Policy()
    return replace(policy, rules=RULES, weights=now.weights, state_dict=now.state_dict, draws=now.draws)
