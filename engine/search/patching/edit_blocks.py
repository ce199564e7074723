"""The edits that a raw reply holds, and where in it they were found. Knows JSON and blocks, not sources.

JSON as models get it slightly wrong is put right by rule; other names for the same thing are understood, riddles
reported. What is mended is validated as ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engine.search.patching.edits import Action, Edit, EditError, refuse_unwritable, without_numbers
from engine.search.patching.json_values import values
from engine.search.patching.reply import Fence, fences

# A string to its end, a comma before a closing bracket, a comment.
_FAULTS = re.compile(r'"(?:[^"\\]|\\.)*+"?|,(?=\s*[\]}])|(?<!:)//[^\n]*', re.DOTALL)
_ESCAPE = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})|\\')
# One string that has a line for itself, alone in a list or after its key.
_OWN_LINE = re.compile(r'^([ \t]*+(?:"\w{1,20}"[ \t]*+:[ \t]*+(?:\[[ \t]*+)?)?")(.*)("(?:[ \t]*+\])?(?:[ \t]*+,)?)$')
_KEY_LINE = re.compile(r'^[ \t]*+"\w{1,20}"[ \t]*+:')
_QUOTE = re.compile(r'\\.|"', re.DOTALL)


def mended(text: str) -> Iterator[str]:
    """The text as it may have been meant, the smaller mending first."""
    yield _FAULTS.sub(_mend, text)
    yield _FAULTS.sub(_mend, "\n".join(_quoted(line) for line in text.split("\n")))


def _mend(match: re.Match[str]) -> str:
    """Without commas before a closing bracket, without comments, and with backslashes that mean themselves doubled."""
    text = match[0]
    if not text.startswith('"'):
        return ""
    return _ESCAPE.sub(lambda m: m[0] if m[1] else r"\\", text)


def _quoted(line: str) -> str:
    """A line that is one string, with the quotes inside it escaped."""
    match = _OWN_LINE.match(line.rstrip())
    if match is None or (_KEY_LINE.match(line) and not _KEY_LINE.match(match[1])):
        return line
    inner = _QUOTE.sub(lambda m: m[0] if m[0] != '"' else '\\"', match[2])
    return match[1] + inner + match[3]


# Each key by the names models give it.
_NAMES = {
    "action": ("action", "type", "op", "operation"),
    "line_number": ("line_number", "line", "start_line", "lineno"),
    "num_lines": ("num_lines", "line_count", "number_of_lines"),
    "new_code": ("new_code", "new_lines", "new"),
    "old_code": ("old_code", "old_lines", "old"),
    "why": ("why", "reason", "comment", "explanation", "description", "rationale"),
}
_KEYS = {name: key for key, names in _NAMES.items() for name in names}
_ACTIONS = {"remove": Action.DELETE, "modify": Action.REPLACE, "insert_before": Action.INSERT} | {
    str(action): action for action in Action
}


def looks_like_edit(value: Any) -> bool:
    """Whether a JSON value is meant as one edit."""
    return isinstance(value, dict) and ("action" in value or "line_number" in value)


def parse_edits(plain: Any) -> list[Edit]:
    """Edits from JSON: a list of objects, or one object.

    Raises:
        EditError: wrong shape, unknown keys or wrong types, with the index of the edit.
    """
    items = plain if isinstance(plain, list) else [plain]
    if not items:
        raise EditError("The list of edits is empty.")
    return [_edit(index, item) for index, item in enumerate(items, 1)]


def _edit(index: int, item: Any) -> Edit:
    fields = _fields(index, item)
    action = _action(index, fields.get("action"))
    old = _code(index, "old_code", fields["old_code"], fields) if fields.get("old_code") else None
    line, count = _number(index, fields.get("line_number")), _count(index, action, fields.get("num_lines"), old)
    new, why = _code(index, "new_code", fields.get("new_code"), fields), " ".join(f"{fields.get('why') or ''}".split())
    refuse_unwritable("\n".join((*new, *(old or ()), why)))
    if action is Action.INSERT and not new:
        raise EditError(f"Edit {index}: an insert needs new_code.")
    if action is Action.REPLACE and fields.get("new_code") is None:
        raise EditError(f"Edit {index}: a replace needs new_code (use delete to remove lines).")
    is_insert = action is Action.INSERT
    return Edit(
        action,
        line,
        count,
        () if action is Action.DELETE else new,
        None if is_insert else old,
        why,
    )


def _fields(index: int, item: Any) -> Mapping[str, Any]:
    if not isinstance(item, dict):
        raise EditError(f"Edit {index} is not a JSON object.")
    if unknown := [name for name in item if name not in _KEYS]:
        listed = ", ".join(repr(name[:40]) for name in sorted(unknown)[:8])
        raise EditError(f"Edit {index} has unknown keys {listed}; allowed: {', '.join(sorted(_NAMES))}.")
    fields: dict[str, Any] = {}
    for name, value in item.items():
        if _KEYS[name] in fields:
            raise EditError(f"Edit {index} says {_KEYS[name]} twice.")
        fields[_KEYS[name]] = value
    return fields


def _action(index: int, value: Any) -> Action:
    if (action := _ACTIONS.get(str(value).strip().lower())) is None:
        raise EditError(f"Edit {index}: action must be replace, delete or insert, not {f'{value!r}'[:80]}.")
    return action


def _count(index: int, action: Action, value: Any, old: tuple[str, ...] | None) -> int:
    if action is Action.INSERT:
        return 0
    count = (len(old) if old else 1) if value is None else _number(index, value)
    if count < 1:
        raise EditError(f"Edit {index}: num_lines must be at least 1 for {action}.")
    return count


def _number(index: int, value: Any) -> int:
    """A whole number, also where it was written as text."""
    if isinstance(value, str) and re.fullmatch(r"\s*-?[0-9]{1,9}\s*", value):
        return int(value)
    if type(value) is not int:
        raise EditError(f"Edit {index}: line_number and num_lines must be whole numbers.")
    return value


def _code(index: int, key: str, value: Any, fields: Mapping[str, Any]) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or not all(isinstance(line, str) for line in value):
        raise EditError(f"Edit {index}: {key} must be a string or a list of strings.")
    flat = [part.rstrip("\r") for line in value for part in line.removesuffix("\n").split("\n")]
    return tuple(without_numbers(flat, fields.get("line_number")))


_START = re.compile(r'\{\s*"|\[\s*\{')
MISSING = "No list of edits was found: the reply must end with one ```json block that holds the edits."


@dataclass(frozen=True, slots=True)
class Found:
    """JSON that is meant as edits, the way to it in words, and the line of the answer it begins on."""

    plain: list[Any]
    way: str
    line: int

    def parsed(self) -> list[Edit]:
        """The edits.

        Raises:
            EditError: they are malformed.
        """
        return parse_edits(self.plain)


def find_edit_json(answer: str) -> Found | None:
    """JSON edits from the last block that holds any; blocks tagged json count before others, bare JSON last of all."""
    blocks = fences(answer)
    tagged = [b for b in blocks if b.tag.startswith("json")]
    others = [b for b in blocks if not b.tag.startswith("json")]
    return (
        _from_blocks(tagged, "json block")
        or _from_blocks(others, "untagged block")
        or _bare(answer)
    )  # fmt: skip


def _from_blocks(blocks: list[Fence], way: str) -> Found | None:
    for index in range(len(blocks) - 1, -1, -1):
        plain, is_mended = _edits_of(blocks[index].text)
        if plain:
            series = _series(blocks[: index + 1], plain)
            form = way + (", mended" if is_mended else "") + ("s, one edit each" if len(series) > len(plain) else "")
            return Found(series, form, blocks[index].line)
    return None


def _series(blocks: list[Fence], last: list[Any]) -> list[Any]:
    """One edit a block: all of them, as long as they are about different lines (else the earlier ones are drafts)."""
    series, seen = list(last), {_place(edit) for edit in last}
    for block in reversed(blocks[:-1]):
        plain, _ = _edits_of(block.text)
        is_single = block.text.lstrip().startswith("{") and len(plain) == 1 and len(last) == 1
        if not is_single or not blocks[-1].text.lstrip().startswith("{") or _place(plain[0]) in seen:
            break
        series.insert(0, plain[0])
        seen.add(_place(plain[0]))
    return series


def _place(edit: Any) -> str:
    return str(edit.get("line_number")) if isinstance(edit, dict) else ""


def _bare(answer: str) -> Found | None:
    plain, line = _scan(answer)
    return Found(plain, "bare JSON", line) if plain else None


def _edits_of(text: str) -> tuple[list[Any], bool]:
    """The edits of a block, and whether its JSON had to be mended first."""
    plain, _ = _scan(text)
    if plain or '"' not in text:
        return plain, False
    for meant in mended(text):
        if plain := _scan(meant)[0]:
            return plain, True
    return [], False


def _scan(text: str) -> tuple[list[Any], int]:
    """All edit objects of one text (a list, an object, several in a row, a wrapped list) and the line of the first."""
    collected, line = list[Any](), 0
    for value, start in values(text, _START):
        if edits := _as_edits(value):
            line = line if collected else text.count("\n", 0, start)
            collected.extend(edits)
    return collected, line


def _as_edits(value: Any) -> list[Any]:
    if looks_like_edit(value):
        return [value]
    if isinstance(value, list):
        return value if any(looks_like_edit(item) for item in value) else []
    if not isinstance(value, dict):
        return []
    inner = [v for v in value.values() if looks_like_edit(v) or (isinstance(v, list) and any(map(looks_like_edit, v)))]
    return _as_edits(inner[0]) if len(inner) == 1 else []
