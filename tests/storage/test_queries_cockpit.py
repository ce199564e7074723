"""What the cockpit asks of the index: thinned points, pages of kernels, errors by message, costs, troubles, feed."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.index import queries
from storage.index.database import Database
from storage.index.ingest import Ingest
from storage.index.queries import KernelFilter
from storage.results.vocabulary import Verdict
from storage.run.steering.verbs import CommandKind
from tests.samples import write_run
from tests.storage.growth import index_of_run


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """A run with over a hundred kernels, which tests only read."""
    with index_of_run(tmp_path_factory.mktemp("long"), depths=60, has_blobs=False) as opened:
        yield opened


def test_every_kernel_of_a_short_run_is_a_point_or_a_failure(long: Database) -> None:
    judged = {a.candidate_id for a in queries.attempts(long, "sample")}
    shown = {p.candidate_id for p in queries.points(long, "sample")}
    assert shown | {f.candidate_id for f in queries.failures(long, "sample")} == judged


def test_a_thinned_curve_keeps_best_newest_selected_and_the_counts_of_failures(
    long: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.import_module("storage.index.queries.points"), "COLUMNS", 6)
    attempts = queries.attempts(long, "sample")
    timed = [a for a in attempts if a.speedup]
    failed = [a for a in attempts if a.verdict not in (None, Verdict.PASSED)]
    chosen = timed[17].candidate_id
    thin = queries.points(long, "sample", chosen, few=10)
    assert len(thin) <= 6 * 2 + 3 < len(timed)
    names = {p.candidate_id for p in thin}
    assert {chosen, timed[-1].candidate_id, *(a.candidate_id for a in timed if a.is_best)} <= names
    slowest = min(timed, key=lambda a: a.speedup or 0)
    assert slowest.candidate_id in names
    marks = queries.failures(long, "sample", failed[5].candidate_id, few=10)
    assert len(marks) < len(failed)
    assert Counter({v: sum(m.count for m in marks if m.verdict is v) for v in Verdict}) == Counter(
        a.verdict for a in failed
    )
    assert [m.count for m in marks if m.candidate_id == failed[5].candidate_id] == [1]


def test_the_beam_spans_what_each_depth_tried(long: Database) -> None:
    for row in queries.depth_spread(long, "sample"):
        tried = [a.speedup for a in queries.attempts(long, "sample") if a.depth == row.depth and a.speedup]
        assert (row.low, row.high, row.count) == (min(tried), max(tried), len(tried))


def test_the_rises_never_fall_and_end_where_the_run_is(long: Database) -> None:
    rises, depths = queries.rises(long, "sample"), queries.depths(long, "sample")
    assert [r.speedup for r in rises] == sorted(r.speedup for r in rises)
    assert (rises[-1].x, rises[-1].speedup) == (depths[-1].depth, depths[-1].best_speedup)


def test_exposures_are_the_stretches_in_which_the_model_saw_profiles(long: Database) -> None:
    assert [(row.first, row.last, row.is_exposed) for row in queries.exposures(long, "sample")] == [
        (0, 2, False),
        (3, 59, True),
    ]


def test_kernels_come_in_pages_that_together_are_all(long: Database) -> None:
    everything = queries.attempts(long, "sample")
    total = queries.count_kernels(long, "sample", KernelFilter())
    assert total == len(everything)
    pages = [queries.kernels(long, "sample", KernelFilter(), 20, first) for first in range(0, total, 20)]
    assert [k.candidate_id for page in pages for k in page] == [a.candidate_id for a in reversed(everything)]
    numbers = {a.candidate_id: a.number for a in everything}
    assert all(k.parent_number == numbers.get(k.parent_id or "") for page in pages for k in page)


def test_kernels_are_found_by_verdict_words_and_number(long: Database) -> None:
    def found(verdict: Verdict | None = None, text: str = "") -> list[int]:
        return [k.number for k in queries.kernels(long, "sample", KernelFilter(verdict, text), 1000)]

    everything = queries.attempts(long, "sample")[::-1]
    assert found(Verdict.COMPILE_ERROR) == [a.number for a in everything if a.verdict is Verdict.COMPILE_ERROR]
    assert found(text="SWIZZLE  shared") == [a.number for a in everything if "swizzle shared" in a.summary]
    assert found(text="17") == [17]
    assert found(text="no such words") == []


def test_neighbours_are_the_kernels_before_and_after(long: Database) -> None:
    last = len(queries.attempts(long, "sample"))
    assert queries.neighbours(long, "sample", "c001") == queries.NeighbourRow(1, None, "c002")
    assert queries.neighbours(long, "sample", f"c{last:03d}") == queries.NeighbourRow(last, f"c{last - 1:03d}", None)


def test_errors_that_differ_in_figures_alone_are_one_group(long: Database) -> None:
    groups = queries.error_groups(long, "sample")
    failed = [a for a in queries.attempts(long, "sample") if a.verdict not in (None, Verdict.PASSED)]
    assert sum(group.count for group in groups) == len(failed)
    assert len(groups) == queries.count_error_groups(long, "sample") == 3
    assert [g.count for g in groups] == sorted((g.count for g in groups), reverse=True)
    wrong = next(g for g in groups if g.verdict is Verdict.INCORRECT)
    assert wrong.numbers == [a.number for a in failed if a.verdict is Verdict.INCORRECT][::-1][:6]
    assert queries.error_groups(long, "sample", limit=1) == groups[:1]


def test_a_kernels_cost_counts_the_calls_that_led_to_it(db: Database, root: Path) -> None:
    write_run(root, depths=3)
    Ingest(db, root).catch_up()
    repaired = next(a for a in queries.attempts(db, "sample") if a.repair == 1)
    cost = queries.kernel_cost(db, "sample", repaired.candidate_id)
    assert (cost.calls, cost.tokens) == (2, 2 * 6600)  # the diagnosis of its parent, and the repair
    assert cost.cost_usd == pytest.approx(0.024)
    assert (cost.writing_s, cost.judging_s) == (9.0, 14.0)
    assert queries.kernel_cost(db, "sample", "no-such") == queries.CostRow(0, 0, 0.0, 0.0, 0.0)


def test_the_family_is_the_newest_kernels_and_the_best(long: Database) -> None:
    rows = queries.family(long, "sample", newest=5)
    everything = queries.attempts(long, "sample")
    best = [row.candidate_id for row in everything if row.is_best]
    newest = [row.candidate_id for row in everything[-5:]]
    assert [row.candidate_id for row in rows] == [*(name for name in best if name not in newest), *newest]


def test_a_roll_back_is_placed_before_the_first_kernel_made_after_it(db: Database, root: Path) -> None:
    folder = write_run(root, depths=5)
    text = folder.journal_file.read_text().replace('"hint"', f'"{CommandKind.ROLL_BACK}"')
    folder.journal_file.write_text(text.replace("try 128-bit loads", "c001"))
    folder.commands_file.unlink()
    Ingest(db, root).catch_up()
    found = queries.roll_backs(db, "sample")
    first = next(a.number for a in queries.attempts(db, "sample") if a.depth == 2)
    assert found == [queries.RollBackRow(first, "c001")]


def test_troubles_of_runs_nobody_knows_are_none(long: Database) -> None:
    assert queries.troubles(long, []) == {}
    assert queries.troubles(long, ["no-such-run"]) == {}
    facts = queries.troubles(long, ["sample", "no-such-run"])["sample"]
    newest = queries.depths(long, "sample")[-1]
    assert facts.newest_depth == max(d.depth for d in queries.depths(long, "sample") if d.outcome == "accepted")
    assert newest.depth == 59
