"""A run's engine is alive exactly while a process holds the run's lock."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from storage.locks import AlreadyRunningError
from storage.run import liveness
from storage.run.folder import RunFolder
from tests.storage.children import child, line_from

ENGINE = """
import sys
from pathlib import Path
from storage.run import liveness
from storage.run.folder import RunFolder
liveness.hold(RunFolder(Path(sys.argv[1])))
print("held", flush=True)
sys.stdin.read()
"""
CURIOUS = """
import sys
from pathlib import Path
from storage.run import liveness
from storage.run.folder import RunFolder
print("asking", flush=True)
while True:
    liveness.is_held(RunFolder(Path(sys.argv[1])))
"""


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path)


def test_a_run_never_started_has_no_engine_and_asking_leaves_no_file(run: RunFolder) -> None:
    assert not liveness.is_held(run)
    assert not run.lock_file.exists()


def test_another_processes_engine_is_seen_and_gone_after_kill_9(run: RunFolder) -> None:
    with child(ENGINE, run.path) as engine:
        assert line_from(engine) == "held"
        assert liveness.is_held(run)
        os.kill(engine.pid, signal.SIGKILL)
        engine.wait()
        assert not liveness.is_held(run)


def test_a_second_engine_is_turned_away(run: RunFolder) -> None:
    with child(ENGINE, run.path) as engine:
        assert line_from(engine) == "held"
        with pytest.raises(AlreadyRunningError, match=run.run_id):
            liveness.hold(run)


def test_the_lock_is_free_again_when_an_engine_ends_by_itself(run: RunFolder) -> None:
    with child(ENGINE, run.path) as engine:
        assert line_from(engine) == "held"
        engine.communicate("")
        os.close(liveness.hold(run))


def test_asking_never_keeps_an_engine_out(run: RunFolder) -> None:
    os.close(liveness.hold(run))
    with child(CURIOUS, run.path) as asker:
        assert line_from(asker) == "asking"
        for _ in range(300):
            os.close(liveness.hold(run))


def test_the_holder_sees_its_own_lock(run: RunFolder) -> None:
    lock = liveness.hold(run)
    assert liveness.is_held(run)
    os.close(lock)
    assert not liveness.is_held(run)
