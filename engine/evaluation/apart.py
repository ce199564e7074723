"""Runs one piece of a judge's work in a forked process of its own, and brings its result back. Knows no candidate."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable
from typing import Any

from engine.evaluation.reference import UnusableTask
from engine.machine import processes
from engine.sandbox import OwnFailure


def run(work: Callable[[], Any]) -> Any:
    """What `work` returns, as plain JSON.

    Raises:
        UnusableTask, OwnFailure: as `work` raised them; the latter also when its process died.
    """
    read_from, write_to = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(read_from)
        _be_child(work, write_to, parent)
    os.close(write_to)
    with os.fdopen(read_from, "rb") as file:
        text = file.read()
    os.waitpid(pid, 0)
    if not text:
        raise OwnFailure("a part of the judge was killed")
    answer = json.loads(text)
    if "task" in answer:
        raise UnusableTask(answer["task"])
    if "own" in answer:
        raise OwnFailure(answer["own"])
    return answer["result"]


def _be_child(work: Callable[[], Any], write_to: int, parent: int) -> None:
    """Never returns: a forked child must not run its parent's code or exit handlers."""
    try:
        processes.die_with_parent(parent)
        processes.adopt_orphans()
        answer = {"result": work()}
    except UnusableTask as error:
        answer = {"task": str(error)}
    except BaseException:  # noqa: BLE001 - the only other way out would be up into the judge's own frames
        answer = {"own": f"the judge broke:\n{traceback.format_exc()}"}
    processes.end_descendants()
    with os.fdopen(write_to, "wb") as file:
        file.write(json.dumps(answer).encode())
    os._exit(0)
