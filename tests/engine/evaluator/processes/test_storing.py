"""Where no process may read another's memory, the worker stores its outputs, and the check says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

from engine.evaluator import sandbox, tasks
from engine.evaluator.machine.worker_limits import Limits, Times
from engine.evaluator.tasks import Task
from engine.evaluator.toolchains.cpu import CpuToolchain, cache_folder
from storage import codec
from storage.results.check_records import CheckOutcome
from storage.results.evaluation_results import TimingResult
from tests.engine.evaluator.toolchains.fixtures import free

JUDGE = """
import json, sys
from engine.evaluator.processes import process
from engine.evaluator.machine import process_memory
from engine.evaluator.sandbox import Isolation
process_memory.is_permitted = lambda pid: False
print(json.dumps(process.answer(json.load(sys.stdin), Isolation())))
"""
EAGER = """
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)
"""


def test_outputs_stored_by_the_worker_are_compared_and_the_proof_is_absent(
    cpu: CpuToolchain, small_swish: Task, tmp_path: Path
) -> None:
    request = {
        "act": "time",
        "sent_at": time.monotonic(),
        "task_source": small_swish.source,
        "policy": codec.to_plain(free(small_swish).policy),
        "source": EAGER,
        "installation": asdict(cpu.installation),
        "cache": str(cache_folder()),
        "scratch": str(tmp_path),
        "times": asdict(Times(timing_s=1.0)),
        "limits": asdict(Limits()),
    }
    root = str(tasks.SHIPPED.parent)
    done = subprocess.run(
        [sys.executable, "-c", JUDGE],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, **sandbox.environment(2), "PYTHONPATH": root},
        check=True,
    )
    result: TimingResult = codec.from_plain(TimingResult, json.loads(done.stdout)["result"])
    later = next(check_record for check_record in result.proofs if check_record.check == "nothing finishes later")
    assert later.standing is CheckOutcome.ABSENT
    assert int(result.evidence["timed outputs checked"]) >= len(result.candidate_ms)
