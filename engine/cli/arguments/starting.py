"""The grammar of the verbs that start a run or go on with one. Knows words, not what they do."""

from __future__ import annotations

import argparse

from engine import run_options
from engine.argument_types import Parser, checked, positive
from engine.cli.arguments import common
from engine.evaluator.languages import DEFAULT as LANGUAGE
from engine.evaluator.languages import LANGUAGES, of_toolchain
from engine.evaluator.toolchain_table import TABLE as TOOLCHAINS
from engine.search.methods import catalogue, usual_knowledge
from engine.search.methods.loading import DEFAULT, TABLE, find_strategy
from storage.knowledge.choice import OFF
from storage.results.vocabulary import KernelClass
from storage.run import budgets, saved_models
from storage.run.models import with_option
from storage.run.settings import Budget


def run(verbs: argparse._SubParsersAction[Parser]) -> None:
    """`run`."""
    run = verbs.add_parser("run", help="optimise a task")
    run.add_argument(
        "task",
        metavar="TASK",
        help="a shipped task's name, or the path of a KernelBench-style file or of a problem's definition.json",
    )
    common.sizes(run)
    common.pool(run)
    common.policy(run)
    common.own_baseline(run)
    common.model_options(run)
    run.add_argument(
        "--model",
        type=saved_models.named,
        help="a saved model, also as agent:NAME (page Models, models.toml), an endpoint's model name, 'recorded', or "
        "'manual' (you write the replies); default: the endpoint's, else the first saved one, else recorded",
    )
    run.add_argument("--recording", metavar="FILE", help="recorded replies to replay instead of the shipped ones")
    called = ", ".join(f"{catalogue.words(name).steps} of {name}" for name in TABLE)
    run.add_argument("--depths", type=int, help=f"search steps after the first kernel: {called}")
    methods = ", ".join(catalogue.names()).replace("%", "%%")
    run.add_argument(
        "--strategy", metavar="NAME",
        help=f"search method: {methods}, or package.module:Name for one of your own (default: that of --recording, "
        f"else {DEFAULT})",
    )  # fmt: skip
    common.strategy_options(run)
    common.prompts(run)
    asking = " and ".join(name for name in TABLE if usual_knowledge(find_strategy(name)) != OFF)
    common.asked_base(run, f"that of the strategy: on for {asking}, off for the others that are shipped")
    run.add_argument(
        "--language", choices=tuple(LANGUAGES),
        help=f"in which kernels are written (default: that of --recording, else {LANGUAGE}); "
        + "; ".join(
            f"{name}: {language.title}, on the toolchains {_toolchains(name)}" for name, language in LANGUAGES.items()
        ),
    )  # fmt: skip
    for option in run_options.OPTIONS:
        option.add_to(run)
    run.add_argument("--collect", default="auto", choices=("auto", "on", "off"), help="collect profiles")
    run_options.add_limits(run)
    run.add_argument(
        "--ask-first", metavar="RULE", help="ask for approval: off, calls or all; 'all yes 60' approves after 60 s"
    )
    run.add_argument("--reply-seconds", type=float, help="seconds a recorded reply takes")
    _leaving(run)
    run.add_argument("--json", action="store_true", help="with --until-waiting: print JSON, as advance does")


def _leaving(parser: Parser) -> None:
    """Whether the shell is free before the run is over."""
    leaving = parser.add_mutually_exclusive_group()
    leaving.add_argument("--background", action="store_true", help="run in the background; see it in the dashboard")
    leaving.add_argument("--until-waiting", action="store_true", help=common.UNTIL_WAITING)


def resume(verbs: argparse._SubParsersAction[Parser]) -> None:
    """`resume`."""
    resume = verbs.add_parser("resume", help="continue a run that was stopped, lost or failed")
    resume.add_argument("run_id", metavar="RUN")
    resume.add_argument(
        "--set-budget",
        dest="budget",
        action="append",
        type=checked(lambda text: budgets.changed(Budget(), text)),
        default=[],
        metavar="NAME=NUMBER",
        help=f"change a limit: {', '.join(budgets.FIELDS)}; 'none' removes it; may be repeated",
    )
    _leaving(resume)
    common.other_device(resume)
    common.pool(resume)


def advance(verbs: argparse._SubParsersAction[Parser]) -> None:
    """`advance`."""
    advance = verbs.add_parser(
        "advance", help="let runs go on with the replies that have arrived, until each waits for a person again"
    )
    advance.add_argument("runs", nargs="+", metavar="RUN")
    advance.add_argument(
        "--jobs", type=positive, default="1", metavar="N",
        help="runs at work at a time (default 1); they compile side by side and measure in turn",
    )  # fmt: skip
    common.other_device(advance)
    common.pool(advance)
    advance.add_argument("--json", action="store_true", help="print JSON: each run with its prompt in full")


def fork(verbs: argparse._SubParsersAction[Parser]) -> None:
    """`fork`."""
    fork = verbs.add_parser("fork", help="start a new run from a kernel of another run")
    fork.add_argument("run_id", metavar="RUN")
    fork.add_argument("candidate", metavar="KERNEL", help="number of the kernel to start from")
    fork.add_argument("--model", type=saved_models.named, help="another model (default: that of RUN)")
    fork.add_argument(
        "--toolchain", choices=list(TOOLCHAINS),
        help="another toolchain, such as cpu where there is no GPU; a shipped task then has its sizes for it",
    )  # fmt: skip
    fork.add_argument(
        "--option",
        dest="model_options",
        action="append",
        default=[],
        metavar="[ROLE.]NAME=VALUE",
        type=checked(lambda text: with_option((), text)),
        help="model option; may be repeated",
    )
    fork.add_argument(
        "--class", dest="kernel_class", choices=[str(kernel_class) for kernel_class in KernelClass], help="kernel class"
    )
    common.strategy_options(fork)
    common.prompts(fork)
    common.asked_base(fork, "that of RUN")
    fork.add_argument("--no-profiles", action="store_true", help="never show the model a profile")
    fork.add_argument(
        "--set-budget",
        dest="budget",
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        type=checked(lambda text: budgets.changed(Budget(), text)),
        help=f"change a limit of RUN: {', '.join(budgets.FIELDS)}; may be repeated",
    )
    fork.add_argument("--hint", default="", help="a hint for the first prompt")


def import_(verbs: argparse._SubParsersAction[Parser]) -> None:
    """`import`."""
    imported = verbs.add_parser("import", help="import another system's kernels as a run")
    imported.add_argument("folder", metavar="FOLDER", help="saved nodes (JSON) or source files, one per step")
    imported.add_argument("--task", required=True, metavar="TASK", help="the task of these kernels: a name or a file")
    common.sizes(imported)
    imported.add_argument(
        "--model", type=saved_models.named, help="model of the resumed run (default: the endpoint's, else manual)"
    )
    imported.add_argument("--depths", type=int, default=10, help="search steps to add when the run is resumed")
    imported.add_argument("--evaluate", action="store_true", help="build, check and time each kernel here first")


def _toolchains(language: str) -> str:
    return " and ".join(name for name in TOOLCHAINS if language in of_toolchain(name))
