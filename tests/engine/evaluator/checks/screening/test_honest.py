"""No honest kernel that ships with Tilewright is refused or flagged, and no text breaks the screening."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.evaluator import languages
from engine.evaluator.checks.screening import Rule, rule_checks, screen, screen_cpp, verdict_message
from engine.search.prompting import PROMPTS
from storage.results.check_records import CheckOutcome, Group
from storage.results.policy import Policy
from tests.engine.evaluator.checks.screening import recorded
from tests.engine.evaluator.checks.screening.candidates import forward, found, with_cpp
from tests.engine.evaluator.toolchains import kernels
from tests.engine.swish_story import BROKEN, FIRST, SECOND, THIRD, WRONG
from tests.examples import examples

WORDS = st.sampled_from(
    [
        "import",
        "torch",
        "from",
        "as",
        "def",
        "class",
        "ModelNew",
        "(",
        ")",
        ":",
        ",",
        ".",
        "=",
        "[",
        "]",
        "{",
        "}",
        "return",
        "forward",
        "self",
        "x",
        "ext.swish",
        "getattr",
        "lambda",
        "yield\n",
        "",
        "",
        "",
        '"\\n',
        "",
        "",
        "",
        '"',
        '"\\n"',
        "'",
        '"',
        '\\"\\"\\"',
        "#",
        "#define",
        "A(a,b)",
        "a##b",
        "A(a,",
        'R"x(',
        ')x"',
        "/*",
        "*/",
        "//",
        "::",
        "at::mm",
        'asm("syscall")',
        "%:",
        "\\\\",
        "**",
        "await",
        "match",
        "case\n",
        "",
        "",
        "",
        "global",
        "nonlocal",
        "with",
        "async",
        "for",
        "in",
        "while",
        "try",
        "except",
        "finally",
        'f"{x}"',
        "b''",
        "...",
        "->",
        "@",
        "*=",
        ":=",
        "~",
        "0x1",
        "1e9",
        "\\N",
        "\\u0041",
    ]
)


@pytest.mark.parametrize("task", recorded.TASKS)
def test_every_recorded_kernel_is_clean(task: str) -> None:
    sources = recorded.kernels(task)
    assert len(sources) >= 7
    assert [finding for source in sources.values() for finding in found(source)] == []


@pytest.mark.parametrize("path", sorted((PROMPTS / "examples").rglob("*.py")), ids=lambda path: path.stem)
def test_every_example_of_the_prompts_is_clean(path: Path) -> None:
    """Where operands are split to stay exact the narrow type is flagged for a person."""
    seen = screen(path.read_text(), Policy())
    assert [one for one in seen if one.is_refusal or one.rule is not Rule.PRECISION] == []


@pytest.mark.parametrize(
    "source", [kernels.SWISH, kernels.swish(loop=kernels.FAST_LOOP), BROKEN, FIRST, WRONG, SECOND, THIRD]
)
def test_the_kernels_of_other_tests_are_clean(source: str) -> None:
    assert found(source) == []


@pytest.mark.parametrize("task", recorded.TASKS)
def test_no_recorded_change_loses_the_structure(task: str) -> None:
    assert [
        lost for parent, child in recorded.pairs(task) if (lost := languages.find("cute").lost(parent, child))
    ] == []


@settings(max_examples=examples(150))
@given(st.text())
def test_any_text_is_screened_without_an_error(text: str) -> None:
    screen(text, Policy())
    screen(f"x = {text!r}\n", Policy())


@settings(max_examples=examples(300))
@given(st.lists(WORDS, max_size=60))
def test_any_row_of_words_is_screened_without_an_error(words: list[str]) -> None:
    text = " ".join(words)
    screen(text, Policy())
    screen(with_cpp(text.replace('"""', "")), Policy())
    screen_cpp([text], Policy())


def test_comments_that_are_not_closed_are_read_in_time_proportional_to_their_length() -> None:
    source = f'SOURCE = """#include <torch/extension.h>\nvoid kernel() {{}}\n{"/* " * 10_000}"""\n'
    began = time.process_time()
    screen(source, Policy())
    assert time.process_time() - began < 20  # a parser that looked for the end of each took minutes


def test_a_syntax_error_is_left_to_the_compiler() -> None:
    assert found("def f(:\n") == []
    assert found("x = '\0'") == []


@pytest.mark.parametrize(
    "source",
    [
        "x = " + "-" * 5000 + "1\n" + kernels.SWISH,
        "x = " + "(" * 150 + ")" * 150 + "\n" + kernels.SWISH,
        kernels.SWISH + "x = " + "+".join(["1"] * 4000) + "\n",
        kernels.SWISH + "x = y" + ".a" * 4000 + "\n",
        kernels.SWISH + "x = 1\n" * 40_000,
        kernels.SWISH + "#" * 1_200_000,
        with_cpp("(" * 100_000),
        with_cpp("x.a(" * 20_000),
        with_cpp("  A\n", "#define A A A\n" + "".join(f"#define B{i} B{i + 1} B{i + 1}\n" for i in range(40)) + "B0"),
        kernels.SWISH + "s = 'a'\n" + "s = s + s\n" * 60 + "t = [s]\n" + "t = [t, t]\n" * 60,
    ],
    ids=[
        "signs",
        "brackets",
        "sums",
        "attributes",
        "statements",
        "long",
        "open brackets",
        "calls",
        "macros",
        "doubling",
    ],
)
def test_hostile_text_ends_in_findings_within_seconds(source: str) -> None:
    code = (
        "import sys; from engine.evaluator.checks.screening import screen; from storage.results.policy import Policy;"
        "print(len(screen(sys.stdin.read(), Policy())))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=source,
        capture_output=True,
        text=True,
        timeout=120,
        env=dict(os.environ),
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]


BREACH = forward("y = ext.swish(x).half()", "return torch.jit.script(torch.relu)(y)")


def test_every_rule_has_a_proof() -> None:
    made = rule_checks(found(BREACH), "cute")
    assert [check_record.check for check_record in made] == [str(rule) for rule in Rule]
    assert [check_record.check for check_record in rule_checks([])] == [
        str(rule) for rule in Rule if rule is not Rule.LANGUAGE
    ]
    assert {check_record.group for check_record in made} == {Group.SCREENING}
    standing = {check_record.check: check_record.standing for check_record in made}
    assert standing.pop(Rule.LIBRARY) is CheckOutcome.BROKEN
    assert standing.pop(Rule.PRECISION) is CheckOutcome.FLAGGED
    assert set(standing.values()) == {CheckOutcome.HELD}
    assert "line 27" in made[0].detail


def test_the_verdict_names_every_refusal_and_nothing_else() -> None:
    message = verdict_message(found(BREACH))
    assert "line 27: `torch.jit.script`" in message
    assert "half" not in message
    assert verdict_message(found(kernels.SWISH)) == ""
