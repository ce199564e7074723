"""Finding what a raw reply offers: line edits, SEARCH/REPLACE blocks, or a whole file. Knows text, not kernels.

Every reader here takes time in proportion to the reply's length, whatever stands in it.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.search.patching.edits import SURROGATE, EditError
from engine.search.patching.json_values import values
from engine.search.patching.whole_file import FILE_STARTS, find_file

_MARK = re.compile(r"([ \t]*)(`{3,}|~{3,})(.*)")
_SEARCH, _MIDDLE, _REPLACE = (
    re.compile(r"<{5,9} ?SEARCH"), re.compile(r"={5,9}[ \t]*$"), re.compile(r">{5,9} ?REPLACE")
)  # fmt: skip
_REASONING = ("reasoning", "think", "thinking", "analysis")
_PYTHON = ("", "python", "py", "python3")


@dataclass(frozen=True, slots=True)
class Fence:
    """A closed fenced block: its language tag in lower case, its text, and the line of the answer it begins on."""

    tag: str
    text: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class Swap:
    """One SEARCH/REPLACE block, in lines, and the line of the answer it begins on."""

    search: tuple[str, ...]
    replacement: tuple[str, ...]
    line: int = 0


def answer_part(reply: str) -> str:
    """The reply without reasoning sections, with line ends made uniform; all of it where nothing else is left."""
    text = whole_characters(reply).replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    answer = _without_reasoning(text)
    return answer if answer.strip() else text


def fences(answer: str) -> list[Fence]:
    """Closed fenced blocks in order; what an indented block is indented by is taken off its lines."""
    blocks, body, tag, mark, indent, began = list[Fence](), list[str](), "", "", "", 0
    for number, line in enumerate(answer.split("\n")):
        match = _MARK.match(line)
        if not mark:
            if match and "`" not in match[3]:
                indent, mark, tag, began, body = match[1], match[2], match[3].strip().lower(), number, []
        elif match and match[2].startswith(mark) and not match[3].strip():
            blocks.append(Fence(tag, "".join(f"{text}\n" for text in body), began))
            mark = ""
        else:
            body.append(line.removeprefix(indent))
    return blocks


def find_search_replace(answer: str) -> list[Swap]:
    """SEARCH/REPLACE blocks in order; one that is not finished is none."""
    swaps, search, replacement, where, began = list[Swap](), list[str](), list[str](), "", 0
    for number, line in enumerate(answer.split("\n")):
        if _SEARCH.match(line):
            search, replacement, where, began = [], [], "search", number
        elif where == "search" and _MIDDLE.match(line):
            where = "replacement"
        elif where == "replacement" and _REPLACE.match(line):
            swaps.append(Swap(tuple(search), tuple(replacement), began))
            where = ""
        elif where:
            (search if where == "search" else replacement).append(line)
    return swaps


def find_python(reply: str) -> str | None:
    """The last Python file of a reply that defines ModelNew, ending in one newline, or None.

    Where none can be parsed it is the last block that says it is one: what is wrong with it is for the compiler to say.
    """
    answer = answer_part(reply)
    if (text := find_file(answer)) is not None:
        return text
    fenced = fences(answer)
    blocks = [b.text for b in fenced if b.tag.partition(" ")[0] in _PYTHON and "ModelNew" in b.text]
    if blocks:
        last = next((text for text in reversed(blocks) if "class ModelNew" in text), blocks[-1])
        return last.strip("\n\ufeff") + "\n"
    is_file = "\nclass ModelNew" in f"\n{answer}" and answer.lstrip().startswith(FILE_STARTS)
    return answer.strip("\n") + "\n" if is_file and not fenced and "```" not in answer else None


def labelled(reply: str, label: str) -> str:
    """Text after `Label:` on the first line that starts so, markdown marks removed; empty when there is none."""
    pattern = re.compile(rf"{label}[ \t*_]*:(.*)", re.IGNORECASE)
    for line in answer_part(reply).split("\n"):
        if (match := pattern.match(line.lstrip(" \t>*#_-"))) and (text := match[1].strip(" \t*_")):
            return text
    return ""


def _without_reasoning(text: str) -> str:
    """Without sections whose opening tag begins a line, and without thoughts that end but never begin."""
    for name in _REASONING:
        before, closing, after = text.partition(f"</{name}>")
        if closing and f"<{name}>" not in before:
            text = after
        text = _without(text, name)
    return text


def _without(text: str, name: str) -> str:
    kept, position = list[str](), 0
    opening, closing = re.compile(rf"^[ \t]*<{name}>", re.MULTILINE), f"</{name}>"
    while (match := opening.search(text, position)) is not None:
        end = text.find(closing, match.end())
        if end < 0:
            break
        kept.append(text[position : match.start()])
        position = end + len(closing)
    return "".join([*kept, text[position:]])


LONGEST = 1200  # characters of one field
PREDICTED = ("technique", "predicted_gain")  # fields that are never asked for again
_OBJECT = re.compile(r"[\[{]")


def read_fields(reply: str, names: Sequence[str]) -> dict[str, str]:
    """The fields of the last JSON object of a reply, in the order of `names`. What it predicts may stand beside them.

    Raises:
        EditError: no object, several points instead of one, or not exactly these fields with a text in each.
    """
    fields = read_object(reply)
    if isinstance(fields, list):
        raise EditError(f"The reply is a list of {len(fields)}: send one object, with one point.")
    if not isinstance(fields, dict):
        raise EditError("No JSON object was found in the reply.")
    if missing := [name for name in names if name not in fields]:
        raise EditError(f"The object lacks {_listed(missing)}.")
    if unknown := [name for name in fields if name not in (*names, *PREDICTED)]:
        raise EditError(f"The object has {_listed(unknown)}, which was not asked for.")
    for name in names:
        if not isinstance(fields[name], str) or not fields[name].strip():
            raise EditError(f'"{name}" must be a text that is not empty.')
        if len(fields[name]) > LONGEST:
            raise EditError(f'"{name}" has {len(fields[name]):,} characters: one point in at most {LONGEST:,}.')
    return {name: fields[name].strip() for name in names}


def read_object(reply: str) -> object:
    """The last JSON object or list of a reply, None without one."""
    return _written(_last_value(answer_part(reply)))


def whole_characters(text: str) -> str:
    """The text with U+FFFD for halves of characters, which no file, table or page can hold."""
    if text.isascii() or not SURROGATE.search(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _written(value: Any) -> Any:
    """The value with whole characters in all its texts."""
    if isinstance(value, dict):
        return {whole_characters(name): _written(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_written(inner) for inner in value]
    return whole_characters(value) if isinstance(value, str) else value


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f'"{name[:40]}"' for name in names[:8])


def _last_value(answer: str) -> object:
    """The last object or list: of the last fenced block that holds one, else of the whole answer."""
    for block in reversed(fences(answer)):
        if (value := _last_in(block.text)) is not None:
            return value
    return _last_in(answer)


def _last_in(text: str) -> object:
    return next(iter(deque((value for value, _ in values(text, _OBJECT)), maxlen=1)), None)
