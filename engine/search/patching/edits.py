"""Line edits against a numbered listing: validated as a whole, applied bottom-up, all or nothing. Knows no replies."""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines without their ends, and the ends beside them; the last end is empty where the file ends without one.

    Only a line feed ends a line: what else Python calls a line boundary is text here, as it is for compilers.
    """

    texts: tuple[str, ...]
    ends: tuple[str, ...]

    @classmethod
    def of(cls, source: str) -> Lines:
        """A source taken apart; `text` gives it back."""
        parts = source.split("\n")
        last = parts.pop()
        ends = ["\r\n" if part.endswith("\r") else "\n" for part in parts]
        texts = [part.removesuffix("\r") for part in parts]
        if last:
            texts, ends = [*texts, last], [*ends, ""]
        return cls(tuple(texts), tuple(ends))

    @property
    def text(self) -> str:
        """The whole source."""
        return "".join(text + end for text, end in zip(self.texts, self.ends, strict=True))

    def with_edits(self, edits: Sequence[Edit]) -> Lines:
        """With edits made that are in order and at their lines; new lines end as the lines do that they stand among."""
        texts, ends, after = list[str](), list[str](), 0
        otherwise = next(filter(None, self.ends), "\n")  # where no line is left that tells
        for edit in edits:
            at = edit.line - 1
            near = (*self.ends[at : at + 1], *self.ends[max(at - 1, 0) : at])
            texts += [*self.texts[after:at], *edit.new]
            ends += [*self.ends[after:at], *([next(filter(None, near), otherwise)] * len(edit.new))]
            after = at + edit.count
        texts, ends = [*texts, *self.texts[after:]], [*ends, *self.ends[after:]]
        if self.ends and not self.ends[-1]:  # the file ended without a line feed, and goes on to
            ends = [end or otherwise for end in ends[:-1]] + ([""] if ends else [])
        return Lines(tuple(texts), tuple(ends))


def listing(lines: Sequence[str], first: int = 1) -> str:
    """Numbered lines, as prompts show them."""
    return "\n".join(f"{n:4d} | {line}" for n, line in enumerate(lines, first))


def numbered(source: str) -> str:
    """The listing of a source, which edits refer to."""
    return listing(Lines.of(source).texts)


_NUMBERED = re.compile(r"^\s{0,6}(\d{1,6})(?:( ?\| ?|\t)|: ?)")


def without_numbers(lines: list[str], first: object) -> list[str]:
    """Drop the listing's number prefix where every line carries one that counts on (models paste it back).

    A colon after the numbers tells a listing only where they begin at `first`.
    """
    if not lines:
        return lines
    matches = list[re.Match[str]]()
    for line in lines:
        if (match := _NUMBERED.match(line)) is None:
            return lines
        matches.append(match)
    numbers = [int(match[1]) for match in matches]
    is_listing = all(match[2] for match in matches) or str(numbers[:1]) == f"[{first}]"
    if not is_listing or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return lines
    return [line[match.end() :] for line, match in zip(lines, matches, strict=True)]


SEARCH_RADIUS = 20
MAX_KERNEL = 200_000  # characters; the longest that a model is known to have written has 33,000
MAX_EDITS = 2000
SURROGATE = re.compile("[\ud800-\udfff]")


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


def apply_edits(source: str, edits: Sequence[Edit]) -> str:
    """The source with all edits in place; nothing else changes, line ends included.

    Raises:
        EditError: an edit is out of range, overlaps another, disagrees with its old_code, or all change nothing.
    """
    if len(edits) > MAX_EDITS:
        raise EditError(f"{len(edits)} edits are too many: at most {MAX_EDITS} are taken. Send the whole file instead.")
    refuse_unwritable("\n".join(text for edit in edits for text in edit.new))
    lines = Lines.of(source)
    settled = settle(lines.texts, edits)
    result = lines.with_edits(in_order(settled))
    if result.texts == lines.texts:
        raise EditError("The edits change nothing: the source after them equals the source before.")
    if not any(text.strip() for text in result.texts):
        raise EditError("The edits leave nothing of the kernel.")
    return result.text


def settle(lines: Sequence[str], edits: Sequence[Edit]) -> list[Edit]:
    """The edits at the lines where they will be made.

    Raises:
        EditError: as `apply_edits`.
    """
    settled = [_settle(index, edit, lines) for index, edit in enumerate(edits, 1)]
    _refuse_overlaps(settled)
    return settled


def refuse_unwritable(text: str) -> None:
    """Raises EditError for a text with a character that no source file can hold."""
    if "\0" in text or (not text.isascii() and SURROGATE.search(text)):
        raise EditError("An edit holds a NUL or half of a surrogate pair, which no source file can hold.")


def refuse_too_long(kernel: str, before: str = "") -> None:
    """Raises EditError for a kernel that is too long to be worked on, unless it was longer before."""
    if len(kernel) > max(MAX_KERNEL, len(before)):
        raise EditError(
            f"The kernel has {len(kernel):,} characters, and at most {MAX_KERNEL:,} are taken. Write a shorter one."
        )


def in_order(edits: Sequence[Edit]) -> list[Edit]:
    """From the top of the source down; insertions at one line in the order given, before what replaces that line."""
    return sorted(edits, key=lambda e: (e.line, e.count > 0))


def _settle(index: int, edit: Edit, lines: Sequence[str]) -> Edit:
    last = len(lines) + (1 if edit.action is Action.INSERT else 0)
    in_range = 1 <= edit.line <= last and edit.end - 1 <= len(lines)
    if edit.old is None:
        if not in_range:
            reach = f"covers lines {edit.line} to {edit.end - 1}" if edit.count else f"is to go before line {edit.line}"
            raise EditError(f"Edit {index} ({edit.action}) {reach}, but the source has lines 1 to {len(lines)}.")
        return edit
    if in_range and len(edit.old) == edit.count and same(lines[edit.line - 1 : edit.end - 1], edit.old):
        return edit
    return _relocated(index, edit, edit.old, lines)


def _relocated(index: int, edit: Edit, old: tuple[str, ...], lines: Sequence[str]) -> Edit:
    """The edit moved to the only place near by where its old code stands, exactly or shifted in indentation."""
    starts = range(max(1, edit.line - SEARCH_RADIUS), min(len(lines) - len(old) + 1, edit.line + SEARCH_RADIUS) + 1)
    places, new = find_places(lines, old, edit.new, starts)
    if len(places) == 1:
        return replace(edit, line=places[0], count=len(old), new=new)
    raise EditError(_mismatch_report(index, edit, old, lines, len(places)))


def find_places(
    lines: Sequence[str], old: Sequence[str], new: Sequence[str], starts: Sequence[int]
) -> tuple[list[int], tuple[str, ...]]:
    """Where old lines stand, and the new ones as they would be written there: exact places, else shifted ones."""
    exact = [n for n in starts if same(lines[n - 1 : n - 1 + len(old)], old)]
    if exact:
        return exact, tuple(new)
    shifted = [(n, s) for n in starts if (s := _shift(lines[n - 1 : n - 1 + len(old)], old)) is not None]
    if len(shifted) != 1:
        return [n for n, _ in shifted], tuple(new)
    line, (add, drop) = shifted[0]
    return [line], tuple(add + text.removeprefix(drop) if text.strip() else text for text in new)


def same(actual: Sequence[str], expected: Sequence[str]) -> bool:
    """Whether lines agree but for blanks at their ends."""
    return len(actual) == len(expected) and all(a.rstrip() == e.rstrip() for a, e in zip(actual, expected, strict=True))


def _shift(actual: Sequence[str], expected: Sequence[str]) -> tuple[str, str] | None:
    """(indentation to add, indentation to drop) that turns `expected` into `actual`, or None."""
    if len(actual) != len(expected) or any(a.strip() != e.strip() for a, e in zip(actual, expected, strict=True)):
        return None
    pairs = [(a, e) for a, e in zip(actual, expected, strict=True) if a.strip()]
    if not pairs:
        return None
    add, drop = min(((_indent(a), _indent(e)) for a, e in pairs), key=lambda s: len(s[1]))
    ok = all(
        a.startswith(add) and e.startswith(drop) and _indent(a)[len(add) :] == _indent(e)[len(drop) :] for a, e in pairs
    )
    return (add, drop) if ok else None


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _mismatch_report(index: int, edit: Edit, old: Sequence[str], lines: Sequence[str], places: int) -> str:
    first, last = max(1, edit.line - 3), min(len(lines), edit.line + max(edit.count, 1) + 2)
    shown = listing(lines[first - 1 : last], first) if first <= last else "(past the end of the source)"
    where = "nowhere" if places == 0 else f"at {places} places"
    quoted = "\n".join(f"       {line}" for line in old)
    return (
        f"Edit {index} ({edit.action} at line {edit.line}): its old_code stands {where} within {SEARCH_RADIUS} lines.\n"
        f"old_code was:\n{quoted}\nThe source there reads:\n{shown}"
    )


def _refuse_overlaps(edits: Sequence[Edit]) -> None:
    spans = sorted((e for e in edits if e.count), key=lambda e: e.line)
    for before, after in itertools.pairwise(spans):
        if after.line < before.end:
            raise EditError(f"Two edits both change line {after.line}; merge them into one.")
    starts = [span.line for span in spans]
    for insert in (e for e in edits if not e.count):
        at = bisect.bisect_left(starts, insert.line) - 1
        if at >= 0 and insert.line < spans[at].end:
            raise EditError(f"An insert at line {insert.line} falls inside lines that another edit replaces.")
