"""An engine as a run has it, but for the time it samples each kernel: `python -m tests.engine.brief_engine RUN`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from rich.console import Console

import engine.__main__ as command_line
from engine.evaluation.limits import Times
from engine.toolchains.cpu import CpuToolchain
from storage.folder import RunFolder, find_run

ROOT = Path(__file__).resolve().parent.parent.parent


def start(folder: RunFolder) -> subprocess.Popen[bytes]:
    """A process that works on the run until it ends."""
    with open(folder.log_file, "ab") as log:
        command = [sys.executable, "-m", "tests.engine.brief_engine", folder.run_id]
        return subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)


def toolchain(name: str, scratch: Path | None = None) -> CpuToolchain:
    assert name == "cpu"
    return CpuToolchain(scratch, Times(check_s=2.0, timing_s=0.5))


if __name__ == "__main__":
    command_line._toolchain = toolchain
    sys.exit(command_line.work(find_run(sys.argv[1]), Console()))
