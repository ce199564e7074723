"""Where a run's files are. Knows names and paths, not what the files say (run.json apart)."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storage import codec, files, untrusted
from storage.home import home
from storage.run.settings import RunSettings
from storage.untrusted import Limits, UntrustedError

# Settings of every run before strategies had options of their own; the index keeps a column for each.
FORMER_OPTIONS = ("base_policy", "max_repairs", "max_regenerations", "expose_from_depth")
FIRST_RULES = {"rules": 1, "weights": "fixed", "state_dict": "any", "draws": "seeded"}
"""What the first judging rules come to, in a run's policy that names none."""
ORIGINAL = "original.jsonl"  # in a replay's folder: the journal of the run that it tells
_SETTINGS = Limits(most_bytes=16 << 20)  # the task's source and its prompts stand in it
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")
_NOT_IN_ID = re.compile(r"[^A-Za-z0-9._-]+")
# Runs were once named after whatever a task's file was called. None of these leads out of the folder of runs.
_ANY_ID = re.compile(r"(?!\.)[^/\x00-\x1f\x7f\ud800-\udfff]+")
MOST_NAME_BYTES = 255
NOWHERE = ".no run"


def runs_folder() -> Path:
    """The folder that holds one folder per run."""
    return home() / "runs"


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Paths inside one run's folder."""

    path: Path

    @property
    def run_id(self) -> str:
        """The folder's name is the run's id."""
        return self.path.name

    @property
    def settings_file(self) -> Path:
        """run.json, fixed at start."""
        return self.path / "run.json"

    @property
    def journal_file(self) -> Path:
        """Events, appended by the engine only."""
        return self.path / "journal.jsonl"

    @property
    def commands_file(self) -> Path:
        """Steering, appended by dashboard and command line only."""
        return self.path / "commands.jsonl"

    @property
    def stream_file(self) -> Path:
        """The reply being written right now; never indexed."""
        return self.path / "stream"

    @property
    def newest_stream(self) -> Path:
        """The reply that began last of several that are being written at once."""
        numbered = (path for path in self.path.glob("stream.*") if re.fullmatch(r"\.[0-9]{1,9}", path.suffix))
        others = sorted(numbered, key=lambda path: int(path.suffix[1:]))
        return next((path for path in reversed(others) if path.exists() and path.stat().st_size), self.stream_file)

    def stream_of(self, lane: int | None) -> Path:
        """One reply of several that are being written right now, in a run with a width."""
        return self.path / f"stream.{lane}" if lane else self.stream_file

    def arrived_of(self, lane: int | None) -> Path:
        """The last reply that came in whole, until the journal has it; one of each that comes in at once."""
        return self.path / (f"arrived.{lane}" if lane else "arrived")

    @property
    def prompt_file(self) -> Path:
        """The prompt that waits for a person, as text; written by `advance`, never indexed."""
        return self.path / "prompt.txt"

    @property
    def blobs(self) -> Path:
        """Content-addressed texts."""
        return self.path / "blobs"

    @property
    def lock_file(self) -> Path:
        """Held by the engine for life; a free lock means no engine."""
        return self.path / "engine.lock"

    @property
    def engine_file(self) -> Path:
        """Identity of the last engine process."""
        return self.path / "engine.json"

    @property
    def scratch(self) -> Path:
        """Work space of the toolchain; a killed engine leaves it behind, the next one clears it."""
        return self.path / "scratch"

    @property
    def log_file(self) -> Path:
        """What the engine printed, for people."""
        return self.path / "engine.log"

    def write_settings(self, settings: RunSettings) -> None:
        """Create the folder and its run.json, atomically and once.

        Raises:
            FileExistsError: the run exists already.
            OSError: the disk is full or may not be written.
        """
        files.make_folder(self.path)
        files.create(self.settings_file, json.dumps(codec.to_plain(settings), indent=1, ensure_ascii=False))

    def read_settings(self) -> RunSettings:
        """Read run.json.

        Raises:
            FileNotFoundError: no such run.
            codec.DecodeError: the file is damaged, no file, or may not be read.
        """
        try:
            plain = untrusted.read_json(self.settings_file, _SETTINGS)
            settings: RunSettings = codec.from_plain(RunSettings, _as_of_now(plain))
        except UntrustedError as error:
            where = "" if f"{error}".startswith(f"{self.settings_file} ") else f"{self.settings_file}: "
            raise codec.DecodeError(f"{where}{error}") from error
        return settings


def _as_of_now(plain: dict[str, Any]) -> dict[str, Any]:
    """Settings of a run from before they had a version, or strategies options of their own."""
    if not isinstance(plain, dict):
        return plain
    options = {name: plain[name] for name in FORMER_OPTIONS if name in plain}
    settings = {"version": 1, "strategy_options": options} | plain
    return settings | {"policy": policy_as_of_now(plain.get("policy", {}))}


def policy_as_of_now(plain: Any) -> Any:
    """A policy as it was written down: a run keeps the rules it began with, so that its kernels are judged alike."""
    return FIRST_RULES | plain if isinstance(plain, dict) and "rules" not in plain else plain


def claimed_id(folder: RunFolder) -> str:
    """The id of another run that a folder's run.json has, as it has in a copy and after a renaming; empty where the id
    is the folder's name or cannot be read."""
    try:
        plain = untrusted.read_json(folder.settings_file, _SETTINGS)
    except (FileNotFoundError, UntrustedError):
        return ""
    named = plain.get("run_id") if isinstance(plain, dict) else None
    return named if isinstance(named, str) and named != folder.run_id else ""


def why_ignored(folder: RunFolder, claimed: str) -> str:
    """Why a folder with the id of another run is no run, and what to do."""
    name, why = folder.run_id, f"its run.json has the id {claimed}"
    if RUN_ID.fullmatch(claimed) and has_settings(folder.path.parent / claimed):
        return (
            f"The folder {name} is ignored, because {why} and the folder of that name is that run: delete {name} or "
            f"move it out of {folder.path.parent}, or write {name} as run_id into its run.json to have both as runs."
        )
    return f"The folder {name} is ignored, because {why} and not {name}: rename the folder to {claimed}."


def id_for(name: str, rest: str) -> str:
    """An id for a run on a task of any name, which a shell takes without quotes."""
    plain = _NOT_IN_ID.sub("-", name)[:60].strip("._-") or "task"
    return f"{plain}-{rest}"


def run_at(run_id: str) -> RunFolder:
    """The folder that a run of this id has or would have; of a text that can be no id one that there never is."""
    is_id = _ANY_ID.fullmatch(run_id) and len(os.fsencode(run_id)) <= MOST_NAME_BYTES
    return RunFolder(runs_folder() / (run_id if is_id else NOWHERE))


def whole_id(given: str) -> str:
    """The id of the run that a person means: their word, or the only id that begins with it, as a list that was cut
    shows it. Their word where it is none of them.

    Raises:
        FileNotFoundError: several begin with it.
    """
    start = given.removesuffix("…")
    if not start or has_settings(run_at(given).path):
        return given
    matching = [folder.run_id for folder in _with_settings() if folder.run_id.startswith(start)]
    if len(matching) > 1:
        shown = ", ".join(matching[:3]) + (f" and {len(matching) - 3} more" if len(matching) > 3 else "")
        raise FileNotFoundError(f"{len(matching)} runs begin with {start!r}: {shown}: give more of it")
    return matching[0] if matching else given


def find_run(run_id: str) -> RunFolder:
    """Folder of a run by id; the id is checked so that no path can be smuggled in.

    Raises:
        FileNotFoundError: the id is malformed, no such run exists, or the folder has the id of another run.
    """
    folder = run_at(run_id)
    if not has_settings(folder.path):
        raise FileNotFoundError(f"no run {run_id!r} in {runs_folder()}: `python -m engine list` shows all runs")
    if claimed := claimed_id(folder):
        raise FileNotFoundError(why_ignored(folder, claimed))
    return folder


def all_runs() -> Iterator[RunFolder]:
    """Every run's folder, oldest name first."""
    yield from (folder for folder in _with_settings() if not claimed_id(folder))


def ignored() -> list[str]:
    """Why each folder that has the id of another run is no run, as sentences."""
    claims = ((folder, claimed_id(folder)) for folder in _with_settings())
    return [why_ignored(folder, claimed) for folder, claimed in claims if claimed]


def _with_settings() -> Iterator[RunFolder]:
    root = runs_folder()
    if not root.is_dir():
        return
    for path in sorted(root.iterdir()):
        if has_settings(path):
            yield RunFolder(path)


def has_settings(path: Path) -> bool:
    """Whether a folder is a run's: it has a run.json, or nobody may look whether it has."""
    try:
        (path / "run.json").lstat()  # a link that leads nowhere is damage too
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True
