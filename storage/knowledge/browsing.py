"""The knowledge base as people browse it: its states, techniques, changes, attempts and failure rules, as rows with
their figures. Pure: what was read stands in a Base, which an engine asks too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

from storage.knowledge.base import Base
from storage.knowledge.failures import FailureRule
from storage.knowledge.figures import NOTHING_KNOWN, figures_of, log_units, revisions_in_force, tally
from storage.knowledge.graph import attempts_by_edge, value
from storage.knowledge.records import Evidence, FailureCase, Figures, Outcome, Revision, State, Technique

PAGE = 50
NEWEST = 1000


@dataclass(frozen=True, slots=True)
class TechniqueFilter:
    """What to leave in; an empty field leaves in everything.

    `kernel_class` and `language` leave in what applies to them. `state` leaves in what is known there, and figures are
    of that state; `device` leaves everything in, and figures are of that device. `text` is looked for in names and
    sentences.
    """

    category: str = ""
    kernel_class: str = ""
    language: str = ""
    device: str = ""
    state: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class KnownStateRow:
    """A state, how many techniques are in use there, and figures over all attempts from it, without any prior."""

    state: State
    techniques: int
    figures: Figures


@dataclass(frozen=True, slots=True)
class TechniqueRow:
    """A technique with its figures, in `state` or, where that is empty, in all of them.

    `inherited_from` names the state whose knowledge stands in for a prior of its own.
    """

    technique: Technique
    state: str
    figures: Figures
    inherited_from: str = ""


@dataclass(frozen=True, slots=True)
class EdgeRow:
    """One technique after another; `source` is `start` where nothing came before. `value` (Q) is the sum of the
    attempts' log gains, a failed one as -1; the number of attempts is N. What was expected before any attempt on the
    edge is what is expected of the technique in all states."""

    source: str
    target: str
    figures: Figures
    value: float


@dataclass(frozen=True, slots=True)
class UndefinedRow:
    """A technique that attempts name and that nobody has defined."""

    name: str
    figures: Figures


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """One technique on one device."""

    device: str
    figures: Figures


@dataclass(frozen=True, slots=True)
class RevisionRow:
    """A change of what is known by name; `counts` is False once it is reverted. Numbers say how much it changed."""

    revision_id: str
    at: float
    by: str
    why: str
    reverts: str
    origin: str
    states: int
    techniques: int
    priors: int
    transitions: int
    rules: int
    counts: bool


@dataclass(frozen=True, slots=True)
class KnowledgeSums:
    """How much there is; `runs` are all that tell of the attempts. `tried` of the techniques have an attempt; `damaged`
    lines cannot be read; `last_at` is when the newest attempt was over."""

    attempts: int
    runs: int
    imported: int
    last_at: float | None
    states: int
    discovered: int
    techniques: int
    disabled: int
    revisions: int
    damaged: int
    tried: int = 0


def revisions(base: Base) -> list[RevisionRow]:
    """Every change, the newest first, the shipped seed last."""
    counting = {revision.revision_id for revision in revisions_in_force(base.revisions)}
    return [
        RevisionRow(
            r.revision_id, r.at, r.by, r.why, r.reverts, r.origin, len(r.states), len(r.techniques), len(r.priors),
            len(r.transitions), len(r.rules), r.revision_id in counting,
        )
        for r in reversed(base.revisions)
    ]  # fmt: skip


def revision(base: Base, revision_id: str) -> Revision | None:
    """One change with all that it says; None where there is none of this id."""
    return next((revision for revision in base.revisions if revision.revision_id == revision_id), None)


def edges(base: Base, *, device: str | None = None) -> list[EdgeRow]:
    """Every edge of the graph of techniques, tried ones and those that models have laid out; by name."""
    attempts = attempts_by_edge(base.attempts, base.rows)
    tallies = {
        ends: tally(row for row in rows if device in (None, row.device))
        for ends, rows in attempts.items()
        if device is None or any(row.device == device for row in rows)
    }
    laid = {(transition.source, transition.target) for transition in base.known.transitions}
    reckoned = base.reckoning(device)
    return [
        EdgeRow(*ends, figures_of(seen, log_units(reckoned.figures(ends[1]).expected_gain), 0.5), value(seen))
        for ends in sorted({*tallies, *laid})
        for seen in [tallies.get(ends, tally(()))]
    ]


def states(base: Base, *, device: str | None = None) -> list[KnownStateRow]:
    """Every state, those with most attempts first."""
    by_state: dict[str, list[Evidence]] = {}
    for row in base.attempts:
        if device in (None, row.device):
            by_state.setdefault(row.state, []).append(row)
    reckoned = base.reckoning(device)
    rows = [
        KnownStateRow(
            state,
            len(reckoned.techniques_of(state.name)),
            figures_of(tally(by_state.get(state.name, ())), *NOTHING_KNOWN),
        )
        for state in base.states.values()
    ]
    return sorted(rows, key=lambda row: (-row.figures.attempts, row.state.name))


def techniques(base: Base, chosen: TechniqueFilter | None = None) -> list[TechniqueRow]:
    """Techniques that fit, disabled ones too; the one that promises most first."""
    chosen = chosen or TechniqueFilter()
    reckoned = base.reckoning(chosen.device or None)
    rows = [
        TechniqueRow(
            technique,
            chosen.state,
            reckoned.figures(technique.name, chosen.state or None),
            reckoned.inherited_from(technique.name, chosen.state) if chosen.state else "",
        )
        for technique in base.techniques.values()
        if _fits(technique, chosen) and (not chosen.state or reckoned.is_known_in(technique.name, chosen.state))
    ]
    return sorted(rows, key=_promise)


def _fits(technique: Technique, chosen: TechniqueFilter) -> bool:
    text = " ".join((technique.name, technique.about, technique.helps, technique.hurts)).lower()
    return (
        chosen.category in ("", technique.category)
        and technique.suits(chosen.kernel_class, chosen.language)
        and chosen.text.strip().lower() in text
    )


def _promise(row: TechniqueRow) -> tuple[bool, float, str]:
    """Those that were tried stand first: what is known of the others is only expected."""
    return not row.figures.attempts, -row.figures.confidence * (row.figures.expected_gain - 1), row.technique.name


def undefined(base: Base, *, device: str | None = None) -> list[UndefinedRow]:
    """Techniques of attempts in words that are defined nowhere, those with most attempts first."""
    names = {row.technique for row in base.attempts if row.technique} - base.techniques.keys()
    rows = [UndefinedRow(name, base.figures(name, device=device)) for name in names]
    return sorted(rows, key=lambda row: (-row.figures.attempts, row.name))


def by_device(base: Base, technique: str, state: str | None = None) -> list[DeviceRow]:
    """One technique's figures on each device that it was tried on."""
    devices = {row.device for row in base.attempts_of(technique, state)}
    return [DeviceRow(device, base.figures(technique, state, device=device)) for device in sorted(devices)]


def negative(base: Base, *, device: str | None = None) -> list[TechniqueRow]:
    """What mostly failed or made kernels slower, state by state, with most attempts first."""
    reckoned = base.reckoning(device)
    rows = [
        TechniqueRow(technique, state, figures, reckoned.inherited_from(name, state))
        for name, technique in base.techniques.items()
        for state in (*base.states, "")
        if (figures := reckoned.figures(name, state)).is_negative
    ]
    return sorted(rows, key=lambda row: (-row.figures.attempts, row.technique.name, row.state))


def sums(base: Base) -> KnowledgeSums:
    """How much there is."""
    return KnowledgeSums(
        attempts=len(base.attempts),
        runs=len({row.run_id for row in base.rows}),
        imported=sum(bool(row.origin) for row in base.attempts),
        last_at=max((row.at for row in base.rows), default=None),
        states=len(base.states),
        discovered=sum(state.is_discovered for state in base.states.values()),
        techniques=len(base.techniques),
        disabled=sum(technique.is_disabled for technique in base.techniques.values()),
        revisions=len(base.revisions),
        damaged=base.damaged,
        tried=len({row.technique for row in base.rows} & base.techniques.keys()),
    )


def cases(base: Base, rule: FailureRule, limit: int = PAGE) -> list[FailureCase]:
    """Kernels that a rule is about, the newest first: those that failed so, mended it, or were written under it."""
    about = [case for case in reversed(base.cases) if rule.is_about(case)]
    return sorted(about, key=lambda case: -case.at)[:limit]


@dataclass(frozen=True, slots=True)
class EvidenceFilter:
    """What to leave in; an empty field leaves in everything. `text` is looked for in technique, task and error."""

    technique: str = ""
    state: str = ""
    task: str = ""
    kernel_class: str = ""
    language: str = ""
    device: str = ""
    outcome: str = ""
    strategy: str = ""
    run_id: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class PredictedRow:
    """An attempt whose gain was predicted and measured, both factors over the parent."""

    technique: str
    state: str
    device: str
    model: str
    task: str
    run_id: str
    candidate_id: str
    outcome: Outcome
    at: float
    predicted_gain: float
    gain: float
    gain_low: float | None
    gain_high: float | None


@dataclass(frozen=True, slots=True)
class EvidenceChoices:
    """What there is to filter attempts by."""

    devices: list[str]
    kernel_classes: list[str]
    languages: list[str]
    tasks: list[str]
    strategies: list[str]


_EXACT = [field.name for field in fields(EvidenceFilter) if field.name not in ("text", "run_id")]


def _fitting(base: Base, chosen: EvidenceFilter | None) -> Iterator[Evidence]:
    """The attempts that fit, those written last first."""
    chosen = chosen or EvidenceFilter()
    wanted = {name: text for name in _EXACT if (text := getattr(chosen, name))}
    text = chosen.text.strip().lower()
    for row in reversed(base.attempts):
        if (
            all(getattr(row, name) == value for name, value in wanted.items())
            and (not text or text in f"{row.technique} {row.task} {row.error}".lower())
            and (not chosen.run_id or chosen.run_id in base.runs_of(row))
        ):
            yield row


def attempts(base: Base, chosen: EvidenceFilter | None = None, limit: int = PAGE, offset: int = 0) -> list[Evidence]:
    """A page of the attempts that fit, the newest first."""
    return sorted(_fitting(base, chosen), key=lambda row: -row.at)[offset : offset + limit]


def count(base: Base, chosen: EvidenceFilter | None = None) -> int:
    """How many attempts fit."""
    return sum(1 for _ in _fitting(base, chosen))


def predicted(base: Base, chosen: EvidenceFilter | None = None, newest: int = NEWEST) -> list[PredictedRow]:
    """Predicted against measured gains of the attempts that fit, the newest first."""
    names = [field.name for field in fields(PredictedRow)]
    rows = (
        row
        for row in _fitting(base, chosen)
        if row.gain is not None and row.outcome.is_timed and row.predicted_gain is not None
    )
    return [
        PredictedRow(**{name: getattr(row, name) for name in names})
        for row in sorted(rows, key=lambda row: -row.at)[:newest]
    ]


def choices(base: Base) -> EvidenceChoices:
    """What attempts can be filtered by."""
    names = ("device", "kernel_class", "language", "task", "strategy")
    return EvidenceChoices(*(sorted({getattr(row, name) for row in base.rows} - {""}) for name in names))
