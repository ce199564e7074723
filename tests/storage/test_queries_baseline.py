"""The baselines of a run: as last measured, the fastest of them, and what a kernel's speed-up is over it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from storage.index import queries
from storage.index.database import Database
from storage.results import relative
from storage.results.evaluation_results import TimingResult
from storage.results.relative import Measured
from storage.results.timeline import Timeline
from storage.run import events as ev
from tests.storage.growth import grow

FASTER = TimingResult((1.0, 1.0, 1.0), (1.25, 1.28, 1.31))


def kernel(speedup: float, noise: float) -> Measured:
    return Measured(speedup, speedup * (1 - noise), speedup * (1 + noise), noise)


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
    assert row.under(kernel(2.0, 0.01)) is None


def test_baselines_stand_in_the_order_of_their_first_measurement_with_what_each_cost(db: Database, root: Path) -> None:
    slower = replace(FASTER, baseline_ms=(1.1, 1.1, 1.1), timeline=Timeline(31.0))
    missing = ev.BaselineMeasured("CUDA graph", None, "it needs a GPU")
    tried = ev.BaselineMeasured("torch.compile", None, "no compiler")
    grow(db, root, tried, ev.BaselineMeasured("mine.py", FASTER), missing, ev.BaselineMeasured("torch.compile", slower))
    rows = queries.baselines(db, "sample")
    assert [(row.name, row.speedup, row.seconds, row.failure) for row in rows] == [
        ("torch.compile", 1.1, 31.0, ""), ("mine.py", 1.28, None, ""), ("CUDA graph", None, None, "it needs a GPU"),
    ]  # fmt: skip
    fastest = replace(rows[1], is_on_gpu=False)  # in the index it counts beside the best kernel already
    assert queries.baseline(db, "sample") == fastest
    assert queries.fastest_baselines(db, ["sample", "no such run"]) == {"sample": fastest}


def test_a_speedup_over_it_is_the_ratio_of_both_with_their_noises_combined(sample: Database) -> None:
    run, row = queries.run(sample, "sample"), queries.baseline(sample, "sample")
    assert run is not None
    assert run.best_speedup is not None
    assert row is not None
    assert row.speedup is not None
    assert row.noise is not None
    found = row.under(kernel(run.best_speedup, 0.01))
    assert found is not None
    assert found.speedup == pytest.approx(run.best_speedup / 1.28)
    assert found.noise == pytest.approx(math.sqrt(0.01**2 + row.noise**2))
    assert row.under(None) is None


def test_the_interval_is_as_wide_as_the_noise_and_never_below_zero() -> None:
    found = relative.over(kernel(2.0, 0.03), kernel(1.25, 0.04))
    assert (found.low, found.speedup, found.high) == pytest.approx((1.6 / 1.05, 1.6, 1.6 / 0.95))


def test_of_a_speed_up_that_is_known_as_a_range_alone_the_ratio_has_the_ends_of_that_range() -> None:
    wide = relative.over(Measured(17.83, 16.6, 38.3, 1.15), Measured(25.4, 25.2, 25.5, 0.006))
    assert (wide.low, wide.high) == pytest.approx((16.6 / 25.5, 38.3 / 25.2))
    assert not wide.is_faster
    assert not wide.is_slower
    assert relative.over(Measured(17.83, 16.6, 38.3, 1.15), Measured(10.0, 9.0, 11.0, 0.1)).is_faster


def test_faster_and_slower_are_what_the_interval_says() -> None:
    for speedup in (0.8, 0.9496, 0.9504, 0.97, 1.0, 1.03, 1.0496, 1.0504, 1.2):
        ratio = relative.Relative(speedup, 0.05)
        assert ratio.is_faster is (ratio.low > 1) is (speedup > 1.05)
        assert ratio.is_slower is (ratio.high < 1) is (speedup < 0.95)
