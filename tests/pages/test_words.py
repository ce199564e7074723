"""Wording: counts with their names, and a model's prose as plain text."""

from __future__ import annotations

from engine.suites import formats
from pages.parts import wording


def test_one_is_singular_and_thousands_are_set_apart() -> None:
    assert [wording.counted(n, "kernel") for n in (0, 1, 1204)] == ["0 kernels", "1 kernel", "1,204 kernels"]


def test_prose_loses_its_bold_and_headings_and_keeps_its_code() -> None:
    assert wording.unmarked("## Cause\n**Symptom.** The sum is `x**2`.") == "Cause\nSymptom. The sum is `x**2`."
    code = "2**3**4, f(*a, **options), f(**a, **b)\n#pragma unroll\na ** b ** c"
    assert wording.unmarked(code) == code


def test_what_an_engine_noted_is_written_as_on_the_pages() -> None:
    noted = "C++ uses `bfloat16_t`; 102% of the first, 0 % before, `cut"
    assert wording.as_written_here(noted) == "C++ uses “bfloat16_t”; 102 % of the first, 0 % before, cut"


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
