"""The example kernels shown to the model really build."""

from pathlib import Path

import pytest

from engine import tasks
from engine.prompting import PROMPTS
from engine.toolchains.cpu import CpuToolchain


@pytest.mark.parametrize("path", sorted((PROMPTS / "examples/cpu").glob("*.py")), ids=lambda path: path.stem)
def test_an_example_builds_without_a_complaint(path: Path, home: Path) -> None:
    with CpuToolchain() as toolchain:
        built = toolchain.compile(tasks.find("swish").task("cpu"), path.read_text())
    assert built.is_ok, built.diagnostics
