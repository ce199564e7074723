"""Kernels are built wherever Tilewright's home lies."""

from __future__ import annotations

from pathlib import Path

from engine.evaluator.build import request
from engine.evaluator.build.host import build, installation

SOURCE = "torch::Tensor f(torch::Tensor x) { return torch::empty_like(x); }\n"
NAME = 'it\'s in $HOME, two words"quoted" `id` %s {in} # [x] *;&|\\\nlines a:b Grüße 核 '


def test_a_kernel_is_built_under_any_name_of_a_folder(tmp_path: Path) -> None:
    """A flag of its own keeps the header from being precompiled for this place."""
    asked = {"name": "anywhere", "sources": [SOURCE], "functions": ["f"], "flags": ["-DRARE"]}
    built = build.Builder(installation.find(), tmp_path / NAME).build(request.read(asked), SOURCE)
    assert any((tmp_path / NAME).rglob(Path(built.library).name))
    assert "-DRARE" in built.log
