"""SEARCH/REPLACE blocks: where they are looked for, and how far."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.search.patching.edits import EditError
from engine.search.patching.reply import Swap
from engine.search.patching.search_replace import apply_search_replace
from tests.examples import examples

SOURCE = "a\nb\n  c\n  d\ne\n"


def swapped(source: str, *pairs: tuple[str, str]) -> str:
    return apply_search_replace(source, [Swap(tuple(old.split("\n")), tuple(new.split("\n"))) for old, new in pairs])


def test_blocks_are_looked_for_in_the_source_as_it_was_shown() -> None:
    assert swapped(SOURCE, ("a", "b"), ("b", "a")) == "b\na\n  c\n  d\ne\n"
    assert swapped(SOURCE, ("a", "e\na"), ("e", "x")) == "e\na\nb\n  c\n  d\nx\n"
    assert swapped(SOURCE, ("e", "b"), ("b", "e"), ("a", "x")) == "x\ne\n  c\n  d\nb\n"


def test_a_block_that_an_earlier_one_overlaps_or_makes_is_read_after_it() -> None:
    assert swapped(SOURCE, ("a\nb", "x\nb"), ("b\n  c", "y")) == "x\ny\n  d\ne\n"
    assert swapped(SOURCE, ("a", "new"), ("new", "newer")) == "newer\nb\n  c\n  d\ne\n"


def test_blocks_that_are_indented_otherwise_are_put_where_they_stand() -> None:
    assert swapped(SOURCE, ("d", "c"), ("c", "if x:\n  d")) == "a\nb\n  if x:\n    d\n  c\ne\n"


@pytest.mark.parametrize("source", [SOURCE.replace("\n", "\r\n"), SOURCE.rstrip("\n")])
def test_line_ends_stay_as_they_are(source: str) -> None:
    end = "\r\n" if "\r" in source else "\n"
    assert swapped(source, ("e", "x\ny"), ("a", "e")) == source.replace("e", f"x{end}y").replace("a", "e")


def test_a_block_that_stands_nowhere_or_twice_leaves_all_unmade() -> None:
    with pytest.raises(EditError, match="block 2 stands in the source 0 times"):
        swapped(SOURCE, ("a", "x"), ("z", "y"))
    with pytest.raises(EditError, match="block 1 stands in the source 2 times"):
        swapped(SOURCE + "a\n", ("a", "x"), ("b", "y"))


@pytest.mark.parametrize(
    ("source", "pairs"),
    [
        ("x\n" * 100_000, [("x\n" * 4, "y")] * 3000),
        ("x\n" * 100_000, [("y", "x")] * 30_000),
        ("".join(f"{n}\n" for n in range(60_000)), [(f"{n}", f"{n}") for n in range(30_000)] * 2),
        ("".join(f"{n}\n" for n in range(60_000)), [("0", "1"), *((f"{n}\n{n + 1}", "x") for n in range(30_000))]),
    ],
)
def test_work_is_bounded_over_all_blocks_together(source: str, pairs: list[tuple[str, str]]) -> None:
    swaps, began = [Swap(tuple(old.split("\n")), (new,)) for old, new in pairs], time.process_time()
    with pytest.raises(EditError, match="stands in the source|too many places"):
        apply_search_replace(source, swaps)
    assert time.process_time() - began < 8


LINES = st.lists(st.sampled_from(["a", "b", "  a", " ", "", "c"]), min_size=1, max_size=3).map(tuple)
SWAPS = st.lists(st.builds(Swap, LINES, LINES), min_size=1, max_size=4)


@settings(max_examples=examples(300))
@given(st.permutations(["a", "b", "c", "  d", "e"]), SWAPS)
def test_any_blocks_are_made_or_reported(lines: list[str], swaps: list[Swap]) -> None:
    source = "\n".join(lines) + "\n"
    try:
        made = apply_search_replace(source, swaps)
    except EditError:
        return
    asked = {text.strip() for swap in swaps for text in swap.search}
    assert made != source
    assert all(line in made.split("\n") for line in lines if line.strip() not in asked)


@settings(max_examples=examples(200))
@given(st.permutations(range(6)), st.permutations(range(6)))
def test_blocks_that_do_not_touch_give_the_same_in_any_order(order: list[int], renamed: list[int]) -> None:
    pairs = [(f"line {n}", f"line {renamed[n]}") for n in order]
    expected = "".join(f"line {n}\n" for n in renamed)
    source = "".join(f"line {n}\n" for n in range(6))
    if expected != source:
        assert swapped(source, *pairs) == expected
