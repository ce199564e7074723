"""Edits as models write them in JSON, into edits: other names for the same thing are understood, riddles reported."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from engine.patching.edits import Action, Edit, EditError

_NUMBERED = re.compile(r"^\s{0,6}(\d{1,6})(?: ?(\|)|(:)) ?")
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
    new = _code(index, "new_code", fields.get("new_code"), fields)
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
        " ".join(str(fields.get("why") or "").split()),
    )


def _fields(index: int, item: Any) -> Mapping[str, Any]:
    if not isinstance(item, dict):
        raise EditError(f"Edit {index} is not a JSON object.")
    if unknown := [name for name in item if name not in _KEYS]:
        raise EditError(f"Edit {index} has unknown keys {sorted(unknown)}; allowed: {sorted(_NAMES)}.")
    fields: dict[str, Any] = {}
    for name, value in item.items():
        if _KEYS[name] in fields:
            raise EditError(f"Edit {index} says {_KEYS[name]} twice.")
        fields[_KEYS[name]] = value
    return fields


def _action(index: int, value: Any) -> Action:
    if (action := _ACTIONS.get(str(value).strip().lower())) is None:
        raise EditError(f"Edit {index}: action must be replace, delete or insert, not {value!r}.")
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
    return tuple(_unnumbered(flat, fields.get("line_number")))


def _unnumbered(lines: list[str], line_number: Any) -> list[str]:
    """Drop the listing's number prefix where every line carries one that counts on (models paste it back)."""
    found = [_NUMBERED.match(line) for line in lines]
    if not lines or not all(found):
        return lines
    numbers = [int(m[1]) for m in found if m]
    is_listing = all(m and m[2] for m in found) or str(numbers[0]) == str(line_number)
    if not is_listing or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return lines
    return [line[m.end() :] for line, m in zip(lines, found, strict=True) if m]
