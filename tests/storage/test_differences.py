import difflib
import random
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from storage.differences import Comparison, unified
from tests.examples import examples

LINES = st.lists(st.sampled_from(["", "}", "a", "b", "c = 1;", "d"]), max_size=30)


@settings(max_examples=examples(200))
@given(LINES, LINES)
def test_what_is_not_hostile_is_compared_as_difflib_does(old: list[str], new: list[str]) -> None:
    assert unified(old, new) == list(difflib.unified_diff(old, new, lineterm=""))[2:]
    assert Comparison(old, new).get_opcodes() == difflib.SequenceMatcher(None, old, new, False).get_opcodes()


@settings(max_examples=examples(200))
@given(LINES, LINES, st.integers(0, 200))
def test_a_comparison_that_runs_out_of_patience_still_leads_from_one_to_the_other(
    old: list[str], new: list[str], patience: int
) -> None:
    made = list[str]()
    for tag, i, j, k, m in Comparison(old, new, patience).get_opcodes():
        assert tag != "equal" or old[i:j] == new[k:m]
        made += old[i:j] if tag == "equal" else new[k:m]
    assert made == new


def test_texts_made_to_be_slow_are_compared_in_seconds() -> None:
    draw = random.Random(1)
    many = [[f"x{draw.randrange(100)};" for _ in range(60_000)] for _ in range(2)]
    for old, new in ([many[0], many[1]], [["a", "b"] * 90_000, ["b", "a", "c"] * 60_000], [["}"] * 90_000, ["}"] * 9]):
        began = time.process_time()
        unified(old, new)
        Comparison(old, new).get_opcodes()
        assert time.process_time() - began < 10
