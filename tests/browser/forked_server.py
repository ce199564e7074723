"""A dashboard as a fork of a process that has imported what it needs: a new one takes two seconds of processor time
until its first page stands, and tests start dozens. tests/test_setup.py starts one as `make run` does.
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from collections.abc import Mapping
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
CONTEXT = get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.browser.imported"])


class Forked:
    """A fork as `subprocess` gives a process."""

    def __init__(self, process: ForkServerProcess) -> None:
        # A fork imports what its parent calls __main__, and a test of a page leaves that page there.
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, "__main__", ModuleType("__main__"))
            process.start()
        self._process = process
        self.pid = process.pid or 0

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("a server", timeout or 0.0)
        return self._process.exitcode

    def send_signal(self, signal: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal)

    def kill(self) -> None:
        self._process.kill()


def start(port: int, log: Path, variables: Mapping[str, str]) -> Forked:
    """`python -m streamlit run app.py` with these variables and no others, writing into `log`."""
    return Forked(CONTEXT.Process(target=_serve, args=(port, str(log), dict(variables))))


def _serve(port: int, log: str, variables: Mapping[str, str]) -> None:
    written = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for stream in (1, 2):
        os.dup2(written, stream)
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(ROOT)
    sys.path[0] = str(ROOT)
    sys.argv = ["streamlit", "run", "app.py", "--server.headless=true", f"--server.port={port}"]
    runpy.run_module("streamlit", run_name="__main__")
