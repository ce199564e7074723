"""Failure rules: what goes wrong again and again in kernels of one language on one toolchain, and what mended it.

Computed from the rows alone: from what each kernel shows of failures and from what people say of a rule. Pure; the
index ends its sums with the same code. Idea: AdaExplore (arXiv 2604.16625), which keeps rules of failures across tasks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from storage.knowledge.records import FailureCase, RuleWords, ToldRule

LEAST_KERNELS = 2  # that failed alike, repairs that failed again apart
MOST_TOLD = 5
MOST_LETTERS = 1600  # of all rules of a prompt, about 400 tokens
WORDS_LENGTH = 240


class RuleStatus(StrEnum):
    """What becomes of a rule. ACTIVE: the next writers are told it. WAITING: seen once, or no words say how it was
    mended. FADED: it was told twice or more, and the failure came back more often than not."""

    ACTIVE = "active"
    WAITING = "waiting"
    FADED = "faded"
    OFF = "off"


@dataclass(slots=True)
class Counts:
    """Sums over the cases of one failure. `words` are those of its first mend that has any."""

    kernels: int = 0
    runs: int = 0
    mended: int = 0
    words: str = ""
    last_at: float | None = None


@dataclass(slots=True)
class FailureTally:
    """Sums over cases: by language, toolchain and signature; and by the name of a told rule how often it was told and
    how often the failure came back."""

    seen: dict[tuple[str, str, str], Counts] = field(default_factory=dict)
    told_and_recurred: dict[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FailureRule:
    """One failure with its evidence."""

    rule_id: str
    language: str
    toolchain: str
    signature: str
    words: str
    """What to do about it: a person's, in place of the first repair's."""
    kernels: int
    """How many failed so, of `runs` runs; repairs that failed again apart."""
    runs: int
    mended: int
    """How often a repair ended it."""
    told: int
    """To how many kernels' writers it was told under these words."""
    recurred: int
    """How many of those failed so all the same."""
    last_at: float | None
    is_worded: bool = False
    is_disabled: bool = False

    @property
    def name(self) -> str:
        """The rule under these words, as rows name what was told."""
        return worded_name(self.rule_id, self.words)

    def is_about(self, case: FailureCase) -> bool:
        """Whether a kernel failed so, mended it, or was written under the rule in these words."""
        if (case.language, case.toolchain) != (self.language, self.toolchain):
            return False
        return self.signature in (case.signature, case.mends) or self.name in case.told

    @property
    def confidence(self) -> float:
        """Share of told kernels without the failure, drawn to one half as if two more had been told."""
        return (self.told - self.recurred + 1) / (self.told + 2)

    @property
    def mend(self) -> str:
        """How it was mended, so that it agrees with how often."""
        if self.words:
            return self.words
        return "mended by a repair that did not say how" if self.mended else "not mended yet"

    @property
    def waits_for(self) -> str:
        """What has to come before writers are told it; empty unless it waits."""
        if self.status is not RuleStatus.WAITING:
            return ""
        if not self.words:
            return "a repair that says how it mended it"
        return "another kernel that fails so"

    @property
    def status(self) -> RuleStatus:
        """Whether writers are told it."""
        if self.is_disabled:
            return RuleStatus.OFF
        if not self.words or not (self.is_worded or (self.kernels >= LEAST_KERNELS and self.mended)):
            return RuleStatus.WAITING
        return RuleStatus.FADED if self.told >= 2 and 2 * self.recurred > self.told else RuleStatus.ACTIVE


def rule_id(language: str, toolchain: str, signature: str) -> str:
    """The id of the rule of a failure."""
    return (
        "rule-" + hashlib.sha256("\n".join((language, toolchain, signature)).encode(errors="replace")).hexdigest()[:8]
    )


def worded_name(rule: str, words: str) -> str:
    """A rule under one wording: other words begin anew."""
    return f"{rule}:{hashlib.sha256(words.encode(errors='replace')).hexdigest()[:6]}"


def id_of_worded(name: str) -> str:
    """The rule that such a name is of."""
    return name.partition(":")[0]


def tally(cases: Iterable[FailureCase]) -> FailureTally:
    """Sums over these cases, oldest first."""
    sums, runs = FailureTally(), dict[tuple[str, str, str], set[str]]()
    for case in cases:
        if case.signature and not case.is_repeat:
            key = case.language, case.toolchain, case.signature
            counts = sums.seen.setdefault(key, Counts())
            counts.kernels += 1
            runs.setdefault(key, set()).add(case.run_id)
            counts.runs = len(runs[key])
            counts.last_at = max(case.at, counts.last_at or case.at)
        if case.mends:
            counts = sums.seen.setdefault((case.language, case.toolchain, case.mends), Counts())
            counts.mended += 1
            counts.words = counts.words or case.words
        own_rule = rule_id(case.language, case.toolchain, case.signature) if case.signature else ""
        for name in case.told:
            count, recurred = sums.told_and_recurred.get(name, (0, 0))
            sums.told_and_recurred[name] = count + 1, recurred + (id_of_worded(name) == own_rule)
    return sums


def rules(sums: FailureTally, by_person: Mapping[str, RuleWords]) -> list[FailureRule]:
    """Every failure as a rule, those seen most first."""
    listed = [_rule(*key, counts, sums, by_person) for key, counts in sums.seen.items()]
    return sorted(listed, key=lambda rule: (-rule.kernels, -rule.mended, rule.rule_id))


def _rule(
    language: str,
    toolchain: str,
    signature: str,
    counts: Counts,
    sums: FailureTally,
    by_person: Mapping[str, RuleWords],
) -> FailureRule:
    named = rule_id(language, toolchain, signature)
    person = by_person.get(named, RuleWords(named))
    words = (person.words or counts.words)[:WORDS_LENGTH]
    count, recurred = sums.told_and_recurred.get(worded_name(named, words), (0, 0))
    return FailureRule(
        named, language, toolchain, signature, words, counts.kernels, counts.runs, counts.mended, count, recurred,
        counts.last_at, bool(person.words), person.is_disabled,
    )  # fmt: skip


def to_tell(seen: Sequence[FailureRule], language: str, toolchain: str, before: Sequence[str]) -> tuple[ToldRule, ...]:
    """What the writer of the next kernel is told: at most five rules. Those in `before`, the names told last, keep
    their order and stand first, so that the beginning of a prompt stays the same for an endpoint's cache."""
    fitting = [
        rule
        for rule in seen
        if (rule.language, rule.toolchain, rule.status) == (language, toolchain, RuleStatus.ACTIVE)
    ]
    best = sorted(fitting, key=lambda rule: (-rule.kernels * rule.confidence, rule.rule_id))[:MOST_TOLD]
    order = {name: number for number, name in enumerate(before)}
    chosen, letters = list[ToldRule](), 0
    for rule in sorted(best, key=lambda rule: order.get(rule.name, len(order))):
        letters += len(rule.signature) + len(rule.words)
        if letters <= MOST_LETTERS:
            chosen.append(ToldRule(rule.name, rule.signature, rule.words, rule.kernels, rule.runs))
    return tuple(chosen)
