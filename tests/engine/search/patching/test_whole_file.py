"""Which text of a reply becomes the kernel."""

from __future__ import annotations

import os
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.search.patching.edits import MAX_KERNEL, EditError, numbered
from engine.search.patching.proposed_patch import read_patch
from engine.search.patching.reply import find_python
from tests.examples import examples

HEAD = 'import torch\nfrom torch import nn\n\nTEXT = r"""\n#pragma once\nvoid scale(float* x);\n"""\n\n\n'
CLASS = "class ModelNew(nn.Module):\n    def forward(self, x):\n        return x * 2\n"
FILE = HEAD + CLASS
USAGE = "model = ModelNew()\nprint(model(torch.ones(2)))\n"
EXPLAINED = CLASS.replace(":\n", ':\n    """Use it so:\n\nFENCE\nModelNew()(x)\nFENCE\n    """\n\n', 1)


def fenced(text: str, tag: str = "python", mark: str = "```") -> str:
    return f"{mark}{tag}\n{text}{mark}\n"


def counted(mark: str) -> str:
    return "".join(f"{number:3d}{mark}{line}" for number, line in enumerate(FILE.splitlines(keepends=True), 1))


@pytest.mark.parametrize(
    "later",
    [
        "Use it so:\n" + fenced(USAGE),
        "The class in short:\n" + fenced("class ModelNew(nn.Module):\n    ...\n"),
        "In short:\n" + fenced("class ModelNew(nn.Module):\n    def forward(self, x):\n        ...\n"),
        "What changed:\n" + fenced(CLASS),
        "So:\n" + fenced("import torch\n\nModelNew = torch.compile(ModelNew)\n"),
        fenced("pip install ninja\n", "sh"),
        "Use ```ModelNew()``` in place of ```Model()```.\n",
    ],
)
def test_what_follows_the_file_and_is_none_is_passed_over(later: str) -> None:
    assert find_python(fenced(FILE) + later) == FILE
    assert find_python(fenced(FILE) + later * 3) == FILE


def test_an_excerpt_is_taken_where_no_whole_file_is_there() -> None:
    assert find_python(fenced(USAGE) + fenced(CLASS) + fenced(USAGE)) == CLASS


@pytest.mark.parametrize(
    "end",
    [
        "if torch.cuda.is_available():\n    class ModelNew(nn.Module):\n        x = 1\n",
        "try:\n    import fast\nexcept ImportError:\n    class ModelNew(nn.Module):\n        x = 1\n",
        "class Fast(nn.Module):\n    x = 1\n\n\nModelNew = Fast\n",
        "class Fast(nn.Module):\n    x = 1\n\n\nModelNew: type = Fast\n",
    ],
)
def test_a_file_may_define_its_class_in_any_way(end: str) -> None:
    assert find_python(fenced(FILE) + "Better:\n" + fenced(HEAD + end) + fenced(USAGE)) == HEAD + end


def test_of_several_files_the_last_is_taken_however_it_is_fenced() -> None:
    first = fenced("import torch\n\n\nclass ModelNew(torch.nn.Module):\n    x = 1\n")
    for last in (fenced(FILE, "cpp"), "```\n" + FILE, "~~~\n" + FILE, "~~~ {.python}\n" + FILE + "~~~~\nDone.\n"):
        assert find_python(first + "Better:\n" + last) == FILE


@pytest.mark.parametrize(
    "reply",
    [
        "Here:\n```python\n" + FILE, FILE + "```\n", "Here: ```python\n" + FILE + "```\n", fenced(FILE) + "```",
        "```python\n" + FILE + "``` That is all.\n", "```python\n" + FILE.rstrip("\n") + "```\n",
        fenced(FILE, "{python}"), fenced(FILE, "python:model_new.py"), fenced(FILE, "triton"),
        fenced(FILE, "py3", "````"),
        "1. The file:\n\n" + fenced("".join(f"   {line}\n" for line in FILE.split("\n")[:-1])),
        "- ```python\n" + "".join(f"  {line}\n" for line in FILE.split("\n")[:-1]) + "  ```\n",
        fenced(numbered(FILE) + "\n"), numbered(FILE), fenced(counted(": ")), fenced(counted("\t")),
    ],
)  # fmt: skip
def test_a_file_is_read_whatever_its_fences_its_tag_and_its_margin(reply: str) -> None:
    assert find_python(reply) == FILE


@pytest.mark.parametrize("mark", ["```", "~~~", "    ```", "    # ```"])
@pytest.mark.parametrize("end", ["```\n", ""])
def test_a_fence_within_the_file_neither_begins_nor_ends_it(mark: str, end: str) -> None:
    file = HEAD + EXPLAINED.replace("FENCE", mark)
    assert find_python("```python\n" + file + end) == file
    comment = f"{FILE}    # {mark}\n    # ModelNew()(x)\n    # {mark}\n\n\nLAST = 1\n"
    assert find_python("```python\n" + comment + end) == comment


def test_a_file_that_cannot_be_parsed_is_left_to_the_compiler() -> None:
    broken = HEAD + CLASS.replace("def forward", "deff forward")
    assert find_python(fenced(broken) + fenced(USAGE)) == broken


def test_a_text_that_python_warns_of_is_a_file() -> None:
    file = FILE.replace('r"""', '"""\\d')
    assert find_python(fenced(USAGE) + fenced(file)) == file


@pytest.mark.parametrize(
    "piece",
    [
        "```\nclass ModelNew:\n",
        "```\nclass ModelNew(nn.Module): ...\n",
        "```\n",
        "class ModelNew:\n",
        "   1 | class ModelNew: pass\n```\n",
        " " * 30_000 + "class ",
        "``` ~~~ ",
        "\t# ```\nModelNew = 1\n",
    ],
)
@pytest.mark.parametrize("end", ["", "\nclass ModelNew:\n    x = (\n```\n"])
def test_a_kernel_is_looked_for_in_time_in_proportion_to_the_reply(piece: str, end: str) -> None:
    text, began = piece * (500_000 // len(piece)), time.process_time()
    find_python(text + end)
    find_python("```python\n" + FILE + text + end)
    assert time.process_time() - began < 8


@pytest.mark.parametrize("size", [20_000, 60_000])
def test_a_text_that_takes_the_parser_for_ever_does_not_keep_a_reply_from_being_read(size: int) -> None:
    bomb, before = 'class ModelNew:\n    x = f"' + "{a}" * size + '"\n    y = (\n', os.times()
    assert find_python(fenced(bomb) * 3) == bomb
    assert sum(os.times()[:4]) - sum(before[:4]) < 15  # of this process and its children


@pytest.mark.parametrize("reply", ["```python\n{}```\n", "```json\n[{}]\n```\n"])
def test_a_kernel_of_more_characters_than_are_taken_is_told_its_size(reply: str) -> None:
    long = FILE + "# " + "x" * MAX_KERNEL + "\n"
    edit = f'{{"action": "insert", "line_number": 1, "new_code": "# {"x" * MAX_KERNEL}"}}'
    with pytest.raises(EditError, match=r"has 200,\d+ characters, and at most 200,000 are taken"):
        read_patch(reply.replace("{}", long if "python" in reply else edit)).apply(FILE)


PIECES = st.sampled_from(
    ["```", "~~~", "```python\n", "\n", "  ", "# ", FILE, CLASS, USAGE, HEAD, '"""', "\\", "\0", "\ufeff", "(", "x: ",
     numbered(FILE), "   1 | ", "class ModelNew", "ModelNew = ", "ModelNew: int", "class ModelNew: ...", "\f", "\x1b"]
)  # fmt: skip


@settings(max_examples=examples(300))
@given(st.lists(PIECES | st.text(max_size=8), max_size=12).map("".join))
def test_any_reply_holds_a_file_or_none(reply: str) -> None:
    found = find_python(reply)
    assert found is None or ("ModelNew" in found and found.endswith("\n"))
    assert found is None or find_python(fenced(found)) is not None
