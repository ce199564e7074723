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
import tempfile
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
from engine.capabilities import try_model as try_model
from engine.errors import EngineError, TaskError
from engine.evaluator import fitting
from engine.evaluator.fitting import OVERFLOWS as OVERFLOWS
from engine.evaluator.fitting import estimated as estimated
from engine.evaluator.fitting import free_bytes as free_bytes
from engine.evaluator.fitting import refusal as refusal
from engine.evaluator.fitting import unusable as unusable
from engine.evaluator.fitting import why_unknown as why_unknown
from engine.evaluator.tasks import TaskFile, made_of, of_text, problems, shipped_names
from engine.examined import Examined as Examined
from engine.examined import examined as examined
from engine.examined import see_that_it_can_be_shown as see_that_it_can_be_shown
from engine.examples import open_examples as open_examples
from engine.examples import open_first_example as open_first_example
from engine.examples import remove_examples as remove_examples
from engine.examples import shipped_examples as shipped_examples
from engine.networks import applying, optimising
from engine.packaging import networks as network_packages
from engine.packaging import packing
from engine.run_settings import DEMO_TASK as DEMO_TASK
from engine.run_settings import demo_settings as demo_settings
from engine.run_settings import import_settings as import_settings
from engine.run_settings import new_settings as new_settings
from engine.run_settings import recorded_depths as recorded_depths
from engine.run_settings import recording_note as recording_note
from engine.search.methods.catalogue import refused_by as refused_by
from engine.search.prompt_pack import read_pack as read_pack
from storage import codec, files, read_only, untrusted
from storage.home import home
from storage.networks import files as networks
from storage.networks.files import NetworkError, NetworkFolder
from storage.networks.standing import standing
from storage.run import damage, liveness, remeasurements
from storage.run.folder import RunFolder, all_runs, find_run, runs_folder
from storage.run.settings import RunSettings
from storage.run.steering import commands
from storage.run.steering.verbs import CommandKind
from storage.suites import files as suites
from storage.untrusted import UntrustedError

LARGEST_PID = 1 << 31
CAPTURE_LOG, KERNELS_LOG, HUGGING_FACE = "capture.log", "kernels.log", "hf:"
BEGINS_S = 30.0
"""How long is waited until a command of `network` has begun: a capture imports PyTorch first."""
_begun: list[tuple[str, subprocess.Popen[bytes]]] = []
"""What was started from this process, by the network's name."""
ROOT = Path(__file__).resolve().parent.parent
SMALL_NETWORK = "small_decoder"
"""The network that comes with Tilewright, under tasks/networks, and what it is called here."""


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


def packaged_archive(folder: RunFolder, candidate_id: str | None) -> bytes:
    """The package of one kernel as a zip file; raises as `packaged`."""
    return packing.zipped(packing.packaged([folder], packing.Asked(candidate_id=candidate_id)), folder.run_id)


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
    text and name are one file. Without a name, or with that of a shipped task, it gets one that no other text has.

    Raises:
        TaskError: it is no task.
    """
    plain = re.sub(r"\W+", "_", name.strip(), flags=re.ASCII).strip("_")[:60]
    text = text.removeprefix("\ufeff")  # a byte order mark, as editors on Windows write it
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    stem = f"{plain or 'module'}_{digest}" if not plain or plain in shipped_names() else plain
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
        raise EngineError(f"the engine did not start; its log ends with:\n{_tail(folder.log_file)}")


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
    return _tail(folder.log_file, 1).removeprefix("tilewright: ")


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


def capture_network(entry: str, name: str, mode: str, device: str) -> NetworkFolder:
    """Start capturing a network in a session of its own, and wait until it has begun; what it writes is kept in the
    network's folder. Without a name it has that of the entry's file.

    Raises:
        EngineError: the server is read-only, the entry or the name cannot be used, or the capture ended at once; what
            it wrote is quoted.
    """
    read_only.guard(EngineError, "capture networks")
    entry = _entry_of(entry.strip())
    try:
        folder = networks.folder_of(name.strip() or _name_of(entry))
    except NetworkError as error:
        raise EngineError(str(error)) from error
    if folder.network_file.exists() or folder.has_capture_at_work:
        raise EngineError(f"a network {folder.name} was captured here: choose another name, or delete that one")
    command = ["capture", entry, "--name", folder.name, "--mode", mode, "--device", device]
    _begin_capture(folder, command, CAPTURE_LOG, "the capture")
    return folder


def has_small_network() -> bool:
    """Whether the small network came with this Tilewright."""
    return (ROOT / "tasks" / "networks" / SMALL_NETWORK).is_dir()


def try_small_network() -> NetworkFolder:
    """Start `network try` in a session of its own and wait until it has begun: the small network from capture to
    result, with recorded replies.

    Raises:
        EngineError: the server is read-only, the demo run or something else of this network is at work, or it ended at
            once; what it wrote is quoted.
    """
    read_only.guard(EngineError, "capture networks")
    if _is_demo_at_work():
        raise EngineError(
            "the demo run is at work on this machine, and both would be timed wrongly: wait until it ends"
        )
    folder = networks.folder_of(SMALL_NETWORK)
    _see_that_nothing_works_on(folder)
    _begin_capture(folder, ["try"], KERNELS_LOG, "the small network")
    return folder


def _is_demo_at_work() -> bool:
    return any(liveness.is_held(run) and _is_demo(run) for run in all_runs())


def _is_demo(run: RunFolder) -> bool:
    try:
        return run.read_settings().is_demo
    except (OSError, codec.DecodeError, UnicodeDecodeError):
        return False


def _begin_capture(folder: NetworkFolder, command: Sequence[str], log: str, what: str) -> None:
    """Start a command that captures; of one that ends before it has begun nothing is left. Raises EngineError."""
    files.make_folder(folder.path)
    log_file, before = folder.path / log, networks.read(folder)
    if said := _begin(command, log_file, lambda: networks.read(folder) != before):
        log_file.unlink()
        if not before:
            shutil.rmtree(folder.path, ignore_errors=True)
        raise EngineError(f"{what} did not start; it wrote:\n{said}")


def _begin(command: Sequence[str], log_file: Path, has_begun: Callable[[], bool]) -> str:
    """Start a command of `network` in a session of its own and wait until it has begun; what it wrote where it failed
    before."""
    with open(log_file, "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "engine", "network", *command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log,
            stderr=log, start_new_session=True,
        )  # fmt: skip
    _begun[:] = [*(other for other in _begun if other[1].poll() is None), (log_file.parent.name, process)]
    deadline = time.monotonic() + BEGINS_S
    while process.poll() is None and not has_begun() and time.monotonic() < deadline:
        time.sleep(0.05)
    return "" if process.poll() in (None, 0) or has_begun() else _tail(log_file)


def search_kernels(
    name: str, *, top: int | None = None, limits: Mapping[str, float] | None = None, settings: str = "",
    recordings: str = "",
) -> None:  # fmt: skip
    """Start `network optimise` in a session of its own and wait until it has begun: kernels are searched for `top`
    regions, or for all that are worth it, and then put back. `limits` are of all regions together, by their names.

    Raises:
        NetworkError: there is no such network.
        EngineError: the server is read-only, something is at work on the network, or it ended at once; what it wrote is
            quoted.
    """
    read_only.guard(EngineError, "search kernels")
    folder = networks.find(name)
    _see_that_nothing_works_on(folder)
    command = ["optimise", name]
    command += [f"--top={top}"] if top else []
    command += [f"--set-limit={limit}={number:g}" for limit, number in (limits or {}).items()]
    command += [f"--settings={settings}"] if settings else []
    command += [f"--recordings={recordings}"] if recordings else []
    suite = suites.folder_of(optimising.suite_name(name))  # that a search was asked for is journaled before its check
    _begin_kernels(folder, command, "the search", lambda: suite.has_runner or folder.has_proof_at_work)


def put_kernels_back(
    name: str, *, without: Sequence[str] = (), used: Mapping[str, str] | None = None, ways: Sequence[str] = ()
) -> None:
    """Start `network apply` in a session of its own and wait until it has begun: kernels are put back and measured in
    the network, but for the regions in `without`. `used` names runs by region.

    Raises:
        NetworkError: there is no such network.
        EngineError: as of `search_kernels`.
    """
    read_only.guard(EngineError, "measure kernels in networks")
    folder = networks.find(name)
    _see_that_nothing_works_on(folder)
    command = ["apply", name, *(f"--use={region}={run_id}" for region, run_id in (used or {}).items())]
    command += [f"--without={','.join(without)}"] if without else []
    command += [f"--ways={','.join(ways)}"] if ways else []
    before = _journal_size(folder)
    _begin_kernels(
        folder, command, "the measurement", lambda: folder.has_proof_at_work or _journal_size(folder) != before
    )


def is_at_work(name: str) -> bool:
    """Whether a command on this network lives that was started from this process, also before it holds a lock."""
    return any(network == name and process.poll() is None for network, process in _begun)


def _see_that_nothing_works_on(folder: NetworkFolder) -> None:
    """Raises EngineError."""
    if folder.has_capture_at_work:
        raise EngineError(f"network {folder.name} is being captured: wait until that has ended")
    if folder.has_proof_at_work:
        raise EngineError(f"kernels are being measured in network {folder.name} already: wait until that has ended")
    if suites.folder_of(optimising.suite_name(folder.name)).has_runner:
        raise EngineError(f"kernels are being searched for network {folder.name}: wait until that has ended")
    if is_at_work(folder.name):
        raise EngineError(f"what was started here for network {folder.name} is still at work: wait until it has ended")


def _begin_kernels(folder: NetworkFolder, command: Sequence[str], what: str, has_begun: Callable[[], bool]) -> None:
    """Raises EngineError."""
    if said := _begin(command, folder.path / KERNELS_LOG, has_begun):
        raise EngineError(f"{what} did not start; it wrote:\n{said}")


def _journal_size(folder: NetworkFolder) -> int:
    return folder.journal_file.stat().st_size if folder.journal_file.exists() else 0


def network_archive(name: str) -> bytes:
    """The package of the kernels that pay in a network, as a zip file: what `network ship` writes.

    Raises:
        NetworkError: there is no such network, or it is damaged.
        EngineError: no kernel pays, or one of them can be packaged no more.
    """
    stands = standing(networks.find(name))
    if stands.network is None or stands.proof is None or not stands.proof.is_over:
        raise EngineError(f"no kernel was measured in network {name} yet")
    kernels = applying.kept_kernels(stands.network, stands.proof)
    package = network_packages.name_of(name)
    with tempfile.TemporaryDirectory() as target:
        root = Path(target)
        applying.write_package(root, stands.network, kernels, packing.Asked(package), stands.proof)
        texts = {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}
    return packing.zipped(texts, package)


def _entry_of(entry: str) -> str:
    """An entry that means the same wherever it is read. Raises EngineError."""
    if entry.startswith(HUGGING_FACE):
        return entry
    source, _, function = entry.rpartition(":")
    if not (source and function):
        raise EngineError(f"{entry or 'nothing'!r} names no network: write /path/to/app.py:make, a file and a function")
    if not source.endswith(".py"):
        return entry
    path = Path(source).expanduser()
    if not (path.is_absolute() and path.is_file()):
        raise EngineError(f"there is no file {source} on the machine of this server: give its whole path")
    return f"{path}:{function}"


def _name_of(entry: str) -> str:
    """What a network is called that was given no name: as its file, module or configuration."""
    source = entry.removeprefix(HUGGING_FACE) if entry.startswith(HUGGING_FACE) else entry.rpartition(":")[0]
    return re.sub(r"[^A-Za-z0-9._-]+", "_", Path(source).stem).strip("._-") or "network"


def capture_log(folder: NetworkFolder) -> str:
    """The last lines that a capture started from here has written, by itself or as the small network's; empty where
    there are none."""
    return _last_lines(folder.path / CAPTURE_LOG) or _last_lines(folder.path / KERNELS_LOG)


def kernels_log(folder: NetworkFolder) -> str:
    """The last lines of the search or measurement that was started from here last; empty where there are none."""
    return _last_lines(folder.path / KERNELS_LOG)


def _last_lines(path: Path) -> str:
    return _tail(path, 200) if path.exists() else ""


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


def _tail(path: Path, lines: int = 12) -> str:
    try:
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return "(no log)"
