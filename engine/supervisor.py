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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine import daily, forking, recording_runs, remeasuring, replaying, tasks
from engine.daily import Ledger
from engine.errors import EngineError, ModelError
from engine.llm.environment import configured_model, is_configured
from engine.llm.prices import FILE, read_prices
from engine.llm.recording import read_recording, shipped_recording
from storage import commands, liveness, read_only, remeasurements
from storage.attendance import MANUAL
from storage.folder import RunFolder, find_run, home, runs_folder
from storage.models import ModelRole, for_role
from storage.records import Budget, CommandKind, KernelClass, RunSettings, Switch

ROOT = Path(__file__).resolve().parent.parent
DEMO_TASK = "square_matmul"
REPLAY_SECONDS = 2.0
FREE_MODELS = ("recorded", MANUAL)
RECORDED_DEPTHS: Mapping[str, Mapping[str, int]] = {
    "cpu": {"square_matmul": 10, "swish": 8, "softmax": 6},
    "cuda": {"square_matmul": 5, "swish": 5, "softmax": 7, "diagonal_matmul": 3},
}


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
        recording = recording or _recording_for(chosen.name, toolchain)
        overrides = _as_recorded(Path(recording), fields, overrides, chosen.sizes)
        chosen = tasks.find(task).task(toolchain, overrides)
        fields.setdefault("reply_seconds", REPLAY_SECONDS)
        # A recording follows one line of kernels; a policy that reacts to timing noise would leave it.
        fields.setdefault("base_policy", "latest")
        fields.setdefault("budget", Budget(depths=recorded_depths(chosen.name, toolchain) or Budget().depths))
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


def import_settings(
    task: str, *, toolchain: str, model: str | None, overrides: Mapping[str, int | float] | None, depths: int
) -> RunSettings:
    """Settings of a run that is filled from elsewhere. Who goes on from it: the model named, an endpoint, or a person.

    Raises:
        TaskError: no such task.
    """
    model = model or (configured_model() if is_configured() else MANUAL)
    return new_settings(task, toolchain=toolchain, model=model, overrides=overrides, budget=Budget(depths=depths))


def demo_settings() -> RunSettings:
    """The run that a first start shows: square matmul, recorded replies, every kernel profiled for the watcher."""
    return new_settings(DEMO_TASK, toolchain="cpu", model="recorded", collect=Switch.ON, is_demo=True)


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's report; `remedy` says what to do and is empty when all is well."""

    section: str
    name: str
    is_ok: bool
    detail: str
    remedy: str
    is_required: bool


def examine(limit_s: float = 240.0) -> list[Finding]:
    """What this machine has and lacks, found out by a child: it raises walls and tries the profiler.

    Raises:
        EngineError: the doctor itself did not come to an end.
    """
    command = [sys.executable, "-m", "engine", "doctor", "--json"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=limit_s, check=False)
        return [Finding(**one) for one in json.loads(done.stdout)]
    except subprocess.TimeoutExpired as error:
        raise EngineError(f"the doctor did not come to an end within {limit_s:.0f} s") from error
    except (ValueError, TypeError, OSError) as error:
        said = done.stderr.strip().splitlines()[-1:] if isinstance(error, ValueError) else [str(error)]
        raise EngineError(f"the doctor failed: {' '.join(said) or 'it said nothing'}") from error


def recorded_depths(task_name: str, toolchain: str) -> int | None:
    """How many depths the shipped recording of a task goes, None when there is none."""
    return RECORDED_DEPTHS.get(toolchain, {}).get(task_name)


def available_models() -> list[str]:
    """Model names that a run can use here, the default first."""
    return [configured_model(), "recorded", MANUAL] if is_configured() else ["recorded", MANUAL]


def recording_of(folder: RunFolder) -> str:
    """A run's replies as the text of a recording, without keys and addresses.

    Raises:
        EngineError: the run has had no reply yet, or a text of it is missing.
    """
    return recording_runs.recording_of(folder)


def price_note(model: str) -> str:
    """What is wrong with the price of a model, as a sentence; empty when its cost will be known."""
    try:
        price = read_prices(home() / FILE).get(model)
    except ModelError as error:
        return str(error)
    if price is None or price.input is None or price.output is None:
        return f"The price of {model} is not in {home() / FILE}: its cost will be unknown and no money budget can hold."
    return ""


def see_that_money_can_be_kept(settings: RunSettings) -> None:
    """See that a run with a money budget asks no model whose price is unknown.

    Raises:
        ModelError: one of them is; the message says where to state its price.
    """
    if settings.budget.cost_usd is None or settings.model in FREE_MODELS:
        return
    asked = {for_role(settings.model_options, role).model or settings.model for role in ModelRole}
    for model in sorted(asked):
        if note := price_note(model):
            raise ModelError(note)


def spent_today() -> list[tuple[str, float, float]]:
    """(words, used, allowed) of every limit that budget.toml sets for a day; none when it cannot be read."""
    try:
        return Ledger(home()).shares()
    except (ModelError, OSError):
        return []


def day_limits() -> dict[str, float]:
    """The limits of a day by name: calls, tokens, cost (US dollars). Empty when none are set.

    Raises:
        ModelError: budget.toml cannot be read.
    """
    return daily.read_limits(home() / daily.FILE)


def set_day_limits(limits: Mapping[str, float]) -> None:
    """Set the limits of a day for all runs under this home; a limit that is not named is none.

    Raises:
        EngineError: budget.toml holds something else than limits, or this server only shows runs.
    """
    read_only.guard(EngineError, "set limits")
    daily.write_limits(home() / daily.FILE, limits)


def available_toolchains() -> dict[str, str]:
    """Toolchain names with the reason why one is not available here (empty when it is)."""
    return {
        "cpu": "" if shutil.which("g++") else "g++ is not installed (on Debian: apt install g++)",
        "cuda": _why_no_cuda(),
    }


def _why_no_cuda() -> str:
    """Seen without asking the driver: the doctor looks closely."""
    if not any(Path("/dev").glob("nvidia[0-9]*")):
        return "no NVIDIA GPU on this machine"
    places = [shutil.which("nvcc"), *(f"{os.environ.get(name)}/bin/nvcc" for name in ("CUDA_HOME", "CUDA_PATH"))]
    if not any(place and Path(place).exists() for place in (*places, "/usr/local/cuda/bin/nvcc")):
        return "nvcc is not installed (the CUDA toolkit, or NVIDIA's pip packages)"
    return ""


def start(settings: RunSettings) -> RunFolder:
    """Write the run's folder and start its engine.

    Raises:
        EngineError: the server is read-only, or the engine could not be started; its log is quoted.
    """
    read_only.guard(EngineError, "start runs")
    folder = RunFolder(runs_folder() / settings.run_id)
    folder.write_settings(settings)
    resume(folder)
    return folder


def resume(folder: RunFolder) -> None:
    """Start an engine on an existing run; it goes on where the journal ends.

    Raises:
        EngineError: the server is read-only, an engine is already at work, or it could not be started.
    """
    read_only.guard(EngineError, "resume runs")
    if liveness.is_held(folder):
        raise EngineError(f"an engine is already working on run {folder.run_id}")
    _launch(folder, "resume", folder.run_id)


def _launch(folder: RunFolder, *verb: str) -> None:
    """Start a process of its own through a launcher that ends at once, so no server is its parent or has to reap it.

    Raises:
        EngineError: it did not start; its log is quoted.
    """
    with open(folder.log_file, "ab") as log:
        launcher = subprocess.run(
            [sys.executable, "-m", "engine", *verb, "--background"],
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


def fork(folder: RunFolder, candidate_id: str, hint: str = "", asked_by: str = "", **changes: Any) -> RunFolder:
    """Start a new run that begins with a kernel of another one, judged anew before it counts.

    `changes` are fields of the settings that differ: model, budget, kernel_class, base_policy, expose_from_depth.

    Raises:
        EngineError: no such kernel, the model cannot keep to the money budget, or the engine did not start.
        FileNotFoundError: the kernel's text is missing.
    """
    read_only.guard(EngineError, "fork runs")
    settings = forking.fork_settings(folder, candidate_id, **changes)
    see_that_money_can_be_kept(settings)
    made = forking.lay_out(settings, folder)
    if hint.strip():
        commands.send(made.commands_file, CommandKind.HINT, hint.strip(), asked_by)
    return start(settings)


def start_replay(run_id: str, speed: float | None, within_s: float = 120.0) -> RunFolder:
    """Start telling a run once more, `speed` times as fast; without a speed within so many seconds.

    Raises:
        FileNotFoundError: no such run.
        EngineError: the run is still at work, cannot be replayed, or this server only shows runs.
    """
    read_only.guard(EngineError, "replay runs")
    original = find_run(run_id)
    if liveness.is_held(original):
        raise EngineError(f"an engine is still working on run {run_id}: there is no end to tell yet")
    folder = replaying.prepare(replaying.settings_of(original, speed, within_s), original)
    resume(folder)
    return folder


def delete_replay(run_id: str) -> None:
    """Delete a replay's folder; the run it told is not touched.

    Raises:
        FileNotFoundError: no such run.
        EngineError: it is no replay, it could not be ended, or this server only shows runs.
    """
    read_only.guard(EngineError, "delete replays")
    folder = find_run(run_id)
    if folder.read_settings().replay_of is None:
        raise EngineError(f"{run_id} is no replay: only replays can be deleted")
    if liveness.is_held(folder) and not stop(folder):
        raise EngineError(f"the replay {run_id} could not be ended")
    shutil.rmtree(folder.path)


def remeasure(first: tuple[str, str], second: tuple[str, str], rounds: int = remeasurements.ROUNDS) -> str:
    """Start timing two kernels again, each a run and a kernel's number or id; returns the re-measurement's id.

    Raises:
        FileNotFoundError: no such run.
        EngineError: they cannot be measured against one baseline, or this server only shows runs.
    """
    read_only.guard(EngineError, "measure kernels")
    request = remeasuring.request_of(first, second, rounds)
    _launch(remeasurements.create(request), "remeasure", "--go-on", request.remeasure_id)
    return request.remeasure_id


def stop_remeasuring(remeasure_id: str) -> bool:
    """End a re-measurement now. False when none was at work."""
    return stop(remeasurements.folder_of(remeasure_id))


def is_alive(folder: RunFolder) -> bool:
    """True while an engine works on the run."""
    return liveness.is_held(folder)


def stop(folder: RunFolder, grace_s: float = 5.0, tell: Callable[[str], None] = lambda word: None) -> bool:
    """End an engine now, without waiting for its step: SIGTERM, then SIGKILL to its session. False if none lived.

    The journal stays whole and the run can be resumed. To end a run in an orderly way send it the stop command.
    `tell` hears each step of it as it is taken, in words for a person.

    Raises:
        EngineError: the server is read-only.
    """
    read_only.guard(EngineError, "stop runs")
    pid = _engine_pid(folder)
    if pid is None or not liveness.is_held(folder):
        return False
    for number in (signal.SIGTERM, signal.SIGKILL):
        tell(f"{number.name} to the engine and all it started; {grace_s:g} s to end")
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


def _recording_for(task_name: str, toolchain: str) -> str:
    path = shipped_recording(task_name, toolchain)
    if path is None:
        raise ModelError(
            f"there is no {toolchain} recording for task {task_name!r}: set OPENAI_API_KEY (and OPENAI_BASE_URL) to "
            "use a live model, or choose a task that comes with a recording"
        )
    return str(path)


def _tail(path: Path, lines: int = 12) -> str:
    try:
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return "(no log)"


def _as_recorded(
    path: Path, fields: dict[str, Any], overrides: Mapping[str, int | float] | None, known: Mapping[str, int | float]
) -> dict[str, int | float]:
    """Sizes and settings as the run was recorded, where none are given: so the same kernels lead to the same calls."""
    recorded = read_recording(path).header.get("settings")
    if not isinstance(recorded, dict):
        return dict(overrides or {})
    for name in ("base_policy", "max_repairs", "max_regenerations", "expose_from_depth"):
        if name in recorded:
            fields.setdefault(name, recorded[name])
    if isinstance(recorded.get("depths"), int):
        fields.setdefault("budget", Budget(depths=recorded["depths"]))
    sizes = recorded["sizes"] if isinstance(recorded.get("sizes"), dict) else {}
    return dict(overrides or {n: v for n, v in sizes.items() if n in known and isinstance(v, (int, float))})
