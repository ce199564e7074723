"""Wording: counts with their names, and a model's prose as plain text."""

from __future__ import annotations

import itertools
from pathlib import Path

from engine.suites import formats
from pages.parts import wording
from storage.index.database import open_database


def test_one_is_singular_and_thousands_are_set_apart() -> None:
    assert [wording.counted(n, "kernel") for n in (0, 1, 1204)] == ["0 kernels", "1 kernel", "1,204 kernels"]


def test_prose_loses_its_bold_and_headings_and_keeps_its_code() -> None:
    assert wording.unmarked("## Cause\n**Symptom.** The sum is `x**2`.") == "Cause\nSymptom. The sum is `x**2`."
    code = "2**3**4, f(*a, **options), f(**a, **b)\n#pragma unroll\na ** b ** c"
    assert wording.unmarked(code) == code


def test_the_index_writes_a_speedup_as_the_pages_do(tmp_path: Path) -> None:
    speedups, noises = (0.04, 0.999, 1.25, 9.99, 10.2, 99.6, 150.4), (None, 0.0, 0.001, 0.01, 0.05, 0.3, 0.5, 0.51)
    with open_database(tmp_path / "index.duckdb") as db, db.reader() as cursor:
        for one in itertools.product(speedups, noises):
            found = cursor.execute("SELECT as_measured(?::DOUBLE, ?::DOUBLE)", one).fetchone()
            said = wording.speedup(*one)
            assert found == ("unknown speed-up" if said == wording.UNKNOWN else said,), one


def test_what_an_engine_noted_is_written_as_on_the_pages() -> None:
    noted = "C++ uses `bfloat16_t`; 102% of the first, 0 % before, `cut"
    assert wording.as_written_here(noted) == "C++ uses “bfloat16_t”; 102 % of the first, 0 % before, cut"


def test_the_index_writes_latencies_and_rates_as_the_pages_do(tmp_path: Path) -> None:
    with open_database(tmp_path / "index.duckdb") as db, db.reader() as cursor:
        for ms in (0.0123, 0.0996, 0.3141, 0.99961, 1.7771, 9.996, 99.96, 431.4, 1234.5):
            assert cursor.execute("SELECT as_latency(?::DOUBLE)", [ms]).fetchone() == (wording.latency(ms),), ms
        for giga in (1.5, 40.0, 812.0, 6795.23, 280_555.86):
            found = cursor.execute("SELECT as_rate(?::DOUBLE, 'B/s')", [giga]).fetchone()
            assert found == (wording.quantity(giga * 1e9, "B/s"),), giga


def test_a_suites_tables_write_spans_as_the_pages_do() -> None:
    for seconds in (48.0, 75.0, 381.0, 5826.0):
        assert formats.minutes(seconds / 60) == wording.seconds(seconds)
    assert formats.percent(-3.82) == "−382 %"


def test_a_name_keeps_the_capitals_that_it_was_given() -> None:
    assert wording.capital("GELU: fast, wrong, refused") == "GELU: fast, wrong, refused"
    assert wording.capital("square matmul") == "Square matmul"
    assert wording.capital("") == ""
    assert wording.sentence("rounds must be 1") == "Rounds must be 1"
    assert wording.sentence("a.py is empty") == r"a\.py is empty"
