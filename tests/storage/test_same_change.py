"""One change of one kernel is one attempt, however many rows of the files tell of it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from storage.knowledge import browsing, exported, files, merging, same_change
from storage.knowledge.graph import START, attempts_by_edge
from storage.knowledge.records import Evidence, Outcome
from tests.storage.knowledge_rows import attempt

FIRST = attempt(
    2, Outcome.SLOWER, run_id="one", task="gemm", toolchain="cuda", language="cuda", device="H200", precision="fp32",
    parent_hash="a", child_hash="b", gain=0.8, gain_low=0.78, gain_high=0.82, over_eager=4.0, task_hash="sizes",
)  # fmt: skip
AGAIN = replace(FIRST, run_id="two", at=2.0, gain=0.9, gain_low=0.88, gain_high=0.92, over_eager=5.0)


def read(folder: Path, *rows: Evidence) -> list[Evidence]:
    """The attempts of these rows, as they come out of the files."""
    files.append_evidence(rows, folder)
    return list(files.load(folder, seeded=False).attempts)


def test_two_timings_of_one_change_are_one_attempt_with_their_mean_gain(tmp_path: Path) -> None:
    (one,) = read(tmp_path, FIRST, AGAIN)
    assert one.gain == pytest.approx(math.sqrt(0.8 * 0.9))
    assert (one.gain_low, one.gain_high, one.outcome) == (0.78, 0.92, Outcome.SLOWER)
    assert one.over_eager == pytest.approx(math.sqrt(20))
    assert (one.run_id, one.at) == ("one", 2.0), "its kernel is the first run's, and it was timed last by the other"
    base = files.load(tmp_path, seeded=False)
    assert (base.figures("tile").attempts, base.figures("tile", "bandwidth bound").slower) == (1, 1)
    assert (browsing.sums(base).attempts, browsing.sums(base).runs, len(base.rows)) == (1, 2, 2)
    assert (base.runs_of(one), same_change.in_words(base.told_by(one))) == (["one", "two"], "timed in 2 runs")


def test_one_timing_that_two_runs_tell_is_one_timing(tmp_path: Path) -> None:
    (one,) = read(tmp_path, FIRST, replace(FIRST, run_id="two"))
    assert one == FIRST, "to the last digit"
    base = files.load(tmp_path, seeded=False)
    assert same_change.in_words(base.told_by(one)) == "made in 2 runs, timed once"
    third = replace(AGAIN, run_id="three")
    (one,) = read(tmp_path, third)
    assert one.gain == pytest.approx(math.sqrt(0.8 * 0.9)), "the timing that was told twice counts once"
    told = files.load(tmp_path, seeded=False).told_by(one)
    assert same_change.in_words(told) == "made in 3 runs, timed 2 times"
    twice = [FIRST, replace(FIRST, candidate_id="c003")]
    assert same_change.in_words(twice) == "made as 2 kernels of its run, timed once"
    assert same_change.in_words([FIRST]) == ""


@pytest.mark.parametrize(
    "other",
    [
        {"task": "softmax"}, {"task_hash": "other sizes"}, {"language": "triton"}, {"toolchain": "cpu"},
        {"device": "H100"}, {"precision": "tf32"}, {"parent_hash": "c"}, {"child_hash": "c"}, {"technique": "fuse"},
    ],
    ids=lambda other: next(iter(other)),
)  # fmt: skip
def test_what_is_not_the_same_change_is_another_attempt(tmp_path: Path, other: dict[str, Any]) -> None:
    assert read(tmp_path, FIRST, replace(AGAIN, **other)) == [FIRST, replace(AGAIN, **other)]


@pytest.mark.parametrize("unknown", ["device", "parent_hash", "child_hash"])
def test_rows_that_do_not_say_what_was_changed_or_where_stand_alone(tmp_path: Path, unknown: str) -> None:
    lacking: dict[str, Any] = {unknown: ""}
    assert len(read(tmp_path, *(replace(row, **lacking) for row in (FIRST, AGAIN)))) == 2


def test_rows_from_before_sizes_were_told_apart_go_with_the_first_of_the_task(tmp_path: Path) -> None:
    old = replace(FIRST, task_hash="")
    larger = replace(AGAIN, run_id="three", task_hash="larger")
    assert len(read(tmp_path / "old", old, replace(AGAIN, task_hash=""))) == 1
    assert [one.run_id for one in read(tmp_path / "both", old, AGAIN, larger)] == ["one", "three"]
    assert [one.run_id for one in read(tmp_path / "later", larger, AGAIN, old)] == ["three", "two"]
    file = tmp_path / "old.jsonl"
    exported.write(file, files.load(tmp_path / "old", seeded=False), "a team")
    files.append_evidence([FIRST], tmp_path / "mine")
    done = merging.import_file(file, folder=tmp_path / "mine")
    assert (done.attempts, done.conflicts) == (1, []), "a row that lacks it does not contradict one that has it"
    assert [row.origin for row in files.load(tmp_path / "mine").rows] == ["", "a team"], "every row is carried over"


@pytest.mark.parametrize("order", [1, -1])
def test_timings_that_disagree_show_no_difference_and_a_wrong_result_counts(tmp_path: Path, order: int) -> None:
    same = replace(AGAIN, outcome=Outcome.SAME)
    wrong = replace(FIRST, run_id="three", outcome=Outcome.INCORRECT, gain=None, gain_low=None, error="wrong")
    unbuilt = replace(wrong, run_id="four", outcome=Outcome.NOT_COMPILED, error="nvcc")
    (one,) = read(tmp_path, *[FIRST, same, unbuilt][::order])
    assert one.outcome is Outcome.SAME
    assert one.gain == pytest.approx(math.sqrt(0.8 * 0.9))
    (one,) = read(tmp_path, wrong)
    assert (one.outcome, one.gain, one.error) == (Outcome.INCORRECT, None, "wrong")


def test_an_attempt_stands_under_a_run_of_this_home_and_in_a_state_that_is_known(tmp_path: Path) -> None:
    imported = replace(FIRST, origin="examples", state="")
    (one,) = read(tmp_path, imported, AGAIN, replace(FIRST, run_id="three"))
    assert (one.run_id, one.origin, one.state) == ("two", "", "bandwidth bound")
    assert browsing.sums(files.load(tmp_path, seeded=False)).imported == 0


def test_what_a_run_tries_next_follows_the_change_that_another_made_as_well(tmp_path: Path) -> None:
    then = replace(AGAIN, candidate_id="c003", technique="fuse", parent_hash="b", child_hash="c")
    files.append_evidence([FIRST, AGAIN, then], tmp_path)
    base = files.load(tmp_path, seeded=False)
    edges = {ends: len(rows) for ends, rows in attempts_by_edge(base.attempts, base.rows).items()}
    assert edges == {(START, "tile"): 1, ("tile", "fuse"): 1}
    assert [(edge.source, edge.target) for edge in browsing.edges(base)] == [(START, "tile"), ("tile", "fuse")]


def test_a_base_that_was_read_stays_as_it_was(tmp_path: Path) -> None:
    before = read(tmp_path, FIRST)
    base = files.load(tmp_path, seeded=False)
    read(tmp_path, AGAIN)
    assert list(base.attempts) == before
    assert base.figures("tile").mean_gain == pytest.approx(0.8)
