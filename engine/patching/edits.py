"""Line edits against a numbered listing: validated as a whole, applied bottom-up, all or nothing. Knows no replies."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

SEARCH_RADIUS = 20
_PREFIX = re.compile(r"^\s{0,6}\d{1,5}\s?[|:]\s?")
_KEYS = {"action", "line_number", "num_lines", "new_code", "old_code", "why"}


class Action(StrEnum):
    """What an edit does at its line."""

    REPLACE = "replace"
    DELETE = "delete"
    INSERT = "insert"


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit. Lines count from 1; an insertion puts its lines before `line`, at n + 1 after the last one."""

    action: Action
    line: int
    count: int
    new: tuple[str, ...] = ()
    old: tuple[str, ...] | None = None
    why: str = ""

    @property
    def end(self) -> int:
        """First line after the edited ones."""
        return self.line + self.count


class EditError(ValueError):
    """Edits that cannot be applied; the message is a report written for the model."""


def parse_edits(plain: Any) -> list[Edit]:
    """Edits from JSON: a list of objects, or one object.

    Raises:
        EditError: wrong shape, unknown keys or wrong types, with the index of the edit.
    """
    items = plain if isinstance(plain, list) else [plain]
    if not items:
        raise EditError("The list of edits is empty.")
    return [_parse_edit(index, item) for index, item in enumerate(items, 1)]


def apply_edits(source: str, edits: Sequence[Edit]) -> str:
    """The source with all edits in place; nothing else changes.

    Raises:
        EditError: an edit is out of range, overlaps another, disagrees with its old_code, or all change nothing.
    """
    lines = source.split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    settled = [_settle(index, edit, lines) for index, edit in enumerate(edits, 1)]
    _refuse_overlaps(settled)
    result = list(lines)
    # A stable sort keeps insertions at one line in the order given: the later one is applied first and ends up below.
    for edit in sorted(settled, key=lambda e: (e.line, e.count > 0), reverse=False)[::-1]:
        result[edit.line - 1 : edit.end - 1] = edit.new
    if result == lines:
        raise EditError("The edits change nothing: the source after them equals the source before.")
    return "\n".join(result) + ("\n" if source.endswith("\n") else "")


def numbered(source: str, first: int = 1) -> str:
    """The listing that edits refer to."""
    return "\n".join(f"{n:4d} | {line}" for n, line in enumerate(source.removesuffix("\n").split("\n"), first))


def _parse_edit(index: int, item: Any) -> Edit:
    if not isinstance(item, dict):
        raise EditError(f"Edit {index} is not a JSON object.")
    if unknown := set(item) - _KEYS:
        raise EditError(f"Edit {index} has unknown keys {sorted(unknown)}; allowed: {sorted(_KEYS)}.")
    try:
        action = Action(str(item.get("action")))
    except ValueError:
        raise EditError(
            f"Edit {index}: action must be replace, delete or insert, not {item.get('action')!r}."
        ) from None
    line, count = item.get("line_number"), item.get("num_lines", 0 if action is Action.INSERT else 1)
    if type(line) is not int or type(count) is not int:
        raise EditError(f"Edit {index}: line_number and num_lines must be whole numbers.")
    if action is not Action.INSERT and count < 1:
        raise EditError(f"Edit {index}: num_lines must be at least 1 for {action}.")
    new = _code(index, "new_code", item.get("new_code"))
    if action is Action.INSERT and not new:
        raise EditError(f"Edit {index}: an insert needs new_code.")
    if action is Action.REPLACE and item.get("new_code") is None:
        raise EditError(f"Edit {index}: a replace needs new_code (use delete to remove lines).")
    old = _code(index, "old_code", item["old_code"]) if item.get("old_code") else None
    return Edit(
        action,
        line,
        0 if action is Action.INSERT else count,
        () if action is Action.DELETE else new,
        None if action is Action.INSERT else old,
        str(item.get("why") or ""),
    )


def _code(index: int, key: str, value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        value = value.removesuffix("\n").split("\n")
    if not isinstance(value, list) or not all(isinstance(line, str) for line in value):
        raise EditError(f"Edit {index}: {key} must be a string or a list of strings.")
    flat = [part.rstrip("\r") for line in value for part in line.removesuffix("\n").split("\n")]
    return tuple(_unnumbered(flat))


def _unnumbered(lines: list[str]) -> list[str]:
    """Drop the listing's number prefix where every line carries one (models paste it back)."""
    if lines and all(_PREFIX.match(line) for line in lines):
        return [_PREFIX.sub("", line, count=1) for line in lines]
    return lines


def _settle(index: int, edit: Edit, lines: Sequence[str]) -> Edit:
    last = len(lines) + (1 if edit.action is Action.INSERT else 0)
    in_range = 1 <= edit.line <= last and edit.end - 1 <= len(lines)
    if edit.old is None:
        if not in_range:
            reach = f"covers lines {edit.line} to {edit.end - 1}" if edit.count else f"is to go before line {edit.line}"
            raise EditError(f"Edit {index} ({edit.action}) {reach}, but the source has lines 1 to {len(lines)}.")
        return edit
    if in_range and len(edit.old) == edit.count and _same(lines[edit.line - 1 : edit.end - 1], edit.old):
        return edit
    return _relocated(index, edit, edit.old, lines)


def _relocated(index: int, edit: Edit, old: tuple[str, ...], lines: Sequence[str]) -> Edit:
    """The edit moved to the only place near by where its old code stands, exactly or shifted in indentation."""
    starts = range(max(1, edit.line - SEARCH_RADIUS), min(len(lines) - len(old) + 1, edit.line + SEARCH_RADIUS) + 1)
    exact = [n for n in starts if _same(lines[n - 1 : n - 1 + len(old)], old)]
    if len(exact) == 1:
        return replace(edit, line=exact[0], count=len(old))
    shifted = [(n, s) for n in starts if (s := _shift(lines[n - 1 : n - 1 + len(old)], old)) is not None]
    if not exact and len(shifted) == 1:
        line, (add, drop) = shifted[0]
        moved = tuple(add + text.removeprefix(drop) if text.strip() else text for text in edit.new)
        return replace(edit, line=line, count=len(old), new=moved)
    raise EditError(_mismatch_report(index, edit, old, lines, len(exact) or len(shifted)))


def _same(actual: Sequence[str], expected: Sequence[str]) -> bool:
    return [line.rstrip() for line in actual] == [line.rstrip() for line in expected]


def _shift(actual: Sequence[str], expected: Sequence[str]) -> tuple[str, str] | None:
    """(indentation to add, indentation to drop) that turns `expected` into `actual`, or None."""
    pairs = [(a, e) for a, e in zip(actual, expected, strict=True) if a.strip() or e.strip()]
    if not pairs or any(a.strip() != e.strip() for a, e in pairs):
        return None
    shifts = {(_indent(a), _indent(e)) for a, e in pairs}
    add, drop = min(shifts, key=lambda s: len(s[1]))
    ok = all(
        a.startswith(add) and e.startswith(drop) and _indent(a)[len(add) :] == _indent(e)[len(drop) :] for a, e in pairs
    )
    return (add, drop) if ok else None


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _mismatch_report(index: int, edit: Edit, old: Sequence[str], lines: Sequence[str], places: int) -> str:
    first, last = max(1, edit.line - 3), min(len(lines), edit.line + max(edit.count, 1) + 2)
    found = numbered("\n".join(lines[first - 1 : last]), first) if first <= last else "(past the end of the source)"
    where = "nowhere" if places == 0 else f"at {places} places"
    said = "\n".join(f"       {line}" for line in old)
    return (
        f"Edit {index} ({edit.action} at line {edit.line}): its old_code stands {where} within {SEARCH_RADIUS} lines.\n"
        f"old_code was:\n{said}\nThe source there reads:\n{found}"
    )


def _refuse_overlaps(edits: Sequence[Edit]) -> None:
    spans = sorted((e for e in edits if e.count), key=lambda e: e.line)
    for before, after in itertools.pairwise(spans):
        if after.line < before.end:
            raise EditError(f"Two edits both change line {after.line}; merge them into one.")
    for insert in (e for e in edits if not e.count):
        if any(span.line < insert.line < span.end for span in spans):
            raise EditError(f"An insert at line {insert.line} falls inside lines that another edit replaces.")
