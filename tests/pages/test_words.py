"""Wording: counts with their names, and a model's prose as plain text."""

from __future__ import annotations

from engine.suites import formats
from pages.parts import wording


def test_one_is_singular_and_thousands_are_set_apart() -> None:
    assert [wording.counted(n, "kernel") for n in (0, 1, 1204)] == ["0 kernels", "1 kernel", "1,204 kernels"]


def test_shares_of_one_whole_add_up_to_100_percent() -> None:
    assert wording.percents([9, 1, 1, 1, 2, 2]) == ["56 %", "6 %", "6 %", "6 %", "13 %", "13 %"]
    assert wording.percents([3, 1, 1, 1]) == ["50 %", "17 %", "17 %", "16 %"]
    assert wording.percents([0.25, 0.0]) == ["100 %", "0 %"]


def test_prose_loses_its_bold_and_headings_and_keeps_its_code() -> None:
    assert wording.unmarked("## Cause\n**Symptom.** The sum is `x**2`.") == "Cause\nSymptom. The sum is `x**2`."
    code = "2**3**4, f(*a, **options), f(**a, **b)\n#pragma unroll\na ** b ** c"
    assert wording.unmarked(code) == code


def test_a_models_lines_flow_and_only_its_code_is_markup() -> None:
    told = wording.prose(
        "## Cause\nThe sum `x**2` is\ncut at *80*.\n\n- one\n- two is\n  long\n```cpp\n# a  b\n```\nEnd"
    )
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    assert lines == [
        "Cause", "The sum `x**2` is cut at \\*80\\*\\.", "\\- one", "\\- two is long", "```cpp", "# a  b", "```", "End",
    ]  # fmt: skip


def test_what_is_cut_ends_with_no_part_of_a_number() -> None:
    text = "expected 2.5, got 1.4839201. Largest error 3"
    assert wording.cut(text, 23) == "expected 2.5, got…"
    assert wording.cut(text, 29) == "expected 2.5, got 1.4839201…"
    assert wording.cut(text, 14) == "expected 2.5…"
    assert wording.cut("kernel sm_90a2 x", 13) == "kernel sm_90…"
    assert [wording.ended(end) for end in ("it failed", "got…", "Done.")] == ["it failed.", "got…", "Done."]


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
    assert wording.sentence("none: `run --x` starts one") == "None: `run --x` starts one".replace(":", r"\:")
    assert wording.sentence("a ` alone, ``") == r"A \` alone, \`\`"
