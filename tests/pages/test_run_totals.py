"""The figures above the list of runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from engine import examples, replaying
from pages.parts import index, wording
from pages.parts.overview import run_totals
from storage.index import queries
from storage.index.queries import GroupBy
from storage.run import events as ev
from storage.run.folder import RunFolder
from storage.run.journal import Journal
from tests.pages.conftest import Open, everything
from tests.samples import write_run
from tests.storage.test_queries import timed


def add(run: RunFolder, events: list[ev.Event]) -> None:
    journal = Journal(run.journal_file)
    for event in events:
        journal.append(event)
    journal.close()


def test_what_is_known_of_a_day_is_told_beside_what_is_not() -> None:
    def said(
        calls: int, tokens: int, uncounted: int, usd: float, unpriced: int, unrecorded: int = 0
    ) -> list[tuple[str, str]]:
        totals = queries.RunTotals(
            accepted=0, accepted_since=0, tokens_since=tokens, uncounted_since=uncounted, calls_since=calls,
            cost_usd_since=usd, unpriced_since=unpriced, unrecorded_since=unrecorded, best_speedup=None,
            best_low=None, best_high=None, best_noise=None, best_task=None, best_run=None,
        )  # fmt: skip
        figures = {figure.label: figure for figure in run_totals.of_runs([], totals)}
        return [(figures[name].value, figures[name].note) for name in ("Tokens today", "Money today")]

    assert said(16, 0, 3, 0.0, 3) == [
        ("0", "16 calls, tokens of 3 not told"), ("nothing paid", "and 3 calls without a price"),
    ]  # fmt: skip
    assert said(16, 900, 3, 1.2, 3)[1] == ("$1.20", "and 3 calls without a price")
    assert said(3, 0, 0, 0.0, 0, 3) == [("not recorded", "3 calls"), ("not recorded", "")]
    assert said(5, 900, 0, 1.2, 0, 3) == [
        ("900", "5 calls, tokens of 3 not recorded"), ("$1.20", "cost of 3 not recorded"),
    ]  # fmt: skip
    assert said(3, 0, 3, 0.0, 3) == [("not told", "3 calls, tokens of 3 not told"), ("–", "3 calls without a price")]


def test_the_best_of_all_runs_is_that_of_their_rows_while_kernels_are_timed(
    home: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write_run(home / "runs", "sample", ending="new")
    add(run, timed(1, "c001", 1.25))
    list_runs, news = queries.listing, [timed(2, "c002", 1.75)]

    def while_timed(*given: Any) -> queries.Listing:
        if news:
            add(run, news.pop())
            index.ingest().catch_up()
        return list_runs(*given)

    monkeypatch.setattr(queries, "listing", while_timed)
    said = everything(open_page("overview"))
    assert {best for best, _ in re.findall(r"(1\.[27]5)(×|\\+u00d7)", said)} == {"1.75"}


def test_of_a_group_some_of_whose_calls_have_no_price_the_least_that_it_cost_is_told(
    home: Path, open_page: Open
) -> None:
    write_run(home / "runs", "priced", seed=0)
    open_page("overview")
    assert cost_of_group() == ("$0.36", "")
    unpriced = write_run(home / "runs", "unpriced", seed=0)
    text = unpriced.journal_file.read_text().replace('"cost_usd":0.012', '"cost_usd":null')
    unpriced.journal_file.write_text(text)
    open_page("overview")
    assert cost_of_group() == ("at least $0.36", "30 calls without a price")


def test_a_group_counts_the_calls_that_its_runs_pages_tell_and_adds_no_zero_for_what_is_not_recorded(
    home: Path, open_page: Open
) -> None:
    """Of examples whose replies were handed in, all or those after the first; then with a run that was paid for."""
    names = (
        "16_DenseNet201-20261129-195242-4754",
        "40_GRUHidden-20261129-200622-27d9",
        "tensor_3d_matmul-20261125-034733-d795",
    )
    examples.open_examples(names)
    open_page("overview")

    def told() -> tuple[object, ...]:
        (group,) = queries.groups(index.current(), GroupBy.STRATEGY)
        cells: Any = run_totals._cells(GroupBy.STRATEGY, group)
        return cells["calls"], cells["tokens"], cells["cost"]["text"], cells["cost"]["title"]

    runs = [run for name in names if (run := queries.run(index.current(), name))]
    assert sum(run.model_calls for run in runs) == 8
    assert told() == ("8", "not recorded", "not recorded", "8 calls not recorded")
    folder = write_run(home / "runs", "paid", seed=0)
    replaying.prepare(replaying.settings_of(folder, 1.0), folder)
    open_page("overview")
    paid = queries.run(index.current(), "paid")
    assert paid is not None
    known = wording.tokens(paid.tokens), wording.cost(paid.cost_usd)
    assert told() == (f"{8 + paid.model_calls}", *(f"at least {one}" for one in known), "8 calls not recorded")
    totals = queries.run_totals(index.current(), 0.0)
    assert (totals.calls_since, totals.unrecorded_since) == (paid.model_calls, 0)


def cost_of_group() -> tuple[str, str]:
    (group,) = queries.groups(index.current(), GroupBy.MODEL)
    cell: Any = run_totals._cells(GroupBy.MODEL, group)["cost"]
    return cell["text"], cell["title"]
