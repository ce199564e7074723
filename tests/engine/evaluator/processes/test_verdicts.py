"""Candidates that are wrong, die, hang or cheat, each with the verdict and the words it deserves."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from engine.evaluator import tasks
from engine.evaluator.machine import processes
from engine.evaluator.machine.worker_limits import Times
from engine.evaluator.tasks import Task
from engine.evaluator.toolchains.cpu import CpuToolchain
from engine.evaluator.toolchains.evaluating import evaluate
from storage.results.evaluation_results import CheckResult, TimingResult
from storage.results.vocabulary import Verdict
from tests.engine.evaluator.toolchains import kernels
from tests.engine.evaluator.toolchains.fixtures import free
from tests.engine.evaluator.toolchains.kernels import LOOP, forward, swish

WRONG_AT_777 = "  for (int i = 0; i < size(X); ++i) Y(i) = i % 4096 == 777 ? 0.f : X(i) / (1.0f + std::exp(-X(i)));\n"


@pytest.mark.parametrize(
    ("source", "verdict", "said"),
    [
        (swish(loop=LOOP.replace("X(i) /", "i == 5 ? NAN : X(i) /")), Verdict.INCORRECT, "nan"),
        (swish(loop=LOOP.replace("size(X);", "size(X) - 1;")), Verdict.INCORRECT, "index (15, 4095)"),
        (swish(loop=LOOP + "  X(0) = 3.f;\n"), Verdict.INCORRECT, "changed its input"),
        (forward("return x"), Verdict.INCORRECT, "shares memory with an input"),
        (forward("y = ext.swish(x)", "x.set_(y)", "return y"), Verdict.INCORRECT, "shares memory with an input"),
        (forward("return ext.swish(x).view(-1)"), Verdict.INCORRECT, "shape (65536,)"),
        (forward("return ext.swish(x).double()"), Verdict.INCORRECT, "dtype float64"),
        (forward("return (ext.swish(x),)"), Verdict.INCORRECT, "tuple"),
        (forward("return torch.nn.Parameter(ext.swish(x))"), Verdict.INCORRECT, "Parameter"),
        (
            forward(
                "self.y = getattr(self, 'y', None)",
                "self.y = ext.swish(x) if self.y is None else self.y",
                "return self.y",
            ),
            Verdict.INCORRECT,
            "earlier call",
        ),
        (forward("return ext.swish(x.half().float())"), Verdict.INCORRECT, "allowed"),
        (swish(loop="  volatile float* p = nullptr; *p = 1.f;\n"), Verdict.RUNTIME_ERROR, "SIGSEGV"),
        (swish(loop='  throw std::runtime_error("tile does not divide");\n'), Verdict.RUNTIME_ERROR, "tile does not"),
        (forward("import os; os._exit(0)"), Verdict.RUNTIME_ERROR, "exited with status 0"),
        (forward("import sys; sys.exit(0)"), Verdict.RUNTIME_ERROR, "sys.exit"),
        (forward("return torch.empty(1 << 42)"), Verdict.OUT_OF_MEMORY, "out of memory"),
    ],
)
def test_a_bad_candidate_gets_its_verdict(
    cpu: CpuToolchain, small_swish: Task, source: str, verdict: Verdict, said: str
) -> None:
    result = cpu.check(small_swish, source)
    assert result.verdict is verdict, result.message
    assert said in result.message


def test_answers_written_into_the_judges_pipe_are_refused(cpu: CpuToolchain, small_swish: Task) -> None:
    source = forward(
        "import os",
        'line = b\'{"loaded": true, "ns": 1}\\n\'',
        "pipes = [f for f in range(3, 20) if os.path.exists(f'/proc/self/fd/{f}')]",
        "for f in pipes:",
        "    try: os.write(f, line)",
        "    except OSError: pass",
        "return ext.swish(x)",
    )
    result = cpu.check(small_swish, source)
    assert result.verdict is Verdict.REFUSED, result.message
    assert "without being asked" in result.message


def test_wrong_elements_are_counted_located_and_drawn(cpu: CpuToolchain, small_swish: Task) -> None:
    result = cpu.check(small_swish, swish(loop=WRONG_AT_777))
    found = result.mismatch
    assert found is not None
    assert found.index == (0, 777)
    assert (found.wrong_count, found.total_count, found.shape) == (16, 65536, (16, 4096))
    assert found.actual == 0.0
    assert found.expected > 0.0
    assert [len(row) for row in found.heat] == [16] * 16
    assert all(row[3] > 0 for row in found.heat)
    assert sum(map(sum, found.heat)) == pytest.approx(sum(row[3] for row in found.heat))
    assert result.max_error is not None
    assert result.tolerance is not None
    assert result.max_error > result.tolerance


def test_an_endless_loop_is_ended_in_time_with_all_its_children(small_swish: Task, cpu_home: None) -> None:
    source = forward(
        "import os, signal, time",
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
        "if os.fork() == 0:",
        "    os.setsid()",
        "    os.fork()",
        "    while True: time.sleep(1)",
        "while True: pass",
    )
    with CpuToolchain(times=Times(call_s=2.0)) as toolchain:
        started = time.monotonic()
        result = toolchain.check(small_swish, source)
        assert result.verdict is Verdict.TIMEOUT
        assert "2 s" in result.message
        assert time.monotonic() - started < 120
        assert processes.descendants(forkserver_of(toolchain)) == []
        assert toolchain.check(small_swish, kernels.SWISH).verdict is Verdict.PASSED


def forkserver_of(toolchain: CpuToolchain) -> int:
    process = toolchain._evaluator._process
    assert process is not None
    return process.pid


def test_a_kernel_that_only_knows_positive_inputs_fails_on_another_distribution(
    cpu: CpuToolchain, small_swish: Task
) -> None:
    result = cpu.check(free(small_swish), forward("return ext.swish(x.abs())"))
    assert result.verdict is Verdict.INCORRECT
    assert result.trials[0] == "own 1"
    assert result.mismatch is not None
    assert result.mismatch.trial == "wide"


def test_printing_is_bounded_and_does_no_harm(cpu: CpuToolchain, small_swish: Task) -> None:
    result = cpu.check(small_swish, forward("print('hello ' * 100000)", "return ext.swish(x)"))
    assert result.verdict is Verdict.PASSED, result.message
    assert result.evidence["printed"].startswith("hello")
    assert len(result.evidence["printed"]) <= 500


def test_a_result_remembered_between_timed_calls_is_found_out(cpu: CpuToolchain, small_swish: Task) -> None:
    source = forward(
        "self.n = getattr(self, 'n', 0) + 1",
        "if self.n == 12: self.kept = ext.swish(x)",
        "return ext.swish(x) if self.n <= 12 else self.kept.clone()",
    )
    result = cpu.time(small_swish, source)
    assert isinstance(result, CheckResult)
    assert result.verdict is Verdict.INCORRECT


def test_a_patched_clock_shows_in_the_evidence(cpu: CpuToolchain, small_swish: Task) -> None:
    source = forward(
        "import engine.evaluator.processes.model_caller as c", "c._clock = lambda: 1", "return ext.swish(x)"
    )
    result = cpu.time(small_swish, source)
    assert not isinstance(result, TimingResult) or "DISAGREE" in result.evidence["clock"]


def test_evaluate_answers_the_same_keys_for_good_and_bad_candidates(cpu: CpuToolchain, small_swish: Task) -> None:
    good = evaluate(cpu, small_swish, kernels.SWISH)
    bad = evaluate(cpu, small_swish, "nonsense(")
    assert good.keys() == bad.keys()
    assert good["verdict"] == "passed"
    assert good["speedup"] > 0
    assert good["speedup_interval"][0] <= good["speedup"] <= good["speedup_interval"][1]
    assert bad["verdict"] == "compile_error"
    assert "nonsense" in bad["message"]
    assert bad["speedup"] is None
    assert bad["latency_ms"] is None


def test_integer_outputs_must_be_exact(cpu: CpuToolchain, tmp_path: Path) -> None:
    path = tmp_path / "argmax.py"
    path.write_text(
        "import torch\n\n\nclass Model(torch.nn.Module):\n"
        "    def forward(self, x):\n        return torch.argmax(x, dim=1)\n\n\n"
        "def get_inputs():\n    return [torch.rand(64, 100)]\n\n\ndef get_init_inputs():\n    return []\n"
    )
    task = free(tasks.read(path).task())
    right = (
        "import torch\n\n\nclass ModelNew(torch.nn.Module):\n"
        "    def forward(self, x):\n        return x.max(dim=1).indices\n"
    )
    assert cpu.check(task, right).verdict is Verdict.PASSED
    off = right.replace(".indices", ".indices ^ 1")
    assert cpu.check(task, off).verdict is Verdict.INCORRECT
