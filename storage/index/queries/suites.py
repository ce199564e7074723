"""What the runs of a suite have come to, as `engine.suites.measured` folds it from their journals: the same figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from storage.index.database import Database
from storage.index.queries import compare, fetch
from storage.suites.results import BestKernel, RunResult, TimedKernel, Try

_CHOSEN = "(SELECT unnest($runs::VARCHAR[]))"


@dataclass(frozen=True, slots=True)
class _HeadRow:
    run_id: str
    kernel_class: str
    model: str
    strategy: str
    limit_ms: float | None
    limited_by: str


@dataclass(frozen=True, slots=True)
class _TryRow:
    run_id: str
    is_compiled: bool
    is_passed: bool
    is_alone: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _BestRow(BestKernel):
    run_id: str
    bound: str


def run_results(db: Database, run_ids: Sequence[str]) -> dict[str, RunResult]:
    """The results of these runs by id; those that are not in the index are left out."""
    chosen = {"runs": list(run_ids)}
    heads = fetch.rows(db, _HeadRow, _HEADS, chosen)
    kernels = [name for (name,) in fetch.tuples(db, _KERNELS, chosen)]
    bests = {row.run_id: row for row in fetch.rows(db, _BestRow, _BESTS, chosen | {"kernels": kernels})}
    tries: dict[str, list[Try]] = {}
    for row in fetch.rows(db, _TryRow, _TRIES, chosen):
        tries.setdefault(row.run_id, []).append(Try(row.is_compiled, row.is_passed, row.is_alone))
    timed: dict[str, list[TimedKernel]] = {}
    for at in compare.timed_kernels(db, run_ids):
        spent = at.depth, at.calls, at.engine_s, at.tokens, at.cost_usd
        timed.setdefault(at.run_id, []).append(TimedKernel(at.candidate_id, at.speedup, at.noise, *spent))
    known = {row.run_id: row for row in compare.conditions(db, run_ids)}
    counted = dict(fetch.tuples(db, _CALLS, chosen))
    found = {}
    for head in heads:
        if one := known.get(head.run_id):
            found[head.run_id] = RunResult(
                head.run_id, head.kernel_class, one.language, one.toolchain, head.model, head.strategy,
                one.precision, one.device, head.limit_ms, one.second_name, one.second_speedup,
                _best(bests.get(head.run_id)), tuple(timed.get(head.run_id, ())), tuple(tries.get(head.run_id, ())),
                counted.get(head.run_id, 0), one.engine_s, one.tokens, one.cost_usd, head.limited_by,
                bests[head.run_id].bound if head.run_id in bests else "",
            )  # fmt: skip
    return found


def _best(row: _BestRow | None) -> BestKernel | None:
    if row is None:
        return None
    return BestKernel(**{one.name: getattr(row, one.name) for one in fields(BestKernel)})


# A limit holds until a kernel beat it, and then the later one: as HardwareLimit.limit_ms.
_HEADS = f"""
WITH named AS (SELECT run_id, arg_max(kernel_class, seq) AS kernel_class FROM (
    SELECT run_id, seq, kernel_class FROM classes UNION ALL
    SELECT run_id, effective_seq, argument FROM steering WHERE kind = 'set_class' AND effective_seq IS NOT NULL)
    WHERE run_id IN {_CHOSEN} GROUP BY run_id),
 bound AS (SELECT run_id, arg_max(greatest(min_bytes / (bandwidth_gb_s * 1e6), min_flop / (peak_gflop_s * 1e6)), seq)
    AS limit_ms, arg_max(CASE WHEN min_bytes / (bandwidth_gb_s * 1e6) >= min_flop / (peak_gflop_s * 1e6)
    THEN 'memory' ELSE 'compute' END, seq) AS limited_by FROM limits WHERE run_id IN {_CHOSEN} GROUP BY run_id)
SELECT r.run_id, coalesce(n.kernel_class, r.kernel_class) AS kernel_class, r.model,
    coalesce(r.strategy, '') AS strategy, b.limit_ms,
    coalesce(b.limited_by, '') AS limited_by
FROM runs r LEFT JOIN named n USING (run_id) LEFT JOIN bound b USING (run_id) WHERE r.run_id IN {_CHOSEN}
"""
_CALLS = f"SELECT run_id, count(*) FROM model_calls WHERE run_id IN {_CHOSEN} GROUP BY run_id"
_TRIES = f"""
WITH asked AS (SELECT run_id, step, arg_min(prompt_blob, seq) AS prompt_blob FROM model_calls
    WHERE run_id IN {_CHOSEN} GROUP BY run_id, step),
 ended AS (SELECT run_id, step, max(seq) AS seq, arg_max(outcome, seq) AS outcome FROM steps
    WHERE run_id IN {_CHOSEN} AND phase = 'finished' GROUP BY run_id, step),
 judged AS (SELECT run_id, candidate_id, arg_max(verdict, seq) FILTER (WHERE stage = 'check' OR verdict <> 'passed')
    AS verdict, coalesce(arg_max(verdict, seq) FILTER (WHERE stage = 'compile') = 'passed', FALSE) AS is_compiled
    FROM evaluations WHERE run_id IN {_CHOSEN} GROUP BY run_id, candidate_id),
 written AS (SELECT c.run_id, c.step, c.seq, j.verdict, j.is_compiled FROM candidates c
    JOIN judged j ON j.run_id = c.run_id AND j.candidate_id = c.candidate_id
    WHERE c.run_id IN {_CHOSEN} AND c.origin IN ('synthesis', 'repair', 'optimisation') AND j.verdict IS NOT NULL),
 tried AS (SELECT run_id, step, seq, verdict = 'passed' AS is_passed, is_compiled FROM written
    UNION ALL SELECT e.run_id, e.step, e.seq, FALSE, FALSE FROM ended e
    WHERE e.outcome = 'patch_failed' AND NOT EXISTS (SELECT 1 FROM candidates c WHERE c.run_id = e.run_id
        AND c.step = e.step))
SELECT t.run_id, t.is_compiled, t.is_passed, coalesce(a.prompt_blob = first_value(a.prompt_blob) OVER turns, FALSE)
    AS is_alone
FROM tried t LEFT JOIN asked a USING (run_id, step)
WINDOW turns AS (PARTITION BY t.run_id ORDER BY t.seq ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
ORDER BY t.run_id, t.seq
"""
_BEST = f"""WITH best AS (SELECT t.run_id, t.candidate_id, t.seq, t.speedup, t.speedup_low, t.speedup_high, t.noise,
        t.latency_ms, t.baseline_latency_ms FROM timings t WHERE t.run_id IN {_CHOSEN}
    QUALIFY row_number() OVER (PARTITION BY t.run_id ORDER BY t.speedup DESC, t.seq) = 1)
"""
_KERNELS = f"{_BEST} SELECT DISTINCT candidate_id FROM best ORDER BY ALL"
# Of the checks, hundreds of thousands in a long run, those of kernels with these names alone are looked through.
_BESTS = f"""{_BEST},
 pairs AS (SELECT e.run_id, e.seq, list_avg(e.baseline_ms) / list_avg(e.candidate_ms) AS ratio_of_means,
        len(e.candidate_ms) AS pairs FROM evaluations e JOIN best b ON b.run_id = e.run_id AND b.seq = e.seq),
 checked AS (SELECT e.run_id, arg_max(e.precision, e.seq) AS precision, arg_max([e.max_error], e.seq)[1] AS max_error,
        arg_max([e.max_abs_error], e.seq)[1]
        AS max_abs_error, arg_max(len(e.trials), e.seq) AS trials, arg_max([e.seed], e.seq)[1] AS seed
    FROM evaluations e JOIN best b ON b.run_id = e.run_id AND b.candidate_id = e.candidate_id AND e.stage = 'check'
    GROUP BY e.run_id),
 shown AS (SELECT p.run_id, arg_max(p.bound, p.seq) AS bound FROM profiles p
    JOIN best b ON b.run_id = p.run_id AND b.candidate_id = p.candidate_id WHERE p.failure IS NULL GROUP BY p.run_id),
 stood AS (SELECT s.run_id, list(DISTINCT s.check_name ORDER BY s.check_name)
        FILTER (WHERE s.standing IN ('flagged', 'broken')) AS flags,
    max(s.standing) FILTER (WHERE s.check_name = 'other shapes') AS other_shapes,
    max(s.standing) FILTER (WHERE s.check_name = 'special values') AS special_values
    FROM standings s JOIN best b ON b.run_id = s.run_id AND b.candidate_id = s.candidate_id
    WHERE list_contains($kernels::VARCHAR[], s.candidate_id) GROUP BY s.run_id)
SELECT b.run_id, b.candidate_id, c.source_blob, b.speedup, b.speedup_low AS low, b.speedup_high AS high, b.noise,
    b.latency_ms, b.baseline_latency_ms AS eager_ms, p.ratio_of_means, p.pairs, coalesce(k.precision, '') AS precision,
    k.max_error, k.max_abs_error, coalesce(k.trials, 0) AS trials, k.seed, coalesce(s.flags, []) AS flags,
    s.other_shapes, s.special_values, coalesce(w.bound, '') AS bound
FROM best b JOIN pairs p ON p.run_id = b.run_id
JOIN candidates c ON c.run_id = b.run_id AND c.candidate_id = b.candidate_id
LEFT JOIN checked k ON k.run_id = b.run_id LEFT JOIN stood s ON s.run_id = b.run_id
LEFT JOIN shown w ON w.run_id = b.run_id
"""
