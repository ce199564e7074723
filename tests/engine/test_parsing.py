"""What a person's text may be: parsed within bounds, its sizes worked out without running anything."""

from __future__ import annotations

import ast
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import TaskError
from engine.evaluator.tasks import sizes_of
from engine.evaluator.tasks.constants import number
from engine.evaluator.tasks.parsing import MOST_BYTES, parse, see_that_it_compiles

NESTED_FINALLY = "".join(f"{' ' * depth}try: pass\n{' ' * depth}finally:\n" for depth in range(19)) + " " * 19 + "pass"

NO_SIZES = (
    "9**9**9", "1 << 10**9", "10**400 // 10**399", "'a' * 10**9", "2 @ 3", "1.5 << 2", "(-8) ** 0.5", "1e999", "2**63",
    "5 // 0", "1 + 1j", "True", "not 3", "2.0**5000", "1 << -1", "[1] * 10**9", "__import__('os')",
)  # fmt: skip


@pytest.mark.parametrize("text", NO_SIZES)
def test_what_is_no_number_of_64_bits_is_no_size_and_is_not_computed(text: str) -> None:
    began = time.process_time()
    assert sizes_of(f"N = {text}\nM = 3\n") == {"M": 3}
    assert time.process_time() - began < 0.5


_LEAVES = st.integers(-9, 9).map(str) | st.floats(0.125, 9, width=16).map(repr)
_OPERATORS = st.sampled_from(["+", "-", "*", "/", "//", "%", "**", "<<", ">>", "|", "&", "^"])
_EXPRESSIONS = st.recursive(
    _LEAVES, lambda inner: st.tuples(inner, _OPERATORS, inner).map(lambda parts: f"({' '.join(parts)})"), max_leaves=4
)


@given(_EXPRESSIONS)
def test_a_size_is_what_python_makes_of_the_expression(text: str) -> None:
    found = number(ast.parse(text, mode="eval").body)
    if found is not None:
        assert found == eval(text)


TOO_MUCH = {
    "an f-string of many parts": ("f'''" + "{x}\n" * 200_000 + "'''", "takes more than"),
    "half a million statements": ("1\n" * 500_000, "takes more than"),
    "more than a module may have": ("#" * (MOST_BYTES + 1), "1,048,577 bytes, and a module may have 1,048,576"),
    "a deep expression": ("x = 1" + " + 1" * 1000, "more than 200 deep"),
    "a deeper one": ("x = 1" + " + 1" * 100_000, "not valid Python"),
    "brackets": ("(" * 1_000_000, "not valid Python"),
    "a NUL": ("a\0b", "null bytes"),
    "half a character": ("x = '\ud800'", "surrogates"),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_a_text_that_cannot_be_read_within_bounds_is_refused_in_a_sentence(name: str) -> None:
    text, told = TOO_MUCH[name]
    began = time.process_time()
    with pytest.raises(TaskError, match=told):
        parse(text, "module")
    assert time.process_time() - began < 3


def test_a_long_module_is_read() -> None:
    line = "    def forward_{0}(self, x):\n        return torch.relu(x) * {0} + self.bias\n"
    text = "class Model:\n" + "".join(line.format(number) for number in range(4000))
    assert isinstance(parse(text, "module").body[0], ast.ClassDef)


def test_compiling_has_limits_too() -> None:
    parse(NESTED_FINALLY, "module")
    with pytest.raises(TaskError, match="takes more than"):
        see_that_it_compiles(NESTED_FINALLY, Path("module"))
    with pytest.raises(TaskError, match="not valid Python: 'return' outside function, line 1"):
        see_that_it_compiles("return 3", "module")
    see_that_it_compiles("x = 3", "module")
