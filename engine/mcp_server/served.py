"""Which tasks a server serves: those that come with Tilewright, and the files and folders that a person has named. A
reference runs as a trusted program, so an agent cannot bring its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from engine.errors import TaskError
from engine.evaluator import tasks
from engine.evaluator.tasks import Size, Task, TaskFile


class Served:
    """Tasks by name, on one toolchain. `places` are files, or folders with files."""

    def __init__(self, places: Sequence[str], toolchain: str) -> None:
        self.toolchain = toolchain
        self._named = {file.name: file for place in places for file in _at(place)}

    def files(self) -> Iterator[TaskFile]:
        """Those that were named first, then the shipped ones."""
        yield from self._named.values()
        yield from (file for file in tasks.shipped() if file.name not in self._named)

    def find(self, name: str) -> TaskFile:
        """A task by its name.

        Raises:
            TaskError: it is not served here.
        """
        if name in self._named:
            return self._named[name]
        is_name = "/" not in name and not name.endswith(".py")
        with suppress(TaskError):
            if is_name and (file := tasks.find(name)).is_shipped:
                return file
        raise TaskError(
            f"no task {name[:80]!r} is served here: list_tasks shows all. The person who started the server serves "
            "others with --task FILE"
        )

    def task(self, name: str, sizes: Mapping[str, Size] | None = None, language: str = "") -> Task:
        """A task at its sizes, some of which may be others.

        Raises:
            TaskError: it is not served, or has no such size.
        """
        return replace(self.find(name).task(self.toolchain, sizes), language=language)


def _at(place: str) -> Iterator[TaskFile]:
    if not Path(place).is_dir():
        yield tasks.find(place)
        return
    yield from (entry.task for entry in tasks.in_folder(Path(place)) if entry.task is not None)
