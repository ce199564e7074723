"""What a kernel's module owes beyond its answer: the reference's state, whatever its values, and what a call leaves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.evaluator.checks import findings
from engine.evaluator.toolchains.cpu import CpuToolchain
from storage.results.check_records import CheckOutcome
from storage.results.evaluation_results import CheckResult, TimingResult
from storage.results.policy import Policy, StateDict
from storage.results.vocabulary import Verdict
from tests.engine.evaluator.processes.references import kernel, reference
from tests.engine.evaluator.processes.test_checking import check_of

NORM = "self.n = nn.LayerNorm(48)"
BATCH = "self.n = nn.BatchNorm1d(48)"
LINEAR = "self.l = nn.Linear(48, 24)"
UPDATE = """self.n.running_mean.lerp_(x.mean(0), 0.1)
self.n.running_var.lerp_(x.var(0), 0.1)
self.n.num_batches_tracked += 1"""
BY_HAND = "return (x - x.mean(0)) / (x.var(0, unbiased=False) + 1e-5).sqrt() * self.n.weight + self.n.bias"


@pytest.mark.parametrize(
    ("init", "right", "wrong", "named"),
    [
        (NORM, "return self.n(x)", "return F.layer_norm(x, (48,))", ["n.weight", "n.bias"]),
        (NORM, "return self.n(x)", "return F.layer_norm(x, (48,), self.n.weight)", ["n.bias"]),
        (f"{BATCH}\nself.n.eval()", "return self.n(x)",
         "return F.batch_norm(x, torch.zeros(48), torch.ones(48), self.n.weight, self.n.bias)", ["n.running_mean"]),
        ("self.p = nn.PReLU(48)", "return self.p(x)", "return F.leaky_relu(x, 0.25)", ["p.weight"]),
        ("self.s = nn.Parameter(torch.ones(1))", "return torch.tanh(x) * self.s", "return torch.tanh(x)", ["s"]),
        ("self.g = nn.Parameter(torch.full((48,), 1e-6))", "return x + torch.tanh(x) * self.g", "return x + 0", ["g"]),
        ("self.a = nn.MultiheadAttention(48, 4, batch_first=True)", "return self.a(x[None], x[None], x[None])[0]",
         "a = self.a\nx = x[None]\nreturn F.multi_head_attention_forward(x.mT.mT.transpose(0, 1), x.transpose(0, 1), "
         "x.transpose(0, 1), 48, 4, a.in_proj_weight, None, None, None, False, 0.0, a.out_proj.weight, None)"
         "[0].transpose(0, 1)", ["a.out_proj.bias"]),
    ],
)  # fmt: skip
def test_a_weight_that_is_not_read_or_misused_is_named(
    cpu: CpuToolchain, tmp_path: Path, init: str, right: str, wrong: str, named: list[str]
) -> None:
    given = reference(tmp_path, right, init=init)
    passed = cpu.check(given, kernel(right, init=init))
    assert passed.verdict is Verdict.PASSED, passed.message
    assert check_of(passed, findings.OTHER_WEIGHTS).standing is CheckOutcome.HELD
    failed = cpu.check(given, kernel(wrong, init=init))
    assert failed.verdict is Verdict.INCORRECT
    assert all(f"`{name}`" in failed.message.partition("elements")[0] for name in named), failed.message


@pytest.mark.parametrize(
    ("init", "says"),
    [
        ("self.n = nn.LayerNorm(48, bias=False)", "it lacks n.bias"),
        ("self.norm = nn.LayerNorm(48)", "it has norm.weight, norm.bias"),
        ("self.n = nn.LayerNorm((1, 48))", "n.weight is (1, 48) float32, not (48,) float32"),
        ("self.n = nn.LayerNorm(48).double()", "float64"),
        (f"{NORM}\nself.register_buffer('packed', torch.ones(48))", "it has packed"),
    ],
)
def test_a_module_that_cannot_load_the_references_state_is_incorrect(
    cpu: CpuToolchain, tmp_path: Path, init: str, says: str
) -> None:
    given = reference(tmp_path, "return self.n(x)", init=NORM)
    failed = cpu.check(given, kernel("return F.layer_norm(x, (48,))", init=init))
    assert failed.verdict is Verdict.INCORRECT
    assert says in failed.message
    assert "convert_state_dict" in failed.message


def test_other_names_are_right_with_a_declared_conversion_or_where_the_policy_allows_any(
    cpu: CpuToolchain, tmp_path: Path
) -> None:
    given = reference(tmp_path, "return self.n(x)", init=NORM)
    init = "self.both = nn.Parameter(torch.stack((torch.ones(48), torch.zeros(48))))"
    convert = (
        "\n\ndef convert_state_dict(state):\n    return {'both': torch.stack((state['n.weight'], state['n.bias']))}\n"
    )
    forward = "return F.layer_norm(x, (48,), self.both[0], self.both[1])"
    converted = cpu.check(given, kernel(forward, init=init, more=convert))
    assert converted.verdict is Verdict.PASSED, converted.message
    assert "convert_state_dict" in check_of(converted, findings.STATE).detail
    unread = kernel("return F.layer_norm(x, (48,)) + 0 * self.both[0]", init=init, more=convert)
    assert cpu.check(given, unread).verdict is Verdict.INCORRECT
    anything = replace(given, policy=replace(given.policy, state_dict=StateDict.ANY))
    allowed = cpu.check(anything, kernel(forward, init=init))
    assert allowed.verdict is Verdict.PASSED, allowed.message
    assert check_of(allowed, findings.STATE).standing is CheckOutcome.FLAGGED
    assert "constructed weights only" in check_of(allowed, findings.OTHER_WEIGHTS).detail


PACKED = {
    "a hook": (f"{LINEAR}\nself.pack()\nself.register_load_state_dict_post_hook(lambda module, keys: module.pack())",
               "return x @ self.packed + self.l.bias"),
    "the version": (f"{LINEAR}\nself.seen = -1",
                    "if self.seen != self.l.weight._version:\n    self.pack()\n    self.seen = self.l.weight._version\n"
                    "return x @ self.packed + self.l.bias"),
    "once": (f"{LINEAR}\nself.packed = None",
             "if self.packed is None:\n    self.pack()\nreturn x @ self.packed + self.l.bias"),
}  # fmt: skip
PACK = "\n    def pack(self):\n        self.packed = self.l.weight.detach().t().contiguous()\n"


@pytest.mark.parametrize("way", PACKED)
def test_weights_may_be_packed_once_per_load_and_not_once_for_ever(cpu: CpuToolchain, tmp_path: Path, way: str) -> None:
    given = reference(tmp_path, "return self.l(x)", init=LINEAR)
    init, forward = PACKED[way]
    source = kernel(forward, init=init) + PACK
    result = cpu.check(given, source)
    assert result.verdict is (Verdict.INCORRECT if way == "once" else Verdict.PASSED), result.message
    if way == "once":
        assert "pack them anew" in result.message
    else:
        timed = cpu.time(given, source)
        assert isinstance(timed, TimingResult), timed
        assert "changed" in timed.evidence["weights"]


@pytest.mark.parametrize(
    ("forward", "says"),
    [
        (BY_HAND, "leaves the buffer `n.running_mean` as it was"),
        (f"{UPDATE.replace('0.1', '0.2')}\n{BY_HAND}", "with other values than the reference"),
        (f"{UPDATE.replace('x.var(0)', 'x.var(0, unbiased=False)')}\n{BY_HAND}", "`n.running_var`"),
        (f"{UPDATE}\n{BY_HAND}", ""),
        ("return self.n(x)", ""),
    ],
)
def test_running_statistics_are_left_as_the_reference_leaves_them(
    cpu: CpuToolchain, tmp_path: Path, forward: str, says: str
) -> None:
    given = reference(tmp_path, "return self.n(x)", init=BATCH)
    result = cpu.check(given, kernel(forward, init=BATCH))
    assert result.verdict is (Verdict.INCORRECT if says else Verdict.PASSED), result.message
    assert says in result.message


CENTRED = "self.m = nn.BatchNorm1d(48)\nself.l = nn.Linear(48, 48, bias=False)\nself.n = nn.BatchNorm1d(48)"
OTHER_SUMS = "x = (self.m(x)[:, :, None] * self.l.weight.t()).flip(1).cumsum(1)[:, -1]"


@pytest.mark.parametrize(
    ("forward", "says"),
    [
        (f"{OTHER_SUMS}\nreturn self.n(x)", ""),
        (f"{OTHER_SUMS}\nx = self.n(x)\nself.n.running_mean += 1e-4\nreturn x", "buffer `n.running_mean` with other"),
        (f"{OTHER_SUMS}\nx = self.n(x)\nself.m.running_mean *= 0.9\nreturn x", "buffer `m.running_mean` with other"),
    ],
)
def test_a_running_mean_of_what_was_centred_is_rounding_and_may_be_other_rounding(
    cpu: CpuToolchain, tmp_path: Path, forward: str, says: str
) -> None:
    given = reference(tmp_path, "return self.n(self.l(self.m(x)))", init=CENTRED)
    result = cpu.check(given, kernel(forward, init=CENTRED))
    assert result.verdict is (Verdict.INCORRECT if says else Verdict.PASSED), result.message
    assert says in result.message


@pytest.mark.parametrize(
    ("init", "forward"),
    [
        ("self.a = nn.Linear(48, 48)\nself.b = nn.Linear(48, 48)\nself.b.weight = self.a.weight",
         "return self.b(torch.tanh(self.a(x)))"),
        ("self.a = nn.Linear(48, 48)\nself.again = self.a", "return self.again(torch.tanh(self.a(x)))"),
        ("self.a = nn.utils.parametrizations.weight_norm(nn.Linear(48, 48))", "return self.a(x)"),
        ("self.a = nn.utils.weight_norm(nn.Linear(48, 48))", "return self.a(x)"),
        ("self.a = nn.utils.parametrizations.spectral_norm(nn.Linear(48, 48))\nself.eval()", "return self.a(x)"),
        ("self.a = nn.LazyLinear(24)", "return self.a(x)"),
        ("self.a = nn.GRU(48, 24, batch_first=True)", "return self.a(x[None])[0]"),
        ("self.e = nn.Embedding(32, 48, padding_idx=0)", "return x @ self.e.weight.t()"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_a_reference_judges_itself_with_any_kind_of_weights(
    cpu: CpuToolchain, tmp_path: Path, init: str, forward: str
) -> None:
    given = reference(tmp_path, forward, init=init)
    result: CheckResult = cpu.check(given, kernel(forward, init=init))
    assert result.verdict is Verdict.PASSED, result.message
    assert check_of(result, findings.OTHER_WEIGHTS).standing is CheckOutcome.HELD


@pytest.mark.parametrize(
    ("init", "stays"),
    [
        ("self.register_buffer('t', torch.arange(48.0))", "t is a table"),
        ("self.register_buffer('m', torch.ones(48, 48).tril())", "m is a table"),
        ("self.register_buffer('s', torch.tensor(48 ** -0.5))", "s is a table"),
        ("self.register_buffer('i', torch.arange(48))", "i holds no floating-point numbers"),
    ],
)
def test_what_no_training_changes_stays_and_is_told(cpu: CpuToolchain, tmp_path: Path, init: str, stays: str) -> None:
    name = stays[0]
    given = reference(tmp_path, f"return torch.tanh(x * self.w) @ (self.{name} * torch.eye(48))",
                      init=f"{init}\nself.w = nn.Parameter(torch.ones(48))")  # fmt: skip
    found = cpu.examine(given)
    assert set(found.varied) == {"w"}
    assert f"{name} {found.stays[name]}".startswith(stays)


def test_constants_under_a_seed_of_numpy_and_random_are_alike_on_both_sides(cpu: CpuToolchain, tmp_path: Path) -> None:
    init = "import numpy\nself.k = torch.tensor(numpy.random.rand(48) + random.random()).float()"
    given = reference(tmp_path, "return x * self.k", init=init)
    assert cpu.check(given, kernel("return x * self.k", init=init)).verdict is Verdict.PASSED


def test_rules_of_before_judge_with_constructed_weights_and_any_names(cpu: CpuToolchain, tmp_path: Path) -> None:
    former = Policy(rules=1, weights="fixed", state_dict="any")  # type: ignore[arg-type]
    given = reference(tmp_path, "return self.n(x)", init=NORM, policy=former)
    result = cpu.check(given, kernel("return F.layer_norm(x, (48,))", init=NORM))
    assert result.verdict is Verdict.PASSED, result.message
    assert result.rules == 1
    assert not any("no float64 form" in trial for trial in result.trials)
    assert "constructed weights only" in check_of(result, findings.OTHER_WEIGHTS).detail
