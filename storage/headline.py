"""The one line of a failed result that a table has room for. Knows results, not where they are shown."""

from __future__ import annotations

from storage.proof import Standing
from storage.records import CheckResult, CompileResult, Verdict

LENGTH = 240


def of_build(result: CompileResult) -> str:
    """Why a source was refused, or the first error among warnings and notes."""
    errors = [line for line in result.diagnostics.splitlines() if "error" in line.lower()]
    return _refusal(result) or _first(errors[0] if errors else result.diagnostics)


def of_check(result: CheckResult) -> str:
    """Why a candidate was refused, or the first line of the message."""
    return _refusal(result) or _first(result.message)


def _refusal(result: CompileResult | CheckResult) -> str:
    """The check that a refused candidate broke, and how: the message is written for the model and opens more generally.

    Empty unless refused.
    """
    broken = [p for p in result.proofs if p.standing is Standing.BROKEN and result.verdict is Verdict.REFUSED]
    return _first(f"{broken[0].check}: {broken[0].detail}") if broken else ""


def _first(text: str) -> str:
    """The first line that says something, cut to fit."""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return first if len(first) <= LENGTH else first[: LENGTH - 1] + "…"
