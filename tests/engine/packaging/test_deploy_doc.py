"""docs/deploy.md: its Python, run in its order against a package, as somebody would who reads it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from engine.packaging.packing import Asked, packaged
from tests.engine.packaging.judged import LAYER_NORM, judged_run

TEXT = (Path(__file__).resolve().parents[3] / "docs" / "deploy.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
SIZES: dict[str, int | float] = {"batch_size": 4, "features": 3, "height": 5, "width": 6}


@pytest.mark.judging
def test_what_the_page_shows_works_in_its_order(home: Path, tmp_path: Path) -> None:
    for name, text in packaged([judged_run(home, "layer_norm", LAYER_NORM, SIZES)], Asked()).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "page.py").write_text("\n".join(BLOCKS))
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "page.py"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "1: kernel_1 in place of LayerNorm\n3: kernel_1 in place of LayerNorm" in done.stdout
    assert "2 kernel: kernel_1" in done.stdout
    assert "2 reference: x has other sizes than the kernel was judged at" in done.stdout
    assert "on_missing_backward" in done.stdout
    assert "torch.ops.tilewright_layer_norm.forward_1" in done.stdout
