"""What screening says about a candidate: rules, findings, checks, and the words for the model. Knows no source text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from storage.results.check_records import CheckOutcome, CheckRecord, Group


class Rule(StrEnum):
    """What a candidate may not do; the value is the check's name in records."""

    LIBRARY = "no library fall-back"
    STREAMS = "current stream only"
    PROCESSES = "no processes left"
    MACHINERY = "machinery untouched"
    PRECISION = "precision kept"
    OUTSIDE = "no files, network, environment"
    DYNAMIC = "no hidden code"
    IMPORTS = "allowed imports"
    LANGUAGE = "in the run's language"


MAX_TOLD = 8


@dataclass(frozen=True, slots=True)
class Finding:
    """One breach or oddity.

    Attributes:
        rule: what it breaks.
        line: line of the candidate's file, where it is known.
        message: for the model: what, and what to do instead.
        is_refusal: True when it is certain and the candidate is refused; else a person should look.
    """

    rule: Rule
    line: int | None
    message: str
    is_refusal: bool

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}" if self.line else self.message


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """Each finding once, refusals first, then by line."""
    return sorted(set(findings), key=lambda f: (not f.is_refusal, f.line or 0, f.rule, f.message))


def rule_checks(findings: Sequence[Finding], language: str = "") -> tuple[CheckRecord, ...]:
    """One check for every rule; that of the language only where one is named."""
    rules = [rule for rule in Rule if language or rule is not Rule.LANGUAGE]
    return tuple(_check(rule, [f for f in findings if f.rule is rule]) for rule in rules)


def _check(rule: Rule, findings: Sequence[Finding]) -> CheckRecord:
    if not findings:
        return CheckRecord(Group.SCREENING, rule, CheckOutcome.HELD)
    outcome = CheckOutcome.BROKEN if any(f.is_refusal for f in findings) else CheckOutcome.FLAGGED
    more = f" (and {len(findings) - MAX_TOLD} more)" if len(findings) > MAX_TOLD else ""
    return CheckRecord(Group.SCREENING, rule, outcome, "; ".join(map(str, ordered(findings)[:MAX_TOLD])) + more)


def verdict_message(findings: Sequence[Finding]) -> str:
    """Why a candidate is refused, for the model; empty when it is not."""
    broken = [f for f in ordered(findings) if f.is_refusal]
    if not broken:
        return ""
    lines = [f"- {finding} [{finding.rule}]" for finding in broken[:MAX_TOLD]]
    what = (
        "Remove what is named above" if any(f.rule is not Rule.LANGUAGE for f in broken) else "Write it as named above"
    )
    if len(broken) > MAX_TOLD:
        lines.append(f"- and {len(broken) - MAX_TOLD} more of the same kinds")
    return "\n".join(
        (
            "The candidate was refused before it ran, by its text or its built library:",
            *lines,
            f"{what}: the whole computation belongs into the custom kernel that forward launches.",
        )
    )
