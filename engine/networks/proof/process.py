"""The process of a proof: `python -m engine.networks.proof.process`, asked by a line of JSON on standard input.

It loads the user's network with the user's rights. Before it loads a kernel it gives them up: from then on it writes
only below its own scratch folder and reaches no network, where the system has Landlock and seccomp. Not covered: what
it may read, and threads that were started before. Events go to standard output, a line each.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.errors import NetworkCaptureError
from engine.evaluator.machine import lease, processes, quiet, turns
from engine.evaluator.sandbox import filters, linux
from engine.networks.applying import Times
from storage import codec
from storage.networks import files
from storage.networks.files import NetworkFolder
from storage.networks.records import Event, ProofEnded
from storage.networks.standing import standing

FAILED = 5
DEVICES = Path("/dev")


@dataclass(frozen=True, slots=True)
class Question:
    """What the process is asked. `scratch` is where it may write."""

    folder: str
    package: str
    scratch: str
    times: Times


def main() -> int:
    """Work off one proof; what it is about stands in the network's folder."""
    processes.die_with_parent(os.getppid())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # control-C is the command's, which ends this process
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the user's code prints is no event
    question: Question = codec.from_plain(Question, json.loads(sys.stdin.readline()))

    def say(event: Event) -> None:
        lines.write(f"{files.encoded(event)}\n")
        lines.flush()

    try:
        _prove(question, say)
    except NetworkCaptureError as error:
        say(ProofEnded(str(error)))
        return FAILED
    return 0


def _prove(question: Question, say: Callable[[Event], None]) -> None:
    from engine.networks import entries, place_times
    from engine.networks.proof import proving, ways

    folder = NetworkFolder(Path(question.folder))
    stands = standing(folder)
    network, proof = stands.network, stands.proof
    assert network is not None
    assert proof is not None
    device = "cpu" if network.device == "cpu" else "cuda"
    loaded = entries.load(
        network.entry, device=device, mode=network.mode, seed=network.seed,
        sizes=entries.Sizes(network.batch, network.tokens),
    )  # fmt: skip
    locks = place_times.device_locks(device)
    with lease.held_if_free(*locks):
        pass  # makes the files where there are none
    quiet.raise_priority()
    _give_up_rights(Path(question.scratch))
    is_gpu = any(place_times.is_on_gpu(loaded.module, workload) for workload in loaded.workloads)
    try:
        package = ways.imported(folder.package(proof.number), question.package) if question.package else None
    except ways.NoWay as error:
        say(ProofEnded(str(error)))
        sys.exit(FAILED)
    called = ways.Ways(
        loaded.module, package, is_training=network.mode == entries.TRAIN, is_gpu=is_gpu, remade=loaded.again
    )  # fmt: skip
    turn = functools.partial(turns.hold, *locks)
    proving.Prover(network, called, loaded.workloads, proof, say, turn, question.times).run()


def _give_up_rights(scratch: Path) -> None:
    """From here on read alone, but for scratch and devices; no sockets but local ones."""
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    if filters.landlock_version() > 0:
        filters.restrict_files([Path("/")], [scratch, DEVICES, Path("/proc/self")])
    filters.refuse_calls(has_local_sockets=True)


if __name__ == "__main__":
    sys.exit(main())
