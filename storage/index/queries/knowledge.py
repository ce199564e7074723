"""What is known across runs: states, techniques, attempts and the changes of people and runs, with their figures.

The database sums; figures follow from the sums by the same code that an engine uses, so both show the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from storage.index.database import Database
from storage.index.queries import fetch
from storage.knowledge import failures
from storage.knowledge.failures import Counts, FailureRule, FailureTally
from storage.knowledge.figures import NOTHING_KNOWN, Known, Reckoning, Tally, figures_of, log_units, revisions_in_force
from storage.knowledge.graph import START, value
from storage.knowledge.records import (
    FailureCase,
    Figures,
    Prior,
    Revision,
    RuleWords,
    State,
    Technique,
    Transition,
)

PAGE = 50


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
    """How much there is. `damaged` lines cannot be read; `last_at` is when the newest attempt was over."""

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


def revisions(db: Database) -> list[RevisionRow]:
    """Every change, the newest first, the shipped seed last."""
    sql = """SELECT revision_id, time AS at, made_by AS by, why, reverts, origin, state_count AS states,
        technique_count AS techniques, prior_count AS priors, transition_count AS transitions,
        rule_count AS rules, true AS counts FROM revisions ORDER BY line"""
    found = {row.revision_id: row for row in reversed(fetch.rows(db, RevisionRow, sql))}
    counting = {one.revision_id for one in revisions_in_force(_revision_ids(db)[1])}
    return [replace(row, counts=row.revision_id in counting) for row in found.values()]


def revision(db: Database, revision_id: str) -> Revision | None:
    """One change with all that it says; None where there is none of this id."""
    lines, found = _revision_ids(db)
    for line, one in zip(lines, found, strict=True):
        if one.revision_id == revision_id:
            states, techniques, priors, transitions, rules = _named(db, [line])
            return replace(
                one,
                states=tuple(states),
                techniques=tuple(techniques),
                priors=tuple(priors),
                transitions=tuple(transitions),
                rules=tuple(rules),
            )
    return None


def known(db: Database) -> Known:
    """States, techniques and priors as the changes that count leave them."""
    lines, found = _revision_ids(db)
    counting = {one.revision_id for one in revisions_in_force(found)}
    states, techniques, priors, transitions, rules = _named(
        db, [line for line, one in zip(lines, found, strict=True) if one.revision_id in counting]
    )
    return Known(
        {one.name: one for one in states},
        {one.name: one for one in techniques},
        {(one.state, one.technique): one for one in priors},
        transitions,
        {one.rule: one for one in rules},
    )


def _revision_ids(db: Database) -> tuple[list[int], list[Revision]]:
    """Lines and revisions, without what they say, each id once, in the order in which they were made."""
    sql = """SELECT revision_id, time AS at, made_by AS by, why, reverts, origin FROM revisions
        QUALIFY line = min(line) OVER (PARTITION BY revision_id) ORDER BY line"""
    lines = "SELECT min(line) FROM revisions GROUP BY revision_id ORDER BY ALL"
    return [line for (line,) in fetch.tuples(db, lines)], fetch.rows(db, Revision, sql)


def _named(
    db: Database, lines: Sequence[int]
) -> tuple[list[State], list[Technique], list[Prior], list[Transition], list[RuleWords]]:
    return (
        fetch.rows(db, State, _of_lines(State, "kernel_states"), {"lines": lines}),
        fetch.rows(db, Technique, _of_lines(Technique, "techniques"), {"lines": lines}),
        fetch.rows(db, Prior, _of_lines(Prior, "priors"), {"lines": lines}),
        fetch.rows(db, Transition, _of_lines(Transition, "transitions"), {"lines": lines}),
        fetch.rows(db, RuleWords, _of_lines(RuleWords, "rule_words"), {"lines": lines}),
    )


def _of_lines(kind: type, table: str) -> str:
    columns = ", ".join(field.name for field in fields(kind))
    return f"SELECT {columns} FROM {table} WHERE list_contains($lines::BIGINT[], line) ORDER BY line, number"


_TALLIES = """
SELECT technique, state, grouping(state) AS is_over_all, count(*) AS attempts,
    count(*) FILTER (WHERE outcome = 'faster') AS faster, count(*) FILTER (WHERE outcome = 'same') AS same,
    count(*) FILTER (WHERE outcome = 'slower') AS slower, count(*) FILTER (WHERE outcome = 'incorrect') AS incorrect,
    count(*) FILTER (WHERE outcome = 'does not compile') AS not_compiled,
    count(*) FILTER (WHERE outcome = 'patch failed') AS patch_failed,
    count(gain_units) AS timed, coalesce(sum(gain_units), 0) AS gain_units,
    list_sort(list(gain) FILTER (WHERE gain_units IS NOT NULL)) AS gains,
    gains[(timed + 1) // 2] AS low_median, gains[timed // 2 + 1] AS high_median,
    count(predicted_units) AS predictions, coalesce(sum(predicted_units), 0) AS predicted_units,
    max(time) AS last_used
FROM evidence WHERE ($device::VARCHAR IS NULL OR device = $device)
GROUP BY GROUPING SETS ({groups})
"""
_BY_TECHNIQUE = "SELECT * EXCLUDE (gains) FROM (" + _TALLIES.format(groups="(technique, state), (technique)") + ")"
_BY_STATE = (
    "SELECT * EXCLUDE (gains) FROM ("
    + _TALLIES.format(groups="(state)").replace("SELECT technique, state", "SELECT NULL AS technique, state")
    + ")"
)


def reckoning(db: Database, *, device: str | None = None) -> Reckoning:
    """Figures of any technique in any state, on one device or on all: the same as an engine reads from the files."""
    found = fetch.tuples(db, _BY_TECHNIQUE, {"device": device})
    tallies = {
        (technique, None if is_over_all else state): Tally(*sums) for technique, state, is_over_all, *sums in found
    }
    nothing = Tally()
    return Reckoning(known(db), lambda technique, state: tallies.get((technique, state), nothing))


_EDGES = f"""
WITH made AS (SELECT run_id, child_hash, arg_min(technique, line) AS technique FROM evidence
    WHERE child_hash <> '' AND gain_units IS NOT NULL GROUP BY ALL)
SELECT coalesce(m.technique, '{START}') AS source, e.technique AS target, count(*) AS attempts,
    count(*) FILTER (WHERE outcome = 'faster') AS faster, count(*) FILTER (WHERE outcome = 'same') AS same,
    count(*) FILTER (WHERE outcome = 'slower') AS slower, count(*) FILTER (WHERE outcome = 'incorrect') AS incorrect,
    count(*) FILTER (WHERE outcome = 'does not compile') AS not_compiled,
    count(*) FILTER (WHERE outcome = 'patch failed') AS patch_failed, count(gain_units) AS timed,
    coalesce(sum(gain_units), 0) AS gain_units
FROM evidence e LEFT JOIN made m ON m.run_id = e.run_id AND m.child_hash = e.parent_hash
WHERE ($device::VARCHAR IS NULL OR e.device = $device) GROUP BY ALL ORDER BY ALL
"""


def edges(db: Database, *, device: str | None = None) -> list[EdgeRow]:
    """Every edge of the graph of techniques, tried ones and those that models have laid out; by name."""
    tallies = {(source, target): Tally(*sums) for source, target, *sums in fetch.tuples(db, _EDGES, {"device": device})}
    laid = {(one.source, one.target) for one in known(db).transitions}
    reckoned = reckoning(db, device=device)
    return [
        EdgeRow(*ends, figures_of(seen, log_units(reckoned.figures(ends[1]).expected_gain), 0.5), value(seen))
        for ends in sorted({*tallies, *laid})
        for seen in [tallies.get(ends, Tally())]
    ]


def figures(db: Database, technique: str, state: str | None = None, *, device: str | None = None) -> Figures:
    """What the evidence says of a technique, as `Base.figures`."""
    return reckoning(db, device=device).figures(technique, state)


def states(db: Database, *, device: str | None = None) -> list[KnownStateRow]:
    """Every state, those with most attempts first."""
    reckoned = reckoning(db, device=device)
    tallies = {state: Tally(*sums) for _, state, _, *sums in fetch.tuples(db, _BY_STATE, {"device": device})}
    found = [
        KnownStateRow(
            one, len(reckoned.techniques_of(one.name)), figures_of(tallies.get(one.name, Tally()), *NOTHING_KNOWN)
        )
        for one in reckoned.known.states.values()
    ]
    return sorted(found, key=lambda row: (-row.figures.attempts, row.state.name))


def techniques(db: Database, chosen: TechniqueFilter | None = None) -> list[TechniqueRow]:
    """Techniques that fit, disabled ones too; the one that promises most first."""
    chosen = chosen or TechniqueFilter()
    reckoned = reckoning(db, device=chosen.device or None)
    found = [
        TechniqueRow(
            one,
            chosen.state,
            reckoned.figures(one.name, chosen.state or None),
            reckoned.inherited_from(one.name, chosen.state) if chosen.state else "",
        )
        for one in reckoned.known.techniques.values()
        if _fits(one, chosen) and (not chosen.state or reckoned.is_known_in(one.name, chosen.state))
    ]
    return sorted(found, key=_promise)


def _fits(one: Technique, chosen: TechniqueFilter) -> bool:
    text = " ".join((one.name, one.about, one.helps, one.hurts)).lower()
    return (
        chosen.category in ("", one.category)
        and one.suits(chosen.kernel_class, chosen.language)
        and chosen.text.strip().lower() in text
    )


def _promise(row: TechniqueRow) -> tuple[float, str]:
    return -row.figures.confidence * (row.figures.expected_gain - 1), row.technique.name


def undefined(db: Database, *, device: str | None = None) -> list[UndefinedRow]:
    """Techniques of attempts in words that are defined nowhere, those with most attempts first."""
    reckoned = reckoning(db, device=device)
    names = [name for (name,) in fetch.tuples(db, "SELECT DISTINCT technique FROM evidence WHERE technique <> ''")]
    found = [UndefinedRow(name, reckoned.figures(name)) for name in names if name not in reckoned.known.techniques]
    return sorted(found, key=lambda row: (-row.figures.attempts, row.name))


def by_device(db: Database, technique: str, state: str | None = None) -> list[DeviceRow]:
    """One technique's figures on each device that it was tried on."""
    sql = """SELECT DISTINCT device FROM evidence WHERE technique = $technique
        AND ($state::VARCHAR IS NULL OR state = $state) ORDER BY device"""
    devices = [name for (name,) in fetch.tuples(db, sql, {"technique": technique, "state": state})]
    return [DeviceRow(name, figures(db, technique, state, device=name)) for name in devices]


def negative(db: Database, *, device: str | None = None) -> list[TechniqueRow]:
    """What mostly failed or made kernels slower, state by state, with most attempts first."""
    reckoned = reckoning(db, device=device)
    found = [
        TechniqueRow(one, state, seen, reckoned.inherited_from(name, state))
        for name, one in reckoned.known.techniques.items()
        for state in (*reckoned.known.states, "")
        if (seen := reckoned.figures(name, state)).is_negative
    ]
    return sorted(found, key=lambda row: (-row.figures.attempts, row.technique.name, row.state))


def sums(db: Database) -> KnowledgeSums:
    """How much there is."""
    sql = """SELECT count(*), count(DISTINCT run_id), count(*) FILTER (WHERE origin <> ''), max(time),
        (SELECT count(*) FROM knowledge_problems) FROM evidence"""
    attempts, runs, imported, last_at, damaged = fetch.tuples(db, sql)[0]
    now = known(db)
    return KnowledgeSums(
        attempts=attempts,
        runs=runs,
        imported=imported,
        last_at=last_at,
        states=len(now.states),
        discovered=sum(one.is_discovered for one in now.states.values()),
        techniques=len(now.techniques),
        disabled=sum(one.is_disabled for one in now.techniques.values()),
        revisions=len(_revision_ids(db)[0]),
        damaged=damaged,
    )


_CASES = "(FROM failures QUALIFY line = min(line) OVER (PARTITION BY run_id, candidate_id))"
_SEEN = f"""
WITH cases AS {_CASES}, failed AS (SELECT language, toolchain, signature, count(*) AS kernels,
    count(DISTINCT run_id) AS runs, max(time) AS last_at
    FROM cases WHERE signature <> '' AND NOT is_repeat GROUP BY ALL),
 mended AS (SELECT language, toolchain, mends AS signature, count(*) AS mended,
    arg_min(words, line) FILTER (WHERE words <> '') AS words FROM cases WHERE mends <> '' GROUP BY ALL)
SELECT language, toolchain, signature, coalesce(kernels, 0), coalesce(runs, 0), coalesce(mended, 0),
    coalesce(words, ''), last_at FROM failed FULL JOIN mended USING (language, toolchain, signature)
"""
_TOLD = f"""SELECT name, count(*), count(*) FILTER (WHERE rule = split_part(name, ':', 1))
FROM (SELECT unnest(told) AS name, rule FROM {_CASES}) GROUP BY ALL"""


def rules(db: Database) -> list[FailureRule]:
    """Every failure that was seen, with what is told of it: the same as an engine reads from the files."""
    sums = FailureTally(
        {(language, toolchain, name): Counts(*seen) for language, toolchain, name, *seen in fetch.tuples(db, _SEEN)},
        {name: (count, recurred) for name, count, recurred in fetch.tuples(db, _TOLD)},
    )
    return failures.rules(sums, known(db).rules)


def cases(db: Database, rule: FailureRule, limit: int = PAGE) -> list[FailureCase]:
    """Kernels that a rule is about, the newest first: those that failed so, mended it, or were written under it."""
    columns = ", ".join("time AS at" if one.name == "at" else one.name for one in fields(FailureCase))
    sql = f"""SELECT {columns} FROM {_CASES} WHERE language = $language AND toolchain = $toolchain AND
        (signature = $signature OR mends = $signature OR list_contains(told, $name))
        ORDER BY time DESC, line DESC LIMIT $limit"""
    chosen = {"language": rule.language, "toolchain": rule.toolchain, "signature": rule.signature}
    return fetch.rows(db, FailureCase, sql, chosen | {"name": rule.name, "limit": limit})


def problems(db: Database) -> list[tuple[str, int, str]]:
    """Lines of the knowledge base that cannot be read: file, byte offset, why."""
    return [
        (f, p, m) for f, p, m in fetch.tuples(db, "SELECT file, position, message FROM knowledge_problems ORDER BY ALL")
    ]
