"""What the kernels of a run show of failures, as rows of the knowledge base. Pure.

A failure is known by its signature: the compiler's or checker's message without what belongs to one kernel alone
(places, numbers, template arguments). A wrong result has one only where it is wrong in a telling place or trial: plain
wrong numbers look alike whatever causes them. Left out are kernels by hand or from elsewhere, and runs that play back
another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from storage.knowledge.records import FailureCase
from storage.results.evaluation_results import Mismatch, headline
from storage.results.vocabulary import Verdict
from storage.run.record import Candidate, Record
from storage.run.settings import Origin

SIGNATURE_LENGTH = 140
LEAST_WORDS = 3  # of a sentence that says how a failure was mended
WRITTEN = (Origin.SYNTHESIS, Origin.OPTIMISATION, Origin.REPAIR)
MOST_OF_ALL = 0.5  # share of an output's cells above which its place tells nothing

_PLACE = re.compile(r"^.*?\b(?:fatal |catastrophic )?error\b(?: [#A-Z]?[\w-]+)?:\s*", re.IGNORECASE)
_INNER = ((re.compile(r"<[^<>]*>"), "<>"), (re.compile(r"\([^()]+\)"), "()"), (re.compile(r"[\[{][^\[\]{}]*[\]}]"), ""))
_NUMBER = re.compile(r"\b(?:0x[0-9a-f]+|\d[\d.,]*(?:e[+-]?\d+)?)\b", re.IGNORECASE)
# An apostrophe within a word is no quote.
_QUOTES = re.compile("(?<!\\w)['\u2018\u2019]|['\u2018\u2019](?!\\w)|[\u201c\u201d\"]")
_FURTHER = re.compile(r"(?:; did you mean| \(?argument types are).*", re.IGNORECASE)


def cases(record: Record, at: float, *, is_ending: bool = False) -> list[FailureCase]:
    """Rows of the kernels whose step index is over, at the end of a run of all that were judged; `at` is when they are
    told."""
    if record.settings.replay_of is not None:
        return []
    concluded = {done.depth for done in record.concluded}
    kernels = (kernel for kernel in record.candidates.values() if is_ending or kernel.created.depth in concluded)
    return list(_cases(record, kernels, at))


def _cases(record: Record, kernels: Iterator[Candidate], at: float) -> Iterator[FailureCase]:
    settings = record.settings
    for kernel in kernels:
        created = kernel.created
        if kernel.verdict is None or created.origin not in WRITTEN:
            continue
        before, fault = record.candidates.get(created.parent_id or ""), signature(kernel)
        failed = signature(before) if before else ""
        mends = failed if before and failed != fault and _is_past(before, kernel) else ""
        rules = () if created.origin is Origin.REPAIR else _rules_before(record, created.step)
        if fault or mends or rules:
            yield FailureCase(
                run_id=settings.run_id,
                candidate_id=kernel.candidate_id,
                at=at,
                language=settings.language,
                toolchain=settings.toolchain,
                signature=fault,
                is_repeat=bool(fault) and fault == failed,
                mends=mends,
                words=created.summary if mends and len(created.summary.split()) >= LEAST_WORDS else "",
                told=rules,
                message=kernel.failure,
                task=settings.task_name,
                model=_model(record, created.step),
            )


def _is_past(before: Candidate, kernel: Candidate) -> bool:
    """Whether a kernel is past the stage at which its parent had failed."""
    compiled = kernel.compiled is not None and kernel.compiled.is_ok
    return compiled if before.verdict is Verdict.COMPILE_ERROR else kernel.verdict is Verdict.PASSED


def _rules_before(record: Record, step: int) -> tuple[str, ...]:
    rules = [event for event in record.failure_rules if event.step <= step]
    return tuple(rule.name for rule in rules[-1].rules) if rules else ()


def _model(record: Record, step: int) -> str:
    models = [call.model for (at, _), call in record.calls.items() if at == step]
    return models[-1] if models else record.settings.model


def signature(kernel: Candidate) -> str:
    """How a kernel has failed, in general words; empty where it has not, or where its failure tells nothing."""
    if not kernel.has_failed:
        return ""
    checked = kernel.checked
    if kernel.compiled is not None and not kernel.compiled.is_ok:
        return general(headline(kernel.compiled))
    if checked is not None and checked.mismatch is not None:
        return _wrong(checked.mismatch)
    return general(headline(checked)) if checked is not None else ""


def general(message: str) -> str:
    """A message without places, numbers, arguments and template arguments, on one line."""
    text = _QUOTES.sub("`", _FURTHER.sub("", _PLACE.sub("", message, count=1)))
    for pattern, instead in _INNER:
        text = _innermost(pattern, instead, text)
    text = " ".join(_NUMBER.sub("N", text).split())
    return _paired(text if len(text) <= SIGNATURE_LENGTH else text[: SIGNATURE_LENGTH - 1] + "…")


def _paired(text: str) -> str:
    """Without the last quote where it has no other: what was cut off took it along."""
    before, _, after = text.rpartition("`")
    return before + after if text.count("`") % 2 else text


def _innermost(pattern: re.Pattern[str], instead: str, text: str) -> str:
    """Every pair of brackets emptied, from the inside."""
    marked = pattern.sub("\0", text)
    while marked != text:
        text, marked = marked, pattern.sub("\0", marked)
    return text.replace("\0", instead)


def _wrong(mismatch: Mismatch) -> str:
    """Where, or for which inputs, a result is wrong."""
    trial = (
        mismatch.trial if mismatch.trial and not mismatch.trial.startswith("own") and mismatch.trial != "normal" else ""
    )
    where = _place(mismatch)
    if not (trial or where):
        return ""
    return "wrong output" + (f" in the last {where}" if where else "") + (f" for inputs of {trial}" if trial else "")


def _place(mismatch: Mismatch) -> str:
    """Rows or columns at the end of the output, where only these are wrong."""
    heat = mismatch.heat
    rows = [i for i, row in enumerate(heat) if any(row)]
    columns = [j for j in range(len(heat[0])) if any(row[j] for row in heat)] if heat else []
    if not rows or not columns:
        return ""
    for name, wrong, count in (("rows", rows, len(heat)), ("columns", columns, len(heat[0]))):
        if wrong[0] > MOST_OF_ALL * count and wrong[-1] == count - 1:
            return name
    return ""
