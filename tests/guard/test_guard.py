"""Saved runs are continued and shown today as they were before the search core was rebuilt."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.guard import engine_side, page_side, shown, two_sides
from tests.guard.intended import INTENDED, REWORDED, TIMED_AGAIN
from tests.guard.saved import FEW, NAMES, SHOWN_FEW, Expected, expected, unpack

HALVED = ("demo", "rolled_back", "submitted")  # approval, by_hand, lost, over_budget and running ended half-way


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_run_is_continued_as_before(name: str, home: Path, tmp_path: Path) -> None:
    folder, wanted = unpack(name, tmp_path / "saved"), expected(name)
    for count, (move, asked) in enumerate(engine_side.moments(folder)):
        known = [REWORDED.get(word, word) if isinstance(word, str) else word for word in wanted.moves[count]]
        assert move == TIMED_AGAIN.get((name, count), known), f"after {count} events"
        for prompt, digest in zip(asked, wanted.prompts[count], strict=True):
            assert engine_side.lasting(prompt) == engine_side.lasting(wanted.texts[digest]), f"after {count} events"


@pytest.mark.parametrize("name", NAMES)
def test_the_pages_show_of_a_saved_run_what_they_showed(name: str, home: Path, tmp_path: Path) -> None:
    folder, wanted = unpack(name, tmp_path / "saved"), expected(name)
    # The whole, and of some the half; `python -m tests.guard` looks at all after every event.
    half = len(wanted.moves) // 2 if name in HALVED else -1
    differences = different_rows(name, folder, tmp_path / "growing", wanted, lambda count: count == half)
    assert not differences


def test_index_and_record_say_the_same_of_every_kind_of_event(home: Path, tmp_path: Path) -> None:
    for name, places in two_sides.first_of_each_kind(NAMES).items():
        found = two_sides.differences(unpack(name, tmp_path / "saved"), tmp_path / name, places.__contains__)
        assert not list(found), name


def test_pages_routes_commands_and_reports_say_what_they_said() -> None:
    known, now = json.loads(SHOWN_FEW.read_text()), shown.digests(FEW, with_examples=False)
    assert now.keys() == known.keys()
    assert [where for where in now if now[where] != known[where]] == []  # `python -m tests.guard --write` shows what


def different_rows(name: str, folder: Path, home: Path, wanted: Expected, places: Callable[[int], bool]) -> list[str]:
    """Queries that answer otherwise than they did, and after how many events; the intended ones left out."""
    found: list[str] = []
    for count, answers in page_side.moments(folder, home, places):
        known = rows_at(wanted, count)
        assert answers.keys() == known.keys()
        found += [
            f"{query} after {count} events"
            for query, answer in answers.items()
            if engine_side.digest(answer) != known[query] and (name, query) not in INTENDED
        ]
        if count == len(wanted.rows) - 1:
            found += _last(name, answers, wanted)
    return found


def rows_at(wanted: Expected, count: int) -> dict[str, str]:
    """Hash of each query's answer after so many events."""
    known: dict[str, str] = {}
    for changed in wanted.rows[: count + 1]:
        known |= changed
    return known


def _last(name: str, answers: dict[str, Any], wanted: Expected) -> list[str]:
    return [
        f"{query} in the end: {wanted.last_rows[query]} became {answer}"
        for query, answer in answers.items()
        if engine_side.digest(answer) != engine_side.digest(wanted.last_rows[query]) and (name, query) not in INTENDED
    ]
