"""Wording: counts with their names, and a model's prose as plain text."""

from __future__ import annotations

from pages.parts import wording


def test_one_is_singular_and_thousands_are_set_apart() -> None:
    assert [wording.counted(n, "kernel") for n in (0, 1, 1204)] == ["0 kernels", "1 kernel", "1,204 kernels"]


def test_prose_loses_its_bold_and_headings_and_keeps_its_code() -> None:
    assert wording.unmarked("## Cause\n**Symptom.** The sum is `x**2`.") == "Cause\nSymptom. The sum is `x**2`."
    code = "2**3**4, f(*a, **options), f(**a, **b)\n#pragma unroll\na ** b ** c"
    assert wording.unmarked(code) == code
