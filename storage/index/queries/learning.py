"""What runs asked of the knowledge base, what they were told, whether they followed it, and what they added to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from storage.index.database import Database
from storage.index.queries import fetch
from storage.knowledge.base import Base
from storage.knowledge.records import Bottleneck, Evidence, Outcome
from storage.run.events import Consulted, Taught
from storage.run.settings import Origin

PAGE = 50


@dataclass(frozen=True, slots=True)
class LearningRun:
    """What one run has to do with the knowledge base: how often that answered, the attempts that the run added and how
    many of them were faster, its changes that this knowledge base holds, and those that it taught besides: they are in
    another one, or in the run alone."""

    run_id: str
    asked: int
    attempts: int
    faster: int
    changes: int
    elsewhere: int
    last_at: float


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One answer to a run. `offered` begins with what promised most, `negative` are those that went wrong before;
    `others` are known from other states, which the prompts of some methods name.

    `tried` are the techniques of the kernels that were made from this one before it was asked about again; `outcomes`
    are theirs, empty for one that is not over yet.
    """

    run_id: str
    seq: int
    step: int
    depth: int
    at: float
    candidate_id: str
    number: int | None
    state: str
    bottleneck: Bottleneck | None
    state_confidence: float
    why: str
    offered: list[str]
    negative: list[str]
    tried: list[str]
    outcomes: list[str]
    others: list[str]

    def is_offered(self, technique: str) -> bool:
        """Whether a technique that was tried is one of those that were offered, however its name is written."""
        return _folded(technique) in {_folded(name) for name in self.offered}

    def is_other(self, technique: str) -> bool:
        """Whether it is known from other states alone."""
        return not self.is_offered(technique) and _folded(technique) in {_folded(name) for name in self.others}


def _folded(name: str) -> str:
    return " ".join(name.replace("_", " ").casefold().split())


# A run that asks no base finds the kernel's state by the rules alone: what it had read has no name then.
_BY_A_BASE = 'NOT contains(json, \'"mark":""\')'
_ANSWERED = f"kind = 'Consulted' AND {_BY_A_BASE}"


def learning_runs(db: Database, base: Base) -> list[LearningRun]:
    """The runs that asked or added something, the latest first."""
    sql = f"""SELECT run_id, count(*) FILTER (WHERE kind = 'Consulted'), count(*) FILTER (WHERE kind = 'Taught'),
        max(time) FROM events WHERE ({_ANSWERED}) OR kind = 'Taught' GROUP BY run_id"""
    asked = {run_id: (questions, changes, at) for run_id, questions, changes, at in fetch.tuples(db, sql)}
    gave: dict[str, list[Evidence]] = {}
    for attempt in base.attempts:
        for run_id in base.runs_of(attempt):
            gave.setdefault(run_id, []).append(attempt)
    runs, held = [], Counter(revision.by for revision in base.revisions)
    for run_id in asked.keys() | gave.keys():
        (questions, taught, at), rows = asked.get(run_id, (0, 0, 0.0)), gave.get(run_id, [])
        faster = sum(row.outcome is Outcome.FASTER for row in rows)
        last_at = max(at, *(row.at for row in rows)) if rows else at
        elsewhere = max(0, taught - held[run_id])
        runs.append(LearningRun(run_id, questions, len(rows), faster, held[run_id], elsewhere, last_at))
    return sorted(runs, key=lambda run: (-run.last_at, run.run_id))


def unnamed(db: Database, base: Base) -> tuple[int, int]:
    """How many changes of a timed kernel named no technique, so that they are no evidence, and in how many runs.
    Examples, replays and imported runs are left out: they add nothing anyway."""
    sql = """SELECT k.run_id, k.candidate_id FROM kernels k
        JOIN kernels b ON b.run_id = k.run_id AND b.candidate_id = k.base_id AND b.speedup IS NOT NULL
        JOIN runs r ON r.run_id = k.run_id AND r.replay_of IS NULL AND NOT r.is_example AND NOT r.is_imported
        WHERE k.origin = ? AND k.verdict IS NOT NULL AND coalesce(k.technique, '') = ''"""
    kept = {(row.run_id, row.candidate_id) for row in base.rows}
    left = [run_id for run_id, name in fetch.tuples(db, sql, [str(Origin.OPTIMISATION)]) if (run_id, name) not in kept]
    return len(left), len(set(left))


def without_rule(db: Database, base: Base) -> tuple[int, int]:
    """How many kernels that a model wrote here gave a wrong result of which no failure tells, and how many of those a
    repair mended. Left out are those of step indexes that go on, and of runs that add nothing."""
    sql = """SELECT k.run_id, k.candidate_id, EXISTS (SELECT 1 FROM kernels c WHERE c.run_id = k.run_id
            AND c.parent_id = k.candidate_id AND c.origin = 'repair' AND c.verdict = 'passed') AS mended FROM kernels k
        JOIN runs r ON r.run_id = k.run_id AND r.replay_of IS NULL AND NOT r.is_example AND NOT r.is_imported
        WHERE k.verdict = 'incorrect' AND k.origin IN ('synthesis', 'optimisation', 'repair') AND (
            r.ended_at IS NOT NULL
            OR EXISTS (SELECT 1 FROM depths d WHERE d.run_id = k.run_id AND d.depth = k.depth))"""
    told = {(case.run_id, case.candidate_id) for case in base.cases if case.signature}
    left = [mended for run_id, name, mended in fetch.tuples(db, sql, []) if (run_id, name) not in told]
    return len(left), sum(left)


def bases(db: Database, run_ids: Sequence[str], candidate_ids: Sequence[str]) -> dict[tuple[str, str], int]:
    """The number of the kernel that each attempt changed, by run and name, of those whose run is here."""
    sql = """SELECT k.run_id, k.candidate_id, b.number FROM kernels k
        JOIN kernels b ON b.run_id = k.run_id AND b.candidate_id = k.base_id
        WHERE k.run_id IN (SELECT unnest($runs::VARCHAR[])) AND k.candidate_id IN (SELECT unnest($names::VARCHAR[]))
        UNION ALL SELECT s.run_id, 'step ' || s.step, b.number FROM steps s
        JOIN kernels b ON b.run_id = s.run_id AND b.candidate_id = s.candidate_id
        WHERE s.run_id IN (SELECT unnest($runs::VARCHAR[]))
            AND 'step ' || s.step IN (SELECT unnest($names::VARCHAR[]))"""
    asked = {"runs": list(run_ids), "names": list(candidate_ids)}
    return {(run_id, name): number for run_id, name, number in fetch.tuples(db, sql, asked)}


def taught(db: Database, run_id: str) -> list[fetch.RunEntry[Taught]]:
    """What a run taught, the newest first."""
    return fetch.events(db, run_id, Taught)[::-1]


def count_answers(db: Database, run_id: str) -> int:
    """How often a run was told something."""
    return int(fetch.tuples(db, f"SELECT count(*) FROM events WHERE run_id = ? AND {_ANSWERED}", [run_id])[0][0])


def answers(db: Database, base: Base, run_id: str, limit: int = PAGE, offset: int = 0) -> list[AnswerRow]:
    """A page of what a run was told, the newest first."""
    later: dict[str, int] = {}
    asked = []
    for entry in reversed(fetch.events(db, run_id, Consulted, where=_BY_A_BASE)):
        name = entry.event.candidate_id
        asked.append((entry, later.get(name)))
        later[name] = entry.seq
    of_run = {row.candidate_id: row for row in reversed(base.rows) if row.run_id == run_id}
    return [_answer(db, of_run, entry, until) for entry, until in asked[offset : offset + limit]]


_TRIED = """SELECT candidate_id, technique FROM kernels
WHERE run_id = $run AND repair = 0 AND base_id = $candidate AND seq > $since
    AND ($until::BIGINT IS NULL OR seq < $until) ORDER BY seq"""


def _answer(
    db: Database, of_run: Mapping[str, Evidence], entry: fetch.RunEntry[Consulted], until: int | None
) -> AnswerRow:
    event = entry.event
    asked = {"run": entry.run_id, "candidate": event.candidate_id, "since": entry.seq, "until": until}
    tried = [(technique, of_run.get(name)) for name, technique in fetch.tuples(db, _TRIED, asked)]
    sql = "SELECT number FROM kernels WHERE run_id = ? AND candidate_id = ?"
    number = next((n for (n,) in fetch.tuples(db, sql, [entry.run_id, event.candidate_id])), None)
    return AnswerRow(
        entry.run_id, entry.seq, event.step, event.depth, entry.at, event.candidate_id, number, event.state,
        event.bottleneck, event.state_confidence, event.why, [advised.technique for advised in event.found],
        [advised.technique for advised in event.found if advised.is_negative],
        [evidence.technique if evidence else technique for technique, evidence in tried],
        [str(evidence.outcome) if evidence else "" for _, evidence in tried], list(event.others),
    )  # fmt: skip
