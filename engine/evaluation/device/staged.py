"""A candidate laid out for a program that is no worker: profiler or sanitizer. Judges nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from engine import sandbox
from engine.evaluation.bench import Bench
from engine.profiling.device import command
from engine.sandbox import Done, Isolation

WARM_UP_CALLS = 3


@dataclass(frozen=True, slots=True)
class Staged:
    """A folder as `engine.profiling.device.target` wants it, and where the candidate's libraries are."""

    folder: Path
    libraries: Path

    @classmethod
    def of(cls, bench: Bench, folder: Path) -> Staged:
        """From a bench that has imported the candidate."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "candidate.py").write_text(bench.case.source)
        (folder / "task.py").write_text(bench.case.task_source)
        (folder / "builds.json").write_text(json.dumps(bench.answers))
        (folder / "request.json").write_text(json.dumps({"seed": bench.call_seed, "calls": WARM_UP_CALLS}))
        return cls(folder, bench.libraries)

    def run(self, words: list[str], limit_s: float, walls: Isolation) -> Done:
        """Run a program in the folder, behind walls."""
        readable = (*command.readable(words[0]), self.libraries)
        return sandbox.run(words, self.folder, limit_s, walls, readable)
