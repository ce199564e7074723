"""The commands of `suite` from a page: a runner is a process of its own session, so that it outlives tab and server.
Imports no torch."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from engine.errors import EngineError
from engine.supervisor import ROOT
from storage import files as disk
from storage import read_only
from storage.run import liveness
from storage.run.folder import RunFolder, runs_folder
from storage.run.steering import commands
from storage.run.steering.verbs import CommandKind
from storage.suites import files
from storage.suites.files import SuiteFolder
from storage.suites.records import StopAsked
from storage.suites.standing import fold

BEGINS_S, HOLDS_S = 300.0, 5.0
"""How long a runner may take to see that every cell can be run, and then to hold its lock."""


def start_shipped(suite: str, words: Sequence[str] = (), *, name: str = "", settings: str = "") -> SuiteFolder:
    """Start a shipped suite, or add to the one of its name what is new. `words` are those that it takes, `settings`
    further words of `engine run` for every cell.

    Raises:
        EngineError: the server is read-only, or the runner did not start; what it wrote is quoted.
    """
    return _launch(command_of(suite, words, name=name, settings=settings))


def command_of(suite: str, words: Sequence[str] = (), *, name: str = "", settings: str = "") -> list[str]:
    """The words of `engine suite` that start it."""
    given = [*([f"--name={name}"] if name else []), *([f"--settings={settings}"] if settings else [])]
    return ["run", suite, *words, *given]


def start_text(name: str, toml: str) -> SuiteFolder:
    """Start a suite that a page has made: its file is written where it stays.

    Raises:
        SuiteError: no suite can have this name.
        EngineError: a suite has that name here, else as of `start_shipped`.
        OSError: the disk is full or may not be written.
    """
    read_only.guard(EngineError, "run suites")
    folder = files.folder_of(name)
    if folder.journal_file.exists():
        raise EngineError(f"a suite {name} was started here before: choose another name")
    disk.make_folder(folder.path)
    disk.replace(folder.definition_file, toml)
    try:
        return _launch(["run", str(folder.definition_file), f"--name={name}"])
    except EngineError:
        if not folder.journal_file.exists():
            shutil.rmtree(folder.path, ignore_errors=True)
        raise


def resume(name: str) -> SuiteFolder:
    """Go on with a suite.

    Raises:
        SuiteError: there is none of this name.
        EngineError: as of `start_shipped`, or a runner is at work on it.
    """
    return _launch(["resume", files.find(name).name])


def _launch(words: Sequence[str]) -> SuiteFolder:
    """Start a runner through a launcher that says the suite's name once every cell was seen to be one that can be
    run."""
    read_only.guard(EngineError, "run suites")
    with tempfile.TemporaryFile() as said:
        try:
            launcher = subprocess.run(
                [sys.executable, "-m", "engine", "suite", *words, "--background"], cwd=ROOT,
                stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True, timeout=BEGINS_S,
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise EngineError(f"the suite has not begun within {BEGINS_S:.0f} s: start it from a terminal") from error
        said.seek(0)
        text = said.read().decode(errors="replace").strip()
    if launcher.returncode != 0:
        raise EngineError(f"the suite did not start: {text.removeprefix('tilewright: ')}")
    folder, deadline = files.folder_of(text.rpartition("\n")[2]), time.monotonic() + HOLDS_S
    while not folder.has_runner and time.monotonic() < deadline:
        time.sleep(0.05)
    return folder


def stop(name: str) -> int | None:
    """Ask a suite's runner to end, which asks its engines; those that have no runner any more are asked themselves.
    Returns how many those were, None where there is a runner.

    Raises:
        SuiteError: there is none of this name.
        EngineError: the server is read-only.
    """
    read_only.guard(EngineError, "stop suites")
    folder = files.find(name)
    files.append(folder, StopAsked())
    return None if folder.has_runner else sum(map(_stop_engine, _runs_of(folder)))


def _runs_of(folder: SuiteFolder) -> list[RunFolder]:
    suite = fold(files.read(folder))
    planned = suite.planned if suite else []
    return [RunFolder(runs_folder() / standing.run_id) for standing in planned if standing.run_id]


def _stop_engine(run: RunFolder) -> bool:
    """Whether there was one."""
    if not liveness.is_held(run):
        return False
    commands.send(run.commands_file, CommandKind.STOP)
    return True
