"""An exported kernel runs on this GPU without Tilewright: from its file, and as KernelBench loads a source."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.evaluator import tasks
from engine.exporting import standing_alone
from tests.cheats.declaration import TRITON_KERNELS
from tests.engine.search.llm.test_cuda_recordings import last
from tests.gpu.test_recordings import SIZES

pytestmark = pytest.mark.gpu

# KernelBench runs the reference, then the kernel in the same names, with lines before it and no file; or from a file.
CHILD = """
import importlib.util, json, os, sys, torch
reference, kernel, sizes, way = sys.argv[1:]
names = {}
exec(compile(open(reference).read(), "<string>", "exec"), names)
names.update(json.loads(sizes))
if way == "text":
    source = f"import os\\nos.environ['TORCH_EXTENSIONS_DIR'] = '{os.getcwd()}/builds'\\n" + open(kernel).read()
    exec(compile(source, "<string>", "exec"), names)
    made = names["ModelNew"]
else:
    spec = importlib.util.spec_from_file_location("kernel", kernel)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    made = loaded.ModelNew
inputs = [x.cuda() if isinstance(x, torch.Tensor) else x for x in names["get_inputs"]()]
wanted = names["Model"](*names["get_init_inputs"]()).cuda()(*inputs)
torch.testing.assert_close(made(*names["get_init_inputs"]()).cuda()(*inputs), wanted, rtol=1e-4, atol=1e-4)
torch.cuda.synchronize()
print("equal", any(name.partition(".")[0] in ("engine", "storage") for name in sys.modules))
"""


@pytest.mark.parametrize("way", ["file", "text"])
@pytest.mark.parametrize("task", ["square_matmul", "swish"])  # with wgmma, and without
def test_an_exported_kernel_runs_where_tilewright_is_not_installed(tmp_path: Path, task: str, way: str) -> None:
    source = last(task)
    if task == "square_matmul":
        assert "wgmma" in source
    kernel, reference = tmp_path / "kernel.py", tmp_path / "reference.py"
    kernel.write_text(standing_alone(source, "cuda"))
    reference.write_text(tasks.find(task).task("cuda", SIZES[task]).source)
    run(tmp_path, kernel, reference, task, way)


def test_an_exported_triton_kernel_runs_from_its_file(tmp_path: Path) -> None:
    kernel, reference = tmp_path / "kernel.py", tmp_path / "reference.py"
    kernel.write_text(standing_alone((TRITON_KERNELS / "honest" / "autotuned.py").read_text(), "cuda"))
    reference.write_text(tasks.find("swish").task("cuda", SIZES["swish"]).source)
    run(tmp_path, kernel, reference, "swish", "file")  # as KernelBench loads one of its backend triton


def run(tmp_path: Path, kernel: Path, reference: Path, task: str, way: str) -> None:
    """Load and compare in a process without Tilewright."""
    command = [sys.executable, "-I", "-c", CHILD, str(reference), str(kernel), json.dumps(SIZES[task]), way]
    environment = os.environ | {"TORCH_EXTENSIONS_DIR": str(tmp_path / "builds"), "TORCH_CUDA_ARCH_LIST": "Hopper"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "equal False\n", done.stderr
