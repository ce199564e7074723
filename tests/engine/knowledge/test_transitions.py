"""What the knowledge base answers of the graph of techniques: edges of all runs' attempts, and examples of them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from engine.knowledge.consulting import Need
from engine.knowledge.transitions import changed, edges_from, examples
from storage.knowledge.base import Base, EvidenceRows
from storage.knowledge.graph import START, attempts_by_edge
from storage.knowledge.records import Advised, Category, Evidence, Outcome, Revision, Technique, Transition
from storage.run.blobs import Blobs

OLD, TILED, UNROLLED = "a\nb\nc\n", "a\nT\nc\n", "a\nT\nU\nc\n"
EXPECTED = Advised("unroll", Category.COMPUTE, "", "", "", 2.0, 0.5)


def row(run: str, number: int, technique: str, parent: str, child: str, gain: float | None) -> Evidence:
    outcome = Outcome.FASTER if gain else Outcome.NOT_COMPILED
    return Evidence(
        run, f"c{number}", technique, outcome, 1.0, task="softmax", parent_hash=parent, child_hash=child, gain=gain
    )


def base(folder: Path, *rows: Evidence, revisions: tuple[Revision, ...] = ()) -> Base:
    attempts = EvidenceRows()
    for one in rows:
        attempts.add(one)
    return Base(revisions, attempts, "mark")


@pytest.fixture
def lineage(tmp_path: Path) -> list[Evidence]:
    """A run that tiled and then unrolled, twice, and one whose tiled kernel was another run's."""
    blobs = Blobs(tmp_path / "one/blobs")
    old, tiled, unrolled = map(blobs.put, (OLD, TILED, UNROLLED))
    return [
        row("one", 1, "tile", old, tiled, 1.5),
        row("one", 2, "unroll", tiled, unrolled, 1.25),
        row("one", 3, "unroll", tiled, "f" * 64, None),
        row("two", 1, "unroll", tiled, unrolled, 1.1),
    ]


def test_an_edge_leads_from_the_technique_that_made_the_kernel_in_its_own_run(lineage: list[Evidence]) -> None:
    found = {ends: [one.run_id for one in rows] for ends, rows in attempts_by_edge(lineage, lineage).items()}
    assert found == {(START, "tile"): ["one"], ("tile", "unroll"): ["one", "one"], (START, "unroll"): ["two"]}


def test_an_edge_has_its_attempts_value_and_what_is_expected_beside_them(
    tmp_path: Path, lineage: list[Evidence]
) -> None:
    (edge,) = edges_from(base(tmp_path, *lineage), "tile", [EXPECTED], Need())
    assert (edge.source, edge.target, edge.attempts) == ("tile", "unroll", 2)
    assert edge.value == pytest.approx(math.log(1.25) - 1)
    assert edge.expected_gain == pytest.approx((1.25 * 1.0 * 2.0**2) ** 0.25), "a failure is a gain of 1"


def test_edges_that_models_laid_out_are_there_until_reverted_or_turned_off(
    tmp_path: Path, lineage: list[Evidence]
) -> None:
    laid = Revision("r1", 1.0, "a run", "why", transitions=(Transition("tile", "fuse", "as", "fuses", "x", "y"),))
    there = [one.target for one in edges_from(base(tmp_path, *lineage, revisions=(laid,)), "tile", (), Need())]
    assert there == ["unroll", "fuse"]
    undone = Revision("r2", 2.0, "someone", "no", reverts="r1")
    off = Technique("unroll", Category.COMPUTE, "", is_disabled=True)
    changes = (laid, undone, replace(laid, revision_id="r3", transitions=(), techniques=(off,)))
    assert edges_from(base(tmp_path, *lineage, revisions=changes), "tile", (), Need()) == ()


def test_examples_are_the_lines_that_the_best_attempts_changed_and_then_what_models_wrote(
    tmp_path: Path, lineage: list[Evidence]
) -> None:
    told = Transition("tile", "unroll", "it waits", "unrolls", "x", "y")
    laid = Revision("r1", 1.0, "a run", "why", transitions=(told, told))
    known = base(tmp_path, *lineage, revisions=(laid,))
    first, second = examples(known, edges_from(known, "tile", (), Need()), tmp_path)["unroll"]
    assert (first.before, first.after) == ("", "U")
    assert first.think == "Measured on softmax: 1.25x over the kernel before."
    assert second == told
    away = examples(known, edges_from(known, "tile", (), Need()), tmp_path / "elsewhere")["unroll"]
    assert away == (told, told), "sources that are not here leave the attempt without an example"


def test_long_changes_are_cut_at_a_line() -> None:
    before, after = changed("\n".join(f"old {n}" for n in range(60)), "\n".join(f"new {n}" * 20 for n in range(60)))
    assert before.splitlines()[-2:] == ["old 23", "…"]
    assert len(after) <= 1203
    assert after.endswith("\n…")
    assert changed("a\nb\nc\nd\ne", "A\nb\nc\nd\nE") == ("a\n…\ne", "A\n…\nE")
