"""Whether kernels can be judged on a task, found out before a run starts: a child process does what `tasks --lint`
does. Imports no torch and never waits."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from engine.errors import TaskError
from engine.evaluator.fitting import NICENESS, SETTLED_S
from engine.evaluator.tasks import Task, imported, shown
from storage import codec
from storage.results.examination import Examination, Standing, with_remedies
from storage.run.settings import RunSettings

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 600
ASKED_AGAIN_S = 0.2
NOT_EXAMINED, HIDDEN = "not examined", "cannot be shown"
EVALUATION_MODE = "--mode eval"
MODULE_BY_MODULE = re.compile(r"--compare-modules (\d+)\)")


@dataclass(frozen=True, slots=True)
class Examined:
    """What `tasks --lint` says of one task: `outcome` and `why` in its words."""

    outcome: str
    why: str = ""
    remedies: tuple[str, ...] = ()
    varied: Mapping[str, str] = field(default_factory=dict)
    stays: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    @property
    def is_decided(self) -> bool:
        """Whether a run may start."""
        return self.outcome == Standing.DECIDED

    @property
    def refusal(self) -> str:
        """Why no run can be started, as sentences; empty where one can, or where nobody knows."""
        if self.is_decided or self.outcome == NOT_EXAMINED:
            return ""
        if self.outcome in set(Standing):
            return Examination(Standing(self.outcome), self.why, self.remedies).refusal
        return with_remedies(self.why, self.remedies)

    @property
    def is_mended_by_evaluation_mode(self) -> bool:
        """Whether that option alone makes it decided."""
        return any(EVALUATION_MODE in remedy for remedy in self.remedies)

    @property
    def mending_depth(self) -> int:
        """How many names deep modules are compared where that alone makes it decided; else 0."""
        matches = [MODULE_BY_MODULE.search(remedy) for remedy in self.remedies]
        return next((int(match[1]) for match in matches if match), 0)


def see_that_it_can_be_shown(settings: RunSettings) -> None:
    """See before there is a run that its prompts can show what kernels are to replace. A task that imports nothing but
    PyTorch, or all of which is shown, is not examined for it; of one that cannot be examined here the run tells.

    Raises:
        TaskError: they cannot, and kernels may not import it either.
    """
    task = Task(settings.task_name, settings.task_source, settings.sizes, policy=settings.policy)
    allowed = {name.partition(".")[0] for name in task.policy.imports}
    installed = imported.contents(task.source).keys() - imported.modules(task.source).keys() - allowed
    if not installed and not any(module.left_out for module in shown.modules(task.source)):
        return
    found = _asked(codec.dumps(task), settings.toolchain, settings.device)
    if found.outcome == HIDDEN:
        raise TaskError(f"no run is started: {found.refusal}")


_found: dict[str, Examined] = {}
_first_asked: dict[str, float] = {}
_worker: list[threading.Thread] = []
_lock = threading.Lock()


def examined(task: Task, toolchain: str, device: str = "") -> Examined | None:
    """What is found of a task; None while it is being found out: ask again.

    A thread has one examined, one task at a time, and only what is still asked about after SETTLED_S.
    """
    asked = codec.dumps(task)
    modules = imported.contents(task.source) or ""
    name = hashlib.sha256(f"{toolchain}\n{device}\n{modules}\n{asked}".encode("utf-8", "surrogatepass")).hexdigest()
    with _lock:
        if name in _found:
            return _found[name]
        waited = time.monotonic() - _first_asked.setdefault(name, time.monotonic())
        if waited >= SETTLED_S and not any(thread.is_alive() for thread in _worker):
            _first_asked.clear()
            _worker[:] = [threading.Thread(target=_find, args=(name, asked, toolchain, device), daemon=True)]
            _worker[0].start()
    return None


def see_that_it_runs(task: Task, toolchain: str, device: str = "") -> None:
    """Wait until it is known what `examined` finds, and see that a run may start.

    Raises:
        TaskError: the reference fails when it is called, or no kernel can be judged on it.
    """
    while (found := examined(task, toolchain, device)) is None:
        time.sleep(ASKED_AGAIN_S)
    if found.refusal:
        raise TaskError(f"no run is started: {found.refusal}")


def _find(name: str, asked: str, toolchain: str, device: str) -> None:
    result = Examined(NOT_EXAMINED, "the examination broke off")
    try:
        result = _asked(asked, toolchain, device)
    finally:  # whatever went wrong, who asks must not be put off for ever
        _found[name] = result


def _asked(asked: str, toolchain: str, device: str) -> Examined:
    """The answer of a child: it runs the reference where an evaluator runs it, in a worker."""
    command = [sys.executable, "-m", "engine", "tasks", "-", "--lint", "--json", "--toolchain", toolchain]
    try:
        child = subprocess.Popen(
            [*command, *(["--device", device] if device else [])], cwd=ROOT, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
    except OSError as error:
        return Examined(NOT_EXAMINED, f"no process can be started: {error}")
    with suppress(OSError):  # it has ended already
        os.setpriority(os.PRIO_PROCESS, child.pid, NICENESS)
    try:
        output, errors = child.communicate(asked, LIMIT_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        return Examined(NOT_EXAMINED, f"it took longer than {LIMIT_S} s")
    try:
        (plain,) = json.loads(output)
        result: Examined = codec.from_plain(Examined, {name: plain[name] for name in Examined.__slots__})
    except (ValueError, TypeError, KeyError):
        last = errors.strip().rpartition("\n")[2].removeprefix("tilewright: ")
        return Examined(NOT_EXAMINED, last or f"its process ended with {child.returncode}")
    return result
