"""The figures above the list of runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pages.parts import index
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
    def said(calls: int, tokens: int, uncounted: int, usd: float, unpriced: int) -> list[tuple[str, str]]:
        totals = queries.RunTotals(
            accepted=0, accepted_since=0, tokens_since=tokens, uncounted_since=uncounted, calls_since=calls,
            cost_usd_since=usd, unpriced_since=unpriced, best_speedup=None, best_low=None, best_high=None,
            best_noise=None, best_task=None, best_run=None,
        )  # fmt: skip
        figures = {figure.label: figure for figure in run_totals.of_runs([], totals)}
        return [(figures[name].value, figures[name].note) for name in ("Tokens today", "Money today")]

    assert said(16, 0, 3, 0.0, 3) == [
        ("0", "16 calls, tokens of 3 not told"), ("nothing paid", "and 3 calls without a price"),
    ]  # fmt: skip
    assert said(16, 900, 3, 1.2, 3)[1] == ("$1.20", "and 3 calls without a price")
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


def cost_of_group() -> tuple[str, str]:
    (group,) = queries.groups(index.current(), GroupBy.MODEL)
    cell: Any = run_totals._cells(GroupBy.MODEL, group)["cost"]
    return cell["text"], cell["title"]
