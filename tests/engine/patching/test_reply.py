import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.patching.edits import EditError
from engine.patching.reply import find_edits, find_python, find_search_replace, labelled

EDIT = {"action": "delete", "line_number": 7}


def fenced(text: str, tag: str = "json") -> str:
    return f"```{tag}\n{text}\n```\n"


def test_the_last_block_of_edits_wins_over_code_quoted_before() -> None:
    reply = "<reasoning>\n" + fenced("} else {", "") + "</reasoning>\n" + fenced(json.dumps([EDIT]))
    assert [e.line for e in find_edits(reply)] == [7]


def test_an_earlier_draft_of_edits_gives_way_to_the_last() -> None:
    reply = fenced(json.dumps([{**EDIT, "line_number": 1}])) + "better:\n" + fenced(json.dumps([EDIT]))
    assert [e.line for e in find_edits(reply)] == [7]


def test_one_object_and_several_in_a_row_and_a_wrapped_list_are_understood() -> None:
    two = json.dumps(EDIT) + "\n" + json.dumps({**EDIT, "line_number": 9})
    assert len(find_edits(fenced(json.dumps(EDIT)))) == 1
    assert len(find_edits(fenced(two))) == 2
    assert len(find_edits(fenced(json.dumps({"edits": [EDIT, EDIT]})))) == 2


def test_bare_json_without_a_fence_is_understood() -> None:
    assert find_edits("Here: " + json.dumps([EDIT]))[0].line == 7


def test_crlf_replies_are_understood() -> None:
    assert find_edits(fenced(json.dumps([EDIT])).replace("\n", "\r\n"))[0].line == 7


def test_a_reply_without_edits_says_what_to_send() -> None:
    with pytest.raises(EditError, match="json block"):
        find_edits("I cannot help with that.")


def test_the_last_python_file_with_modelnew_is_taken() -> None:
    reply = fenced("x = 1", "python") + fenced("class ModelNew: ...\n\n", "python") + fenced("y = 2", "python")
    assert find_python(reply) == "class ModelNew: ...\n"
    assert find_python(fenced("x = 1", "python")) is None


def test_search_replace_blocks_are_read_in_order() -> None:
    reply = "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n<<<<<<< SEARCH\nc\n=======\n>>>>>>> REPLACE\n"
    assert find_search_replace(reply) == [("a\n", "b\n"), ("c\n", "")]


@pytest.mark.parametrize("line", ["Optimisation: pack B", "**Optimisation:** pack B", "## Optimisation: pack B"])
def test_a_label_is_found_through_markdown(line: str) -> None:
    assert labelled(f"intro\n{line}\nmore", "Optimisation") == "pack B"


@given(st.text())
def test_no_text_at_all_breaks_the_reader(reply: str) -> None:
    find_search_replace(reply)
    find_python(reply)
    try:
        find_edits(reply)
    except EditError:
        return
