"""What no model should write: it is read, or reported, in time in proportion to its length; it ends no run."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.evaluator.languages import structure
from engine.search.llm.tools import MOST_CALLS, read_calls
from engine.search.methods.answers import Object
from engine.search.methods.graph_search.replies import ReadLabels, ReadOutline, ReadProposal
from engine.search.methods.kernelblaster.replies import ReadEdits, ReadPlan, ReadState, read_verification
from engine.search.patching.edits import EditError
from engine.search.patching.prediction import read_prediction, read_prediction_field
from engine.search.patching.proposed_patch import read_patch
from engine.search.patching.reply import find_python, labelled, read_fields, read_object
from storage import codec
from tests.examples import examples

DIGITS = "1" * 5000
QUICK: tuple[Callable[[str], object], ...] = (read_object, read_calls, read_prediction)
READERS: tuple[Callable[[str], object], ...] = (
    *QUICK, read_patch, find_python, read_prediction_field, lambda reply: labelled(reply, "Fix"), Object.of,
    lambda reply: read_fields(reply, ("fix", "why")), read_verification, ReadState(("slow", "fast")),
    ReadPlan(("tiling",), ("packing",)), ReadEdits(("slow",), ("tiling",)), ReadOutline(("tiling",)),
    ReadLabels(("a", "b"), ("tiling",)), ReadProposal(("tiling",), ("packing",)),
)  # fmt: skip
POISON = [
    f'{{"line_number": {DIGITS}, "action": "delete"}}', f'[{DIGITS}, {{"fix": {DIGITS}, "why": -{DIGITS}}}]',
    '{"fix": 1e999, "why": NaN}', '{"gain": -Infinity, "predicted_gain": ' + DIGITS + "}",
    "[" * 900 + "]" * 900, '{"action": ' * 300 + "1" + "}" * 300, '{"action": ' + "[" * 600 + "]" * 600 + "}",
    '{"tool": "check", "arguments": ' + "[" * 5000, '{"tool": "check", "arguments": {"source": ["a"]}}',
    '{"fix": "\\ud800", "why": "\\u0000"}', '{"technique": "\\udfff", "predicted_gain": "2x"}',
    '[{"action": "delete", "line_number": 1, "why": "\\ud800"}]', '{"action": "\\ud83d", "line_number": "\\udc00"}',
    '{"\\ud800": 1, "line_number": 1, "action": "delete"}', '{"a\\u0000": 1}', '{"fix": {"fix": {}}, "why": [[[]]]}',
]  # fmt: skip


def written(reply: str) -> None:
    """Read by every reader; what they give, and what they report, can be written down everywhere."""
    for reader in READERS:
        try:
            said = repr(reader(reply)) if reader is not read_object else codec.dumps(reader(reply))
        except EditError as report:
            said = str(report)
        assert len(said) < 100_000
        said.encode()


@pytest.mark.parametrize("text", POISON, ids=lambda text: text[:40])
def test_json_that_no_program_can_hold_is_read_or_reported(text: str) -> None:
    written(text)
    written(f"Fix: x\n```json\n{text}\n```\n")


def test_a_number_beyond_reason_is_reported_by_its_name() -> None:
    with pytest.raises(EditError, match="whole numbers"):
        read_patch(POISON[0])


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just(10**400)
NAMES = st.sampled_from(["fix", "why", "action", "line_number", "new_code", "old_code", "steps", "edits", "new"])
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=5))


@settings(max_examples=examples(300))
@given(st.lists(JSON.map(json.dumps) | st.text(max_size=20) | st.sampled_from(POISON), max_size=4), st.booleans())
def test_any_reply_is_read_or_reported(pieces: list[str], is_fenced: bool) -> None:
    written("\n".join(f"```json\n{piece}\n```" if is_fenced else piece for piece in pieces))


@pytest.mark.parametrize(
    "piece",
    [
        "[x", '[{"', '{"a"x', '{"a":', "[" * 60, "[" * 60 + "]" * 60, '{"a": "\\ud800"}', '{"tool": "check", "x\n',
        '{"tool": "check", "arguments": {"source": "x"}}\n', "```json\n[x\n", "\ud800", "class ModelNew:\n", "\x1b[2J",
        f"[{DIGITS}", "`", "```", "```python\nclass ModelNew:\n", "   1 | x\n",
    ],
)  # fmt: skip
def test_reading_a_reply_takes_time_in_proportion_to_its_length(piece: str) -> None:
    text, began = piece * (500_000 // len(piece)), time.process_time()
    for reader in QUICK:
        with contextlib.suppress(EditError):
            reader(text)
    assert time.process_time() - began < 8


def test_a_reply_holds_only_so_many_calls_of_tools() -> None:
    assert len(read_calls('{"tool": "check", "arguments": {"source": "x"}}\n' * 5000)) == MOST_CALLS


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a // b\nc", "a  \nc"),
        ("a /* b */ c", "a   c"),
        ("a /* b // c\nd", "a /* b  \nd"),
        ("a /*/ b", "a /*/ b"),
        ("// /*\nb */", " \nb */"),
        ("/* */ /* x", "  /* x"),
    ],
)
def test_comments_go_and_one_that_nothing_ends_is_text(text: str, left: str) -> None:
    assert structure.without_comments(text) == left


@pytest.mark.parametrize("piece", ["/* ", "// /* \n", "*/ ", "/", '"""', "#include "])
def test_a_kernels_words_are_found_in_time_in_proportion_to_its_length(piece: str) -> None:
    began = time.process_time()
    structure.texts(f'S = r"""{piece * (200_000 // len(piece))}"""\n')
    structure.texts(piece * (200_000 // len(piece)))
    assert time.process_time() - began < 4
