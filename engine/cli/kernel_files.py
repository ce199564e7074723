"""Verbs about one kernel file outside a run: evaluate, tune, screen. Handed the way to a toolchain, it chooses none."""

from __future__ import annotations

import functools
import json
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from engine.cli import given, judgement, subcommands, tuned
from engine.cli.subcommands import FAILED, OK
from engine.cli.terminal import Console
from engine.errors import EngineError
from engine.evaluator import tasks
from engine.evaluator.request import Evaluator
from engine.evaluator.toolchains.cached import CachedToolchain
from engine.evaluator.toolchains.evaluating import evaluate
from engine.shown import sweeps
from storage import codec, files
from storage.home import home
from storage.results import baselines
from storage.results.baselines import OwnBaseline


def evaluate_file(options: Namespace, open_toolchain: Callable[[Namespace], Evaluator]) -> int:
    """Judge a file outside a run."""
    task = _task(options)
    source = given.kernel(options.candidate)
    toolchain = open_toolchain(options)
    try:
        judged: Evaluator = toolchain if options.fresh else CachedToolchain(toolchain, home() / "cache" / "evaluations")
        result = evaluate(
            judged, task, source, options.profile, _baselines(options, task), deployment=options.deployment
        )
    finally:
        toolchain.close()
    if options.json:
        print(json.dumps(result))
    else:
        judgement.print_judgement(Console(), result)
    return OK


def tune_file(options: Namespace, open_toolchain: Callable[[Namespace], Evaluator]) -> int:
    """Try other numbers for what a file declares open to tuning."""
    if options.variants < 1:
        raise EngineError(f"at least one variant is tried, not {options.variants}: choose --variants 1 or more")
    task = _task(options)
    source, console = given.kernel(options.candidate), Console(stderr=True)
    say = functools.partial(console.print, markup=False, highlight=False)
    toolchain = open_toolchain(options)
    try:
        sweep, best, seconds = sweeps.tune(
            toolchain, task, source, options.variants, say, lambda number, sweep: say(tuned.variant_line(number, sweep))
        )
    finally:
        toolchain.close()
    if options.json:
        print(json.dumps(codec.to_plain(sweeps.form("", sweep)) | {"seconds": seconds, "source": best or None}))
    else:
        tuned.print_sweep(Console(), Path(options.candidate).name, sweep)
    if options.output and best:
        files.hand_over(Path(options.output), best)
    return OK


def screen_file(options: Namespace) -> int:
    """What the rules on text alone say of a file: 0 where nothing refuses it, 1 where something does."""
    from engine.evaluator.checks.screening import read_for, screen

    task = tasks.find(options.task)
    policy = read_for(task.policy, task.text)
    findings = screen(given.kernel(options.candidate), policy, options.language)
    if options.json:
        print(json.dumps(codec.to_plain(findings)))
    else:
        judgement.print_findings(Console(), findings)
    return FAILED if any(finding.is_refusal for finding in findings) else OK


def _baselines(options: Namespace, task: tasks.Task) -> tuple[str | OwnBaseline, ...]:
    """What a file is timed beside, where it is asked for: that can take minutes.

    Raises:
        EngineError: one cannot be had on the toolchain, or a person's own defines none.
    """
    if fault := baselines.fault(task.policy.baselines, options.toolchain):
        raise EngineError(fault)
    own = [given.own_baseline(options.baseline)] if options.baseline else []
    return (*(name for name in task.policy.baselines if name != baselines.NONE), *own)


def _task(options: Namespace) -> tasks.Task:
    """The task of a file that is judged outside a run, with the sizes, policy and language given."""
    task = tasks.find(options.task).task(options.toolchain, subcommands.chosen_sizes(options))
    policy = tasks.policy_with(task.policy, **subcommands.chosen_policy(options))
    return replace(task, policy=policy, language=options.language)
