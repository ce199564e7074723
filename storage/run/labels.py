"""What people say of a run: its name, tags, a note, whether it is archived, and what they found of its kernels. Knows
one file, not what is in the run.

`labels.jsonl` in the run's folder has one line per change, each with everything as it stands after that change: the
last line that can be read holds. A run without the file has no labels.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from storage import codec, files, read_only, untrusted
from storage.run.folder import RunFolder
from storage.untrusted import Limits, UntrustedError

FILE = "labels.jsonl"
LONGEST_NAME, LONGEST_NOTE, LONGEST_TAG, MOST_TAGS, LONGEST_REMARK = 80, 4000, 30, 20, 1000
_FILE = Limits(most_bytes=64 << 20)
_TAG = re.compile(r"[\w][\w.:+-]*")


class LabelError(ValueError):
    """Labels that cannot be kept; the message says why."""


class MarkKind(StrEnum):
    """What a person found who read a kernel: it does the work; perhaps not; it only looks as if it did; cannot say."""

    CLEAN = "clean"
    SUSPICIOUS = "suspicious"
    HACK = "hack"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class Mark:
    """A person's finding about one kernel. The verdict stays what it is."""

    candidate_id: str
    kind: MarkKind
    note: str = ""
    marked_by: str = ""
    time: codec.EpochSeconds = 0.0

    @property
    def in_words(self) -> str:
        """One line."""
        by = f" by {self.marked_by}" if self.marked_by else ""
        day = time.strftime("%Y-%m-%d", time.localtime(self.time))
        return f"marked {self.kind}{by} on {day}{f': {self.note}' if self.note else ''}"


@dataclass(frozen=True, slots=True)
class Labels:
    """Everything that people have noted about a run; `time` is when it was changed last, `changed_by` who did."""

    name: str = ""
    tags: tuple[str, ...] = ()
    note: str = ""
    is_archived: bool = False
    changed_by: str = ""
    time: codec.EpochSeconds = 0.0
    marks: tuple[Mark, ...] = ()

    def mark_of(self, candidate_id: str) -> Mark | None:
        """What was found of a kernel; None where nobody has marked it."""
        return next((mark for mark in self.marks if mark.candidate_id == candidate_id), None)


Change = Callable[[Labels], Labels]


def read(run: RunFolder) -> Labels:
    """The labels of a run; none where its file cannot be read, which `damage` tells."""
    try:
        return last(untrusted.read_bytes(run.path / FILE, _FILE))
    except (FileNotFoundError, UntrustedError):
        return Labels()


def change(run: RunFolder, how: Change, changed_by: str = "") -> Labels:
    """Change the labels of a run and return them. One change at a time, in all processes.

    Raises:
        LabelError: this server is read-only, or a name, tag or note cannot be kept as it is.
        FileNotFoundError: the run is gone.
        OSError: the disk is full or may not be written.
    """
    read_only.guard(LabelError, "label runs")
    with files.Lines(run.path / FILE) as file:
        before = last(file.read())
        after = checked(how(before))
        if replace(after, time=before.time, changed_by=before.changed_by) == before:
            return before
        after = replace(after, changed_by=changed_by or os.environ.get("USER", ""), time=time.time())
        file.append([codec.dumps(after)])
        return after


def checked(labels: Labels) -> Labels:
    """The labels as they are kept: without spaces around them, tags once each and in order.

    Raises:
        LabelError: too long, or no tag.
    """
    name, note = " ".join(labels.name.split()), labels.note.strip()
    tags = tuple(sorted({tag.strip() for tag in labels.tags if tag.strip()}))
    for tag in tags:
        if len(tag) > LONGEST_TAG or not _TAG.fullmatch(tag):
            raise LabelError(
                f"{tag[:60]!r} cannot be a tag: use up to {LONGEST_TAG} letters, digits and - _ . : + without spaces"
            )
    longest = max((len(mark.note) for mark in labels.marks), default=0)
    lengths = (("name", len(name), LONGEST_NAME), ("note", len(note), LONGEST_NOTE), ("note", longest, LONGEST_REMARK))
    for what, length, most in lengths:
        if length > most:
            raise LabelError(f"the {what} has {length} characters: shorten it to {most}")
    if len(tags) > MOST_TAGS:
        raise LabelError(f"{len(tags)} tags are too many: a run can have {MOST_TAGS}")
    return replace(labels, name=name, note=note, tags=tags)


def with_tags(add: tuple[str, ...] = (), remove: tuple[str, ...] = ()) -> Change:
    """Add tags and take others away."""
    return lambda labels: replace(labels, tags=tuple({*labels.tags, *add} - {*remove}))


def marked(candidate_id: str, kind: MarkKind | None, note: str = "", marked_by: str = "") -> Change:
    """Say what a person found of a kernel, in place of what was said before; None takes it back."""
    note = " ".join(note.split())

    def how(labels: Labels) -> Labels:
        before = labels.mark_of(candidate_id)
        if (before and (before.kind, before.note)) == (kind and (kind, note)):
            return labels
        others = tuple(mark for mark in labels.marks if mark.candidate_id != candidate_id)
        by = marked_by or os.environ.get("USER", "")
        return replace(labels, marks=(*others, Mark(candidate_id, kind, note, by, time.time())) if kind else others)

    return how


def archived(is_archived: bool = True) -> Change:
    """Take a run out of the usual list, or back into it."""
    return lambda labels: replace(labels, is_archived=is_archived)


def last(text: bytes) -> Labels:
    """The labels that the file of this text stands for; a line that cannot be read is left out."""
    for line in reversed(text.split(b"\n")):
        try:
            labels: Labels = codec.read_line(Labels, line)
            return labels
        except codec.DecodeError:
            continue
    return Labels()
