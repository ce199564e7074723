"""Starting, finding and stopping engine processes on this machine. Imports neither torch nor the loop.

An engine is a process of its own session: it outlives the tab, the server and the terminal. Whether it lives is told by
the lock it holds, never by a pid.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine import tasks
from engine.errors import EngineError, ModelError
from engine.llm.environment import configured_model, is_configured
from engine.llm.recording import read_recording, shipped_recording
from storage import liveness
from storage.folder import RunFolder, runs_folder
from storage.records import Budget, KernelClass, RunSettings, Switch

ROOT = Path(__file__).resolve().parent.parent
DEMO_TASK = "square_matmul"
REPLAY_SECONDS = 2.0
RECORDED_DEPTHS: Mapping[str, int] = {"square_matmul": 10, "swish": 8, "softmax": 6}


def new_settings(
    task: str,
    *,
    toolchain: str = "cpu",
    model: str | None = None,
    overrides: Mapping[str, int | float] | None = None,
    **fields: Any,
) -> RunSettings:
    """Settings of a run that does not exist yet. Without a model: recorded replies if no endpoint is configured.

    Raises:
        TaskError: no such task, or an override names nothing in it.
        ModelError: the model cannot work on this task here.
    """
    chosen = tasks.find(task).task(toolchain, overrides)
    model = model or available_models()[0]
    recording = fields.pop("recording", None)
    if model == "recorded":
        recording = recording or _recording_for(chosen.name)
        read_recording(Path(recording))
        fields.setdefault("reply_seconds", REPLAY_SECONDS)
        # A recording follows one line of kernels; a policy that reacts to timing noise would leave it.
        fields.setdefault("base_policy", "latest")
        fields.setdefault("budget", Budget(depths=RECORDED_DEPTHS.get(chosen.name, Budget().depths)))
    created = time.time()
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(created))
    return RunSettings(
        run_id=f"{chosen.name[:60]}-{stamp}-{secrets.token_hex(2)}",
        task_name=chosen.name,
        task_source=chosen.source,
        kernel_class=chosen.kernel_class or KernelClass.OTHER,
        class_is_proposed=chosen.kernel_class is None,
        sizes=chosen.sizes,
        toolchain=toolchain,
        model=model,
        recording=recording,
        policy=chosen.policy,
        created_at=created,
        **fields,
    )


def demo_settings() -> RunSettings:
    """The run that a first start shows: square matmul, recorded replies, every kernel profiled for the watcher."""
    return new_settings(DEMO_TASK, toolchain="cpu", model="recorded", collect=Switch.ON, is_demo=True)


def available_models() -> list[str]:
    """Model names that a run can use here, the default first."""
    return [configured_model(), "recorded"] if is_configured() else ["recorded"]


def available_toolchains() -> dict[str, str]:
    """Toolchain names with the reason why one is not available here (empty when it is)."""
    return {"cpu": "" if shutil.which("g++") else "g++ is not installed (on Debian: apt install g++)"}


def start(settings: RunSettings) -> RunFolder:
    """Write the run's folder and start its engine.

    Raises:
        EngineError: the engine could not be started; its log is quoted.
    """
    folder = RunFolder(runs_folder() / settings.run_id)
    folder.write_settings(settings)
    resume(folder)
    return folder


def resume(folder: RunFolder) -> None:
    """Start an engine on an existing run; it goes on where the journal ends.

    Raises:
        EngineError: an engine is already at work, or it could not be started.
    """
    if liveness.is_held(folder):
        raise EngineError(f"an engine is already working on run {folder.run_id}")
    with open(folder.log_file, "ab") as log:
        # The launcher starts the engine and exits at once, so no server is the engine's parent or has to reap it.
        launcher = subprocess.run(
            [sys.executable, "-m", "engine", "resume", folder.run_id, "--background"],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            timeout=60,
            check=False,
        )
    if launcher.returncode != 0:
        raise EngineError(f"the engine did not start; its log ends with:\n{_tail(folder.log_file)}")


def is_alive(folder: RunFolder) -> bool:
    """True while an engine works on the run."""
    return liveness.is_held(folder)


def stop(folder: RunFolder, grace_s: float = 5.0) -> bool:
    """End an engine now, without waiting for its step: SIGTERM, then SIGKILL to its session. False if none lived.

    The journal stays whole and the run can be resumed. To end a run in an orderly way send it the stop command.
    """
    pid = _engine_pid(folder)
    if pid is None or not liveness.is_held(folder):
        return False
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(pid, number)
        except ProcessLookupError:
            return True
        deadline = time.monotonic() + grace_s
        while time.monotonic() < deadline:
            if not liveness.is_held(folder):
                return True
            time.sleep(0.02)
    return not liveness.is_held(folder)


def process_start(pid: int) -> str | None:
    """Kernel start time of a process (field 22 of /proc/PID/stat): with the pid it names one process for ever."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return stat.rpartition(")")[2].split()[19]


def _engine_pid(folder: RunFolder) -> int | None:
    """Pid of the run's engine, only if that process is the one which wrote engine.json."""
    try:
        known = json.loads(folder.engine_file.read_text())
        pid = int(known["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return pid if process_start(pid) == known.get("started") else None


def _recording_for(task_name: str) -> str:
    path = shipped_recording(task_name)
    if path is None:
        raise ModelError(
            f"there is no recording for task {task_name!r}: set OPENAI_API_KEY (and OPENAI_BASE_URL) to use a live "
            "model, or choose a task that comes with a recording"
        )
    return str(path)


def _tail(path: Path, lines: int = 12) -> str:
    try:
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return "(no log)"
