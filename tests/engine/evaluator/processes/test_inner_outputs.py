"""Networks of whose answer rounding leaves nothing are compared module by module, in checks and in timings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from engine.errors import BaselineUnavailable, TaskError
from engine.evaluator import tasks
from engine.evaluator.checks.arguments import Arguments
from engine.evaluator.checks.inner_outputs import WithInnerOutputs, comparable
from engine.evaluator.tasks import Task
from engine.evaluator.toolchains.cpu import CpuToolchain
from storage.results.evaluation_results import CheckResult, TimingResult
from storage.results.policy import Policy, StateDict
from storage.results.vocabulary import Verdict
from tests.engine.evaluator.processes.references import kernel, reference

DEPTH = 40
INIT = f"""self.layers = nn.ModuleList()
for _ in range({DEPTH}):
    self.layers.append(nn.Sequential(nn.Linear(96, 96), nn.BatchNorm1d(96), nn.ReLU()))
self.head = nn.Linear(96, 31)"""
FORWARD = "for layer in self.layers:\n    x = layer(x)\nreturn self.head(x)"
# The same sums in another order.
OTHERWISE = f"""class Block(nn.Sequential):
    def forward(self, x):
        x = x[:, :50] @ self[0].weight[:, :50].T + x[:, 50:] @ self[0].weight[:, 50:].T + self[0].bias
        return torch.relu(self[1](x))
self.layers = nn.ModuleList()
for _ in range({DEPTH}):
    self.layers.append(Block(nn.Linear(96, 96), nn.BatchNorm1d(96)))
self.head = nn.Linear(96, 31)"""


def _task(folder: Path, depth: int = 2) -> Task:
    given = reference(folder, FORWARD, init=INIT, inputs="torch.randn(3, 96)")
    return replace(given, policy=replace(given.policy, compare_modules=depth))


def test_the_comparison_is_offered_at_the_depth_that_decides(cpu: CpuToolchain, tmp_path: Path) -> None:
    assert "comparison module by module (--compare-modules 2)" in cpu.examine(_task(tmp_path, 0)).refusal
    found = cpu.examine(_task(tmp_path))
    assert found.is_decided
    assert [f"layers.{number}" for number in range(DEPTH)] == list(found.inner)
    assert found.allowed is not None
    assert found.allowed < 1e-3


def test_a_network_that_rounds_otherwise_passes_and_is_timed(cpu: CpuToolchain, tmp_path: Path) -> None:
    given, source = _task(tmp_path), kernel(FORWARD, init=OTHERWISE)
    checked = cpu.check(given, source)
    assert checked.verdict is Verdict.PASSED, checked.message
    assert checked.max_error is not None
    assert checked.max_error < 1e-3
    timed = cpu.time(given, source)
    assert isinstance(timed, TimingResult), timed.message


@pytest.mark.parametrize(
    ("init", "forward", "says"),
    [
        (INIT, "self.layers[7][1].eps = 1e-2\n" + FORWARD, "The output of module 'layers.7'"),
        (INIT, FORWARD.replace("self.head(x)", "self.head(x) * 0"), "The output: 93 of 93"),
        (INIT, f"{FORWARD.replace('return ', 'x = ')}\nself.layers[0](x[:, :1].expand(-1, 96))\nreturn x",
         "'layers.0' of ModelNew was called 2 times"),
        (INIT.replace("self.layers", "self.blocks"), FORWARD.replace("self.layers", "self.blocks"),
         "ModelNew has no module layers.0, layers.1"),
    ],
)  # fmt: skip
def test_what_is_wrong_inside_is_found_by_the_modules_name(
    cpu: CpuToolchain, tmp_path: Path, init: str, forward: str, says: str
) -> None:
    given = _task(tmp_path)
    given = replace(given, policy=replace(given.policy, state_dict=StateDict.ANY))
    failed = cpu.check(given, kernel(forward, init=init))
    assert failed.verdict is not Verdict.PASSED
    assert says in failed.message


def test_timed_calls_are_compared_inside_as_well(cpu: CpuToolchain, tmp_path: Path) -> None:
    failed = cpu.time(_task(tmp_path), kernel("self.layers[7][1].eps = 1e-2\n" + FORWARD, init=INIT))
    assert isinstance(failed, CheckResult)
    assert "The output of module 'layers.7'" in failed.message


def test_a_compiled_network_is_no_baseline_of_it(
    cpu: CpuToolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TILEWRIGHT_COMPILED_BASELINE")
    with pytest.raises(BaselineUnavailable, match="modules are compared one by one"):
        cpu.baseline(_task(tmp_path))


class _Parts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.kept = nn.Linear(8, 8)
        self.changed = nn.Linear(8, 8)
        self.inplace = nn.ReLU(inplace=True)
        self.nothing = nn.Identity()
        self.twice = nn.Linear(8, 8)
        self.pair = nn.LSTM(8, 8)
        self.never = nn.Linear(8, 8)
        self.block = nn.Sequential(nn.Linear(8, 8), nn.Tanh())
        self.last = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.inplace(self.changed(self.kept(x)))
        x = self.twice(self.twice(self.nothing(x)))
        x, _ = self.pair(x)
        return self.last(self.block(x))  # type: ignore[no-any-return]


def test_modules_are_compared_that_return_one_tensor_once_which_nothing_changes() -> None:
    with torch.no_grad():
        assert comparable(_Parts(), Arguments([torch.randn(4, 8)]), 1) == ["kept", "inplace", "block"]
        assert comparable(_Parts(), Arguments([torch.randn(4, 8)]), 2) == ["kept", "inplace", "block.0", "block"]


def test_what_follows_a_module_goes_on_from_a_forced_output() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh())
    given, forced = torch.randn(4, 8), torch.randn(4, 8)
    result, inner = WithInnerOutputs(model, model, ["0"], [forced])(given)
    assert torch.equal(result, forced.tanh())
    assert torch.equal(inner, model[0](given))


@pytest.mark.parametrize(("others", "says"), [({"backward": True}, "backward"), ({"precision": "half"}, "half")])
def test_modules_are_not_compared_where_they_cannot_be(others: dict[str, object], says: str) -> None:
    with pytest.raises(TaskError, match=f"with .*{says}: leave out one"):
        tasks.policy_with(Policy(), compare_modules=1, **others)  # type: ignore[arg-type]
    with pytest.raises(TaskError, match="from 0 to 8"):
        tasks.policy_with(Policy(), compare_modules=9)
