"""The file of what a network gave a module: one that is no such file is told, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.evaluator.checks import recordings
from engine.evaluator.checks.recordings import Unreadable


def test_a_file_that_is_missing_or_holds_something_else_is_told(tmp_path: Path) -> None:
    file = tmp_path / "recorded-0.safetensors"
    with pytest.raises(Unreadable, match="there is no .*: judge it where the network was captured"):
        recordings.read(str(file))
    file.write_bytes(b"something else" * 9)
    with pytest.raises(Unreadable, match=r"recorded-0\.safetensors cannot be read .*: capture the network again"):
        recordings.read(str(file))
