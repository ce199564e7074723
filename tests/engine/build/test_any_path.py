"""Kernels are built wherever Tilewright's home lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.build import request
from engine.build.host import build, installation

SOURCE = "torch::Tensor f(torch::Tensor x) { return torch::empty_like(x); }\n"
NAMES = ("it's in $HOME, two words", 'a "quoted" `id` %s {in} # [x] *;&|\\', "two\nlines a:b Grüße 核 ")


@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_is_built_under_any_name_of_a_folder(name: str, tmp_path: Path) -> None:
    """A flag of its own keeps the header from being precompiled for this place."""
    asked = {"name": "anywhere", "sources": [SOURCE], "functions": ["f"], "flags": ["-DRARE"]}
    built = build.Builder(installation.find(), tmp_path / name).build(request.read(asked), SOURCE)
    assert any((tmp_path / name).rglob(Path(built.library).name))
    assert "-DRARE" in built.log
