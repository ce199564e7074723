"""Estimates what judging a task takes, in a sandbox: following a module runs it, and nobody has started a run yet.

Run as a program it reads tasks from standard input, each a line of JSON `[source, with backward]`, and prints for each
what `cost` returns, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from engine.evaluator import tasks
from engine.evaluator.checks.candidate_failures import WorkerEnded
from engine.evaluator.machine.worker_limits import GIB, Limits
from engine.evaluator.processes.channel import Channel
from engine.evaluator.processes.worker import Worker
from engine.evaluator.sandbox import Isolation, OwnFailure
from storage import locks

LIMIT_S = 60.0
MOST_TOLD = 2000
# A task of our own: the only one that is followed in this process itself.
SMALLEST = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs():
    return [torch.zeros(2)]
def get_init_inputs():
    return []
"""
NO_SANDBOX = "this machine offers no sandbox, so no module is run here before its run is started"
LIMITS = Limits(address_space=16 * GIB, tree_memory=4 * GIB, scratch=64 << 20, processor_s=2 * int(LIMIT_S))


def cost(source: str, backward: bool, isolation: Isolation, folder: Path) -> tuple[int, int] | str:
    """`engine.evaluator.checks.estimate.cost` of a task, in a worker of its own that works in `folder`.

    Must be called before this process uses OpenMP.
    """
    from engine.evaluator.checks import estimate  # a second to import, which a worker inherits

    def body(line: Channel) -> None:
        number = line.receive()["number"]
        line.send({"cost": estimate.cost(source, backward=backward), "number": number})

    worker = Worker.fork(body, LIMITS, folder / "estimate", isolation=isolation, readable=tasks.imported.files(source))
    try:
        reply = worker.ask({"ask": "cost"}, LIMIT_S)["cost"]
    except WorkerEnded as ended:
        return f"its process was ended: {ended.death.detail or 'it ended itself'}"
    finally:
        worker.end()
    # The module shares its process with what answers, so the answer may be the module's own.
    match reply:
        case [int(size), int(operations)] if 0 <= size <= estimate.OVERFLOWS and operations >= 0:
            return size, operations
    return str(reply)[:MOST_TOLD]


def main() -> None:
    """Answer until standard input ends. What a task prints itself is dropped, and it finds nothing to read."""
    from engine.evaluator.checks import estimate
    from engine.evaluator.sandbox.probe import probe

    isolation = probe()
    estimate.cost(SMALLEST)  # imports 800 modules of PyTorch's, two seconds that each worker would spend again
    with tempfile.TemporaryDirectory(prefix="tilewright.estimate.") as name:
        locks.hold_file(Path(name) / "lock")  # by which the next engine knows a folder whose process was killed
        for line in sys.stdin:
            source, backward = json.loads(line)
            try:
                result = cost(source, backward, isolation, Path(name)) if isolation.is_wall else NO_SANDBOX
            except OwnFailure as error:
                result = str(error)
            print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
    os._exit(0)
