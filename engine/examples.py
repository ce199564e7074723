"""Runs that come with Tilewright: `tasks/examples/`, one archive a run. Packs, lists, opens and removes them.

An archive is a run folder as it is on disk, without what only its machine can use: locks, logs, the profiler's own
report files. Paths of that machine are cut to their last part, and the texts renamed by their new hashes. Knows folders
and archives, not what is in a run beyond its settings and its last event.
"""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import io
import json
import re
import secrets
import shutil
import socket
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import EngineError
from engine.evaluator.tasks import SHIPPED as TASKS
from engine.suites import example_suites
from storage import codec, locks, read_only, untrusted
from storage.home import home
from storage.networks import files as networks
from storage.run import damage, journal, labels, liveness, trash
from storage.run import events as ev
from storage.run.folder import RUN_ID, RunFolder, all_runs, runs_folder
from storage.run.labels import Labels
from storage.run.record import Record
from storage.run.settings import LEFT, RunSettings, RunState
from storage.run.trash import TrashError
from storage.untrusted import Limits, UntrustedError

SHIPPED = TASKS / "examples"
ENDING = ".tar.xz"
RUN_JSON, ARCHIVE = Limits(most_bytes=16 << 20), Limits(most_bytes=512 << 20)
LARGEST_BYTES = 1_000_000
# What a list of examples begins with: a way that can be read in one look, each another kind of task, a network last.
SHOWN_FIRST = (
    "square_matmul-20261124-193759-65ec",
    "square_matmul-20261124-193801-520e",
    "softmax-20261125-072455-5580",
    "causal_attention-20261124-193809-c75e",
    "8_ResNetBasicBlock-20261129-200545-aace",
)
SETTINGS, JOURNAL, COMMANDS = "run.json", "journal.jsonl", "commands.jsonl"
MEMBER = re.compile(rf"(?:{SETTINGS}|{JOURNAL}|{COMMANDS}|{labels.FILE}|blobs/[0-9a-f]{{64}})".replace(".", r"\."))
_HASH = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_REPORT = re.compile(rb'"report_blob":"[0-9a-f]{64}"')
_ASKED_BY = re.compile(rb'"(asked_by|changed_by)":"(?:[^"\\]|\\.)*"')
# An absolute path tells of its machine, but for those below system folders, which are everywhere alike.
_PATH = re.compile(
    rb"(?:(?<=-[IL])|(?<=\\[nrt])|(?<![\w.\-/)\]]))/(?!(?:usr|proc|sys|dev|lib|lib64|bin|sbin|etc)/)"
    rb"[A-Za-z_][\w.+@\-]*(?:/[\w.+@\-]+)+/?"
)
_SECRETS = {
    "a key": re.compile(
        rb"(?:\b|(?<=\\[nrt]))(?:(?:sk|pk|rk|nvapi|glpat)-[\w\-]{16,}|AKIA[0-9A-Z]{16}|AIza[\w\-]{30,}"
        rb"|(?:gh[pousr]_|github_pat_|gsk_|hf_|xox[abpr]-)[\w\-]{16,}|Bearer [\w.\-+/=]{16,}|eyJ[\w\-]{8,}\.[\w\-]{8,})"
    ),
    # Also where something stands before it, which a path to be cut must not have.
    "a path of its machine": re.compile(
        rb"/(?:root|home|work|workspace|tmp|opt|mnt|media|srv|var|data|scratch|Users|private)/[\w.]"
    ),
    # Not a product of matrices such as q@k.transpose(1, 2) or x@self.weight, nor a decorator on a new line of a text
    # in JSON: \n@triton.jit.
    "a mail address": re.compile(
        rb"(?:\b(?<!\\)|(?<=\\[nrt]))[\w.+\-]+@(?!self\b)(?:[\w\-]+\.)+[A-Za-z]{2,}\b(?![(\[]|\.\w)"
    ),
}  # fmt: skip
# Names that many machines share tell nothing, and would be found in any text.
_COMMON_NAMES = {"root", "user", "localhost", "ubuntu", "runner", "admin", "someone"}


@dataclass(frozen=True, slots=True)
class Example:
    """One archive: its run, what a person called it and noted about it, its bytes, and whether it is open here."""

    path: Path
    settings: RunSettings
    labels: Labels
    size: int
    is_open: bool

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.settings.run_id


def shipped_examples(folder: Path | None = None) -> list[Example]:
    """Every archive, in the order of their names.

    Raises:
        EngineError: one of them is damaged.
    """
    return [_example(path) for path in sorted((folder or SHIPPED).glob(f"*{ENDING}"))]


def _example(path: Path) -> Example:
    contents = members(path, (SETTINGS, labels.FILE))
    try:
        settings = settings_of(contents[SETTINGS])
    except (KeyError, ValueError) as error:
        raise EngineError(f"the example {path.name} is damaged: {error}") from error
    noted = labels.last(contents.get(labels.FILE, b""))
    return Example(
        path, settings, noted, path.stat().st_size, RunFolder(runs_folder() / settings.run_id).settings_file.exists()
    )


def settings_of(text: bytes) -> RunSettings:
    """The settings of an archive's run.

    Raises:
        ValueError: they are none.
    """
    settings: RunSettings = codec.from_plain(RunSettings, untrusted.json_value(text, SETTINGS, RUN_JSON))
    if not RUN_ID.fullmatch(settings.run_id):
        raise codec.DecodeError(f"{settings.run_id!r} is no id of a run")
    return settings


def members(path: Path, names: Sequence[str] = ()) -> dict[str, bytes]:
    """The files of an archive; those that are wanted stand first in it, so no more is read than they take.

    Raises:
        EngineError: it is damaged, or holds something that no run folder has.
    """
    contents: dict[str, bytes] = {}
    try:
        for name, content in untrusted.archive_members(path, ARCHIVE):
            if names and (name not in names or len(contents) == len(names)):
                break
            if not MEMBER.fullmatch(name) or name in contents:
                raise EngineError(f"the example {path.name} is refused: it holds {name!r}")
            contents[name] = content
    except (OSError, UntrustedError) as error:
        raise EngineError(f"the example {path.name} cannot be read: {error}") from error
    return contents


def example_files(run_id: str) -> dict[str, bytes]:
    """The files of one shipped example by name, as its run folder has them; nothing is opened.

    Raises:
        EngineError: there is no such example, or it is damaged.
    """
    return members(SHIPPED / f"{run_id}{ENDING}")


def record_of(contents: Mapping[str, bytes]) -> Record:
    """The record of a run from its files, as `example_files` gives them.

    Raises:
        codec.DecodeError: the settings are none.
        UntrustedError: they are no JSON.
    """
    settings = codec.from_plain(RunSettings, untrusted.json_value(contents[SETTINGS], SETTINGS))
    return Record.of(settings, entries_of(contents))


def entries_of(contents: Mapping[str, bytes]) -> list[journal.Entry]:
    """What its journal says, line by line, from the same files."""
    reader = journal.Reader()
    return [entry for line in contents[JOURNAL].split(b"\n") if (entry := reader.take(line)[0])]


def open_examples(run_ids: Sequence[str] = (), folder: Path | None = None) -> list[RunFolder]:
    """Put examples beside the runs that are here, all of them where none is named; those that are there stay as they
    are, and one that was deleted comes back from the trash. A suite of examples that are all open is made too.

    Raises:
        EngineError: there is no such example, one is damaged, or this server only shows runs.
        OSError: the disk is full or may not be written.
    """
    read_only.guard(EngineError, "open examples")
    by_id = {example.run_id: example for example in shipped_examples(folder)}
    if unknown := [name for name in run_ids if name not in by_id]:
        raise EngineError(f"no example {', '.join(unknown)}: `python -m engine examples list` shows all")
    runs = [_open(by_id[name]) for name in run_ids or by_id]
    example_suites.lay_out(folder or SHIPPED)
    return runs


FIRST = "first"


def open_first_example() -> None:
    """Open the example that a first visitor is to see: one with the tag `first`, else the first of all, if any.

    Raises:
        EngineError: it is damaged.
        OSError: the disk is full or may not be written.
    """
    examples = sorted(shipped_examples(), key=lambda example: FIRST not in example.labels.tags)
    for example in examples[:1]:
        _open(example)


def _open(example: Example) -> RunFolder:
    return opened_before(example.run_id) or lay_out(example.run_id, members(example.path), example.path.name)


def opened_before(run_id: str) -> RunFolder | None:
    """The run where it is here, or was deleted, which brings it back; None where it is neither.

    Raises:
        EngineError: it cannot be brought back.
    """
    run = RunFolder(runs_folder() / run_id)
    if run.path.exists():
        return run
    if not (trash.trash_folder() / run_id).is_dir():
        return None
    try:
        return trash.restore(run_id)
    except TrashError as error:
        raise EngineError(str(error)) from error


def lay_out(run_id: str, contents: Mapping[str, bytes], archive: str) -> RunFolder:
    """Make the folder of a run from its files; `archive` is what an error calls where they are from.

    Raises:
        EngineError: a text is not what its name says.
        OSError: the disk is full or may not be written.
    """
    for name, text in contents.items():
        if name.startswith("blobs/") and hashlib.sha256(text).hexdigest() != name.removeprefix("blobs/"):
            raise EngineError(f"the example {archive} is damaged: {name} is not what its name says")
    run = RunFolder(runs_folder() / run_id)
    # Whole or not at all: whoever follows the runs must not find half of one among them.
    beside = home() / f".opening-{secrets.token_hex(4)}"
    try:
        runs_folder().mkdir(parents=True, exist_ok=True)
        (beside / "blobs").mkdir(parents=True)
        for name, text in contents.items():
            (beside / name).write_bytes(text)
        beside.rename(run.path)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return run


def remove_examples() -> tuple[list[str], list[str]]:
    """Move every example that is open here to the trash, and replays of them, and delete suites and networks of them;
    returns the runs' ids, and for each that cannot be moved why.

    Raises:
        EngineError: this server only shows runs.
    """
    read_only.guard(EngineError, "remove examples")
    example_suites.remove()
    gone, refused = [], []
    for network in networks.all_networks():
        with contextlib.suppress(networks.NetworkError):  # one that is damaged was never an example's
            if (found := networks.read_network(network)) is not None and found.is_example:
                networks.delete(network)
    for run in list(all_runs()):
        try:
            if run.read_settings().is_example:
                gone.append(trash.delete(run.run_id).run_id)
        except (codec.DecodeError, UnicodeDecodeError):
            continue
        except (TrashError, OSError, locks.AlreadyRunningError) as error:
            refused.append(str(error))
    return gone, refused


def refuse(run: RunFolder) -> None:
    """Keep an engine from an example: it was made elsewhere, and stays as it was.

    Raises:
        EngineError: it is one.
    """
    settings = run.read_settings()
    if settings.is_example and settings.replay_of is None:
        raise EngineError(f"run {run.run_id} is an example, made on another machine: fork one of its kernels instead")


def pack(run: RunFolder, folder: Path | None = None) -> Path:
    """Write a run that has ended as an archive and return its path; name, tags and note of the run go with it.

    Raises:
        EngineError: the run is not over, is damaged or no run of its own, the archive would be too large, or it would
            hold something that tells of a machine or a person.
    """
    packed = packed_files(run)
    see_that_nothing_is_private(packed)
    archive = archive_of(packed, run.read_settings().created_at)
    if len(archive) > LARGEST_BYTES:
        raise EngineError(
            f"{run.run_id} makes an archive of {len(archive):,} bytes: at most {LARGEST_BYTES:,} are kept"
        )
    target = (folder or SHIPPED) / f"{run.run_id}{ENDING}"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(archive)
    return target


def packed_files(run: RunFolder) -> dict[str, bytes]:
    """The files of a run that has ended, by name, without what only its machine can use.

    Raises:
        EngineError: the run is not over, is damaged or no run of its own.
    """
    settings = _packable(run)
    texts = {path.name: path.read_bytes() for path in run.blobs.iterdir() if not path.name.startswith(".")}
    events = _REPORT.sub(b'"report_blob":null', run.journal_file.read_bytes())
    commands = run.commands_file.read_bytes() if run.commands_file.exists() else b""
    named_blobs = set(_HASH.findall(events + commands + json.dumps(codec.to_plain(settings)).encode()))
    renamed, kept = {}, {}
    for name, text in texts.items():
        if name.encode() in named_blobs:
            short = without_paths(text)
            renamed[name.encode()] = new = hashlib.sha256(short).hexdigest().encode()
            kept[f"blobs/{new.decode()}"] = short
    plain = codec.to_plain(settings) | {"is_example": True, "is_demo": False}
    files = {
        SETTINGS: json.dumps(plain, indent=1, ensure_ascii=False).encode(),
        labels.FILE: codec.dumps(labels.read(run)).encode() + b"\n",
        JOURNAL: events,
        COMMANDS: commands,
    }
    anonymous = {
        name: _HASH.sub(lambda hit: renamed.get(hit[0], hit[0]), _anonymous(text)) for name, text in files.items()
    }
    return {name: text for name, text in {**anonymous, **kept}.items() if text.strip()}


def _packable(run: RunFolder) -> RunSettings:
    settings = run.read_settings()
    if settings.replay_of is not None:
        raise EngineError(f"{run.run_id} is a replay: pack {settings.replay_of} instead")
    if (examination := damage.examine(run, None)).is_damaged:
        raise EngineError(f"run {run.run_id} is not whole: {damage.title(examination)}")
    if why := why_not_over(run):
        raise EngineError(why)
    return settings


def why_not_over(run: RunFolder) -> str:
    """Why a run cannot be packed yet, and what to do; empty where it can."""
    if liveness.is_held(run):
        return f"run {run.run_id} is still running: pack it when it has ended"
    last = None
    for entry in journal.read(run.journal_file):
        last = entry.event
    if not isinstance(last, ev.RunEnded) or (last.state is not RunState.FINISHED and last.reason.startswith(LEFT)):
        return f"run {run.run_id} is not over: finish or stop it first"
    return ""


def without_paths(text: bytes) -> bytes:
    """A text whose paths of this machine are cut to their last part."""
    return _PATH.sub(lambda hit: b".../" + hit[0].rstrip(b"/").rsplit(b"/", 1)[1], text)


def _anonymous(text: bytes) -> bytes:
    return _ASKED_BY.sub(rb'"\1":""', without_paths(text))


def see_that_nothing_is_private(files: Mapping[str, bytes]) -> None:
    """See that no file of an archive holds a key, a path, a host's or a user's name.

    Raises:
        EngineError: one does; the message says which and what.
    """
    names = {_user(), socket.gethostname()} - _COMMON_NAMES
    own_names = {
        f"the name {name}": re.compile(rb"\b" + re.escape(name.encode()) + rb"\b") for name in names if len(name) > 3
    }
    for file, text in files.items():
        for what, pattern in {**_SECRETS, **own_names}.items():
            if hit := pattern.search(text):
                around = text[max(0, hit.start() - 30) : hit.end() + 30].decode(errors="replace")
                raise EngineError(f"{file} holds {what}: {around!r}. It cannot be packed")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in a container
        return ""


def archive_of(files: Mapping[str, bytes], at: float) -> bytes:
    """An archive of these files: the same bytes for the same files, wherever it is made."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:xz", format=tarfile.USTAR_FORMAT, preset=9) as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.mode = len(text), int(at), 0o644
            archive.addfile(member, io.BytesIO(text))
    return out.getvalue()


def plain(example: Example) -> dict[str, Any]:
    """For JSON: what the list says of an example."""
    return {
        "run": example.run_id, "task": example.settings.task_name, "name": example.labels.name,
        "note": example.labels.note, "strategy": example.settings.strategy, "language": example.settings.language,
        "bytes": example.size, "is_open": example.is_open,
    }  # fmt: skip
