import contextlib
import json
import time

import pytest

from engine.search.patching.edits import EditError
from engine.search.patching.proposed_patch import read_patch
from engine.search.patching.reply import answer_part, find_python, find_search_replace, labelled

EDIT = {"action": "delete", "line_number": 7}


def fenced(text: str, tag: str = "json") -> str:
    return f"```{tag}\n{text}\n```\n"


def test_the_last_block_of_edits_wins_over_code_quoted_before() -> None:
    reply = "<reasoning>\n" + fenced("} else {", "") + "</reasoning>\n" + fenced(json.dumps([EDIT]))
    assert [e.line for e in read_patch(reply).edits] == [7]


def test_an_earlier_draft_of_edits_gives_way_to_the_last() -> None:
    reply = fenced(json.dumps([{**EDIT, "line_number": 1}])) + "better:\n" + fenced(json.dumps([EDIT]))
    assert [e.line for e in read_patch(reply).edits] == [7]


def test_one_object_and_several_in_a_row_and_a_wrapped_list_are_understood() -> None:
    two = json.dumps(EDIT) + "\n" + json.dumps({**EDIT, "line_number": 9})
    assert len(read_patch(fenced(json.dumps(EDIT))).edits) == 1
    assert len(read_patch(fenced(two)).edits) == 2
    assert len(read_patch(fenced(json.dumps({"edits": [EDIT, EDIT]}))).edits) == 2


def test_bare_json_without_a_fence_is_understood() -> None:
    assert read_patch("Here: " + json.dumps([EDIT])).edits[0].line == 7


def test_crlf_replies_are_understood() -> None:
    assert read_patch(fenced(json.dumps([EDIT])).replace("\n", "\r\n")).edits[0].line == 7


def test_a_reply_without_edits_says_what_to_send() -> None:
    with pytest.raises(EditError, match="json block"):
        read_patch("I cannot help with that.")


def test_the_last_python_file_with_modelnew_is_taken() -> None:
    reply = fenced("x = 1", "python") + fenced("class ModelNew: ...\n\n", "python") + fenced("y = 2", "python")
    assert find_python(reply) == "class ModelNew: ...\n"
    assert find_python(fenced("x = 1", "python")) is None


def test_search_replace_blocks_are_read_in_order() -> None:
    reply = "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n<<<<<<< SEARCH\nc\n=======\n>>>>>>> REPLACE\n"
    assert [(s.search, s.replacement) for s in find_search_replace(reply)] == [(("a",), ("b",)), (("c",), ())]


@pytest.mark.parametrize("line", ["Optimisation: pack B", "**Optimisation:** pack B", "## Optimisation: pack B"])
def test_a_label_is_found_through_markdown(line: str) -> None:
    assert labelled(f"intro\n{line}\nmore", "Optimisation") == "pack B"


def line_of(*reply: object) -> list[int]:
    return [e.line for e in read_patch("".join(map(str, reply))).edits]


def test_one_edit_a_block_makes_a_list_unless_they_are_drafts_of_each_other() -> None:
    first, second = fenced(json.dumps(EDIT)), fenced(json.dumps({**EDIT, "line_number": 9}))
    assert line_of(first, "and\n", second) == [7, 9]
    assert line_of(first, "no:\n", first) == [7]


@pytest.mark.parametrize(
    "text",
    [
        '[{"action": "delete", "line_number": 7,},]',
        '[{"action": "delete", "line_number": 7} // the brace\n]',
        '{"action": "replace", "line_number": 7, "new_code": "x = \'\\d\'; // \\, ]"}',
        '{"action": "replace", "line_number": 7, "new_code": "two\nlines"}',
    ],
)
def test_json_with_small_faults_is_mended(text: str) -> None:
    assert line_of(fenced(text)) == [7]


def test_mending_changes_nothing_inside_strings() -> None:
    (edit,) = read_patch(fenced('[{"action": "insert", "line_number": 1, "new_code": "a,] // b \\d \\n",}]')).edits
    assert edit.new == ("a,] // b \\d ",)


def test_quotes_that_were_not_escaped_are_read_as_part_of_their_line() -> None:
    block = """[
  {
    "action": "replace",
    "line_number": 7,
    "num_lines": 1,
    "old_code": ["  check(x, "old");"],
    "new_code": [
      "#include "shared.h"",
      "  check(x, \\"must be a \\\\"matrix\\\\"\\", "really");",
      ""
    ],
    "why": "it says "old""
  }
]"""
    (edit,) = read_patch(fenced(block)).edits
    assert edit.old == ('  check(x, "old");',)
    assert edit.new == ('#include "shared.h"', '  check(x, "must be a \\"matrix\\"", "really");', "")
    assert edit.why == 'it says "old"'


def test_edits_wrapped_beside_other_lists_are_found() -> None:
    assert line_of(fenced(json.dumps({"notes": ["a"], "edits": [EDIT]}))) == [7]


def test_a_list_with_one_thing_that_is_no_edit_is_reported_not_shortened() -> None:
    with pytest.raises(EditError, match="Edit 2"):
        read_patch(fenced(json.dumps([EDIT, "and so on"])))


def test_a_block_that_was_never_closed_is_read_as_bare_json() -> None:
    assert line_of("```json\n", json.dumps([EDIT])) == [7]


def test_of_edits_and_search_replace_blocks_the_later_ones_count() -> None:
    blocks = "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n"
    assert read_patch(fenced(json.dumps([EDIT])) + blocks).form == "SEARCH/REPLACE"
    assert read_patch(blocks + fenced(json.dumps([EDIT]))).form == "edits"


def test_a_whole_file_may_call_the_library_for_that_is_judged_by_the_tasks_policy() -> None:
    top, forward = (
        "import torch.nn.functional as F\nfrom ops import ext\n",
        "class ModelNew:\n    def forward(self, x):\n",
    )
    source, mended = top + forward + "        return ext.act(x)\n", "        return ext.act(F.conv2d(x, x))\n"
    assert mended in read_patch(f"```python\n{top}{forward}{mended}```").apply(source)


def test_thoughts_are_no_answer_unless_there_is_no_other() -> None:
    draft, final = fenced(json.dumps([{**EDIT, "line_number": 1}])), fenced(json.dumps([EDIT]))
    assert answer_part("<think>\nno\n</think>\nyes").strip() == "yes"
    assert answer_part("thoughts without a beginning</think>yes") == "yes"
    assert line_of("<think>\n", draft, "</think>\n", final) == [7]
    assert line_of("<think>\n", final, "</think>\n") == [7]
    assert line_of("<think>\n", draft, "never closed\n", final) == [7]


def test_a_file_pasted_without_fences_is_taken_whole() -> None:
    file = "import torch\n\nclass ModelNew: ...\n"
    assert find_python("\n" + file) == file
    assert find_python("Here it is:\n" + file) is None


@pytest.mark.parametrize(
    "piece",
    [
        "```x\n",
        "<think>",
        '"a":' + " " * 30_000,
        '" ' * 30_000 + "]" * 9,
        " " * 30_000 + '"',
        '{"',
        "[{",
        "[[[{",
        '"\\',
        "<<<<<<< SEARCH\n",
        "* * *",
        "~~~\n```\n",
        '{"a":[1,',
    ],
)
def test_a_huge_reply_takes_no_longer_than_its_length(piece: str) -> None:
    text = piece * (500_000 // len(piece))
    began = time.process_time()
    for reply in (text + "\n" + fenced(json.dumps([EDIT])), fenced(text)):
        with contextlib.suppress(EditError):
            read_patch(reply)
        find_python(reply)
        labelled(reply, "Fix")
    assert time.process_time() - began < 5
