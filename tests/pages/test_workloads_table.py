"""What a kernel's page says of the workloads of its task."""

from __future__ import annotations

from pathlib import Path

from pages.parts.kernel.workloads_table import words
from storage.index import queries
from storage.index.database import index_file, open_database
from storage.results.evaluation_results import TimedWorkload, TimingResult
from storage.run import events as ev
from tests.storage.test_queries_predictions import FIRST, made, tell, timed


def test_the_timing_that_stands_is_told_by_workload(home: Path) -> None:
    each = tuple(
        TimedWorkload({"rows": rows}, TimingResult((1.0,) * 9, (ratio,) * 9)) for rows, ratio in ((8, 2.0), (64, 8.0))
    )
    whole = ev.Timed(4, "c002", TimingResult((1.0,) * 9, (4.0,) * 9, workloads=each))
    second = [*made(3, "c002", "c001"), *timed(4, "c002", 1.0)[:2], whole]
    with open_database(index_file(home)) as db:
        tell(db, home / "runs", *FIRST, *second)
        rows = queries.workloads(db, "r1", "c002")
        assert queries.workloads(db, "r1", "c001") == []
        found = queries.evaluation(db, "r1", "c002")
    assert found is not None
    assert found.speedup == whole.result.speedup == 4.0
    assert [words(one) for one in rows] == [
        {"sizes": f"rows {size}", "latency": "1.00 ms", "baseline": told, "speedup": speedup, "interval": interval}
        for size, told, speedup, interval in (
            (8, "2.00 ms", "2.00×", "2.00× to 2.00×"), (64, "8.00 ms", "8.00×", "8.00× to 8.00×"))
    ]  # fmt: skip
