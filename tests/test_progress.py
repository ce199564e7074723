"""What a person reads while the tests run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.progress import Progress, clock

ROOT = Path(__file__).resolve().parent.parent


def test_failures_are_told_at_once_and_the_summary_is_pytests_own(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(
        "def test_good(): pass\ndef test_bad(): assert 1 == 2\ndef test_later(): pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.progress", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    lines = [line for line in done.stdout.splitlines() if line]
    assert lines[0].startswith("FAILED ")
    assert lines[0].endswith("test_some.py::test_bad")
    assert "assert 1 == 2" in done.stdout
    assert lines[-1].startswith("1 failed, 2 passed in ")


def test_what_takes_long_is_named() -> None:
    class Reporter:
        isatty = True

    class Session:
        testscollected = 9

    progress = Progress(Reporter())  # type: ignore[arg-type]
    progress.session = Session()  # type: ignore[assignment]
    progress.began -= 61
    for name, seconds in (("tests/browser/test_slow.py::test_a", 31), ("tests/test_quick.py::test_b", 1)):
        progress.running[name] = progress.began + 61 - seconds
    progress.done, progress.failed = 4, 1
    assert progress.line() == "4 of 9 tests · 1:01 · 1 failed · 31 s in browser/test_slow.py::test_a"
    assert clock(600) == "10:00"
