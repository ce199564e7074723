"""A reference is examined before a kernel is judged on it: what cannot be judged is said, with what mends it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import TaskError
from engine.evaluator.toolchains.cpu import CpuToolchain
from storage.results.examination import Standing
from storage.results.policy import Draws, Policy, Weights
from storage.results.vocabulary import Verdict
from tests.engine.evaluator.processes.references import kernel, reference

SEEDED = Policy(draws=Draws.SEEDED)
DEEP = """self.layers = nn.ModuleList()
for _ in range(60):
    self.layers.append(nn.Sequential(nn.Linear(96, 96), nn.BatchNorm1d(96), nn.ReLU()))
self.head = nn.Linear(96, 31)"""
THROUGH = "for layer in self.layers:\n    x = layer(x)\nreturn self.head(x)"


@pytest.mark.parametrize(
    ("forward", "init", "inputs", "says"),
    [
        ("return x + torch.randn_like(x)", "pass", "torch.randn(32, 48)", "draws random numbers"),
        ("return F.dropout(x, 0.5)", "pass", "torch.randn(32, 48)", "draws random numbers"),
        ("return x * random.random()", "pass", "torch.randn(32, 48)", "draws random numbers"),
        ("self.h = torch.tanh(x + self.h)\nreturn self.h", "self.h = torch.zeros(32, 48)", "torch.randn(32, 48)",
         "keeps state between calls"),
        ("self.n += 1\nreturn x * self.n", "self.n = 0", "torch.randn(32, 48)", "(`n`)"),
        ("self.b.mul_(0.5)\nreturn x * self.b", "self.register_buffer('b', torch.ones(48))", "torch.randn(32, 48)",
         "(`b`)"),
        ("return torch.zeros_like(x)", "pass", "torch.randn(32, 48)", "Nothing to do"),
        ("y = F.group_norm(x, 4)\nreturn y.mean(1)", "pass", "torch.randn(32, 48)", "the exact answer is zero"),
        ("return x.mean() * 0 + 2.5", "pass", "torch.randn(32, 48)", "Nothing to do"),
        ("return F.dropout(x, 0.5, self.training) + 0", "self.eval()", "torch.randn(32, 48)", "a copy of the input"),
        ("return torch.relu(x)", "pass", "torch.randn(0, 4)", "no elements"),
        ("return torch.relu(x)", "pass", "torch.full((4, 4), torch.nan)", "finite"),
        (THROUGH, DEEP, "torch.randn(3, 96)", "rounding alone moves the reference's answer"),
    ],
)  # fmt: skip
def test_what_cannot_be_judged_is_refused_with_the_cause(
    cpu: CpuToolchain, tmp_path: Path, forward: str, init: str, inputs: str, says: str
) -> None:
    given = reference(tmp_path, forward, init=init, inputs=inputs)
    found = cpu.examine(given)
    assert found.standing is not Standing.DECIDED
    assert says in found.refusal
    with pytest.raises(TaskError, match="cannot be judged|Nothing to do"):
        cpu.check(given, kernel(forward, init=init))


@pytest.mark.parametrize(
    ("forward", "inputs", "arguments", "says"),
    [
        ("return x[x > 0]", "torch.randn(32, 48)", "x", "the shape of the answer depends on the values"),
        ("return torch.sparse.mm(s, x)", "torch.eye(4).to_sparse(), torch.randn(4, 4)", "s, x", "a sparse tensor"),
        (
            "return x.view(torch.uint8) * 2",
            "torch.zeros(4, 4).byte().view(torch.float4_e2m1fn_x2)",
            "x",
            "float4_e2m1fn_x2",
        ),
        (
            "return x.byte().view(torch.float4_e2m1fn_x2)",
            "torch.rand(4, 4)",
            "x",
            "returns a tensor of torch.float4_e2m1fn_x2, whose numbers cannot be compared: return its bits as uint8",
        ),
        ("return x * len(o)", "torch.randn(4, 4), {3, 4}", "x, o", "a set"),
        ("return (x, {1})", "torch.randn(4, 4)", "x", "returns a set among its results"),
        ("import not_there\nreturn x", "torch.randn(4, 4)", "x", "install not_there"),
        ("return x", "torch.randn(4, 4, device='cuda')", "x", "leave the device out"),
    ],
)
def test_a_task_that_fails_is_told_with_its_line_and_a_remedy(
    cpu: CpuToolchain, tmp_path: Path, forward: str, inputs: str, arguments: str, says: str
) -> None:
    given = reference(tmp_path, forward, inputs=inputs, arguments=arguments)
    with pytest.raises(TaskError, match=says.replace("(", r"\(")):
        cpu.limit(given)


def test_state_of_4_bit_floats_is_refused_by_its_name(cpu: CpuToolchain, tmp_path: Path) -> None:
    held = "self.register_buffer('w', torch.zeros(4, 4).byte().view(torch.float4_e2m1fn_x2))"
    given = reference(tmp_path, "return x * self.w.view(torch.uint8)", init=held, inputs="torch.randn(4, 4)")
    with pytest.raises(TaskError, match=r"Model holds w of torch\.float4_e2m1fn_x2, .*: hold its bits as uint8"):
        cpu.limit(given)


def test_evaluation_mode_is_offered_where_it_mends_a_task_and_then_holds(cpu: CpuToolchain, tmp_path: Path) -> None:
    given = reference(tmp_path, "return self.d(x) * 2", init="self.d = nn.Dropout(0.5)")
    assert "evaluation mode (--mode eval)" in cpu.examine(given).refusal
    settled = replace(given, policy=replace(given.policy, mode="eval"))
    assert cpu.examine(settled).standing is Standing.DECIDED
    assert cpu.check(settled, kernel("return x * 2")).verdict is Verdict.PASSED
    in_training = kernel("assert not self.training\nreturn x * 2")
    assert cpu.check(settled, in_training).verdict is Verdict.PASSED


def test_numbers_that_are_drawn_from_a_given_seed_are_checked(cpu: CpuToolchain, tmp_path: Path) -> None:
    given = reference(tmp_path, "return x + torch.randn_like(x)", policy=SEEDED)
    assert cpu.check(given, kernel("return x + torch.randn_like(x)")).verdict is Verdict.PASSED
    assert cpu.check(given, kernel("return x * 1.0")).verdict is Verdict.INCORRECT


@pytest.mark.parametrize(
    ("forward", "right", "wrong"),
    [
        ("x.mul_(2)\nreturn x + 1", "return x * 2 + 1", "return x + 1"),
        ("x.relu_()\nx.add_(1)\nreturn x", "return torch.relu(x) + 1", "return torch.relu(x) + 2"),
        ("x[:, 0] = 0\nreturn x.sum(1)", "return x[:, 1:].sum(1)", "return x.sum(1)"),
    ],
)
def test_a_reference_that_changes_its_inputs_is_given_copies(
    cpu: CpuToolchain, tmp_path: Path, forward: str, right: str, wrong: str
) -> None:
    given = reference(tmp_path, forward)
    passed = cpu.check(given, kernel(right))
    assert passed.verdict is Verdict.PASSED, passed.message
    assert passed.tolerance is not None
    assert passed.tolerance < 1e-4
    assert cpu.check(given, kernel(wrong)).verdict is Verdict.INCORRECT
    assert "in place" in cpu.examine(given).remarks[0]


def test_an_examination_is_made_once_and_follows_the_policy(cpu: CpuToolchain, tmp_path: Path) -> None:
    given = reference(tmp_path, "return self.n(x)", init="self.n = nn.LayerNorm(48)")
    first = cpu.examine(given)
    assert cpu.examine(given) is first
    assert dict(first.varied) == {"n.weight": "constant", "n.bias": "constant"}
    fixed = cpu.examine(replace(given, policy=replace(given.policy, weights=Weights.FIXED)))
    assert set(fixed.stays) == {"n.weight", "n.bias"}
    assert not fixed.varied


def test_a_weight_without_which_nothing_is_left_to_compare_stays(cpu: CpuToolchain, tmp_path: Path) -> None:
    init = "self.w = nn.Parameter(torch.ones(48))\nself.e = nn.Parameter(torch.tensor(1.0))"
    given = reference(tmp_path, "return x * self.w / (self.e == 1).float()", init=init)
    found = cpu.examine(given)
    assert set(found.varied) == {"w"}
    assert "nothing to compare" in found.stays["e"]
