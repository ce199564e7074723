"""Modules that a task imports, where its reference and a kernel run: what of them either sees, and what is told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.evaluator.machine.worker_limits import Times
from engine.evaluator.tasks import Task
from engine.evaluator.toolchains.cpu import CpuToolchain
from storage.results.policy import Policy
from storage.results.vocabulary import Verdict

NETS = """from pathlib import Path

import torch

WIDTH = int(Path(__file__).with_name("width.txt").read_text())


class Body(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * WIDTH


def create_model():
    return Body()
"""
TASK = """import torch
import {name}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = {name}.create_model()

    def forward(self, x):
        return self.body(x)


def get_inputs():
    return [torch.randn(64, 64)]


def get_init_inputs():
    return []
"""
KERNEL = "\n\nclass ModelNew(Model):\n    pass\n"


@pytest.fixture(scope="module")
def toolchain(cpu_home: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CpuToolchain]:
    """On the search path: `ournets`, a project's source, and `installednets`, which looks installed."""
    folder = tmp_path_factory.mktemp("modules")
    with pytest.MonkeyPatch.context() as patch:
        for place, name in (("src", "ournets"), ("site-packages", "installednets")):
            (folder / place / name).mkdir(parents=True)
            (folder / place / name / "__init__.py").write_text(NETS)
            (folder / place / name / "width.txt").write_text("3")
            patch.syspath_prepend(str(folder / place))
        with CpuToolchain(folder / "scratch", times=Times(call_s=5.0, check_s=3.0, timing_s=0.5)) as toolchain:
            yield toolchain


def task(name: str, *imports: str) -> Task:
    return Task("nets", TASK.format(name=name), {}, policy=Policy(library_operators=("*",), imports=imports))


def test_a_kernel_finds_what_it_may_import_wherever_it_lies(toolchain: CpuToolchain) -> None:
    allowed = task("ournets", "ournets")
    result = toolchain.check(allowed, allowed.source + KERNEL)
    assert result.verdict is Verdict.PASSED, result.message
    assert toolchain.examine_confined(allowed).is_decided


def test_what_no_prompt_can_show_is_told_and_kernels_are_judged_on_it_all_the_same(toolchain: CpuToolchain) -> None:
    """A class of an installed package is hidden, one of a project's source is shown."""
    assert toolchain.examine(task("ournets")).hidden == ()
    examination = toolchain.examine(task("installednets"))
    assert examination.is_decided
    assert examination.hidden == ("installednets.Body",)
    hidden = examination.hidden_unless(("math",))
    assert hidden is not None
    assert "the forward of installednets.Body lies in the code of installednets" in hidden.why
    assert "python -m engine network capture" in hidden.remedies[0]
    assert examination.hidden_unless(("installednets",)) is None
