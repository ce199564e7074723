"""Wording: counts with their names, and a model's prose as plain text."""

from __future__ import annotations

import itertools
from pathlib import Path

from pages.parts import wording
from storage.database import open_database


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
