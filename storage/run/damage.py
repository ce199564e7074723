"""What of a run's files is damaged or gone, in facts and in sentences for people. Only reads; never mends."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from storage import untrusted
from storage.run import events, journal, labels, liveness
from storage.run.blobs import HASH, file_hash
from storage.run.folder import RunFolder
from storage.run.journal import Entry, Fault, FaultKind
from storage.run.steering import commands
from storage.run.steering.command_arguments import readable
from storage.untrusted import UntrustedError

Range = tuple[int, int]

# Texts are stored before the event that names them: a killed engine leaves at most those of one event.
LEFT_BY_A_KILL = 2
NAMED = 6
JOURNAL, COMMANDS = "journal.jsonl", "commands.jsonl"
_ANY_HASH = re.compile(rb"[0-9a-f]{64}")
_BLOB_FIELD = re.compile(rb'_blob":"([0-9a-f]{64})"')
_LOST_BEFORE = re.compile(rb'"lost_events":[1-9]')
_TEXT_NAME = {
    "source_blob": "source", "diff_blob": "diff", "prompt_blob": "prompt", "reply_blob": "reply", "log_blob":
    "compiler log", "raw_blob": "profile", "report_blob": "profiler file", "sass_blob": "instructions",
    "text_blob": "diagnosis", "edits_blob": "edits", "error_blob": "traceback",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Damage:
    """What is wrong with a run's files; all empty when they are whole."""

    settings: str = ""
    """What is wrong with run.json."""
    unreadable: int = 0
    """Lines of the journal that cannot be read."""
    repeated: int = 0
    """Lines of the journal whose number was there before."""
    missing: tuple[Range, ...] = ()
    """Numbers of events that the journal skips."""
    places: tuple[str, ...] = ()
    """Where the missing events belong, one for each of `missing`."""
    kernels: tuple[str, ...] = ()
    """Ids that events name though the one that made the kernel is missing."""
    last: int = 0
    """The last event that can be read."""
    is_cut: bool = False
    """Whether the journal ends too early."""
    stray: int = 0
    """How many texts show that the journal is cut, where the number of events was not kept."""
    lost_before: int = 0
    """Events lost before an engine took the run up again."""
    newer: tuple[str, ...] = ()
    """Kinds of events that another version wrote, which is no damage."""
    commands: int = 0
    """Lines of commands.jsonl that cannot be read."""
    gone: tuple[str, ...] = ()
    """Texts whose files are missing."""
    spoilt: tuple[str, ...] = ()
    """Texts whose files have another content."""
    closed: tuple[str, ...] = ()
    """Which files cannot be read at all, and why."""

    @property
    def has_holes(self) -> bool:
        """True when something before the journal's end cannot be read: no engine may go on with such a run."""
        return bool(
            self.is_closed or self.unreadable or self.repeated or any(first <= self.last for first, _ in self.missing)
        )

    @property
    def is_closed(self) -> bool:
        """True when nothing of the journal can be read."""
        return any(why.startswith(f"{JOURNAL} ") for why in self.closed)

    @property
    def is_damaged(self) -> bool:
        """True when anything is lost; events of a newer version are not."""
        return bool(
            self.settings or self.has_holes or self.is_cut or self.lost_before or self.commands or self.gone
            or self.spoilt or self.closed
        )  # fmt: skip

    @property
    def can_resume(self) -> bool:
        """Whether an engine can go on where the journal ends."""
        return not (self.settings or self.has_holes or self.newer)


def examine(
    folder: RunFolder, most_bytes: int | None = None, read: tuple[list[Entry], list[Fault]] | None = None
) -> Damage:
    """Look at every file of a run. Texts are compared with their names while they are `most_bytes` at most in all.

    `read` is the journal as `journal.survey` gave it, where the caller has it already.
    """
    entries, faults = read or (None, [])
    seen = _Seen()
    for entry in entries if entries is not None else journal.reading(folder.journal_file, faults.append):
        seen.take(entry)
    last = max([seen.last] + [fault.last for fault in faults if fault.kind is FaultKind.NEWER])
    holes = list(_merged(_holes(faults, last)))
    stray, closed = 0, tuple(_closed(folder))
    if not closed and not liveness.is_held(folder):
        written = journal.last_written(folder.journal_file)
        last_known = max([last, *(end for _, end in holes)])
        if written is None:
            stray = _stray_texts(folder)
        elif written > last_known:
            holes.append((last_known + 1, written))
    gone, spoilt = _texts(folder, most_bytes)
    return Damage(
        settings=_settings_error(folder),
        unreadable=sum(fault.kind is FaultKind.UNREADABLE for fault in faults),
        repeated=sum(fault.kind is FaultKind.REPEATED for fault in faults),
        missing=tuple(_merged(holes)),
        places=tuple(_place(seen.steps, hole) for hole in _merged(holes)),
        kernels=tuple(sorted(seen.named - seen.made)) if holes else (),
        last=last,
        is_cut=bool(stray) or any(first > last for first, _ in holes),
        stray=stray,
        lost_before=seen.lost,
        newer=tuple(fault.message for fault in faults if fault.kind is FaultKind.NEWER),
        commands=_unreadable_commands(folder),
        closed=closed,
        gone=gone,
        spoilt=spoilt,
    )


def is_whole_at_a_glance(folder: RunFolder, most_bytes: int) -> bool:
    """Whether nothing but unreadable lines can be wrong with a run that no engine works on; decodes no event.

    Texts are looked for, not read, and only while the journal is `most_bytes` at most.
    """
    if any(_closed(folder)) or _settings_error(folder):
        return False
    size = count = 0
    for line in _lines(folder.journal_file):
        if _LOST_BEFORE.search(line):
            return False
        size, count = size + len(line), count + 1
    written = journal.last_written(folder.journal_file)
    if (written or 0) > count:
        return False
    if size > most_bytes:
        return True
    return not (written is None and _stray_texts(folder)) and not any(_texts(folder, 0))


def title(damage: Damage) -> str:
    """The fact in one line; empty when nothing is damaged."""
    if damage.settings:
        return "This run's settings cannot be read"
    if damage.is_closed:
        return "This run's journal cannot be read"
    if damage.has_holes:
        return "This run's journal is damaged"
    if damage.is_cut:
        return "The end of this run's journal is missing"
    if damage.gone or damage.spoilt:
        return "Some of this run's texts are missing or damaged"
    if damage.lost_before:
        return "Events of this run were lost"
    if damage.closed:
        return "A file of this run cannot be read"
    return "A command to this run cannot be read" if damage.commands else ""


def sentences(damage: Damage) -> list[str]:
    """What is wrong, one fact each."""
    return [text for text in _facts(damage) if text]


def advice(damage: Damage) -> str:
    """What still works and what to do."""
    if damage.settings:
        return "Restore run.json from a backup. Nothing in the folder has been changed."
    if damage.is_closed:
        return "Make journal.jsonl a file that this user may read, or restore it from a backup, and nothing is lost."
    if damage.has_holes:
        return (
            "Everything else is shown as recorded; counts, costs and times leave out what is missing. Restore "
            "journal.jsonl from a backup. Until then the run cannot be resumed; you can fork a new run from any of its "
            "kernels."
        )
    if damage.is_cut:
        return (
            "Everything before is whole. Restore journal.jsonl from a backup, or resume: the engine continues after "
            f"event {damage.last} and repeats the lost steps, model calls included."
        )
    if damage.gone or damage.spoilt:
        return "The journal is whole, and so are all results. Restore the files in blobs from a backup to read them."
    return ""


def damage_notes(folder: RunFolder) -> list[str]:
    """What is wrong with a run's files and what to do, in sentences; empty when nothing is."""
    damage = examine(folder)
    return [text for text in (*sentences(damage), advice(damage)) if text]


def refusal(folder: RunFolder) -> str:
    """Why no engine may go on with this run; empty when one may."""
    damage = examine(folder, 0)
    if damage.can_resume:
        return ""
    if not damage.has_holes and not damage.settings:
        return f"Run {folder.run_id} cannot be resumed: {_newer(damage)}"
    facts = " ".join(sentences(damage))
    remedy = "Restore run.json from a backup." if damage.settings else (
        "Restore journal.jsonl from a backup, or fork a new run from one of its kernels: "
        f"python -m engine fork {folder.run_id} KERNEL"
    )  # fmt: skip
    return f"Run {folder.run_id} cannot be resumed. {facts} {remedy}"


def _facts(d: Damage) -> Iterator[str]:
    if d.settings:
        yield f"run.json cannot be read: {d.settings}."
    yield from (f"{why}." for why in d.closed)
    if d.unreadable:
        yield f"{_counted(d.unreadable, 'line')} of journal.jsonl cannot be read."
    if d.repeated:
        repeat = "repeats an event" if d.repeated == 1 else "repeat events"
        yield f"{_counted(d.repeated, 'line')} of journal.jsonl {repeat} read before; left out here."
    if d.missing:
        count = sum(end - first + 1 for first, end in d.missing)
        where = _listed(d.places)
        yield f"{_events(d.missing)} {_is(count)} missing ({count} of {max(d.last, d.missing[-1][1])}): {where}."
    if d.kernels:
        yield f"The record of {_listed([kernel(name) for name in d.kernels])} is among them."
    if d.stray:
        yield (f"The journal ends at event {d.last}, but {d.stray} texts in blobs belong to events that are not in it.")
    if d.lost_before:
        yield f"{_counted(d.lost_before, 'event')} {_was(d.lost_before)} lost before a resume; the steps were repeated."
    if d.gone:
        yield f"{_counted(len(d.gone), 'file')} {_is(len(d.gone))} missing from blobs: {_listed(d.gone)}."
    if d.spoilt:
        yield f"{_counted(len(d.spoilt), 'file')} in blobs {_is(len(d.spoilt))} damaged: {_listed(d.spoilt)}."
    if d.commands:
        yield f"{_counted(d.commands, 'line')} of commands.jsonl cannot be read; no engine has obeyed it."
    if d.newer:
        yield _newer(d)


def _newer(d: Damage) -> str:
    kinds, count = ", ".join(sorted(set(d.newer))), len(d.newer)
    return (
        f"{_counted(count, 'event')} {_was(count)} written by a newer version of Tilewright ({kinds}). "
        "This is not damage: update Tilewright to show and resume the whole run."
    )


def kernel(candidate_id: str) -> str:
    """A kernel's name for people: "kernel 6" for c006."""
    name = readable(candidate_id)
    return name if name.startswith("kernel ") else f"kernel {candidate_id}"


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def _was(count: int) -> str:
    return "was" if count == 1 else "were"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _events(ranges: Sequence[Range]) -> str:
    is_one = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
    return ("Event " if is_one else "Events ") + _listed([_span(seq_range) for seq_range in ranges])


def _span(seq_range: Range) -> str:
    return f"{seq_range[0]}" if seq_range[0] == seq_range[1] else f"{seq_range[0]} to {seq_range[1]}"


def _listed(names: Sequence[str]) -> str:
    shown = list(dict.fromkeys(names))
    if len(shown) > NAMED:
        shown = [*shown[: NAMED - 1], f"{len(shown) - NAMED + 1} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _settings_error(folder: RunFolder) -> str:
    try:
        folder.read_settings()
    except FileNotFoundError:
        return "the file is missing"
    except UntrustedError as error:
        return f"{error}".replace(f"{folder.settings_file}: ", "").replace(f"{folder.settings_file} ", "it ")[:200]
    return ""


def _closed(folder: RunFolder) -> Iterator[str]:
    """Files that are read by lines, and that are there but no files, or may not be read."""
    for name in (JOURNAL, COMMANDS, labels.FILE):
        try:
            untrusted.open_file(folder.path / name).close()
        except FileNotFoundError:
            continue
        except UntrustedError as error:
            yield f"{error}".removeprefix(f"{folder.path}{os.sep}")


def _unreadable_commands(folder: RunFolder) -> int:
    try:
        return commands.unreadable(folder.commands_file)
    except UntrustedError:
        return 0  # `_closed` tells it


def _holes(faults: Iterable[Fault], last: int) -> Iterator[Range]:
    """What the journal skips: gaps between numbers, and unreadable lines after the last event."""
    tail = last
    for fault in faults:
        if fault.kind is FaultKind.MISSING:
            yield fault.first, fault.last
        elif fault.kind is FaultKind.UNREADABLE and fault.first > last:
            tail += 1
            yield tail, tail


def _merged(ranges: Iterable[Range]) -> Iterator[Range]:
    held: Range | None = None
    for first, end in sorted(ranges):
        if held and first <= held[1] + 1:
            held = held[0], max(held[1], end)
        else:
            if held:
                yield held
            held = first, end
    if held:
        yield held


def _place(steps: Sequence[tuple[int, int]], hole: Range) -> str:
    """The steps that a hole lies in, by the events on both sides of it."""
    before = [step for seq, step in steps if seq < hole[0]]
    after = [step for seq, step in steps if seq > hole[1]]
    if not after:
        return f"everything after step {before[-1]}" if before else "everything after the start"
    first = before[-1] if before else 1
    return f"step {first}" if first >= after[0] else f"steps {first} to {after[0]}"


class _Seen:
    """What is kept of a journal's events, which may be more than there is memory for: the number of the last one, how
    many were lost, where steps begin or end, which kernels were made and which are named."""

    def __init__(self) -> None:
        self.last = self.lost = 0
        self.steps: list[tuple[int, int]] = []
        self.made: set[str] = set()
        self.named: set[str] = set()

    def take(self, entry: Entry) -> None:
        """Take the journal's next event into account."""
        event, self.last = entry.event, entry.seq
        if isinstance(event, (events.StepStarted, events.StepFinished)):
            self.steps.append((entry.seq, event.step))
        elif isinstance(event, events.CandidateCreated):
            self.made.add(event.candidate_id)
        elif isinstance(event, events.EngineStarted):
            self.lost += event.lost_events
        ids = (getattr(event, field, None) for field in ("candidate_id", "parent_id", "base_id", "best_id"))
        self.named.update(name for name in ids if isinstance(name, str))


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a file; what cannot be read has none, which `_closed` tells."""
    with contextlib.suppress(UntrustedError):
        yield from untrusted.lines(path)


def _on_disk(folder: RunFolder) -> dict[str, int]:
    """Sizes of the texts in the folder, by their names."""
    try:
        with os.scandir(folder.blobs) as entries:
            return {entry.name: entry.stat().st_size for entry in entries if HASH.fullmatch(entry.name)}
    except OSError:
        return {}


def _stray_texts(folder: RunFolder) -> int:
    """How many texts no event speaks of, if more than a killed engine leaves. A replay has all texts from its start."""
    files = (folder.journal_file, folder.commands_file, folder.settings_file)
    named = {name.decode() for path in files for line in _lines(path) for name in _ANY_HASH.findall(line)}
    count = len(_on_disk(folder).keys() - named)
    is_run = any(b'"replay_of": null' in line for line in _lines(folder.settings_file))
    return count if count > LEFT_BY_A_KILL and is_run else 0


def _texts(folder: RunFolder, most_bytes: int | None) -> tuple[tuple[str, ...], ...]:
    """Names of the texts that are missing, and of those with another content than their name says."""
    hashes = {name.decode() for line in _lines(folder.journal_file) for name in _BLOB_FIELD.findall(line)}
    sizes = _on_disk(folder)
    gone, read = hashes - sizes.keys(), hashes & sizes.keys()
    if most_bytes is not None and sum(sizes[name] for name in read) > most_bytes:
        read = set()
    spoilt = {name for name in read if file_hash(folder.blobs / name) != name}
    names = _text_names(journal.read(folder.journal_file), gone | spoilt) if gone | spoilt else {}
    return tuple(tuple(text for name, text in names.items() if name in some) for some in (gone, spoilt))


def _text_names(entries: Iterable[Entry], hashes: set[str]) -> dict[str, str]:
    """What people call these texts, in the order in which events name them."""
    names: dict[str, str] = {}
    for event in (entry.event for entry in entries):
        for field in dataclasses.fields(event):
            name = getattr(event, field.name)
            if field.name in _TEXT_NAME and name in hashes and name not in names:
                names[name] = _text_name(field.name, event)
    return names | dict.fromkeys(hashes - names.keys(), "a text")


def _text_name(field: str, event: events.Event) -> str:
    is_about_step = field in ("prompt_blob", "reply_blob", "edits_blob")
    about = getattr(event, "candidate_id", None)
    if about and not is_about_step:
        return f"{_TEXT_NAME[field]} of {kernel(about)}"
    step = getattr(event, "step", None)
    return f"{_TEXT_NAME[field]} of step {step}" if step else _TEXT_NAME[field]
