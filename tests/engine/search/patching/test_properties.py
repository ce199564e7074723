"""Whatever a model writes: a report or a whole patch, never an exception, never half of one, never another line."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.search.patching.edits import Action, Edit, EditError, Lines, apply_edits, in_order, settle
from engine.search.patching.proposed_patch import read_patch
from engine.search.patching.reply import find_python, labelled
from tests.examples import examples

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0"), max_size=6)
CODE = st.lists(st.one_of(TEXT, st.sampled_from(["", "  a", "a", "\tb"])), min_size=1, max_size=12)
ENDS = st.sampled_from(["\n", "\r\n"])
SOURCES = st.builds(lambda lines, end, last: end.join(lines) + (end if last else ""), CODE, ENDS, st.booleans())
SPANS = st.builds(
    Edit,
    st.sampled_from([Action.REPLACE, Action.DELETE]),
    st.integers(-2, 15),
    st.integers(1, 4),
    st.lists(TEXT, max_size=3).map(tuple),
    st.none() | st.lists(st.sampled_from(["", "  a", "a", "a ", "\tb"]), min_size=1, max_size=2).map(tuple),
)
INSERTS = st.builds(
    Edit, st.just(Action.INSERT), st.integers(-2, 15), st.just(0), st.lists(TEXT, min_size=1, max_size=3).map(tuple)
)
EDITS = st.lists(SPANS | INSERTS, min_size=1, max_size=4)

JSON_CODE = st.one_of(st.text(max_size=8), st.lists(st.text(max_size=4), max_size=3), st.none(), st.integers())
EDIT_JSON = st.fixed_dictionaries(
    {},
    optional={
        "action": st.sampled_from(["replace", "delete", "insert", "Remove", "move", None]),
        "line_number": st.one_of(st.integers(-1, 9), st.floats(), st.booleans(), st.text(max_size=2), st.just(10**30)),
        "num_lines": st.one_of(st.integers(-1, 4), st.none()),
        "new_code": JSON_CODE,
        "old_code": JSON_CODE,
        "why": st.text(max_size=5),
    },
)
MARKS = (
    "```json\n", "```\n", "~~~", "<think>", "</think>", "<reasoning>\n", "[", "{", "]", "}", ",", '"', "\\", "\r\n",
    "<<<<<<< SEARCH\n", "=======\n", ">>>>>>> REPLACE\n", "```python\nclass ModelNew: pass\n```\n", "a\n", "  a\n",
)  # fmt: skip
PIECES = st.one_of(
    st.text(max_size=12),
    st.sampled_from(MARKS),
    st.lists(EDIT_JSON, max_size=3).map(lambda edits: f"```json\n{json.dumps(edits)}\n```\n"),
    EDIT_JSON.map(json.dumps),
)
REPLIES = st.lists(PIECES, max_size=8).map("".join)


def invert_edits(source: str, edits: Sequence[Edit]) -> list[Edit]:
    """Edits that turn `apply_edits(source, edits)` back into the source."""
    lines, inverse, shift = Lines.of(source).texts, list[Edit](), 0
    for edit in in_order(settle(lines, edits)):
        old, line = tuple(lines[edit.line - 1 : edit.end - 1]), edit.line + shift
        action = Action.INSERT if not edit.new else Action.REPLACE if old else Action.DELETE
        if old or edit.new:
            inverse.append(Edit(action, line, len(edit.new), old))
        shift += len(edit.new) - edit.count
    return inverse


@settings(max_examples=examples(400))
@given(SOURCES, REPLIES)
def test_any_reply_gives_a_new_source_or_a_report(source: str, reply: str) -> None:
    find_python(reply)
    labelled(reply, "Fix")
    try:
        changed = read_patch(reply).apply(source)
    except EditError:
        return
    assert changed != source
    assert changed.strip()
    changed.encode()


@settings(max_examples=examples(400))
@given(SOURCES, EDITS)
def test_edits_apply_wholly_or_not_at_all_and_touch_no_other_line(source: str, edits: list[Edit]) -> None:
    before = Lines.of(source)
    try:
        after = Lines.of(apply_edits(source, edits))
    except EditError:
        return
    settled = sorted(settle(before.texts, edits), key=lambda e: (e.line, e.count > 0))
    expected, position = list[str](), 0
    for e in settled:
        expected += [*before.texts[position : e.line - 1], *e.new]
        position = max(position, e.end - 1)
    # An empty last line without an end of its own cannot be told from no line at all.
    assert "\n".join(after.texts).rstrip("\n") == "\n".join([*expected, *before.texts[position:]]).rstrip("\n")
    assert len(set(before.ends) - {""}) != 1 or set(after.ends) <= {*before.ends, ""}
    kept = [text for e, text in enumerate(before.texts, 1) if not any(s.line <= e < s.end for s in settled)]
    remaining = iter(after.texts)
    assert all(text in remaining for text in kept if text)


@settings(max_examples=examples(400))
@given(CODE, ENDS, EDITS)
def test_the_inverse_of_edits_gives_the_source_back(lines: list[str], end: str, edits: list[Edit]) -> None:
    source = end.join(lines) + end
    try:
        changed = apply_edits(source, edits)
    except EditError:
        return
    if source.strip():  # edits that leave nothing are refused, so what was nothing cannot come back
        assert apply_edits(changed, invert_edits(source, edits)) == source
