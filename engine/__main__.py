"""The command line, and the only place that chooses concrete classes. Everything below is handed what it needs."""

from __future__ import annotations

import json
import os
import select
import shutil
import sys
import time
import traceback
from argparse import Namespace
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from engine import examples, supervisor
from engine.cli import (
    advance,
    arguments,
    engine_process,
    given,
    judgement,
    kernel_files,
    knowledge,
    labelling,
    lint,
    networks,
    person,
    pool_status,
    reproducing,
    sharing,
    subcommands,
    suites,
)
from engine.cli.live import LiveView, next_commands
from engine.cli.subcommands import ALREADY_RUNNING, BAD_INPUT, FAILED, INTERRUPTED, MACHINE_LACKS, OK
from engine.cli.terminal import Console, plain_streams
from engine.errors import EngineError, PersonNeeded, ToolchainError
from engine.evaluator import languages, tasks, toolchain_table
from engine.evaluator.machine import devices
from engine.evaluator.pool import LOCAL, POOL, Pool, pool_name
from engine.evaluator.pool.local import LocalPool
from engine.evaluator.pool.pooled import PooledToolchain
from engine.evaluator.request import Evaluator
from engine.evaluator.toolchains.cached import CachedToolchain
from engine.importing import import_kernels, read_kernels, take_over_kernel
from engine.knowledge import consulting
from engine.search import abreast, accounts, calling, loop, prompt_pack, prompting
from engine.search.actions import Finish
from engine.search.context import RunContext
from engine.search.human.inbox import LEFT, Inbox
from engine.search.llm import LanguageModel, environment, trial
from engine.search.llm.manual import ManualModel
from engine.search.llm.opening import Models, OnDivergence
from engine.search.llm.prices import Price
from engine.search.llm.recorded import open_recorded
from engine.search.methods import words_of
from engine.search.methods.loading import open_strategy
from storage import codec, files, locks
from storage.device_use import DEVICE
from storage.home import home
from storage.knowledge import files as knowledge_files
from storage.knowledge.exported import KnowledgeError
from storage.networks import files as network_files
from storage.networks.files import NetworkError
from storage.run import events as ev
from storage.run import liveness, saved_models
from storage.run.blobs import Blobs
from storage.run.folder import RunFolder, find_run, runs_folder
from storage.run.journal import DamagedJournalError, Journal
from storage.run.models import ModelOptions, read_options
from storage.run.record import Record
from storage.run.saved_models import ModelKind, SavedModel
from storage.run.settings import RunState
from storage.run.steering import commands
from storage.run.steering.verbs import CommandKind
from storage.suites.files import SuiteError
from storage.untrusted import UntrustedError

GIVEN_BYTES = 1 << 20


def main(argv: list[str] | None = None) -> int:
    """Run one verb; returns the exit code."""
    options = arguments.parse(argv)
    with plain_streams():
        return _done(options)


def _done(options: Namespace) -> int:
    handlers: dict[str, Callable[[Namespace], int]] = {
        "run": run_task,
        "resume": resume_run,
        "advance": advance.advance_runs,
        "list": subcommands.list_runs,
        "show": subcommands.show_run,
        "label": labelling.label_runs,
        "mark": labelling.mark_kernel,
        "delete": labelling.delete_runs,
        "undelete": labelling.undelete_runs,
        "examples": labelling.run_examples,
        "command": subcommands.send_command,
        "answer": person.answer_call,
        "submit": person.submit_kernel,
        "fork": subcommands.fork_run,
        "record": person.record_run,
        "import": import_result,
        "export": subcommands.export_kernel,
        "package": subcommands.package_kernels,
        "experience": subcommands.export_experience,
        "replay": replay_run,
        "remeasure": remeasure_kernels,
        "evaluate": lambda options: kernel_files.evaluate_file(options, _toolchain_of),
        "tune": lambda options: kernel_files.tune_file(options, _toolchain_of),
        "screen": kernel_files.screen_file,
        "compile": compile_file,
        "patch": subcommands.patch_source,
        "tasks": lambda options: lint.lint(options, _toolchain_of) if options.lint else subcommands.list_tasks(options),
        "strategies": subcommands.list_strategies,
        "knowledge": knowledge.run_verb,
        "suite": suites.run_verb,
        "network": lambda options: networks.run_verb(options, _toolchain_of),
        "reproduce": lambda options: reproducing.reproduce(
            options, lambda name: _toolchain(name, None, options.device)
        ),
        "mcp": serve_agents,
        "skill": install_skill,
        "pool": pool_status.run_verb,
        "doctor": examine_machine,
        "try-model": try_model,
    }
    if getattr(options, "pool", None):
        os.environ[POOL] = options.pool  # engines that are started from here on use it too
    try:
        subcommands.complete_ids(options)
        code = handlers[options.verb](options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        if not _is_unread():
            raise
        return OK
    except locks.AlreadyRunningError as error:
        return _complain(error, ALREADY_RUNNING)
    except ToolchainError as error:
        return _complain(error, MACHINE_LACKS)
    except FileNotFoundError as error:
        return _complain(files.explained(error), BAD_INPUT)
    except OSError as error:
        return _complain(files.explained(error), MACHINE_LACKS)
    except (
        EngineError,
        UntrustedError,
        commands.CommandError,
        KnowledgeError,
        SuiteError,
        NetworkError,
        codec.DecodeError,
    ) as error:
        return _complain(error, BAD_INPUT)
    except KeyboardInterrupt:
        return INTERRUPTED


def _is_unread() -> bool:
    """Whether nobody reads what is printed any longer, as `head` when it has seen enough; then nobody is told more."""
    look = select.poll()
    look.register(sys.stdout.fileno(), 0)
    if is_unread := bool(look.poll(0)):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left would fail again at the end
    return is_unread


def run_task(options: Namespace) -> int:
    """Start a run, here or detached."""
    if options.json and not options.until_waiting:
        raise EngineError("run --json goes with --until-waiting; list, show and advance print JSON of any run")
    settings = subcommands.settings_of(options)
    _visible_with(settings.device)  # while nothing has been written
    if pool_name() == LOCAL:  # on a cluster the memory of its hosts counts
        supervisor.see_that_it_fits(settings, tasks.find(options.task))
    supervisor.see_that_it_can_be_shown(settings)
    if options.background:
        folder = supervisor.start(settings)
        network_files.note_run(Path(options.task), folder.run_id)
        print(folder.run_id)
        return OK
    folder = RunFolder(runs_folder() / settings.run_id)
    folder.write_settings(settings)
    network_files.note_run(Path(options.task), folder.run_id)
    print(f"Run {folder.run_id}", file=sys.stderr)
    if not options.until_waiting:
        return work(folder, Console())
    code = work(folder, Console(stderr=True), is_patient=False)
    advance.tell([advance.seen(folder)], as_json=options.json)
    return code


def resume_run(options: Namespace) -> int:
    """Go on with a run, here or detached."""
    folder = find_run(options.run_id)
    examples.refuse(folder)
    if options.budget:
        commands.send(folder.commands_file, CommandKind.SET_BUDGET, " ".join(options.budget))
    supervisor.refuse_damaged(folder)
    settings = folder.read_settings()
    if kept := tasks.kept_rules(settings.policy.rules, settings.task_source):
        print(f"note: this run keeps the rules it began with: its kernels are {kept}", file=sys.stderr)
    if reason := subcommands.over(folder):  # before a model is looked for, which is not needed
        print(f"{RunState.FINISHED}: {reason}")
        return OK
    if options.background:
        if liveness.is_held(folder):
            raise locks.AlreadyRunningError(
                f"run {folder.run_id} is already running: stop it first, or steer it while it runs"
            )
        settings = folder.read_settings()
        if settings.replay_of is None:
            open_strategy(settings.strategy)  # while whoever starts the engine still hears why it cannot
        if os.fork() > 0:
            return OK
        engine_process.detach(folder.log_file)
    return work(folder, Console(), options.device, is_patient=not options.until_waiting)


def work(folder: RunFolder, console: Console, device: str | None = None, *, is_patient: bool = True) -> int:
    """Be the engine of a run until it ends. Holds the run's lock for life.

    `device` takes the place of the run's own. Unless `is_patient` the run is left where it waits for a person.
    """
    began = time.time()
    lock = liveness.hold(folder)
    settings, journal = folder.read_settings(), _whole_journal(folder)
    if not is_patient and journal.entries:
        began = journal.entries[-1].time  # a stop sent while no engine ran was meant for this run, not for an engine
    engine_process.leave_name(folder)
    record = Record.of(settings, journal.entries)
    if settings.replay_of is not None:
        engine_process.on_interrupt_ask_to_stop(folder)
        return sharing.tell_again(folder, journal, record, console)
    task = tasks.Task(
        settings.task_name, settings.task_source, settings.sizes, record.kernel_class, policy=settings.policy,
        language=settings.language, place=settings.task_place,
    )  # fmt: skip
    shutil.rmtree(folder.scratch, ignore_errors=True)
    supervisor.sweep_scratch()
    for written in (folder.path, folder.blobs):
        files.sweep(written)
    languages.check(settings.language, settings.toolchain)
    consulting.check(settings.knowledge)
    prompt_pack.check(settings.prompts.folder, settings.prompts.files)  # the shipped ones may be others by now
    for change in prompt_pack.changes(settings.prompts):
        console.print(f"note: {change}", highlight=False, markup=False, soft_wrap=True)
    pool = _pool(folder.scratch, settings.device if device is None else device)
    toolchain = PooledToolchain(pool, settings.toolchain, folder.run_id, *_measured_on(record))
    is_here = isinstance(pool, LocalPool) and supervisor.has_gpu(settings.toolchain)
    missing = _missing_gpu(record, is_patient=is_patient) if is_here else ""
    models = Models(settings, _replay, _connect, _run_program)
    context = RunContext(
        folder, journal, record, task, models.own(), toolchain, Blobs(folder.blobs), open_strategy(settings.strategy)
    )
    models.on_divergence, context.other_model = context.tell_divergence, models.open
    context.knowledge = knowledge_files.folder()
    toolchain.step, toolchain.share = lambda: context.step, lambda: accounts.of_run(context.whole)
    if unread := context.ledger.damage():
        console.print(f"note: {unread}", highlight=False, markup=False, soft_wrap=True)
    inbox = Inbox(context, is_patient=is_patient)
    context.interrupt, context.interruptible = inbox.interrupt, inbox.interruptible
    engine_process.on_interrupt_ask_to_stop(folder)
    try:
        with LiveView(console, record, words_of(context.strategy)) as view, prompting.using(settings.prompts.files):
            context.listeners.append(view)
            ended = _journaled(context, inbox, began, missing)
    finally:
        toolchain.close()
        shutil.rmtree(folder.scratch, ignore_errors=True)
        journal.close()
        os.close(lock)
    if ended.state is RunState.FINISHED and (line := next_commands(context.record)):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    return FAILED if ended.state is RunState.FAILED else OK


def _missing_gpu(record: Record, *, is_patient: bool) -> str:
    """Why nothing can be measured here; empty where the GPU is of the model that the run's kernels were measured on.

    A run that is left where it waits goes on without a GPU as far as its prompts reach: replies are written elsewhere.

    Raises:
        ToolchainError: the GPU is another, or there is none and the run is to be worked on to its end.
    """
    if record.limit is None:
        return ""
    try:
        gpus = devices.visible()
    except ToolchainError as error:
        if is_patient or devices.has_driver():
            raise
        return str(error)
    model, _ = _measured_on(record)
    if all(gpu.name != model for gpu in gpus):
        gpus[0].see_that_it_is(model)
    return ""


def _measured_on(record: Record) -> tuple[str, str]:
    """The model of device that the run's kernels were measured on, and the last one's name; empty where none was."""
    model = record.limit.model if record.limit else ""
    timed = [candidate.timed for candidate in record.candidates.values() if candidate.timed is not None]
    return model, timed[-1].evidence.get(DEVICE, "") if timed else ""


def _whole_journal(folder: RunFolder) -> Journal:
    try:
        return Journal(folder.journal_file)
    except DamagedJournalError:
        supervisor.refuse_damaged(folder)
        raise


def _journaled(context: RunContext, inbox: Inbox, began: float, missing: str) -> ev.RunEnded:
    """Run the loop between its first and final event; our own failure is journaled before it is raised.

    With `missing`, why there is no GPU, the run is left where it needs one.
    """
    if not context.journal.entries:
        context.emit(ev.RunStarted(context.folder.run_id, context.task.name))
    is_resumed = context.record.steps_finished > 0 or context.record.in_flight is not None
    context.emit(ev.EngineStarted(os.getpid(), is_resumed, context.journal.lost_events))
    inbox.refuse_old_stops(began)
    try:
        calling.take_arrived(context)
        take_over_kernel(context)
        return loop.run(context, inbox) if context.record.settings.width == 1 else abreast.run(context, inbox)
    except PersonNeeded as needed:
        return loop.finish(context, Finish(RunState.STOPPED, f"{LEFT}{needed}"))
    except Exception as error:  # the one broad catch: whatever broke must be in the journal before the process ends
        if missing and isinstance(error, ToolchainError):
            why = f"the next step measures a kernel, and {missing}. Advance it where its GPU is"
            return loop.finish(context, Finish(RunState.STOPPED, why))
        with suppress(OSError):  # the same disk, which is full: what is raised says so, and the run can be resumed
            _journal_failure(context, error)
        raise


def _journal_failure(context: RunContext, error: Exception) -> None:
    reason = files.explained(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
    blob = context.blobs.put(traceback.format_exc())
    context.emit(ev.RunEnded(RunState.FAILED, reason, context.whole.best_id, blob))


def import_result(options: Namespace) -> int:
    """Take another system's result as a run that has ended."""
    kernels = read_kernels(Path(options.folder))
    depths = max(kernel.depth for kernel in kernels) + options.depths
    settings = supervisor.import_settings(
        options.task, toolchain=options.toolchain, device=options.device, model=options.model,
        overrides=dict(options.overrides), depths=depths,
    )  # fmt: skip
    folder = RunFolder(runs_folder() / settings.run_id)
    folder.write_settings(settings)
    lock, journal = liveness.hold(folder), Journal(folder.journal_file)
    record = Record.of(settings, [])
    task = tasks.Task(
        settings.task_name, settings.task_source, settings.sizes, record.kernel_class, policy=settings.policy,
        language=settings.language,
    )  # fmt: skip
    toolchain = _toolchain(settings.toolchain, folder.scratch, settings.device)  # it starts nothing before it is used
    context = RunContext(
        folder, journal, record, task, ManualModel(), toolchain, Blobs(folder.blobs), open_strategy(settings.strategy)
    )
    try:
        context.emit(ev.RunStarted(folder.run_id, task.name))
        context.emit(ev.EngineStarted(os.getpid(), False))
        ended = import_kernels(context, kernels, is_judged=options.evaluate)
    finally:
        toolchain.close()
        shutil.rmtree(folder.scratch, ignore_errors=True)
        journal.close()
        os.close(lock)
    print(f"{folder.run_id}: {ended.reason}")
    return OK


def replay_run(options: Namespace) -> int:
    """Tell a run once more, here or detached; or delete its replay."""
    folder = sharing.prepare_replay(options)
    return OK if folder is None else work(folder, Console())


def remeasure_kernels(options: Namespace) -> int:
    """Time two kernels again, here or detached."""
    prepared = sharing.prepare_remeasurement(options)
    if prepared is None:
        return OK
    folder, request = prepared
    if options.background:
        if os.fork() > 0:
            return OK
        engine_process.detach(folder.log_file)
    lock = liveness.hold(folder)
    engine_process.leave_name(folder)
    toolchain = _toolchain(request.toolchain, folder.scratch)
    toolchain.share = lambda: accounts.BY_HAND
    try:
        return sharing.remeasure(folder, request, toolchain, as_json=options.json)
    finally:
        toolchain.close()
        shutil.rmtree(folder.scratch, ignore_errors=True)
        os.close(lock)


def compile_file(options: Namespace) -> int:
    """Compile a file for a device that need not be there."""
    from engine.evaluator.toolchains.cuda import CompileGate

    source = given.kernel(options.candidate)
    task = tasks.find(options.task).task("cuda", {}) if options.task else None
    with CompileGate(options.arch) as gate:
        result = gate.compile(source, task)
    if options.json:
        print(json.dumps(codec.to_plain(result)))
    else:
        judgement.print_compiled(Console(), result)
    return OK if result.is_ok else FAILED


def serve_agents(options: Namespace) -> int:
    """Let agents use the evaluator, the knowledge base and runs, until they are gone."""
    if find_spec("mcp") is None:
        raise ToolchainError("the package mcp is not installed: `python -m pip install mcp==2.3.0` installs it")
    from engine.mcp_server import serving
    from engine.mcp_server.budgets import Allowed

    _visible_with(options.device)
    allowed = Allowed(options.max_evaluations, options.max_device_seconds, options.max_runs)
    offer = serving.Offer(options.toolchain, options.device, options.places, allowed)
    # By the name that the process which judges can import: there `__main__` is another module.
    remembering = import_module("engine.__main__")._remembering
    serving.serve(offer, partial(remembering, options), options.port)
    return OK


def install_skill(options: Namespace) -> int:
    """Write what teaches an agent to work with Tilewright."""
    from engine.skill import installing

    folder = Path(options.folder)
    written = installing.install(folder)
    for path in written:
        print(f"wrote {path}")
    print(f"Your agent reads {folder / 'SKILL.md'} first." if written else f"The skill is in {folder} already.")
    return OK


def _remembering(options: Namespace) -> Evaluator:
    """Whoever judges what agents ask, and judges nothing twice."""
    return CachedToolchain(_toolchain_of(options), home() / "cache" / "evaluations")


def examine_machine(options: Namespace) -> int:
    """What this machine has and lacks."""
    from engine import doctor

    is_ready = doctor.print_json() if options.json else doctor.print_findings(Console())
    return OK if is_ready else MACHINE_LACKS


def try_model(options: Namespace) -> int:
    """One small call to a model."""
    asked = read_options("\n".join(options.model_options))
    entry = key = None
    if options.given:
        stated = trial.given(sys.stdin.buffer.read(GIVEN_BYTES))
        entry, key = stated.entry, stated.key
    result = trial.try_model(options.model, asked, _connect, _run_program, key, entry)
    print(json.dumps(codec.to_plain(result)) if options.json else trial.sentence(result))
    return FAILED if result.failure else OK


def _replay(recording: Path, reply_seconds: float, on_divergence: OnDivergence) -> LanguageModel:
    model = open_recorded(recording, reply_seconds)
    model.on_divergence = on_divergence
    return model


def _connect(options: ModelOptions, address: str, key: str, price: Price | None) -> LanguageModel:
    from engine.search.llm.endpoint import EndpointModel

    return EndpointModel(options, address, key, price)


def _run_program(entry: SavedModel, price: Price | None, timeout_s: float | None) -> LanguageModel:
    from engine.evaluator.sandbox import hiding
    from engine.search.llm.agent import AgentModel
    from engine.search.llm.command import CommandModel

    is_agent = entry.kind is ModelKind.AGENT

    def around(failed: int, scratch: Path) -> list[str]:
        hidden = [home(), *(_others_scratch(scratch) if is_agent else ())]
        return hiding.guarded(os.getpid(), failed, scratch, hidden, _evaluators_own() if is_agent else ())

    variables = [saved.endpoint.key_variable for saved in saved_models.readable() if saved.endpoint]
    model = AgentModel if is_agent else CommandModel
    return model(entry, around, environment.withheld(variables), price, timeout_s)


def _others_scratch(own: Path) -> list[Path]:
    """What other evaluations and calls of this user have in the folder for temporary files."""
    return [folder for folder in own.parent.glob("tilewright.*") if folder.is_dir() and folder != own]


def _evaluators_own() -> list[Path]:
    """The programs that judge: Tilewright, and Python with its packages."""
    return [Path(__file__).resolve().parent.parent, Path(sys.prefix), Path(sys.base_prefix)]


def _toolchain_of(options: Namespace) -> Evaluator:
    """For what a person asks by hand, and waits for."""
    toolchain = _toolchain(options.toolchain, device=options.device)
    toolchain.share = lambda: accounts.BY_HAND
    return toolchain


def _toolchain(name: str, scratch: Path | None = None, device: str = "") -> PooledToolchain:
    toolchain_table.find_toolchain(name)  # while whoever asked still hears that there is none
    return PooledToolchain(_pool(scratch, device), name)


def _pool(scratch: Path | None, device: str) -> Pool:
    """Where evaluations are done, as the person who starts the engine wants it. `device` is the one to use, or its
    model: every process that is started here from now on sees it alone, and of a cluster's workers those with it are
    asked; any without a name.

    Raises:
        ToolchainError: it is no pool, or none that can be used here.
    """
    visible = _visible_with(device)
    if pool_name() == LOCAL:
        if visible:
            os.environ[devices.VISIBLE] = visible
        return LocalPool(scratch)
    from engine.evaluator.pool.on_ray import RayCluster
    from engine.evaluator.pool.remote import RemotePool

    return RemotePool(RayCluster(pool_name()), device)


def _visible_with(device: str) -> str:
    """What CUDA_VISIBLE_DEVICES has to be with a device; empty where it stays as it is.

    Raises:
        ToolchainError: no engine could use the device, or the pool that is meant.
    """
    if (named := pool_name()) == LOCAL:
        return devices.choose(device, os.environ.get(devices.VISIBLE)) if device else ""
    if named != "ray" and not named.startswith("ray://"):
        raise ToolchainError(f"unknown pool {named!r}: use local, ray, or ray://HOST:PORT")
    from engine.evaluator.pool import on_ray

    on_ray.see_that_it_is_installed()
    if device.isdecimal() or device.startswith(("GPU-", "MIG-")):
        raise ToolchainError(f"{device} is a GPU of one host: with --pool {named} name a model, as --device H200")
    return ""


def _complain(error: BaseException | str, code: int) -> int:
    print(f"tilewright: {error}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
