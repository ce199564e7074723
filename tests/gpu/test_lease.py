"""Two toolchain processes that name one GPU differently never hold it at the same time."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.evaluator.machine import devices

pytestmark = pytest.mark.gpu
# Each times a kernel and writes down when it had the device, by one clock for all processes.
PROCESS = """
import sys, time
from contextlib import contextmanager
from engine.evaluator import tasks
from engine.evaluator.machine import turns
from engine.evaluator.machine.worker_limits import Times
from engine.evaluator.toolchains.cuda import CudaToolchain
from storage.results.evaluation_results import TimingResult
from tests.gpu.faults import kernel

hold = turns.hold

@contextmanager
def told(*files, **how):
    with hold(*files, **how) as waited_s:
        began = time.monotonic_ns()
        yield waited_s
        ended = time.monotonic_ns()
    if any("gpu-" in file.name for file in files):
        print(began, ended, *files, flush=True)

turns.hold = told
task = tasks.find("swish").task("cuda", {"batch_size": 1024, "dim": 16384})
with CudaToolchain(times=Times(call_s=8.0, check_s=1.0, timing_s=1.0)) as toolchain:
    for _ in range(3):
        assert isinstance(toolchain.time(task, kernel("right")), TimingResult)
"""


def test_processes_that_name_one_gpu_differently_take_turns(tmp_path: Path) -> None:
    root, first = Path(__file__).resolve().parents[2], devices.first()
    ways = {"unset": None, "index": "0", "uuid": f"GPU-{first.uuid}", "prefix": f"GPU-{first.uuid[:8]}"}
    known = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    children = []
    for name, named in ways.items():
        own = known | {"TILEWRIGHT_HOME": str(tmp_path / name)}
        own |= {} if named is None else {"CUDA_VISIBLE_DEVICES": named}
        words = [sys.executable, "-c", PROCESS]
        children.append(
            subprocess.Popen(words, env=own, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )
    told = [child.communicate(timeout=500) for child in children]
    assert [child.returncode for child in children] == [0] * len(ways), [error[-2000:] for _, error in told]
    held = sorted(
        (int(began), int(ended), number, file)
        for number, (output, _) in enumerate(told)
        for began, ended, file in (line.split() for line in output.splitlines())
    )
    assert {number for _, _, number, _ in held} == set(range(len(ways)))
    assert len({file for *_, file in held}) == 1
    for (_, ended, *_), (began, *_) in itertools.pairwise(held):
        assert ended <= began, "two processes held the device at once"
    assert any(a != b for (*_, a, _), (*_, b, _) in itertools.pairwise(held))
