"""Finished suites of the runs that come with Tilewright: each `tasks/examples/*.toml` lists runs. Starts nothing.

A file names `like` (the shipped suite whose tasks and paper's figures it takes over) and under `arms` the runs of each
arm, the first one that others are compared with. The suite is made from the runs once all of them are open here.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from engine.errors import EngineError
from engine.evaluator.tasks import SHIPPED as TASKS
from engine.suites import adopting, definition
from storage import untrusted
from storage.run.folder import RunFolder, runs_folder
from storage.suites import files
from storage.suites.records import Arm, CellLeft, CellState, Defined, Event
from storage.suites.standing import Suite, fold

SHIPPED = TASKS / "examples"


def lay_out(folder: Path = SHIPPED) -> None:
    """Write each suite whose runs are all open here; one that is there stays as it is.

    Raises:
        OSError: the disk is full or may not be written.
    """
    for path in sorted(folder.glob("*.toml")):
        plain, suite = untrusted.read_toml(path), files.folder_of(path.stem)
        arms = {arm: [RunFolder(runs_folder() / name) for name in names] for arm, names in plain["arms"].items()}
        is_open = all(run.settings_file.exists() for runs in arms.values() for run in runs)
        if suite.journal_file.exists() or not is_open:
            continue
        like = replace(definition.read(definition.find(plain["like"])), title=plain["title"], about=plain["about"])
        events = list[Event]()
        for arm, runs in arms.items():
            before = fold(files.Line(0.0, event) for event in events)
            events += map(_over, adopting.adopt(path.stem, runs, before, replace(like, is_example=True), arm))
        words = {arm.name: arm for arm in definition.read(definition.find(plain["like"])).arms}
        files.append(suite, *(_in_words(event, words) for event in events))


def _over(event: Event) -> Event:
    """Nobody goes on with such a run: its cell is finished, wherever a person has stopped it."""
    return replace(event, state=CellState.FINISHED) if isinstance(event, CellLeft) else event


def _in_words(event: Event, like: Mapping[str, Arm]) -> Event:
    """The definition with the words that its arms have in the suite that it is like."""
    if not isinstance(event, Defined):
        return event
    arms = (replace(arm, settings=like[arm.name].settings) if arm.name in like else arm for arm in event.arms)
    return replace(event, arms=tuple(arms))


def remove() -> None:
    """Delete those that are here; they are made anew with their runs."""
    for folder in files.all_suites():
        suite = fold(files.read(folder))
        if suite is not None and suite.defined.is_example:
            shutil.rmtree(folder.path)


def refuse(suite: Suite | None) -> None:
    """Keep a runner, and runs of a person's own, from a suite of examples.

    Raises:
        EngineError: it is one.
    """
    if suite is not None and suite.defined.is_example:
        raise EngineError(
            f"suite {suite.defined.name} is an example, made on another machine. `python -m engine suite adopt NAME "
            "RUN ...` makes one of your own of its runs"
        )
