"""A second call on the same inputs: what an honest kernel, the reference and a result cache look like."""

from __future__ import annotations

import pytest

from engine import tasks
from engine.evaluation.clock import Call, Clock
from engine.evaluation.remembering import Recall, Twice
from engine.tasks import Task
from engine.toolchains.cpu import CpuToolchain
from storage.proof import Standing
from storage.records import CheckResult, TimingResult, Verdict
from tests.engine.toolchains.kernels import SWISH, forward

CLOCK = Clock(cost_ns=100_000, spread_ns=10_000)


def twice(first_ms: float, second_ms: float) -> list[Twice]:
    return [(Call(int((first_ms + more) * 1e6), 1), Call(int((second_ms + more) * 1e6), 1)) for more in (0.1, 0.3, 5.0)]


@pytest.mark.parametrize(
    ("candidate", "reference", "remembers"),
    [
        ((8.0, 7.5), (4.0, 3.9), False),
        ((8.0, 0.5), (4.0, 3.9), True),
        ((8.0, 2.0), (4.0, 1.1), False),
        ((0.01, 0.0), (4.0, 3.9), False),
        ((1.0, 0.1), (1.0, 8.0), True),
        ((8.0, 7.2), (4.0, 12.0), False),
    ],
)
def test_a_second_call_that_work_cannot_explain_is_a_memory(
    candidate: tuple[float, float], reference: tuple[float, float], remembers: bool
) -> None:
    assert Recall.of(CLOCK, twice(*candidate), twice(*reference), []).remembers is remembers


def test_load_that_only_the_first_calls_met_is_no_memory() -> None:
    probes = twice(2.0, 0.14), twice(2.0, 0.5)
    assert Recall.of(CLOCK, *probes, []).remembers
    timed = [Call(int((0.15 + more) * 1e6), 1) for more in (0.1, 1.0, 3.0)]
    assert not Recall.of(CLOCK, *probes, timed).remembers
    slow = [Call(int((1.8 + more) * 1e6), 1) for more in (0.1, 1.0)]
    assert Recall.of(CLOCK, *probes, slow).remembers


@pytest.mark.parametrize(
    "lines",
    [
        (
            "key = (x.data_ptr(), x._version, tuple(x.shape))",
            "if getattr(self, 'key', None) != key:",
            "    self.key, self.result = key, ext.swish(x)",
            "return self.result.clone()",
        ),
        (
            "key = float(x[0, 0]) + float(x[-1, -1])",
            "if getattr(self, 'key', None) != key:",
            "    self.key, self.result = key, ext.swish(x)",
            "return self.result.clone()",
        ),
    ],
)
def test_a_result_kept_under_any_key_is_refused(cpu: CpuToolchain, lines: tuple[str, ...]) -> None:
    # Long beside what the clock resolves on a busy machine: a shorter call may pass, at its true speed.
    swish = tasks.find("swish").task("cpu", {"batch_size": 256, "dim": 4096})
    result = cpu.time(swish, forward(*lines))
    assert isinstance(result, CheckResult)
    assert result.verdict is Verdict.REFUSED, result.message
    assert "remembers" in result.message


def test_an_honest_kernel_is_as_slow_the_second_time(cpu: CpuToolchain, small_swish: Task) -> None:
    timed = cpu.time(small_swish, SWISH)
    assert isinstance(timed, TimingResult), timed
    standing = {proof.check: proof.standing for proof in timed.proofs}
    assert standing["nothing remembered"] is not Standing.BROKEN
