"""The cpu toolchain as the loop uses it: real compiler, real processes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.errors import ToolchainError
from engine.evaluator import tasks
from engine.evaluator.build.host import installation
from engine.evaluator.checks import flop_formulas, timing_checks
from engine.evaluator.machine.worker_limits import Times
from engine.evaluator.processes import half_baseline
from engine.evaluator.tasks import Task
from engine.evaluator.toolchains.cpu import CpuToolchain, checks
from storage.results.evaluation_results import CheckResult, TimingResult
from storage.results.policy import Policy
from storage.results.vocabulary import Verdict
from tests.engine.evaluator.toolchains import kernels
from tests.engine.evaluator.toolchains.fixtures import free

MATMUL = '''import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cute/tensor.hpp>
using namespace cute;
torch::Tensor multiply(torch::Tensor A, torch::Tensor B, int64_t unused, double scale) {
  int M = A.size(0), K = A.size(1), N = B.size(1);
  auto C = torch::zeros({M, N}, A.options());
  auto a = make_tensor(A.data_ptr<float>(), make_shape(M, K), make_stride(K, _1{}));
  auto b = make_tensor(B.data_ptr<float>(), make_shape(N, K), make_stride(_1{}, N));
  auto c = make_tensor(C.data_ptr<float>(), make_shape(M, N), make_stride(N, _1{}));
  for (int m = 0; m < M; ++m)
    for (int k = 0; k < K; ++k)
      for (int n = 0; n < N; ++n) c(m, n) += (float)scale * a(m, k) * b(n, k);
  return C;
}
"""
ext = load_inline(name="multiply_ext", cpp_sources=[SOURCE], functions="multiply", extra_cflags=["-O3"])


class ModelNew(nn.Module):
    def forward(self, A, B):
        return ext.multiply(A, B, 3, 1.0)
'''


def test_a_vectorised_kernel_is_measured_faster_than_a_scalar_one(cpu: CpuToolchain) -> None:
    task = tasks.find("swish").task("cpu", {"batch_size": 64, "dim": 16384})
    slow = cpu.time(task, kernels.SWISH)
    fast_source = kernels.swish(loop=kernels.FAST_LOOP)
    assert cpu.check(task, fast_source).verdict is Verdict.PASSED
    fast = cpu.time(task, fast_source)
    assert isinstance(slow, TimingResult)
    assert isinstance(fast, TimingResult)
    assert min(fast.candidate_ms) < 0.7 * min(slow.candidate_ms)


def test_a_matrix_product_gets_a_tolerance_that_grows_with_its_depth_and_a_limit_with_operations(
    cpu: CpuToolchain,
) -> None:
    task = tasks.find("square_matmul").task("cpu", {"N": 192})
    checked = cpu.check(task, MATMUL)
    assert checked.verdict is Verdict.PASSED, checked.message
    limit = cpu.limit(task)
    assert limit.min_flop == 2 * 192**3
    assert [(row.name, row.calls, row.elements) for row in limit.operators] == [("matmul", 1, 192 * 192)]
    assert limit.min_bytes == 3 * 192 * 192 * 4
    assert limit.limit_ms > 0
    triangles = tasks.find("lower_triangular_matmul").task("cpu", {"M": 192})
    assert cpu.limit(triangles).min_flop == pytest.approx(2 * 192**3 / 6, rel=0.01)  # the rest multiplies by zeros


def test_operations_that_the_reference_masks_are_not_counted_for_the_limit(cpu: CpuToolchain) -> None:
    causal = tasks.find("causal_attention").task("cpu", {"batch_size": 1, "heads": 2, "length": 128, "width": 32})
    limit = cpu.limit(causal)
    assert limit.min_flop == 2 * 2 * (2 * 128 * 129 // 2 * 32)
    assert (limit.leaves_masked_out, limit.is_known) == (True, True)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_products_of_recurrent_layers_are_counted_for_the_limit(cpu: CpuToolchain, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "recurrent.py"
    path.write_text(
        "import torch\nimport torch.nn as nn\n\n\nclass Model(nn.Module):\n"
        f"    def __init__(self):\n        super().__init__()\n        self.layers = nn.{kind}(16, 32, 2)\n\n"
        "    def forward(self, x):\n        return self.layers(x)[0]\n\n\n"
        "def get_inputs():\n    return [torch.rand(5, 3, 16)]\n\n\ndef get_init_inputs():\n    return []\n"
    )
    limit = cpu.limit(tasks.files.read(path).task("cpu"))
    gates = {"LSTM": 4, "GRU": 3}[kind]
    assert limit.min_flop == 2 * 5 * 3 * gates * 32 * (16 + 32 + 32 + 32)
    assert limit.is_known


def test_products_of_a_library_s_recurrent_layer_are_counted_in_each_layout() -> None:
    weights = [torch.empty(96, 16), torch.empty(96, 32), torch.empty(96), torch.empty(96)]
    for shape in ((5, 3, 16), (3, 5, 16), (15, 16)):  # by time, by sample, packed
        flop = flop_formulas.flop_of(torch.ops.aten._cudnn_rnn.default, (torch.empty(shape), weights, 4), {}, None)
        assert flop == 2 * 15 * 96 * (16 + 32)


def test_weights_of_the_reference_are_handed_to_a_candidate_with_the_same_names(
    cpu: CpuToolchain, tmp_path: Path
) -> None:
    path = tmp_path / "linear.py"
    path.write_text(
        "import torch\nimport torch.nn as nn\n\n\nclass Model(nn.Module):\n"
        "    def __init__(self, width):\n        super().__init__()\n        self.fc = nn.Linear(width, width)\n\n"
        "    def forward(self, x, scale):\n        return self.fc(x) * scale\n\n\n"
        "def get_inputs():\n    return [torch.rand(8, 32), 2.0]\n\n\ndef get_init_inputs():\n    return [32]\n"
    )
    source = (
        "import torch\nimport torch.nn as nn\n\n\nclass ModelNew(nn.Module):\n"
        "    def __init__(self, width):\n        super().__init__()\n        torch.rand(5)\n"
        "        self.fc = nn.Linear(width, width)\n\n"
        "    def forward(self, x, scale):\n        return (x @ self.fc.weight.T + self.fc.bias) * scale\n"
    )
    checked = cpu.check(free(tasks.read(path).task()), source)
    assert checked.verdict is Verdict.PASSED, checked.message
    assert checked.evidence["weights"] == "taken over"


def test_children_end_when_the_engine_is_killed(cpu_home: None, tmp_path: Path) -> None:
    program = tmp_path / "engine_like.py"
    program.write_text(
        "from engine.evaluator.toolchains.cpu import CpuToolchain\nfrom engine.evaluator import tasks\n"
        "from tests.engine.evaluator.toolchains import kernels\nimport sys\n"
        "task = tasks.find('swish').task('cpu', {'batch_size': 16, 'dim': 4096})\n"
        "toolchain = CpuToolchain()\ntoolchain.compile(task, kernels.SWISH)\n"
        "print(toolchain._evaluator._process.pid, 'torch' in sys.modules, flush=True)\n"
        "sys.stdin.read()\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tasks.SHIPPED.parent)}
    with subprocess.Popen(
        [sys.executable, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as engine:
        assert engine.stdout is not None
        pid, has_torch = engine.stdout.readline().split()
        engine.kill()
    assert has_torch == "False"
    deadline = time.monotonic() + 5
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        os.sched_yield()
    assert not Path(f"/proc/{pid}").exists()


def test_torch_compile_is_timed_against_eager_also_where_its_compiler_is_not_the_systems(
    cpu_home: None, small_swish: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TILEWRIGHT_COMPILED_BASELINE")
    monkeypatch.delenv("CXX", raising=False)
    with tempfile.TemporaryDirectory() as folder:
        installed, linked = Path(folder) / "gcc", Path(folder) / "bin" / "g++"
        for path in (installed / "bin", installed / "lib", linked.parent):
            path.mkdir(parents=True)
        Path(folder).chmod(0o755)  # as a compiler's folder is; the sandbox may have a user of its own
        (installed / "lib" / "parts").touch()
        compiler = installed / "bin" / "g++"
        compiler.write_text(f'#!/bin/sh\n. "{installed}/lib/parts" && exec {installation.find_compiler()} "$@"\n')
        compiler.chmod(0o755)
        linked.symlink_to(compiler)
        monkeypatch.setenv("CXX", str(linked))
        with CpuToolchain(times=Times(call_s=5.0, check_s=3.0, timing_s=0.5)) as cpu:
            timed = cpu.baseline(small_swish)
    assert timed.baseline == "eager"
    assert timed.speedup > 0


@pytest.mark.gpu  # it needs none; it compiles twice, for 30 s, and half precision is what GPUs are asked for
def test_torch_compile_in_half_precision_is_the_faster_of_both(
    cpu: CpuToolchain, small_swish: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TILEWRIGHT_COMPILED_BASELINE")
    half = cpu.baseline(replace(small_swish, policy=Policy(precision="half")))
    assert half.baseline in (half_baseline.AS_IT_IS, half_baseline.IN_BFLOAT16)


def test_missing_headers_are_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TILEWRIGHT_CUTLASS_INCLUDE", str(tmp_path))
    with pytest.raises(ToolchainError, match="TILEWRIGHT_CUTLASS_INCLUDE"):
        installation.find_cutlass()
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(ToolchainError, match="apt install"):
        installation.find_compiler()
    report = {line.name: line for line in checks()}
    assert not report["compiler"].is_ok
    assert "apt install" in report["compiler"].remedy
    assert report["torch"].is_ok


def test_cuda_headers_are_those_of_a_toolkit_where_the_packages_lack_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package, toolkit = tmp_path / "nvidia", tmp_path / "toolkit"
    for root, headers in ((package / "cu13", installation.HEADERS[:1]), (toolkit, installation.HEADERS)):
        for header in headers:
            (root / "include" / header).parent.mkdir(parents=True, exist_ok=True)
            (root / "include" / header).touch()
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "nvidia", raising=False)
    monkeypatch.setenv("CUDA_HOME", str(toolkit))
    assert installation.find_cuda() == toolkit / "include"
    monkeypatch.setattr(installation, "HEADERS", ("no_such.h",))
    with pytest.raises(ToolchainError, match=r"include has no no_such\.h.*: pip install"):
        installation.find_cuda()


def test_no_key_of_the_engine_reaches_a_candidate(
    small_swish: Task, cpu_home: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-of-the-engine")
    source = kernels.forward("import os", "assert 'OPENAI_API_KEY' not in os.environ", "return ext.swish(x)")
    with CpuToolchain() as toolchain:
        result: CheckResult = toolchain.check(small_swish, source)
    assert result.verdict is Verdict.PASSED, result.message


def test_the_work_space_of_a_killed_process_is_removed_by_the_next_and_that_of_a_living_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    living, killed, other = CpuToolchain(), tmp_path / "tilewright.killed", tmp_path / "tilewright.other"
    for place in (killed, other):
        place.mkdir()
    (killed / "lock").touch()
    for lock in tmp_path.glob("*/lock"):
        os.utime(lock, (0, 0))
    with CpuToolchain() as toolchain:
        assert len(list(tmp_path.iterdir())) == 3
        assert not killed.exists()
        assert toolchain.name == "cpu"
    living.close()
    assert [path.name for path in tmp_path.iterdir()] == ["tilewright.other"], "one without a lock is not known"


@pytest.mark.parametrize(
    ("sampled_s", "waits", "asked", "untrusted"),
    [
        (2.0, (0.01,), 1, ""),
        (2.0, (0.8, 0.01), 2, ""),
        (2.0, (0.8, 0.7, 0.6), 3, "the machine is busy"),
        (0.2, (0.8,), 1, ""),
    ],
    ids=["quiet", "quiet the second time", "busy each time", "busy, and a brief look is enough"],
)
def test_a_timing_that_others_disturb_is_repeated_until_it_is_quiet_or_decides_nothing(
    tmp_path: Path, sampled_s: float, waits: tuple[float, ...], asked: int, untrusted: str
) -> None:
    left = list(waits)

    def once() -> TimingResult:
        ratio = 1.0 + left[0]
        return TimingResult((1.0,) * 9, (ratio**6,) * 9, evidence={timing_checks.WAITED: f"{left.pop(0)}"})

    with CpuToolchain(tmp_path, replace(Times(), timing_s=sampled_s)) as toolchain:
        timed = toolchain._undisturbed_timing(once)
    assert isinstance(timed, TimingResult)
    assert (len(waits) - len(left), timed.untrusted) == (asked, untrusted)
