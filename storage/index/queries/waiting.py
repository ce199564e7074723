"""Who waited for what in one run, or in several beside each other: spans of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from storage import codec
from storage.index.database import Database
from storage.index.queries import fetch
from storage.run.waiting import Lane, Span

MOST_BARS = 600
_SHORTEST = 120  # bars that are side by side over the whole of one lane


@dataclass(frozen=True, slots=True)
class Bar:
    """A span of one lane; where `count` is above one, so many neighbours, each too short to be seen: `ended` is
    so long after `began` as they last together. `device` is empty but for DEVICE."""

    run_id: str
    lane: Lane
    device: str
    began: float
    ended: float
    count: int
    what: str
    number: int | None
    outcome: str


_CHOSEN = """SELECT s.run_id, s.lane, s.what, s.outcome, s.number, greatest(s.began, $since) AS began, s.ended,
    {device} AS device FROM {spans} WHERE s.run_id IN (SELECT unnest($ids::VARCHAR[])) AND s.ended > $since"""
# Without the runs, of which something is written far more often than a span ends.
_TOGETHER = _CHOSEN.format(device="''", spans="spans s")
_APART = _CHOSEN.format(
    device="""CASE WHEN s.lane <> 'device' THEN '' WHEN s.device <> '' THEN s.device
        ELSE coalesce(nullif(r.device_model, ''), r.toolchain) END""",
    spans="spans s JOIN runs r USING (run_id)",
)
_EACH = "SELECT *, 1 AS count FROM ({chosen}) ORDER BY began"
_MERGED = f"""
WITH chosen AS ({{chosen}}),
 width AS (SELECT greatest((max(ended) - min(began)) / {_SHORTEST}, 1e-6) AS shortest FROM chosen),
 placed AS (SELECT c.*, ended - began >= w.shortest AS is_alone,
    CASE WHEN is_alone THEN began ELSE floor(began / w.shortest) END AS place FROM chosen c, width w),
 merged AS (SELECT arg_max(run_id, ended - began) AS run_id, lane, device, min(began) AS began,
    least(min(began) + sum(ended - began), max(ended)) AS ended, count(*) AS count,
    arg_max(what, ended - began) AS what, arg_max(outcome, ended - began) AS outcome,
    arg_max_null(number, ended - began) AS number FROM placed
    GROUP BY lane, device, place, is_alone, CASE WHEN is_alone THEN run_id END)
FROM merged ORDER BY began"""


def bars(db: Database, run_ids: Sequence[str], since: float = 0.0, apart: bool = False) -> list[Bar]:
    """What was after a moment, about MOST_BARS at most, in the order in which they begin; what goes on in a run is not
    among them. `apart`: each device has a lane of its own, else all have one."""
    given = {"ids": list(run_ids), "since": since}
    chosen = _APART if apart else _TOGETHER
    ((count,),) = fetch.tuples(db, f"SELECT count(*) FROM ({_TOGETHER})", given)
    return fetch.rows(db, Bar, (_EACH if count <= MOST_BARS else _MERGED).format(chosen=chosen), given)


def going_on(db: Database, run_ids: Sequence[str], until: float) -> dict[str, list[Span]]:
    """What goes on in runs by their journals, each span up to `until`; a run in which nothing does is left out."""
    open_spans = fetch.of_runs(db, run_ids, "open_spans", table="progress")
    return {
        run_id: [replace(span, ended=max(until, span.began)) for span in map(_span, texts)]
        for run_id, (texts,) in open_spans.items()
        if texts
    }


def _span(text: str) -> Span:
    span: Span = codec.read_line(Span, text.encode())
    return span


def extent(db: Database, run_ids: Sequence[str]) -> tuple[float, float] | None:
    """From when to when these runs have had spans; None before the first has ended."""
    sql = "SELECT min(began), max(ended) FROM spans WHERE run_id IN (SELECT unnest($ids::VARCHAR[]))"
    began, ended = fetch.tuples(db, sql, {"ids": list(run_ids)})[0]
    return None if began is None else (began, ended)


def at_work(db: Database, since: float) -> list[str]:
    """Runs that have had news after a moment; no examples, replays or imports."""
    sql = """SELECT run_id FROM runs JOIN progress USING (run_id) WHERE NOT is_example AND replay_of IS NULL
        AND NOT is_imported AND last_event_at > ? ORDER BY run_id"""
    return [run_id for (run_id,) in fetch.tuples(db, sql, [since])]


def idle_since(db: Database, run_ids: Sequence[str]) -> dict[str, float]:
    """Since when these runs have used their GPU for nothing because a model writes, by run; others are left out. A
    person in the model's place is no model, and a replay uses nothing."""
    since = fetch.of_runs(db, run_ids, "idle_since", table="progress")
    idle = [run_id for run_id, (moment,) in since.items() if moment is not None]
    used = fetch.of_runs(db, idle, "toolchain", "replay_of") if idle else {}
    return {run_id: since[run_id][0] for run_id, (kind, origin) in used.items() if kind != "cpu" and origin is None}
