"""What a suite's runs have come to: the index and the fold of a journal tell the same."""

from __future__ import annotations

import functools
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from storage.index.database import Database
from storage.index.ingest import Ingest
from storage.index.queries import fetch
from storage.index.queries.runs import of_ids
from storage.index.queries.suites import run_results
from storage.results.hardware_limit import REACHED
from storage.run import journal
from storage.run.folder import RunFolder
from storage.suites import measured
from storage.suites.results import RunResult
from tests import samples
from tests.guard import saved

RUNS = (("whole", 0, "finished", "cutegen"), ("running", 1, "running", "cutegen"), ("second", 2, "stopped", "cutegen"),
        ("judged", 4, "finished", "coder_judge"), ("new", 0, "new", "cutegen"))  # fmt: skip


def rounded(value: Any) -> Any:
    """Sums of the database are rounded otherwise than those of Python."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, tuple):
        return tuple(map(rounded, value))
    return pytest.approx(value, rel=1e-9) if isinstance(value, float) else value


def assert_told_alike(asked: dict[str, RunResult], root: Path) -> None:
    for name, result in asked.items():
        folder = RunFolder(root / name)
        folded = measured.of_run(folder.read_settings(), list(journal.read(folder.journal_file)))
        assert asdict(folded) == rounded(asdict(result)), name


def test_the_index_and_the_journals_tell_the_same_of_every_run(db: Database, root: Path) -> None:
    for name, seed, ending, strategy in RUNS:
        folder = samples.write_run(root, name, seed=seed, depths=9, ending=ending, strategy=strategy, has_blobs=False)
    raised = root / "whole" / "journal.jsonl"
    raised.write_text(raised.read_text().replace('"sample device"', f'"sample device{REACHED}"'))
    unpriced = folder.journal_file.parent.parent / "second" / "journal.jsonl"
    unpriced.write_text(unpriced.read_text().replace('"cost_usd":0.012', '"cost_usd":null'))
    Ingest(db, root).catch_up()
    asked = run_results(db, [*(name for name, *_ in RUNS), "gone"])
    assert set(asked) == {name for name, *_ in RUNS}
    assert_told_alike(asked, root)
    whole = asked["whole"]
    assert whole.best is not None
    assert whole.device == "sample device"
    looks = {run.run_id: run.best_looks for run in of_ids(db, [*asked])}
    assert {name: len(told.best.flags) if told.best else 0 for name, told in asked.items()} == looks
    assert (len(whole.timed), whole.correct, whole.gains) == (8, 8, 5)
    assert asked["second"].cost_usd is None
    assert asked["new"].best is None


def test_the_index_and_the_journals_tell_the_same_of_runs_that_engines_made(db: Database, root: Path) -> None:
    names = [saved.unpack(name, root).name for name in saved.NAMES]
    Ingest(db, root).catch_up()
    asked = run_results(db, names)
    assert set(asked) == set(names)
    assert_told_alike(asked, root)
    assert any(not attempt.is_compiled for result in asked.values() for attempt in result.tries)
    assert any(result.best and result.best.other_shapes for result in asked.values())


def test_what_has_news_of_a_suite_is_read_again_and_nothing_else(
    db: Database, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["one", "other", "third"]
    for name in names:
        samples.write_run(root, name, depths=3, has_blobs=False)
    journal_file = root / "other" / "journal.jsonl"
    whole = journal_file.read_bytes()
    journal_file.write_bytes(b"".join(whole.splitlines(keepends=True)[:40]))
    ingest = Ingest(db, root)
    ingest.catch_up()
    before = run_results(db, [*names, "late"])
    asked: list[Any] = []

    def note(read: Any, *query: Any) -> Any:
        asked.append(query[-1])
        return read(*query)

    for reader in ("_rows", "_tuples"):
        monkeypatch.setattr(fetch, reader, functools.partial(note, getattr(fetch, reader)))
    assert run_results(db, [*names, "late"]) == before
    assert asked == []
    journal_file.write_bytes(whole)
    shutil.rmtree(root / "third")
    samples.write_run(root, "late", depths=3, has_blobs=False)
    ingest.catch_up()
    after = run_results(db, [*names, "late"])
    assert asked
    assert not any("one" in parameters["ids"] for parameters in asked)
    assert set(after) == {"one", "other", "late"}
    assert after["one"] is before["one"]
    assert len(after["other"].tries) > len(before["other"].tries)
    assert_told_alike(after, root)
