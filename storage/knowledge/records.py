"""Rows of the knowledge base. Only what happened is kept; counts, rates, means and confidence are computed from it.

Files under TILEWRIGHT_HOME/knowledge: `evidence.jsonl`, one row an attempt, `failures.jsonl`, one row a kernel
that failed, mended a failure or was written under failure rules, `scores.jsonl`, one row what a
kernel was worth, and `revisions.jsonl`, one row a change of what is
known by name. Method: KernelBlaster's knowledge base (arXiv 2602.14293), with failures kept as evidence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

LEAST_FACTOR, LARGEST_FACTOR = 1e-9, 1e9


class Bottleneck(StrEnum):
    """What holds a kernel back first."""

    MEMORY = "memory"
    COMPUTE = "compute"
    LATENCY = "latency"
    HYBRID = "hybrid"
    OVERHEAD = "overhead"


class Category(StrEnum):
    """What a technique works on."""

    MEMORY = "memory"
    COMPUTE = "compute"
    LATENCY = "latency"
    GENERAL = "general"


class Outcome(StrEnum):
    """How an attempt ended. SAME: the difference to its parent is within the measured noise."""

    FASTER = "faster"
    SAME = "same"
    SLOWER = "slower"
    INCORRECT = "incorrect"
    NOT_COMPILED = "does not compile"
    PATCH_FAILED = "patch failed"

    @property
    def is_timed(self) -> bool:
        """Whether the attempt was correct and has a measured gain."""
        return self in (Outcome.FASTER, Outcome.SAME, Outcome.SLOWER)


@dataclass(frozen=True, slots=True)
class State:
    """Where a kernel stands: a pattern of its profile. `about` says in a sentence how it is recognised.

    A discovered state was named in a run; it takes the techniques of the state it `inherits` from, at 0.8 of their
    predicted gain and confidence.
    """

    name: str
    bottleneck: Bottleneck
    about: str
    secondary: tuple[str, ...] = ()
    is_discovered: bool = False
    inherits: str = ""
    is_disabled: bool = False


@dataclass(frozen=True, slots=True)
class Technique:
    """A change that can be made to a kernel."""

    name: str
    category: Category
    about: str
    helps: str = ""
    """When it helps, in a sentence."""
    hurts: str = ""
    """When it hurts, in a sentence."""
    classes: tuple[str, ...] = ()
    """Empty means all, as for `languages` and `architectures`."""
    languages: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()
    """As their compilers call them, or how such names begin: `sm_` is every NVIDIA GPU."""
    parts: tuple[str, ...] = ()
    """Names of at most three techniques that this joins, in order."""
    is_disabled: bool = False

    def suits(self, kernel_class: str = "", language: str = "", architecture: str = "") -> bool:
        """Whether it applies there. What is not known is empty and rules nothing out."""
        return (
            (not kernel_class or not self.classes or kernel_class in self.classes)
            and (not language or not self.languages or language in self.languages)
            and (not architecture or not self.architectures or architecture.startswith(self.architectures))
        )


@dataclass(frozen=True, slots=True)
class Prior:
    """What is expected of a technique in a state before anything was measured: a factor over the parent, and how sure
    that it makes a kernel faster, from 0 to 1."""

    state: str
    technique: str
    gain: float
    confidence: float = 0.5

    def __post_init__(self) -> None:
        _see_factor("gain", self.gain)
        if not 0 <= self.confidence <= 1:
            raise ValueError(f"a confidence lies between 0 and 1, not at {self.confidence}")


@dataclass(frozen=True, slots=True)
class Transition:
    """One technique after another, with an example of it. `source` is `start` where `target` was the first one.

    `think` says why it came next, `method` what was done; `before` and `after` are the lines that it changed.
    """

    source: str
    target: str
    think: str = ""
    method: str = ""
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class RuleWords:
    """What a person says of a failure rule, which `rule` names: other words than the repair's, or that it is off."""

    rule: str
    words: str = ""
    is_disabled: bool = False


@dataclass(frozen=True, slots=True)
class FailureCase:
    """What one kernel shows of failures. `run_id` and `candidate_id` are its id; the first row of an id counts."""

    run_id: str
    candidate_id: str
    at: float
    """In seconds since the epoch."""
    language: str
    toolchain: str
    signature: str = ""
    """Its own failure in general words; empty where it has none."""
    is_repeat: bool = False
    """Whether its parent had failed alike."""
    mends: str = ""
    """The failure of its parent that it no longer has."""
    words: str = ""
    """How it mends that."""
    told: tuple[str, ...] = ()
    """Rules that its writer was told, each with the words it then had."""
    message: str = ""
    """The first line of its failure."""
    task: str = ""
    model: str = ""
    origin: str = ""

    def __post_init__(self) -> None:
        if not self.run_id or not self.candidate_id:
            raise ValueError("a failure needs the run and the kernel that it is from")
        if not math.isfinite(self.at):
            raise ValueError(f"at is a time in seconds, not {self.at}")

    @property
    def case_id(self) -> tuple[str, str]:
        """What tells it from every other row."""
        return self.run_id, self.candidate_id


@dataclass(frozen=True, slots=True)
class ScoredKernel:
    """What one kernel was worth, by the graded reward, with what a reward model sees of it. Run and candidate are its
    id."""

    run_id: str
    candidate_id: str
    at: float
    language: str
    toolchain: str
    task: str
    reward: float
    features: Mapping[str, float] = field(default_factory=dict)

    @property
    def case_id(self) -> tuple[str, str]:
        """What tells it from every other row."""
        return self.run_id, self.candidate_id


@dataclass(frozen=True, slots=True)
class ToldRule:
    """A failure rule as a writer was told it: `name` is the rule with its words, `kernels` and `runs` its evidence."""

    name: str
    signature: str
    words: str
    kernels: int
    runs: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """One attempt, as one run tells it. `run_id`, `candidate_id` and `technique` together are its id; the first row of
    an id counts. Rows that tell of one change of a kernel are read as one attempt (`same_change`)."""

    run_id: str
    candidate_id: str
    technique: str
    outcome: Outcome
    at: float
    """In seconds since the epoch."""
    state: str = ""
    """Of the parent; empty where it was not known."""
    task: str = ""
    kernel_class: str = ""
    language: str = ""
    toolchain: str = ""
    device: str = ""
    architecture: str = ""
    precision: str = ""
    strategy: str = ""
    model: str = ""
    parent_hash: str = ""
    child_hash: str = ""
    predicted_gain: float | None = None
    """Factor over the parent, as `gain` is (1.25: a quarter faster)."""
    gain: float | None = None
    """The measured factor; `gain_low` and `gain_high` are the ends of its 95 % interval."""
    gain_low: float | None = None
    gain_high: float | None = None
    before: Mapping[str, float] = field(default_factory=dict)
    after: Mapping[str, float] = field(default_factory=dict)
    tokens: int = 0
    error: str = ""
    """The first line of a failure."""
    origin: str = ""
    """Where an imported row came from; empty for one that was measured under this home."""
    rules: int = 1
    """Version of the judging rules that its verdict stands on; a row from before they had one is of the first."""
    over_eager: float | None = None
    """How fast the new kernel is over eager PyTorch, and `over_best` over the best alternative; None where it was not
    timed, and in rows from before this was kept."""
    over_best: float | None = None
    limit_share: float | None = None
    """The share of the hardware limit that the parent had reached; None where no limit is known."""
    task_hash: str = ""
    """Names the source of the task, its sizes in place; empty in rows from before this was kept."""

    def __post_init__(self) -> None:
        if not self.run_id or not self.candidate_id:
            raise ValueError("evidence needs the run and the candidate that it is from")
        for name, value in (("predicted_gain", self.predicted_gain), ("gain", self.gain)):
            if value is not None:
                _see_factor(name, value)
        if not math.isfinite(self.at):
            raise ValueError(f"at is a time in seconds, not {self.at}")
        if not 0 <= self.tokens < 2**53:
            raise ValueError(f"tokens are a count, not {self.tokens}")

    @property
    def evidence_id(self) -> tuple[str, str, str]:
        """What tells it from every other row."""
        return self.run_id, self.candidate_id, self.technique


@dataclass(frozen=True, slots=True)
class Revision:
    """A change of what is known by name: states and techniques put in place of those of their name, priors likewise."""

    revision_id: str
    at: float
    """In seconds since the epoch."""
    by: str
    """A person, a run or `seed`."""
    why: str
    states: tuple[State, ...] = ()
    techniques: tuple[Technique, ...] = ()
    priors: tuple[Prior, ...] = ()
    reverts: str = ""
    """A revision that no longer counts from here on; reverting a revert brings it back."""
    origin: str = ""
    transitions: tuple[Transition, ...] = ()
    """Edges of the graph of techniques; they add to one another."""
    rules: tuple[RuleWords, ...] = ()
    """Words for failure rules."""

    def __post_init__(self) -> None:
        if not self.revision_id:
            raise ValueError("a revision needs an id")
        if not math.isfinite(self.at):
            raise ValueError(f"at is a time in seconds, not {self.at}")


def _see_factor(name: str, value: float) -> None:
    if not LEAST_FACTOR <= value <= LARGEST_FACTOR:
        raise ValueError(f"{name} is a factor over the parent, from {LEAST_FACTOR} to {LARGEST_FACTOR}, not {value}")


@dataclass(frozen=True, slots=True)
class Figures:
    """What the evidence says of a technique, in one state or in all, computed. All means are geometric."""

    attempts: int
    faster: int
    same: int
    slower: int
    incorrect: int
    not_compiled: int
    patch_failed: int
    success: float | None
    """Share of all attempts that were faster."""
    mean_gain: float | None
    """Of the timed attempts, as is `median_gain`: a factor over the parent."""
    median_gain: float | None
    predicted: float | None
    """Mean of what models predicted of all attempts."""
    confidence: float
    """`success` drawn towards the prior's confidence as if two attempts had shown it."""
    expected_gain: float
    """Mean of the measured gains of timed attempts and of the prior's gain, which counts as two attempts; a failed
    attempt counts as a gain of 1."""
    last_used: float | None

    @property
    def failed(self) -> int:
        """Attempts without a correct kernel."""
        return self.incorrect + self.not_compiled + self.patch_failed

    @property
    def is_negative(self) -> bool:
        """Whether it was tried at least twice, and more than half of the attempts failed or made the kernel slower."""
        return self.attempts >= 2 and 2 * (self.slower + self.failed) > self.attempts


@dataclass(frozen=True, slots=True)
class Advised:
    """What the knowledge base says of one technique for the state that was asked about."""

    technique: str
    category: Category
    about: str
    helps: str
    hurts: str
    expected_gain: float
    """A factor over the parent."""
    confidence: float
    """How sure it is that the technique makes a kernel faster, from 0 to 1."""
    attempts: int = 0
    faster: int = 0
    slower: int = 0
    failed: int = 0
    """Attempts that were incorrect, did not compile or could not be applied."""
    is_negative: bool = False
    """As of figures."""
    inherited_from: str = ""
    """The state whose expectations stand in for missing ones, at 0.8 of gain and confidence; empty for the state's
    own."""
    parts: tuple[str, ...] = ()
    """Names of the techniques that it joins, in order."""

    @property
    def joined(self) -> str:
        """What it joins, in words; empty for a technique of its own."""
        return f"Joins {', then '.join(self.parts)}" if self.parts else ""


@dataclass(frozen=True, slots=True)
class KnownEdge:
    """What the knowledge base says of the edge from one technique to the next, over all runs.

    `expected_gain` is a factor over the kernel before: of the edge's attempts and, as two more, of what is expected of
    `target`. `value` is the sum of the attempts' log gains, a failed one as -1.
    """

    source: str
    target: str
    expected_gain: float
    attempts: int = 0
    value: float = 0.0


@dataclass(frozen=True, slots=True)
class WeighedEdge:
    """An edge as a walk through the graph of techniques weighed it at a kernel, before what came of the walk counted.

    `visits` (N) and `value` (Q) are of this run; `prior` is a log gain. Of the edges at one kernel one `is_taken`;
    where that is the one of a new method, so is the edge that the method has become.
    """

    candidate_id: str
    source: str
    target: str
    visits: int
    value: float
    prior: float
    score: float
    is_taken: bool = False
