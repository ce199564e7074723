"""Starting, finding and stopping engine processes on this machine. Imports neither torch nor the loop.

An engine is a process of its own session: it outlives the tab, the server and the terminal. Whether it lives is told by
the lock it holds, never by a pid.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from engine import examples, exporting, forking, recording_runs, remeasuring, replaying
from engine.capabilities import FREE_MODELS as FREE_MODELS
from engine.capabilities import Finding as Finding
from engine.capabilities import available_models as available_models
from engine.capabilities import available_toolchains as available_toolchains
from engine.capabilities import cost_of as cost_of
from engine.capabilities import day_limits as day_limits
from engine.capabilities import examine as examine
from engine.capabilities import has_gpu as has_gpu
from engine.capabilities import is_model_configured as is_model_configured
from engine.capabilities import price_note as price_note
from engine.capabilities import see_that_money_can_be_kept as see_that_money_can_be_kept
from engine.capabilities import set_day_limits as set_day_limits
from engine.capabilities import spent_today as spent_today
from engine.connecting import key_place as key_place
from engine.connecting import profiles as profiles
from engine.connecting import remove_model as remove_model
from engine.connecting import save_model as save_model
from engine.connecting import saved_models as saved_models
from engine.connecting import try_model as try_model
from engine.errors import EngineError, TaskError
from engine.evaluator import fitting
from engine.evaluator.fitting import OVERFLOWS as OVERFLOWS
from engine.evaluator.fitting import estimated as estimated
from engine.evaluator.fitting import free_bytes as free_bytes
from engine.evaluator.fitting import refusal as refusal
from engine.evaluator.fitting import unusable as unusable
from engine.evaluator.fitting import why_unknown as why_unknown
from engine.evaluator.tasks import TaskFile, made_of, named_after, of_text, problems, shipped_names
from engine.examined import Examined as Examined
from engine.examined import examined as examined
from engine.examined import see_that_it_can_be_shown as see_that_it_can_be_shown
from engine.examined import see_that_it_runs as see_that_it_runs
from engine.examples import SHOWN_FIRST as SHOWN_FIRST
from engine.examples import example_files as example_files
from engine.examples import open_examples as open_examples
from engine.examples import open_first_example as open_first_example
from engine.examples import record_of as record_of
from engine.examples import remove_examples as remove_examples
from engine.examples import shipped_examples as shipped_examples
from engine.learned_examples import learn_from_examples as learn_from_examples
from engine.packaging import packing
from engine.run_settings import DEMO_TASK as DEMO_TASK
from engine.run_settings import demo_settings as demo_settings
from engine.run_settings import import_settings as import_settings
from engine.run_settings import new_settings as new_settings
from engine.run_settings import recorded_calls as recorded_calls
from engine.run_settings import recorded_depths as recorded_depths
from engine.run_settings import recording_note as recording_note
from engine.search.methods.catalogue import refused_by as refused_by
from engine.search.prompt_pack import read_pack as read_pack
from storage import files, read_only, untrusted
from storage.home import home
from storage.run import damage, liveness, remeasurements
from storage.run.folder import RunFolder, find_run, runs_folder
from storage.run.settings import RunSettings
from storage.run.steering import commands
from storage.run.steering.verbs import CommandKind
from storage.untrusted import UntrustedError

LARGEST_PID = 1 << 31
ROOT = Path(__file__).resolve().parent.parent


def recording_of(folder: RunFolder) -> str:
    """A run's replies as the text of a recording, without keys and addresses.

    Raises:
        EngineError: the run has had no reply yet, or a text of it is missing.
    """
    return recording_runs.recording_of(folder)


def exported(folder: RunFolder, candidate_id: str | None = None, *, is_measured: bool = False) -> str:
    """A run's best kernel, or another one, as one Python file that needs no Tilewright: what `export` writes. With a
    measurement, which takes about ten seconds, its head tells what it is worth in one process here.

    Raises:
        EngineError: no such kernel, none that is correct yet, or one that is not valid Python.
    """
    return exporting.exported(folder, candidate_id, is_measured=is_measured)


def packaged(folders: Sequence[RunFolder], asked: packing.Asked) -> dict[str, str]:
    """Kernels of runs as an installable package: what `package` writes, as texts by path.

    Raises:
        EngineError: there is nothing to package, or nothing that a package can hold.
    """
    return packing.packaged(folders, asked)


def packaged_kernel(folder: RunFolder, candidate_id: str) -> dict[str, str]:
    """The package of one kernel; returns and raises as `packaged`."""
    return packing.packaged([folder], packing.Asked(candidate_id=candidate_id))


def archived(files: Mapping[str, str], name: str) -> bytes:
    """Texts by path as a zip file, in a folder of that name."""
    return packing.zipped(files, name)


def solution(folder: RunFolder, candidate_id: str | None, form: str) -> str:
    """A run's kernel as a solution in JSON of the problem that its task was made from, for another benchmark.

    Raises:
        EngineError: as of `exported`, or the task was made from no problem.
    """
    return exporting.solution(folder, candidate_id, form)


def see_that_it_fits(settings: RunSettings, task: TaskFile) -> None:
    """See that this host has the memory to judge a run's task, before there is a run. On a GPU it is the device's that
    counts, and it tells; a shipped task at its own sizes or smaller ones is not asked about, as that takes seconds.

    Raises:
        TaskError: it has not; the message says what would fit.
    """
    usual = task.task(settings.toolchain).sizes
    is_larger = any(size > usual.get(name, 0) for name, size in settings.sizes.items())
    if not has_gpu(settings.toolchain) and (is_larger or not task.is_shipped):
        fitting.see_that_it_fits(settings.task_source, settings.sizes, backward=settings.policy.backward)


def module_of(text: str, name: str) -> TaskFile:
    """A module that a person has pasted or uploaded, as `keep_module` would keep it under TILEWRIGHT_HOME; the same
    text and name are one file. Without a name it is named after what it calls; that name, or one of a shipped task, is
    made one that no other text has.

    Raises:
        TaskError: it is no task.
    """
    plain = re.sub(r"\W+", "_", name.strip(), flags=re.ASCII).strip("_")[:60]
    text = text.removeprefix("\ufeff")  # a byte order mark, as editors on Windows write it
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    stem = f"{plain or named_after(text)}_v{digest}" if not plain or plain in shipped_names() else plain
    path = _modules() / digest / f"{stem}.py"
    try:
        return of_text(text, path)
    except TaskError as error:
        raise TaskError(str(error).replace(str(path), plain or "module")) from None


def problem_of(definition: str, workloads: str) -> TaskFile:
    """A problem of SOL-ExecBench or flashinfer-bench that a person has uploaded, as `keep_module` would keep it.

    Raises:
        TaskError: one of its files cannot be used.
    """
    digest = hashlib.sha256(f"{definition}\n{workloads}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
    path = _modules() / digest / problems.DEFINITION
    try:
        return made_of(problems.of_texts(definition, workloads, path), path)
    except TaskError as error:
        raise TaskError(str(error).replace(str(path), path.name).replace(f"{path.parent}/", "")) from None


def keep_module(task: TaskFile) -> None:
    """Write the file of a module that was pasted or uploaded, once. Any other task is on disk already.

    Raises:
        EngineError: this server only shows runs, or the file cannot be written.
    """
    if task.path.exists() or not task.path.is_relative_to(_modules()):
        return
    read_only.guard(EngineError, "keep modules")
    try:
        task.path.parent.mkdir(parents=True, exist_ok=True)
        for name, text in (task.made_from or {task.path.name: task.text}).items():
            files.replace(task.path.with_name(name), text.encode())
    except OSError as error:
        raise EngineError(f"the module cannot be kept: {files.explained(error)}") from error
    except UnicodeEncodeError as error:
        raise EngineError(f"the module cannot be kept: {error}") from error


def _modules() -> Path:
    return home() / "modules"


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
        EngineError: the server is read-only, an engine is already at work, the journal is damaged, or it could not be
            started.
    """
    read_only.guard(EngineError, "resume runs")
    if liveness.is_held(folder):
        raise EngineError(f"run {folder.run_id} is already running: stop it first, or steer it while it runs")
    examples.refuse(folder)
    refuse_damaged(folder)
    _launch(folder, "resume", folder.run_id)


def refuse_damaged(folder: RunFolder) -> None:
    """Keep an engine from a run whose journal has holes: what was done and paid for cannot be told from it.

    Raises:
        EngineError: it has; the message says what is missing and what to do.
    """
    if why := damage.refusal(folder):
        raise EngineError(why)


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
        raise EngineError(f"the engine did not start; its log ends with:\n{tail(folder.log_file)}")


def advance(folder: RunFolder, device: str | None = None) -> tuple[int, str]:
    """Let an engine work on a run until it waits for a person or is over; `device` takes the place of the run's own.

    Returns the engine's exit code and the last line of its log, which says why it could not work where it could not.
    """
    engine = begin(folder, device)
    return engine.wait(), said_last(folder)


def begin(folder: RunFolder, device: str | None = None) -> subprocess.Popen[bytes]:
    """Start an engine that works on a run until it waits for a person or is over. It outlives whoever started it."""
    read_only.guard(EngineError, "resume runs")
    named = [] if device is None else ["--device", device]
    with open(folder.log_file, "ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "engine", "resume", folder.run_id, "--until-waiting", *named],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def said_last(folder: RunFolder) -> str:
    """The last line of an engine's log."""
    return tail(folder.log_file, 1).removeprefix("tilewright: ")


def fork(folder: RunFolder, candidate_id: str, hint: str = "", asked_by: str = "", **changes: Any) -> RunFolder:
    """Start a new run that begins with a kernel of another one, judged anew before it counts.

    `changes` are fields of the settings that differ, such as model, budget, kernel_class and strategy_options, and
    `options` of its strategy where that must not be imported here.

    Raises:
        EngineError: no such kernel, the model cannot keep to the money budget, or the engine did not start.
        FileNotFoundError: the kernel's text is missing.
    """
    read_only.guard(EngineError, "fork runs")
    settings = forking.fork_settings(folder, candidate_id, **changes)
    see_that_money_can_be_kept(settings)
    new_run = forking.lay_out(settings, folder)
    if hint.strip():
        commands.send(new_run.commands_file, CommandKind.HINT, hint.strip(), asked_by)
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
        raise EngineError(f"run {run_id} is still running: replay it when it has ended")
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
        raise EngineError(f"{run_id} is not a replay: only replays can be deleted")
    if liveness.is_held(folder) and not stop(folder):
        raise EngineError(f"replay {run_id} could not be stopped, so it was not deleted")
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


def sweep_scratch() -> None:
    """Remove the work spaces of runs whose engines were killed; a resumed run makes its own anew."""
    for scratch in runs_folder().glob("*/scratch"):
        with suppress(OSError):
            if not liveness.is_held(RunFolder(scratch.parent)):
                scratch.rename(scratch.with_name(f".scratch.{os.getpid()}"))
    for gone in runs_folder().glob("*/.scratch.*"):
        shutil.rmtree(gone, ignore_errors=True)


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
    """Pid of the run's engine, only if that process is the one which wrote engine.json.

    Trap: a pid of 0 would mean this process's own group, and 1 or less everybody's.
    """
    try:
        written = untrusted.read_json(folder.engine_file)
        pid, started = written["pid"], written["started"]
    except (FileNotFoundError, UntrustedError, KeyError, TypeError):
        return None
    if type(pid) is not int or not 1 < pid < LARGEST_PID or pid == os.getpgrp() or not isinstance(started, str):
        return None
    return pid if process_start(pid) == started else None


def tail(path: Path, lines: int = 12) -> str:
    """The last lines of a log."""
    try:
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return "(no log)"
