"""Work of an evaluator in processes of its own, one or several beside each other. Knows pipes, not what the work is."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from engine.evaluator.machine import processes
from engine.evaluator.processes.task_facts import UnusableTask
from engine.evaluator.sandbox import OwnFailure
from storage import files


def run_apart(work: Callable[[], Any]) -> Any:
    """What `work` returns, as plain JSON.

    Raises:
        UnusableTask, OwnFailure: as `work` raised them; the latter also when its process died.
    """
    return run_beside([work])[0]


def run_beside(works: Sequence[Callable[[], Any]]) -> list[Any]:
    """What each of `works` returns, as plain JSON, all at the same time; raises as `run_apart`."""
    begun = list[tuple[int, int]]()
    parent = os.getpid()
    for work in works:
        read_from, write_to = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read_from)
            _be_child(work, write_to, parent)
        os.close(write_to)
        begun.append((pid, read_from))
    return [_returned(pid, read_from) for pid, read_from in begun]


def _returned(pid: int, read_from: int) -> Any:
    with os.fdopen(read_from, "rb") as file:
        text = file.read()
    os.waitpid(pid, 0)
    if not text:
        raise OwnFailure("a part of the evaluator was killed")
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
    except OSError as error:
        answer = {"own": files.explained(error)}
    except BaseException:  # noqa: BLE001 - the only other way out would be up into the evaluator's own frames
        answer = {"own": f"the evaluator broke:\n{traceback.format_exc()}"}
    processes.end_descendants()
    with os.fdopen(write_to, "wb") as file:
        file.write(json.dumps(answer).encode())
    os._exit(0)
