"""The command line, and the only place that chooses concrete classes. Everything below is handed what it needs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
import traceback
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from engine import loop, supervisor, tasks
from engine.bench import Bench
from engine.cli import arguments, judgement, verbs
from engine.cli.live import LiveView
from engine.cli.verbs import ALREADY_RUNNING, BAD_INPUT, FAILED, INTERRUPTED, MACHINE_LACKS, OK
from engine.errors import EngineError, ToolchainError
from engine.history import History
from engine.llm import LanguageModel
from engine.steering import Inbox
from engine.strategies import Strategy
from engine.toolchains import Toolchain
from engine.toolchains.cached import CachedToolchain, Identified
from storage import codec, commands, liveness
from storage import events as ev
from storage.blobs import Blobs
from storage.folder import RunFolder, find_run, home, runs_folder
from storage.journal import Journal
from storage.records import CommandKind, RunSettings, RunState


def main(argv: list[str] | None = None) -> int:
    """Run one verb; returns the exit code."""
    options = arguments.parse(argv)
    handlers: dict[str, Callable[[Namespace], int]] = {
        "run": run_task,
        "resume": resume_run,
        "list": verbs.list_runs,
        "show": verbs.show_run,
        "command": verbs.send_command,
        "export": verbs.export_kernel,
        "evaluate": evaluate_file,
        "patch": verbs.patch_source,
        "tasks": verbs.list_tasks,
        "doctor": examine_machine,
    }
    try:
        return handlers[options.verb](options)
    except liveness.AlreadyRunningError as error:
        return _complain(error, ALREADY_RUNNING)
    except ToolchainError as error:
        return _complain(error, MACHINE_LACKS)
    except (EngineError, FileNotFoundError, commands.CommandError, codec.DecodeError) as error:
        return _complain(error, BAD_INPUT)
    except KeyboardInterrupt:
        return INTERRUPTED


def run_task(options: Namespace) -> int:
    """Start a run, here or detached."""
    settings = verbs.settings_of(options)
    if options.background:
        print(supervisor.start(settings).run_id)
        return OK
    folder = RunFolder(runs_folder() / settings.run_id)
    folder.write_settings(settings)
    return work(folder, Console())


def resume_run(options: Namespace) -> int:
    """Go on with a run, here or detached."""
    folder = find_run(options.run_id)
    if options.background:
        if liveness.is_held(folder):
            raise liveness.AlreadyRunningError(f"an engine is already working on run {folder.run_id}")
        if os.fork() > 0:
            return OK
        _detach(folder)
    return work(folder, Console())


def work(folder: RunFolder, console: Console) -> int:
    """Be the engine of a run until it ends. Holds the run's lock for life."""
    lock = liveness.hold(folder)
    settings, journal = folder.read_settings(), Journal(folder.journal_file)
    _leave_name(folder)
    history = History.of(settings, journal.entries)
    task = tasks.Task(
        settings.task_name, settings.task_source, settings.sizes, history.kernel_class, policy=settings.policy
    )
    shutil.rmtree(folder.scratch, ignore_errors=True)
    toolchain = _toolchain(settings.toolchain, folder.scratch)
    bench = Bench(folder, journal, history, task, _model(settings), toolchain, Blobs(folder.blobs))
    inbox = Inbox(bench)
    bench.interrupt = inbox.interrupt
    _on_interrupt_ask_to_stop(folder)
    try:
        with LiveView(console, history) as view:
            bench.listeners.append(view)
            ended = _journaled(bench, _strategy(settings), inbox)
    finally:
        toolchain.close()
        shutil.rmtree(folder.scratch, ignore_errors=True)
        journal.close()
        os.close(lock)
    return FAILED if ended.state is RunState.FAILED else OK


def _journaled(bench: Bench, strategy: Strategy, inbox: Inbox) -> ev.RunEnded:
    """Run the loop between its first and final event; our own failure is journaled before it is raised."""
    if not bench.journal.entries:
        bench.emit(ev.RunStarted(bench.folder.run_id, bench.task.name))
    bench.emit(ev.EngineStarted(os.getpid(), bench.history.steps_finished > 0 or bench.history.in_flight is not None))
    try:
        return loop.run(bench, strategy, inbox)
    except Exception as error:  # the one broad catch: whatever broke must be in the journal before the process ends
        blob = bench.blobs.put(traceback.format_exc())
        bench.emit(ev.RunEnded(RunState.FAILED, f"{type(error).__name__}: {error}", bench.history.best_id, blob))
        raise


def evaluate_file(options: Namespace) -> int:
    """Judge a file outside a run."""
    from engine.evaluation import evaluate

    task = tasks.find(options.task).task(options.toolchain, dict(options.overrides))
    try:
        source = Path(options.candidate).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EngineError(f"cannot read candidate {options.candidate}: {error}") from error
    toolchain = _toolchain(options.toolchain)
    try:
        judged: Toolchain = toolchain if options.fresh else CachedToolchain(toolchain, home() / "cache" / "evaluations")
        result = evaluate(judged, task, source, profile=options.profile)
    finally:
        toolchain.close()
    if options.json:
        print(json.dumps(result))
    else:
        judgement.print_judgement(Console(), result)
    return OK


def examine_machine(options: Namespace) -> int:
    """What this machine has and lacks."""
    from engine.doctor import print_findings

    return OK if print_findings(Console()) else MACHINE_LACKS


def _model(settings: RunSettings) -> LanguageModel:
    if settings.model == "recorded":
        from engine.llm.recorded import RecordedModel
        from engine.llm.recording import read_recording

        if settings.recording is None:
            raise EngineError(f"run {settings.run_id} uses recorded replies but names no recording")
        return RecordedModel(read_recording(Path(settings.recording)), settings.reply_seconds)
    from engine.llm.endpoint import EndpointModel

    return EndpointModel.from_environment(settings.model)


def _toolchain(name: str, scratch: Path | None = None) -> Identified:
    if name == "cpu":
        from engine.toolchains.cpu import CpuToolchain

        return CpuToolchain(scratch)
    raise ToolchainError(f"toolchain {name!r} is not available here; use cpu")


def _strategy(settings: RunSettings) -> Strategy:
    from engine.strategies.cutegen import CuteGen

    if settings.strategy != "cutegen":
        raise EngineError(f"unknown strategy {settings.strategy!r}; there is: cutegen")
    return CuteGen()


def _detach(folder: RunFolder) -> None:
    """Leave the launcher's session and terminal: the engine leads a session of its own and writes to its log."""
    os.setsid()
    log = os.open(folder.log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.close(log)
    os.close(nothing)


def _leave_name(folder: RunFolder) -> None:
    """Tell who the engine is: pid and kernel start time together name one process for ever."""
    name = {"pid": os.getpid(), "started": supervisor.process_start(os.getpid()), "at": time.time()}
    folder.engine_file.write_text(json.dumps(name))


def _on_interrupt_ask_to_stop(folder: RunFolder) -> None:
    """The first Ctrl-C ends the run after its step, the second one at once; either way it can be resumed."""

    def ask(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        commands.send(folder.commands_file, CommandKind.STOP)
        print("\nstopping after this step; press Ctrl-C again to leave at once", file=sys.stderr)

    signal.signal(signal.SIGINT, ask)


def _complain(error: BaseException, code: int) -> int:
    print(f"tilewright: {error}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
