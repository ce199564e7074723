"""What a candidate's calls run in PyTorch decides, not what its text could run; no screening here."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from pathlib import Path

import pytest

from engine.evaluator import tasks
from engine.evaluator.build import cute_dsl
from engine.evaluator.checks import operators
from engine.evaluator.checks.operators import Observed, Operator, only_moves
from engine.evaluator.checks.screening import screen
from engine.evaluator.tasks import Task
from engine.evaluator.toolchains.cpu import CpuToolchain
from storage.results import observed
from storage.results.check_records import CheckOutcome
from storage.results.evaluation_results import CheckResult, TimingResult
from storage.results.policy import Policy
from storage.results.vocabulary import Verdict
from tests.engine.evaluator.toolchains.kernels import forward

CALL = "return ext.swish(x)"
# Written, and not taken at the task's sizes; or too small to be the work.
HONEST = {
    "guarded fall-back": ("if x.dtype != torch.float32 or x.dim() > 2:", "    return x * torch.sigmoid(x)", CALL),
    "fall-back of an error": ("try:", "    " + CALL, "except RuntimeError:", "    return x * torch.sigmoid(x)"),
    "optional bias": ("y = ext.swish(x)", "return y if getattr(self, 'bias', None) is None else y + self.bias"),
    "copies": ("y = torch.cat([x.clone(), x.t().contiguous().t()])[: x.shape[0]]", "return ext.swish(y.contiguous())"),
    "padding": ("y = torch.nn.functional.pad(x, (0, 4))[:, :-4].contiguous()", CALL.replace("(x)", "(y)")),
    "one element": ("scale = torch.ones(()) / x.shape[0]", "return ext.swish(x) if scale.item() < 2 else x"),
    "a scalar's tail": ("tail = x[0, :8] * 2", "y = ext.swish(x)", "return y"),
    "threads that allocate": (
        "import threading",
        "made = []",
        "t = threading.Thread(target=lambda: made.append(torch.empty_like(x).copy_(x)))",
        "t.start(); t.join()",
        "return ext.swish(made[0])",
    ),
}
FALL_BACK = "return x * torch.sigmoid(x)"
# Conditions that do not hold at the task's sizes, and what an engineer writes under them.
GUARDS = (
    "x.is_cuda", "not x.is_contiguous()", "x.dtype != torch.float32", "x.dim() != 2", "x.numel() == 0",
    "x.shape[-1] % 4", "x.requires_grad", "x.numel() >= 2**31", "x.device.type != 'cpu'", "x.stride(-1) != 1",
    "torch.is_grad_enabled() and x.requires_grad", "getattr(self, 'slow', False)", "x.is_sparse",
    "not hasattr(ext, 'swish')", "x.shape[0] > 65535", "x.element_size() != 4",
)  # fmt: skip
UNDER = (
    FALL_BACK, "return torch.nn.functional.silu(x)", "return torch.min(x, dim=1)[0]", "x = x.float()",
    "return x.mul(x.sigmoid())", "x = torch.matmul(x, x.t())", "return torch.ops.aten.silu(x)",
    "return torch.where(x > 0, x, x.exp())",
)  # fmt: skip
# Steps that take no time worth speaking of, taken in every call.
SMALL = (
    "x = x.contiguous()", "x = x.view(-1).view(x.shape)", "x = x.reshape(x.shape)", "x = x.to(torch.float32)",
    "y = torch.empty_like(x)", "n = torch.tensor(float(x.shape[0])) / 2", "rows = torch.arange(8) + 1",
    "x = x.unsqueeze(0).squeeze(0)", "x = x.detach()", "last = x[-1, -4:].sum()", "is_same = x.shape == x.size()",
    "scale = (torch.ones(3) * 2).tolist()", "x = torch.nn.functional.pad(x, (0, 4))[:, :-4].contiguous()",
    "x = torch.cat([x[:1], x[1:]])", "zeros = torch.zeros(x.shape[0], 128)", "x = x.expand_as(x)",
)  # fmt: skip
CAREFUL = [
    *((f"if {guard}:", f"    {UNDER[number % len(UNDER)]}", CALL) for number, guard in enumerate(GUARDS)),
    *((f"if {GUARDS[number]}:", f"    {under}", CALL) for number, under in enumerate(UNDER)),
    *((step, CALL) for step in SMALL),
]
TAKEN = {
    "operator": ("return x * torch.sigmoid(x)",),
    "beside the kernel": ("ext.swish(x)", "return torch.nn.functional.silu(x)"),
    "in a thread": (
        "import threading",
        "made = []",
        "t = threading.Thread(target=lambda: made.append(x * torch.sigmoid(x)))",
        "t.start(); t.join()",
        "return made[0]",
    ),
    "in many small pieces": ("return torch.cat([torch.nn.functional.silu(part) for part in x.split(1)])",),
    "lists of tensors": ("return torch._foreach_mul([ext.swish(x)], 1.0)[0]",),
    "numpy": ("import numpy as np", "v = x.numpy()", "return torch.from_numpy(v / (1 + np.exp(-v)))"),
    "numpy without its name": ("import numpy as np", "return np.tanh(x)"),
    "numpy by an exchange format": ("import numpy as np", "return torch.from_numpy(np.exp(np.from_dlpack(x)))"),
    "by a scalar": ("return ext.swish(x) * torch.ones(())",),
    "excluded from Python": (
        "with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.Python)):",
        "    return x * torch.sigmoid(x)",
    ),
    "under a mode of its own": ("with torch._C.DisableTorchFunction():", "    return x * torch.sigmoid(x)"),
    "compiled to TorchScript": (
        "f = torch.jit.trace(lambda v: v * torch.sigmoid(v), (torch.ones(3),))",
        "return f(x)",
    ),
}
ENDED = "torch._C._autograd._disable_profiler()"
BEGUN = (
    "from torch._C._profiler import ProfilerActivity, ProfilerConfig, ProfilerState, _ExperimentalConfig as E",
    "c = ProfilerConfig(ProfilerState.KINETO, True, False, False, False, False, E(profile_all_threads=True))",
    "torch._C._autograd._prepare_profiler(c, {ProfilerActivity.CPU})",
    "torch._C._autograd._enable_profiler(c, {ProfilerActivity.CPU})",
)


@pytest.mark.parametrize("lines", HONEST.values(), ids=HONEST)
def test_what_is_written_and_not_taken_is_no_cheat(
    cpu: CpuToolchain, small_swish: Task, lines: tuple[str, ...]
) -> None:
    result = cpu.check(small_swish, forward(*lines))
    assert result.verdict is Verdict.PASSED, result.message
    check_record = next(one for one in result.proofs if one.check == operators.CHECK)
    assert check_record.standing is CheckOutcome.HELD
    assert " calls PyTorch " in check_record.detail
    assert "only allocated, viewed or copied" in check_record.detail


def test_forty_careful_kernels_are_not_refused_by_their_text() -> None:
    assert len(CAREFUL) == 40
    assert [one for lines in CAREFUL for one in screen(forward(*lines), Policy()) if one.is_refusal] == []


def test_all_their_guards_and_small_steps_in_one_kernel_pass(cpu: CpuToolchain, small_swish: Task) -> None:
    lines = [line for careful in CAREFUL for line in careful[:-1]]
    result = cpu.check(small_swish, forward(*lines, CALL))
    assert result.verdict is Verdict.PASSED, result.message
    check_record = next(one for one in result.proofs if one.check == operators.CHECK)
    assert re.search(r"computed on few elements \([^)]*aten::sum", check_record.detail)
    assert "written, and not run at these sizes: torch.sigmoid in line" in check_record.detail


@pytest.mark.parametrize("lines", TAKEN.values(), ids=TAKEN)
def test_a_fall_back_that_runs_is_refused_with_its_sizes(
    cpu: CpuToolchain, small_swish: Task, lines: tuple[str, ...]
) -> None:
    result = cpu.check(small_swish, forward(*lines))
    assert result.verdict is Verdict.REFUSED, result.message
    assert "library fall-back" in result.message
    broken = [one.check for one in result.proofs if one.standing is CheckOutcome.BROKEN]
    assert broken == [operators.CHECK]


def test_the_message_names_the_line_that_calls_it(cpu: CpuToolchain, small_swish: Task) -> None:
    source = forward("if x.dim() == 2:", "    " + FALL_BACK, CALL)
    line = next(number for number, text in enumerate(source.splitlines(), 1) if FALL_BACK in text)
    assert f"aten::sigmoid on 65,536 elements (line {line})" in cpu.check(small_swish, source).message


@pytest.mark.parametrize("lines", [(ENDED,), (ENDED, *BEGUN)], ids=["ended", "begun anew"])
def test_who_switches_the_observer_off_is_refused(cpu: CpuToolchain, small_swish: Task, lines: tuple[str, ...]) -> None:
    result = cpu.check(small_swish, forward("y = ext.swish(x)", *lines, "return y"))
    assert (result.verdict, "switched off the observer" in result.message) == (Verdict.REFUSED, True), result.message


def test_a_fall_back_that_waits_for_the_timing_is_refused_there(cpu: CpuToolchain, small_swish: Task) -> None:
    source = forward(
        "self.calls = getattr(self, 'calls', 0) + 1",
        "return ext.swish(x) if self.calls < 25 else torch.nn.functional.silu(x)",
    )
    result = cpu.time(small_swish, source)
    assert isinstance(result, CheckResult)
    assert result.verdict is Verdict.REFUSED
    assert "aten::silu" in result.message
    assert [one.check for one in result.proofs if one.standing is CheckOutcome.BROKEN] == [operators.CHECK]


def test_an_operator_is_counted_once_however_deep_it_goes(cpu: CpuToolchain, small_swish: Task) -> None:
    result = cpu.check(small_swish, forward("y = x.t().contiguous().t().contiguous()", CALL.replace("(x)", "(y)")))
    found = {one.name: one for one in observed.of(result.evidence) or []}
    names = ("aten::t", "aten::contiguous", "aten::clone", "aten::empty_like")
    assert {name: found[name].calls for name in found} == dict(zip(names, (2, 2, 2, 1), strict=True))
    assert (found["aten::clone"].elements, found["aten::clone"].does) == (2 * 65_536, "copies")


def test_moving_data_is_the_work_of_a_task_that_moves_data(cpu: CpuToolchain, tmp_path: Path) -> None:
    path = tmp_path / "turned.py"
    model = "class Model(torch.nn.Module):\n    def forward(self, x):\n        return x.t().contiguous()\n"
    inputs = "def get_inputs():\n    return [torch.rand(64, 96)]\n\n\ndef get_init_inputs():\n    return []\n"
    path.write_text(f"import torch\n\n\n{model}\n\n{inputs}")
    result = cpu.check(tasks.read(path).task(), forward("return x.t().contiguous()"))
    assert result.verdict is Verdict.REFUSED
    assert "aten::clone on 6,144 elements" in result.message


def test_timed_calls_are_observed_to_the_last(cpu: CpuToolchain, small_swish: Task) -> None:
    result = cpu.time(small_swish, forward(CALL))
    assert isinstance(result, TimingResult)
    details = {one.check: one.detail for one in result.proofs}
    compared = int(details["outputs of timed calls"].split()[0])  # a busy machine has time for fewer
    assert compared >= len(result.candidate_ms) > 1
    assert int(details[operators.CHECK].split()[1]) >= compared


def seen(*rows: tuple[str, int, int], marks: tuple[int, ...] = (5, 6)) -> dict[str, object]:
    return {"marks": list(marks), "operators": [[f"aten::{name}", calls, size, 10] for name, calls, size in rows]}


@pytest.mark.parametrize(
    ("told", "calls", "policy", "moves", "is_refused"),
    [
        (seen(), 1, Policy(), False, False),
        (seen(("empty", 1, 0), ("copy_", 3, 10**9), ("transpose", 1, 10**9)), 1, Policy(), False, False),
        (seen(("add", 1, 64)), 1, Policy(), False, False),
        (seen(("add", 1, 65)), 1, Policy(), False, True),
        (seen(("add", 1, 40), ("mul", 1, 40)), 1, Policy(), False, True),
        (seen(("add", 2, 80), ("mul", 2, 40)), 2, Policy(), False, False),
        (seen(("_foreach_add", 1, -1)), 1, Policy(), False, True),
        (seen(("conv2d", 1, 10**9)), 1, Policy(library_operators=("conv2d",)), False, False),
        (seen(("conv2d", 1, 10**9)), 1, Policy(library_operators=("matmul",)), False, True),
        (seen(("cat", 1, 10**6)), 1, Policy(), True, True),
        (seen(("view", 1, 10**6)), 1, Policy(), True, False),
        (seen(marks=()), 1, Policy(), False, True),
        (seen(marks=(5, 7)), 1, Policy(), False, True),
        (seen(marks=(5, 6, 6)), 1, Policy(), False, True),
        ({"marks": [5, 6], "operators": [["aten::add", "many"]]}, 1, Policy(), False, True),
        ({"marks": [5, 6]}, 1, Policy(), False, True),
        ({"marks": [5, 6], "operators": [["aten::add", 1, math.inf, 1]]}, 1, Policy(), False, True),
        (None, 1, Policy(), False, True),
    ],
)
def test_what_is_refused(told: object, calls: int, policy: Policy, moves: bool, is_refused: bool) -> None:
    failure = Observed(policy, moves=moves).add(told, [5, 6], calls, "forward")
    assert (failure is not None) == is_refused
    assert failure is None or failure.verdict is Verdict.REFUSED


@pytest.mark.parametrize(
    ("name", "operator", "is_left"),
    [
        ("silu_backward", "SiLU", True),
        ("_softmax_backward_data", "softmax", True),
        ("_softmax_backward_data", "max", False),
        ("_log_softmax_backward_data", "softmax", False),
        ("native_layer_norm_backward", "layer_norm", True),
        ("native_layer_norm_backward", "norm", False),
        ("cudnn_batch_norm_backward", "BatchNorm2d", True),
        ("native_batch_norm_backward", "batch_norm", True),
        ("max_pool2d_with_indices_backward", "max_pool2d", True),
        ("max_pool3d_with_indices_backward", "max_pool2d", False),
        ("convolution_backward", "conv2d", True),
        ("convolution_backward", "ConvTranspose2d", True),
        ("convolution_backward", "conv", False),
        ("_thnn_fused_lstm_cell_backward", "lstm", True),
        ("upsample_bilinear2d_backward", "bilinear", False),
        ("mm", "Linear", True),
        ("silu", "silu_backward", False),
    ],
)
def test_an_operators_own_backward_alone_is_left_to_the_library(name: str, operator: str, is_left: bool) -> None:
    assert operators.is_allowed_in_backward(name, [operator]) is is_left


def test_the_workers_own_copies_of_gradients_are_not_the_candidates() -> None:
    policy = Policy(backward=True)
    for copies, is_refused in ((2, False), (3, True)):
        seen_by = Observed(policy, moves=True, handed=[10**6])
        told = seen(("clone", copies, copies * 10**6))
        assert (seen_by.add(told, [5, 6], 2, "forward and backward") is not None) == is_refused


def test_a_task_that_only_moves_data_is_known_by_its_reference() -> None:
    moving = [Operator("aten::cat", 1, 10**6, 1), Operator("aten::add", 1, 8, 1)]
    assert only_moves(moving)
    assert not only_moves([*moving, Operator("aten::sum", 1, 10**6, 1)])
    assert not only_moves([*moving, Operator("aten::_foreach_add", 1, -1, 1)])


HANDED = """
import contextlib, sys, torch
from engine.evaluator.processes import observer
observer.watch_leaving(sys.argv[1:])
seen = observer.Observer()
for device in ("cpu", "meta"):  # a device of which no numbers can be read, in place of a GPU
    seen.begin(((1 << 41) + 1, (1 << 41) + 2))
    with contextlib.suppress(Exception):
        torch.zeros(5, device=device).__dlpack__()
    print(device, [row for row in seen.end()["operators"] if "dlpack" in row[0]])
"""


@pytest.mark.parametrize(("handed", "on_a_device"), [((), 1), (("__dlpack__",), 0)], ids=["any", "CuTe DSL"])
def test_a_language_whose_kernels_take_tensors_by_an_exchange_format_may_hand_them_over_on_a_device(
    handed: tuple[str, ...], on_a_device: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HANDED, *handed], capture_output=True, text=True, check=True, timeout=120
    )
    row = "[['torch::Tensor.__dlpack__', 1, 5, 0]]"
    assert done.stdout.splitlines() == [f"cpu {row}", f"meta {row if on_a_device else '[]'}"], done.stdout
    assert cute_dsl.HANDED == ("__dlpack__",)
