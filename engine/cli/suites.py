"""Suites on the command line: start, resume, stop, show. Knows words and run folders, not how a kernel is judged."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import signal
import sys
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rich.markup import escape
from rich.table import Table

from engine import supervisor
from engine.cli import advance, arguments, engine_process, report
from engine.cli.subcommands import FAILED, OK, settings_of
from engine.cli.terminal import Console, printable, widen
from engine.errors import EngineError, ToolchainError
from engine.evaluator.machine import devices
from engine.evaluator.pool import LOCAL, pool_name
from engine.knowledge import consulting
from engine.shown import suites as shown
from engine.suites import adopting, definition, example_suites, exporting, manifest, starting, tables
from engine.suites.runner import Runner, hold
from storage import codec, read_only
from storage.files import make_folder
from storage.files import replace as replace_file
from storage.knowledge.choice import OWN, own_name
from storage.run import liveness
from storage.run.folder import RunFolder, find_run, runs_folder
from storage.run.settings import RunSettings
from storage.run.steering.command_arguments import MANUAL
from storage.suites import files, measured, summary
from storage.suites.files import SuiteFolder
from storage.suites.records import BudgetRule, Cell, CellState, Defined, Purpose, SuiteLimits
from storage.suites.standing import CellStanding, Suite, as_left, fold


def run_verb(options: Namespace) -> int:
    """Run one of the verbs of `suite`."""
    verbs: dict[str, Callable[[Namespace], int]] = {
        "run": run_suite, "resume": resume_suite, "stop": stop_suite, "show": show_suite, "list": list_suites,
        "export": export_suite,
        "manifest": write_manifest,
        "adopt": adopt_runs,
    }  # fmt: skip
    return verbs[options.what](options)


def run_suite(options: Namespace) -> int:
    """Start a suite, or add to it what is new."""
    read_only.guard(EngineError, "run suites")
    defined = definition.read(definition.find(options.suite), options.words)
    arms = [name for name in options.arms.split(",") if name]
    defined = definition.chosen(defined, arms, options.repeats, options.first)
    settings = f"{defined.settings} {options.settings}".strip()
    weight = defined.weight if options.weight is None else options.weight
    defined = replace(defined, name=options.name or defined.name, settings=settings, weight=weight)
    folder = files.folder_of(defined.name)
    before = fold(files.read(folder))
    example_suites.refuse(before)
    if before is not None:
        defined = definition.joined(before.defined, defined)
    return define(folder, before, defined, options)


def resume_suite(options: Namespace) -> int:
    """Go on with a suite, with more repeats or other limits where they are given."""
    read_only.guard(EngineError, "run suites")
    folder = files.find(options.suite)
    suite = _known(folder)
    example_suites.refuse(suite)
    repeats = suite.defined.repeats if options.repeats is None else options.repeats
    if repeats < suite.defined.repeats:
        raise EngineError(f"suite {folder.name} has {suite.defined.repeats} repeats already: give at least so many")
    return define(folder, suite, replace(suite.defined, repeats=repeats), options)


def define(folder: SuiteFolder, before: Suite | None, defined: Defined, options: Namespace) -> int:
    """See that every cell can be run, write what is new of the definition, then work on it."""
    defined = replace(defined, limits=limits_of(defined.limits, options.limits))
    if defined.budget is BudgetRule.HEADROOM and defined.limits == SuiteLimits():
        raise EngineError(
            f'suite {defined.name} has budget = "headroom", which gives what is left of its limits, and it has none: '
            "write [limits] into its file, or give --set-limit model_calls=100"
        )
    planned = replace(before, defined=defined) if before else Suite(defined)
    if adopted := [arm.name for arm in defined.arms if arm.is_adopted]:
        _see_that_something_can_be_started(planned, ", ".join(adopted))
    arms = [arm.name for arm in defined.arms if not arm.is_adopted]
    slots = _slots([_see(defined, task.name, arm) for task in defined.tasks for arm in arms], options.at_once)
    os.close(_held(folder))  # another runner is told before anything is written
    if before is None or before.defined != defined:
        files.append(folder, defined)
        replace_file(folder.definition_file, defined.toml)
    if options.background:
        if os.fork() > 0:
            print(folder.name)
            return OK
        engine_process.detach(folder.runner.log_file)
    return _work(folder, slots)


def _see_that_something_can_be_started(suite: Suite, adopted: str) -> None:
    if not suite.startable and suite.counts[CellState.PLANNED]:
        raise EngineError(
            f"nothing of suite {suite.defined.name} can be started: the arm {adopted} was made by `suite adopt` "
            f"of runs that were there, so its settings are not known; run what is missing, then adopt it"
        )


def _held(folder: SuiteFolder) -> int:
    make_folder(folder.path)
    return hold(folder)


def _work(folder: SuiteFolder, slots: list[str]) -> int:
    interrupts: list[int] = []
    console = Console(stderr=True)

    def interrupt(number: int, frame: object) -> None:
        interrupts.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        print("\nStopping. The suite can be resumed.", file=sys.stderr)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    runner = Runner(
        folder, slots, settings_of_cell, advance.waits_on,
        lambda text: console.print(text, highlight=False, markup=False, soft_wrap=True), lambda: bool(interrupts),
    )  # fmt: skip
    runner.run()
    suite = _known(folder)
    _print_suite(folder, suite)
    return FAILED if suite.counts[CellState.FAILED] else OK


def settings_of_cell(defined: Defined, cell: Cell) -> RunSettings:
    """Settings of the run of a cell: the words of the suite, of the task and of the arm, as `engine run` takes them.

    Raises:
        EngineError: they are not; the message names the cell.
    """
    task = next(task for task in defined.tasks if task.name == cell.task)
    arm = next(arm for arm in defined.arms if arm.name == cell.arm)
    errors = io.StringIO()
    try:
        words = [word for text in (defined.settings, task.settings, arm.settings) for word in shlex.split(text)]
        with contextlib.redirect_stderr(errors):
            options = arguments.parse(["run", task.task, *words])
        if options.background or options.until_waiting or options.json:
            raise EngineError("--background, --until-waiting and --json are the suite's own affair")
        if options.weight is not None:
            raise EngineError("the runs of a suite share one weight: give it to suite run, or write it into the file")
        settings = settings_of(options)
        if name := own_name(settings.knowledge):  # no other suite adds to it
            settings = replace(settings, knowledge=consulting.check(f"{OWN}{defined.name}.{name}"))
        return replace(settings, weight=defined.weight, suite=defined.name)
    except SystemExit as ended:
        raise EngineError(f"{cell.words}: {errors.getvalue().strip().removeprefix('tilewright: ')}") from ended
    except (ValueError, EngineError) as error:
        raise EngineError(f"{cell.words}: {error}") from error


def _see(defined: Defined, task: str, arm: str) -> RunSettings:
    """The settings of a task in an arm, which can be kept to.

    Raises:
        EngineError: they cannot.
    """
    settings = settings_of_cell(defined, Cell(task, arm, 1))
    if defined.limits.cost_usd is not None:
        limited = replace(settings.budget, cost_usd=defined.limits.cost_usd)
        supervisor.see_that_money_can_be_kept(replace(settings, budget=limited))
    return settings


def _slots(settings: list[RunSettings], at_once: int | None) -> list[str]:
    """Places for runs at the same time: as many as asked for, else one for each device of the first one's model, or one
    for this host.

    Raises:
        ToolchainError: they need a GPU and there is none; where a person replies, they go on as far as they can.
    """
    if at_once is not None:
        return [str(number) for number in range(at_once)]
    if not any(supervisor.has_gpu(run.toolchain) for run in settings) or any(run.device for run in settings):
        return [""]
    if pool_name() != LOCAL:
        raise EngineError("say with --at-once how many runs a suite works on at a time where its devices are elsewhere")
    try:
        gpus = devices.usable()
        return [gpu.address for gpu in gpus if gpu.name == gpus[0].name]
    except ToolchainError:
        if all(run.model == MANUAL for run in settings):
            return [""]
        raise


def limits_of(limits: SuiteLimits, changes: list[tuple[str, int | float]]) -> SuiteLimits:
    """The limits with some of them changed.

    Raises:
        EngineError: there is no such limit.
    """
    for name, value in changes:
        field, number = ("engine_s", 3600.0 * value) if name == "hours" else (name, value)
        if field not in ("model_calls", "tokens", "cost_usd", "engine_s"):
            raise EngineError(f"no limit {name!r}: use model_calls, tokens, cost_usd or hours")
        change: dict[str, Any] = {field: number}
        limits = replace(limits, **change)
    return limits


def stop_suite(options: Namespace) -> int:
    """Ask the runner to end; engines that have none any more are asked themselves."""
    folder = files.find(options.suite)
    _known(folder)
    asked = starting.stop(folder.name)
    if asked is None:
        print(f"Asked suite {folder.name} to stop. `python -m engine suite resume {folder.name}` goes on with it.")
    else:
        print(f"Suite {folder.name} has no runner." + (f" Asked {asked} engines to stop." if asked else ""))
    return OK


def show_suite(options: Namespace) -> int:
    """One suite and its cells; a shipped one that was not started, and takes no words, as it would be."""
    folder = files.folder_of(options.suite)
    if not (options.json or folder.journal_file.exists()) and options.suite in definition.shipped():
        _print_shipped(options.suite)
        return OK
    folder = files.find(options.suite)
    suite = _known(folder)
    if options.json:
        print(json.dumps(codec.to_plain(shown.form(folder, _seen(folder, suite)))))
    else:
        _print_suite(folder, _seen(folder, suite))
    return OK


def _print_shipped(name: str) -> None:
    """What a shipped suite would run."""
    about, words = definition.outline(name)
    console, start = Console(), " ".join(["python -m engine suite run", name, *(word.upper() for word in words)])
    console.print(about, highlight=False, markup=False, soft_wrap=True)
    if not words:
        defined = definition.read(definition.find(name))
        for arm in defined.arms:
            line = f"arm {arm.name}: {defined.settings} {arm.settings}".rstrip()
            line += f", {arm.in_order} at a time, in this order" if arm.in_order else ""
            console.print(line, highlight=False, markup=False, soft_wrap=True)
        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading in ("task", "class", "settings"):
            table.add_column(heading, no_wrap=heading == "task")
        for task in defined.tasks:
            table.add_row(task.name, task.kernel_class or "-", escape(task.settings) or "-")
        console.print(table)
    console.print(f"{name}: not started here. `{start}` starts it.", highlight=False, markup=False, soft_wrap=True)


def _seen(folder: SuiteFolder, suite: Suite) -> Suite:
    """The suite as it stands, not as its journal said last: without a runner a cell runs only while its engine does."""
    return (
        suite
        if folder.has_runner
        else as_left(suite, lambda run_id: liveness.is_held(RunFolder(runs_folder() / run_id)))
    )


def export_suite(options: Namespace) -> int:
    """What came of a suite, as one text."""
    suite = _known(files.find(options.suite))
    arms = [arm.name for arm in suite.defined.arms]
    if options.baseline and options.baseline not in arms:
        raise EngineError(f"no arm {options.baseline} in suite {options.suite}: it has {', '.join(arms)}")
    baseline = options.baseline or suite.defined.baseline_arm
    suite = replace(suite, defined=replace(suite.defined, baseline_arm=baseline), compared_with=options.baseline or "")
    results = summary.gather(suite, measured.of_suite(suite), options.unfinished, options.only_clean)
    report.write(exporting.exported(results, options.format), options.output)
    return OK


def adopt_runs(options: Namespace) -> int:
    """Make cells of a suite from runs that were made one by one."""
    read_only.guard(EngineError, "run suites")
    folder = files.folder_of(options.suite)
    if options.like and (words := definition.outline(options.like)[1]):
        needed = " ".join(words).upper()
        raise EngineError(f"--like takes a suite that needs no further words, and {options.like} needs {needed}")
    like = definition.read(definition.find(options.like)) if options.like else None
    runs = [find_run(run_id) for run_id in options.run_ids]
    lock = _held(folder)  # no runner may take up a cell meanwhile
    try:
        example_suites.refuse(before := fold(files.read(folder)))
        events = adopting.adopt(folder.name, runs, before, like, options.arm)
        files.append(folder, *events)
    finally:
        os.close(lock)
    _print_suite(folder, _known(folder))
    return OK


def write_manifest(options: Namespace) -> int:
    """A suite's best kernels with all that it takes to judge them again."""
    suite = _known(files.find(options.suite))
    best_kernels = manifest.of_suite(summary.gather(suite, measured.of_suite(suite)))
    for missing in best_kernels.missing:
        print(f"left out: {missing}", file=sys.stderr)
    report.write(codec.dumps(best_kernels) + "\n", options.output)
    return OK


def list_suites(options: Namespace) -> int:
    """Suites that were started, and files that come with Tilewright."""
    suites = [(folder, suite) for folder in files.all_suites() if (suite := fold(files.read(folder)))]
    if options.json:
        print(
            json.dumps(
                {"suites": [codec.to_plain(shown.head(*pair)) for pair in suites], "shipped": definition.shipped()}
            )
        )
        return OK
    for folder, suite in suites:
        head, example = shown.head(folder, suite), ", example" if suite.defined.is_example else ""
        print(f"{head.name:24} {head.state:10} {tables.progress_with_size(suite)}{example}")
    print(f"shipped: {', '.join(definition.shipped())}")
    return OK


def _words(standing: CellStanding, suite: Suite) -> dict[str, str]:
    """A cell by heading."""
    gain = shown.speedup(standing.run_id)
    why = "" if standing.state is CellState.FINISHED else escape(printable(standing.reason))
    return {
        "task": standing.cell.task, "arm": standing.cell.arm, "repeat": str(standing.cell.repeat),
        "state": tables.planned_word(suite) if standing.state is CellState.PLANNED else str(standing.state),
        "best": f"{gain:.3g}x" if gain else "-", "run": standing.run_id or "-", "why": why,
    }  # fmt: skip


def _print_suite(folder: SuiteFolder, suite: Suite) -> None:
    console, table = Console(), Table(box=None, pad_edge=False, header_style="bold")
    rows = [_words(standing, suite) for standing in suite.planned]
    headings = [heading for heading in rows[0] if heading != "why" or any(row["why"] for row in rows)]
    for heading in headings:
        table.add_column(heading, no_wrap=heading != "why")
    for row in rows:
        table.add_row(*(row[heading] for heading in headings))
    widen(console, table)
    console.print(table)
    head = shown.head(folder, suite)
    line = f"{folder.name}: {head.state}, {tables.progress_with_size(suite)}. {suite.reason}"
    console.print(line, highlight=False, markup=False, soft_wrap=True)
    if suite.defined.checks is Purpose.WORKS:
        works = tables.whether_it_works(summary.gather(suite, measured.of_suite(suite)))
        console.print(works, highlight=False, markup=False, soft_wrap=True)
    for standing in (standing for standing in suite.planned if standing.headroom):
        line = f"{standing.cell.words}: {printable(standing.headroom)}"
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    waiting = [standing.run_id for standing in suite.planned if standing.state is CellState.WAITING and standing.run_id]
    if waiting:
        print("These wait for your replies: python -m engine advance " + " ".join(waiting))
        print(f"Then go on with: python -m engine suite resume {folder.name}")
    elif suite.is_left_behind:
        print(f"No runner is at work on it. Go on with: python -m engine suite resume {folder.name}")


def _known(folder: SuiteFolder) -> Suite:
    suite = fold(files.read(folder))
    if suite is None:
        raise files.SuiteError(f"{folder.journal_file} does not say what the suite is: start it with `suite run`")
    return suite
