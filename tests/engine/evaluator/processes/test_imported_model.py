"""A task whose `Model` is imported: a class of a module of the person's own, or a function that makes a module."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import TaskError
from engine.evaluator import tasks
from engine.evaluator.toolchains.cpu import CpuToolchain
from storage.results.policy import EVERYTHING
from storage.results.vocabulary import Verdict
from tests.engine.evaluator.processes.references import IMPORTS, kernel, module

INIT, FORWARD = "self.norm = nn.LayerNorm(48)", "return self.norm(torch.relu(x))"
TASK = """import sys

import torch

sys.path.insert(0, {folder!r})
{imported}


def get_inputs():
    return [torch.randn(32, 48)]


def get_init_inputs():
    return []
"""


def written(folder: Path, imported: str) -> Path:
    package = folder / "one_network"
    package.mkdir()
    (package / "block.py").write_text(
        f"{IMPORTS}{module('Block', INIT, FORWARD, 'x')}\n\ndef block():\n    return Block()\n"
    )
    path = folder / "task.py"
    path.write_text(TASK.format(folder=str(folder), imported=imported))
    return path


@pytest.mark.parametrize("imported", ["Block as Model", "block as Model"])
def test_an_imported_model_is_judged_against_as_one_of_the_file(
    cpu: CpuToolchain, tmp_path: Path, imported: str
) -> None:
    given = tasks.read(written(tmp_path, f"from one_network.block import {imported}")).task()
    given = replace(given, policy=replace(given.policy, library_operators=(EVERYTHING,)))
    assert cpu.examine(given).is_decided
    checked = cpu.check(given, kernel(FORWARD, init=INIT))
    assert checked.verdict is Verdict.PASSED, checked.message
    assert cpu.check(given, kernel("return self.norm(x)", init=INIT)).verdict is Verdict.INCORRECT


def test_names_that_are_imported_or_bound_in_a_branch_are_defined(tmp_path: Path) -> None:
    for number, imported in enumerate(
        (
            "from one_network.block import *",
            "import one_network.block as Model",
            "try:\n    from one_network.block import Block as Model\nexcept ImportError:\n    Model = None",
        )
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert tasks.read(written(folder, imported)).name == "task"
    (tmp_path / "none").mkdir()
    with pytest.raises(TaskError, match="does not define Model.*defines or imports a class Model"):
        tasks.read(written(tmp_path / "none", "from one_network.block import Block"))


def test_a_star_that_brings_no_model_is_told(cpu: CpuToolchain, tmp_path: Path) -> None:
    given = tasks.read(written(tmp_path, "from one_network.block import *")).task()
    with pytest.raises(TaskError, match="no Model"):
        cpu.examine(given)
