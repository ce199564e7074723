"""The subcommands that need no toolchain and no model. Knows run folders and text, not how a kernel is judged."""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine import exporting, run_options, supervisor
from engine.cli import experience, given, report
from engine.cli.terminal import Console, printable
from engine.errors import EngineError
from engine.evaluator import fitting, languages, tasks
from engine.evaluator.toolchain_table import HOST, device_of
from engine.packaging import folders, packing
from engine.search.actions import Finish
from engine.search.llm.recording import recorded_language, recorded_strategy
from engine.search.methods import catalogue, refused_verbs
from engine.search.methods.loading import DEFAULT, find_strategy, open_strategy, options_of
from engine.search.methods.options import parse
from engine.search.patching.edits import EditError
from engine.search.patching.proposed_patch import read_patch
from engine.search.prompt_pack import read_pack
from storage import codec
from storage.results.vocabulary import KernelClass
from storage.run import budgets, damage, exposure, labels, liveness
from storage.run.folder import RunFolder, all_runs, find_run, ignored, whole_id
from storage.run.models import read_options
from storage.run.settings import RunSettings, RunState, Switch
from storage.run.steering import commands
from storage.run.steering.command_arguments import AskFirst
from storage.run.steering.verbs import VERBS, CommandKind, Takes

OK, FAILED, BAD_INPUT, ALREADY_RUNNING, MACHINE_LACKS, INTERRUPTED = 0, 1, 2, 3, 4, 130


RUNS = ("run_id", "run_ids", "runs")  # what arguments that name runs are called


def complete_ids(options: Namespace) -> None:
    """Runs may be named by the beginning of their ids.

    Raises:
        FileNotFoundError: several begin with it.
    """
    for name in RUNS:
        if word := getattr(options, name, None):
            setattr(options, name, whole_id(word) if isinstance(word, str) else [whole_id(prefix) for prefix in word])


def list_runs(options: Namespace) -> int:
    """All runs."""
    runs = list(all_runs())
    noted = {folder.run_id: labels.read(folder) for folder in runs}
    shown = [
        folder
        for folder in runs
        if (labelled := noted[folder.run_id]).is_archived == options.archived
        and (not options.tag or options.tag in labelled.tags)
    ]
    if options.json:
        print(json.dumps([report.summary(folder) for folder in shown]))
    elif shown or not noted:
        report.print_list(Console(), shown)
    else:
        print(f"None of {len(noted)} runs; `list --archived` shows those put away.")
    for sentence in ignored():
        print(sentence, file=sys.stderr)
    return OK


def show_run(options: Namespace) -> int:
    """One run."""
    folder = find_run(options.run_id)
    if options.json:
        print(json.dumps(report.details(folder)))
    else:
        report.print_run(Console(), folder)
    return OK


def send_command(options: Namespace) -> int:
    """Steer a run."""
    folder = find_run(options.run_id)
    kind, argument = CommandKind(options.kind), options.argument
    if VERBS[kind].takes is Takes.KERNEL and argument.isdecimal():  # a person may give its number
        argument = report.kernel_of(folder, report.load(folder), argument).candidate_id
    if not VERBS[kind].reopens and (reason := over(folder)):
        go_on = "set_budget, submit or fork go on from it"
        raise EngineError(f"run {folder.run_id} has finished ({reason}), so {kind} has no effect: {go_on}")
    command = commands.send(folder.commands_file, kind, argument)
    state = "" if liveness.is_held(folder) else " The run is not running; the command takes effect when it is resumed."
    print(f"Sent {command.kind} (command {command.command_id}).{state}")
    return OK


def over(folder: RunFolder) -> str | None:
    """Why an engine would end this run as soon as it were resumed; None where it would go on, or is at work."""
    record = report.load(folder)
    is_open = record.state is not RunState.FINISHED or record.in_flight is not None
    waiting = (
        command
        for command in commands.read_from(folder.commands_file)[0]
        if command.command_id not in record.settled_commands
    )
    if is_open or record.settings.replay_of is not None or any(VERBS[command.kind].reopens for command in waiting):
        return None
    action = open_strategy(record.settings.strategy).next(record)
    return action.reason if isinstance(action, Finish) else None


def export_kernel(options: Namespace) -> int:
    """Write a kernel out."""
    folder = find_run(options.run_id)
    warn_of_damage(folder)
    if options.format:
        text = supervisor.solution(folder, options.candidate, options.format)
    else:
        text = supervisor.exported(folder, options.candidate, is_measured=not options.no_measure)
    report.write(text, options.output)
    if options.output:
        print(f"Wrote {options.output}.", file=sys.stderr)
        _warn_of_slow([folder], options.candidate)
    return OK


def _warn_of_slow(folders: Sequence[RunFolder], candidate_id: str | None) -> None:
    """On stdout, of each run: that its kernel is slower than what else there is."""
    for folder in folders:
        for sentence in exporting.warned(folder, candidate_id):
            print(f"warning: {sentence}" if len(folders) == 1 else f"warning: {folder.run_id}: {sentence}")


def package_kernels(options: Namespace) -> int:
    """Write kernels of runs as an installable package."""
    found = [find_run(run_id) for run_id in options.run_ids]
    for folder in found:
        warn_of_damage(folder)
    asked = packing.Asked(
        options.name, options.candidate, options.sizes, tuple(filter(None, options.arch.split(","))),
        options.layout, options.licence,
    )  # fmt: skip
    files = supervisor.packaged(found, asked)
    target = Path(options.output)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise EngineError(f"{target} is there already: name a folder that is not, or is empty")
    for name, text in files.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    print(f"{len(files)} files in {printable(str(target))}; CARD.md says what the package holds and how it is used")
    _warn_of_slow(found, options.candidate)
    print(f"next: {_next_command(target, options.layout, is_built='setup.py' in files)}")
    return OK


def _next_command(target: Path, layout: str, *, is_built: bool) -> str:
    """What is done with a package that was just written."""
    folder = shlex.quote(str(target))
    if layout == folders.KERNELS:
        return f"cd {folder} && PYTHONPATH=torch-ext python benchmarks/benchmark.py"
    needs = "  # setuptools>=70.1 and a compiler" if is_built else "  # setuptools>=70.1"
    return f"cd {folder} && pip wheel . --no-deps --no-build-isolation && pip install *.whl{needs}"


def export_experience(options: Namespace) -> int:
    """Write what the model was asked, what it replied and what that was worth."""
    folder = find_run(options.run_id)
    warn_of_damage(folder)
    report.write("".join(f"{line}\n" for line in experience.lines(folder)), options.output)
    return OK


def warn_of_damage(folder: RunFolder) -> None:
    """Say beside what is made of a run that some of the run is missing."""
    if (examined := damage.examine(folder, 0)).is_damaged:
        print(f"tilewright: warning: {damage.title(examined)}. {' '.join(damage.sentences(examined))}", file=sys.stderr)


def patch_source(options: Namespace) -> int:
    """Put a raw reply through the parser and patcher of a run."""
    source, reply = given.text(options.source), given.text(options.reply)
    try:
        patched = read_patch(reply).apply(source)
    except EditError as report_for_model:
        print(report_for_model, file=sys.stderr)
        return FAILED
    sys.stdout.buffer.write(patched.encode())
    return OK


def fork_run(options: Namespace) -> int:
    """Start a run from a kernel of another one."""
    folder = find_run(options.run_id)
    warn_of_damage(folder)
    fields: dict[str, Any] = {}
    if options.model is not None:
        fields["model"] = options.model
    if options.toolchain is not None:
        fields["toolchain"] = options.toolchain
    if options.kernel_class:
        fields |= {"kernel_class": KernelClass(options.kernel_class), "class_is_proposed": False}
    if options.model_options:
        fields["model_options"] = read_options("\n".join(options.model_options))
    if options.prompts:
        fields["prompts"] = read_pack(Path(options.prompts))
    if options.knowledge is not None:
        fields["knowledge"] = options.knowledge
    history = report.load(folder)
    kernel, budget = report.kernel_of(folder, history, options.candidate).candidate_id, history.budget
    fields["budget"] = budgets.changed(budget, " ".join(options.budget)) if options.budget else budget
    strategy_options = parse(options_of(history.settings.strategy), options.strategy_options)
    if options.no_profiles and exposure.OPTION in strategy_options:
        raise EngineError(f"--no-profiles and the option {exposure.OPTION} exclude each other")
    if options.no_profiles:
        strategy_options[exposure.OPTION] = exposure.never(fields["budget"].depths)
    fields["strategy_options"] = strategy_options
    if kept := tasks.kept_rules(history.settings.policy.rules, history.settings.task_source):
        print(
            f"tilewright: kernels of {folder.run_id} were {kept}. The new run has the rules that hold now, and judges "
            "its kernel again first.",
            file=sys.stderr,
        )
    print(supervisor.fork(folder, kernel, options.hint, **fields).run_id)
    return OK


def list_tasks(options: Namespace) -> int:
    """The shipped tasks, or those of a folder."""
    if options.json:
        raise EngineError("tasks --json goes with --lint")
    if options.folder:
        return _list_folder(Path(options.folder))
    for task in tasks.shipped():
        presets = "; ".join(f"{name}: {_sizes(preset)}" for name, preset in task.presets.items())
        print(f"{task.name:24} {task.kernel_class or 'class: by the model':12} {presets}")
    return OK


def _list_folder(folder: Path) -> int:
    """Each file with its class, the memory that judging it on a processor takes, and sizes at which it fits here."""
    with fitting.CostMeter() as meter:
        for entry in tasks.in_folder(folder):
            if entry.task is None:
                print(f"{entry.path}: no task: {entry.reason}")
                continue
            task, cost = entry.task, meter.cost(entry.task.task().source)
            if why := fitting.remedied("" if cost else meter.failure):
                print(f"{entry.path}: no kernel can be judged on it: {why.removeprefix(fitting.REFUSED)}")
                continue
            memory = f"{cost.bytes / 1e9:.3g} GB" if cost else "memory unknown"
            smaller = fitting.sizes_that_fit(task, {}, meter)
            sizes = f"on the cpu: {_sizes(smaller)}" if smaller else _sizes(task.task().sizes)
            count = f"  {len(task.policy.workloads)} workloads" if task.policy.workloads else ""
            print(f"{entry.path}  {task.kernel_class or task.guessed_class}  {memory}  {sizes}{count}")
    print(f"Whether kernels can be judged on them: `python -m engine tasks {folder} --lint`", file=sys.stderr)
    return OK


def _sizes(sizes: Mapping[str, tasks.Size]) -> str:
    return ", ".join(f"{name}={size}" for name, size in sizes.items())


def chosen_sizes(options: Namespace) -> dict[str, tasks.Size]:
    """The sizes that `--set` names; beside them, on a processor, smaller ones for a file that is too large as it is."""
    kept: dict[str, tasks.Size] = dict(options.overrides)
    file = tasks.find(options.task)
    if file.remark:
        print(f"tilewright: {file.path}: {file.remark}.", file=sys.stderr)
    if device_of(options.toolchain) != HOST or file.is_shipped:
        return kept
    with fitting.CostMeter() as meter:
        smaller = fitting.sizes_that_fit(file, kept, meter)
    if smaller:
        note = f"too large for this processor as it is written, so smaller sizes are used: {_sizes(smaller)}"
        print(f"tilewright: {file.path} is {note}. --set NAME=NUMBER chooses others.", file=sys.stderr)
    return {**smaller, **kept}


def chosen_policy(options: Namespace) -> dict[str, Any]:
    """What the words say of the task's policy, as `tasks.policy_with` takes it."""
    return {name: getattr(options, name) for name in tasks.POLICY_OPTIONS}


def list_strategies(options: Namespace) -> int:
    """The search methods with their options; each is imported, and what it prints then goes to standard error."""
    with contextlib.redirect_stdout(sys.stderr):
        described = [catalogue.describe(name) for name in options.names or catalogue.names()]
    if options.json:
        print(json.dumps([codec.to_plain(strategy) for strategy in described]))
    for strategy in () if options.json else described:
        print(
            f"{strategy.name}: {strategy.about}"
            if strategy.is_usable
            else f"{strategy.name}: unavailable: {strategy.failure}"
        )
        for option in strategy.options:
            print(f"  {option.name:20} {option.help()}")
    return OK if all(strategy.is_usable for strategy in described) else BAD_INPUT


def _rule(text: str) -> AskFirst:
    try:
        return AskFirst.parse(text)
    except ValueError as error:
        raise EngineError(str(error)) from error


def _recorded_in(options: Namespace) -> str:
    return recorded_language(Path(options.recording)) if options.recording else languages.DEFAULT


def settings_of(options: Namespace) -> RunSettings:
    """Settings of the run that the `run` verb asks for."""
    fields: dict[str, Any] = {"collect": Switch(options.collect), "language": options.language or _recorded_in(options)}
    strategy = options.strategy or (recorded_strategy(Path(options.recording)) if options.recording else DEFAULT)
    strategy_options = parse(options_of(strategy), options.strategy_options)
    if options.collect != Switch.AUTO and (why := refused_verbs(find_strategy(strategy)).get(CommandKind.COLLECT)):
        raise EngineError(f"strategy {strategy} takes no --collect: {why}")
    fields |= {"strategy": strategy, "strategy_options": strategy_options, "device": options.device}
    fields |= run_options.chosen(options) | chosen_policy(options)
    if options.baseline:
        fields["own_baseline"] = given.own_baseline(options.baseline)
    if options.prompts:
        fields["prompts"] = read_pack(Path(options.prompts))
    if options.knowledge is not None:
        fields["knowledge"] = options.knowledge
    if options.ask_first:
        fields["ask_first"] = _rule(options.ask_first)
    if options.model_options:
        fields["model_options"] = read_options("\n".join(options.model_options))
    if options.recording:
        fields["recording"] = str(Path(options.recording).absolute())
    if options.reply_seconds is not None:
        fields["reply_seconds"] = options.reply_seconds
    settings = supervisor.new_settings(
        options.task, toolchain=options.toolchain, model=options.model, overrides=chosen_sizes(options), **fields
    )
    settings = replace(settings, budget=run_options.budget_of(options, settings.budget))
    if fault := budgets.fault(settings.budget):
        raise EngineError(fault)
    supervisor.see_that_money_can_be_kept(settings)
    return settings
