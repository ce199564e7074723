import pytest

from engine.search.patching.edit_blocks import parse_edits
from engine.search.patching.edits import Action, Edit, EditError, apply_edits, numbered

SOURCE = "a\nb\n  c\n  d\ne\n"


def edit(action: str, line: int, **fields: object) -> list[Edit]:
    return parse_edits([{"action": action, "line_number": line, **fields}])


def test_replace_changes_only_its_lines() -> None:
    assert apply_edits(SOURCE, edit("replace", 2, num_lines=2, new_code=["x"])) == "a\nx\n  d\ne\n"


def test_delete_removes_its_lines() -> None:
    assert apply_edits(SOURCE, edit("delete", 5)) == "a\nb\n  c\n  d\n"


def test_insert_puts_lines_before_its_line_and_after_the_last() -> None:
    assert apply_edits(SOURCE, edit("insert", 1, new_code="x")) == "x\na\nb\n  c\n  d\ne\n"
    assert apply_edits(SOURCE, edit("insert", 6, new_code="x")) == "a\nb\n  c\n  d\ne\nx\n"


def test_numbers_refer_to_the_listing_whatever_the_order_of_edits() -> None:
    edits = edit("insert", 1, new_code=["0"]) + edit("replace", 5, new_code=["E"]) + edit("delete", 2)
    assert apply_edits(SOURCE, edits) == "0\na\n  c\n  d\nE\n"
    assert apply_edits(SOURCE, edits[::-1]) == "0\na\n  c\n  d\nE\n"


def test_insertions_at_one_line_keep_their_order() -> None:
    edits = edit("insert", 2, new_code=["1"]) + edit("insert", 2, new_code=["2"])
    assert apply_edits(SOURCE, edits) == "a\n1\n2\nb\n  c\n  d\ne\n"


def test_an_insert_before_a_replaced_line_stays_before_it() -> None:
    edits = edit("replace", 2, new_code=["B"]) + edit("insert", 2, new_code=["1"])
    assert apply_edits(SOURCE, edits) == "a\n1\nB\n  c\n  d\ne\n"


@pytest.mark.parametrize("line", [0, -1, 6, 99])
def test_a_line_outside_the_source_is_refused_with_the_range(line: int) -> None:
    with pytest.raises(EditError, match="lines 1 to 5"):
        apply_edits(SOURCE, edit("replace", line, new_code=["x"]))


def test_overlapping_edits_are_refused() -> None:
    edits = edit("replace", 2, num_lines=2, new_code=["x"]) + edit("delete", 3)
    with pytest.raises(EditError, match="both change line 3"):
        apply_edits(SOURCE, edits)


def test_one_bad_edit_leaves_all_others_unapplied() -> None:
    with pytest.raises(EditError):
        apply_edits(SOURCE, edit("replace", 1, new_code=["x"]) + edit("delete", 9))


def test_edits_without_effect_are_a_failure() -> None:
    with pytest.raises(EditError, match="change nothing"):
        apply_edits(SOURCE, edit("replace", 1, new_code=["a"]))


def test_old_code_at_the_wrong_line_moves_the_edit_to_the_only_place_it_fits() -> None:
    assert apply_edits(SOURCE, edit("replace", 1, old_code=["e"], new_code=["E"])) == "a\nb\n  c\n  d\nE\n"


def test_old_code_with_another_indentation_moves_and_indents_the_new_lines() -> None:
    edits = edit("replace", 1, num_lines=2, old_code=["c", "d"], new_code=["x", "  y"])
    assert apply_edits(SOURCE, edits) == "a\nb\n  x\n    y\ne\n"


def test_ambiguous_old_code_is_refused_with_the_lines_that_stand_there() -> None:
    with pytest.raises(EditError, match="at 2 places") as failure:
        apply_edits("x\ny\nx\n", edit("replace", 2, old_code=["x"], new_code=["z"]))
    assert "2 | y" in str(failure.value)


def test_old_code_that_stands_nowhere_is_refused() -> None:
    with pytest.raises(EditError, match="nowhere"):
        apply_edits(SOURCE, edit("replace", 1, old_code=["zzz"], new_code=["x"]))


def test_a_replacement_by_no_lines_is_an_edit_like_any_other() -> None:
    (edit,) = parse_edits([{"action": "replace", "line_number": 2, "new_code": []}])
    assert apply_edits("a\nb\nc\n", [edit]) == "a\nc\n"


def test_line_numbers_pasted_into_new_code_are_dropped() -> None:
    assert apply_edits(SOURCE, edit("replace", 1, new_code=["   1 | A"])) == "A\nb\n  c\n  d\ne\n"


@pytest.mark.parametrize(
    ("plain", "words"),
    [
        ([], "empty"),
        (["x"], "not a JSON object"),
        ([{"action": "move", "line_number": 1}], "replace, delete or insert"),
        ([{"action": "delete", "line_number": "one"}], "whole numbers"),
        ([{"action": "delete", "line_number": 1.5}], "whole numbers"),
        ([{"action": "delete", "line_number": 1, "line": 2}], "twice"),
        ([{"action": "delete", "line_number": True}], "whole numbers"),
        ([{"action": "delete", "line_number": 1, "num_lines": 0}], "at least 1"),
        ([{"action": "insert", "line_number": 1}], "needs new_code"),
        ([{"action": "replace", "line_number": 1}], "needs new_code"),
        ([{"action": "replace", "line_number": 1, "new_code": [1]}], "list of strings"),
        ([{"action": "delete", "line_number": 1, "file": "x"}], "unknown keys"),
    ],
)
def test_malformed_edits_are_reported_by_index(plain: list[object], words: str) -> None:
    with pytest.raises(EditError, match=words):
        parse_edits(plain)


def test_numbers_as_text_and_other_names_for_the_same_thing_are_understood() -> None:
    (edit,) = parse_edits({"type": "Remove", "line": "5", "reason": "gone"})
    assert (edit.action, edit.line, edit.count, edit.why) == (Action.DELETE, 5, 1, "gone")


def test_without_a_number_of_lines_the_old_code_says_how_many() -> None:
    edits = edit("replace", 3, old_code=["  c", "  d"], new_code=["x"])
    assert apply_edits(SOURCE, edits) == "a\nb\nx\ne\n"


def test_code_that_only_looks_numbered_is_kept() -> None:
    assert apply_edits(SOURCE, edit("replace", 1, new_code=["  7: 'seven',"])).startswith("  7: 'seven',\n")
    assert apply_edits(SOURCE, edit("replace", 1, new_code=["4 | flags;", "9 | more;"])).startswith("4 | flags;\n")


def test_new_lines_end_as_the_lines_around_them_do() -> None:
    crlf = SOURCE.replace("\n", "\r\n")
    edits = edit("replace", 2, old_code=["b"], new_code=["B", "B2"]) + edit("insert", 6, new_code=["f"])
    assert apply_edits(crlf, edits) == "a\r\nB\r\nB2\r\n  c\r\n  d\r\ne\r\nf\r\n"
    assert apply_edits("a\r\nb", edit("insert", 3, new_code=["c"])) == "a\r\nb\r\nc"
    anew = [*edit("delete", 1, num_lines=2), *edit("insert", 1, new_code=["c"])]
    assert apply_edits("a\r\nb\r\n", anew) == "c\r\n"
    assert apply_edits("a\nb", edit("delete", 2)) == "a"


def test_only_a_line_feed_ends_a_line() -> None:
    assert apply_edits("é\u2028x\x0cy\nb\n", edit("replace", 2, new_code=["ß"])) == "é\u2028x\x0cy\nß\n"


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_what_no_file_can_hold_is_refused(text: str) -> None:
    with pytest.raises(EditError, match="no source file"):
        apply_edits(SOURCE, edit("replace", 1, new_code=[text]))


def test_edits_that_leave_nothing_are_refused() -> None:
    with pytest.raises(EditError, match="leave nothing"):
        apply_edits(SOURCE, edit("delete", 1, num_lines=5))


def test_the_listing_numbers_every_line_once() -> None:
    assert numbered("a\nb\n") == "   1 | a\n   2 | b"
