"""The further baseline of a run: the last one measured, and what a kernel's speed-up is over it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from storage.index import queries
from storage.index.database import Database
from storage.results import relative
from storage.results.evaluation_results import TimingResult
from storage.run import events as ev
from tests.storage.growth import grow

FASTER = TimingResult((1.0, 1.0, 1.0), (1.25, 1.28, 1.31))


def test_the_baseline_is_the_record_that_was_journaled(db: Database, root: Path) -> None:
    grow(db, root)
    assert queries.baseline(db, "sample") is None
    grow(db, root, ev.BaselineMeasured("torch.compile", FASTER))
    row = queries.baseline(db, "sample")
    assert row is not None
    assert (row.name, row.speedup, row.low, row.high) == ("torch.compile", 1.28, *FASTER.speedup_interval)
    assert (row.noise, row.latency_ms, row.baseline_latency_ms) == (FASTER.noise, 1.0, 1.28)
    assert row.failure == ""


def test_the_last_baseline_counts_and_one_that_could_not_be_had_has_only_its_reason(db: Database, root: Path) -> None:
    missing = ev.BaselineMeasured("torch.compile", None, "it ran out of time")
    grow(db, root, ev.BaselineMeasured("torch.compile", FASTER), missing)
    row = queries.baseline(db, "sample")
    assert row is not None
    assert (row.speedup, row.noise, row.failure) == (None, None, "it ran out of time")
    assert row.under(2.0, 0.01) is None


def test_a_speedup_over_it_is_the_ratio_of_both_with_their_noises_combined(sample: Database) -> None:
    run, row = queries.run(sample, "sample"), queries.baseline(sample, "sample")
    assert run is not None
    assert run.best_speedup is not None
    assert row is not None
    assert row.speedup is not None
    assert row.noise is not None
    found = row.under(run.best_speedup, 0.01)
    assert found is not None
    assert found.speedup == pytest.approx(run.best_speedup / 1.28)
    assert found.noise == pytest.approx(math.sqrt(0.01**2 + row.noise**2))
    assert row.under(None, None) is None


def test_the_interval_is_as_wide_as_the_noise_and_never_below_zero() -> None:
    found = relative.over(2.0, 0.03, 1.25, 0.04)
    assert (found.low, found.speedup, found.high) == pytest.approx((1.52, 1.6, 1.68))
    assert relative.over(2.0, 3.0, 1.0, 0.0).low == 0
