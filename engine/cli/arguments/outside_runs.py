"""The grammar of the verbs about a kernel file outside a run, and of what agents are given. Knows words, not what they
do."""

from __future__ import annotations

import argparse

from engine.argument_types import Parser, count, positive, seconds
from engine.cli.arguments import common


def evaluate(verbs: argparse._SubParsersAction[Parser]) -> None:
    """`evaluate`."""
    evaluate = verbs.add_parser("evaluate", help="compile, check and time a kernel file")
    evaluate.add_argument("task", metavar="TASK")
    evaluate.add_argument("candidate", metavar="CANDIDATE", help="Python file that defines ModelNew")
    common.required_language(evaluate)
    common.sizes(evaluate)
    common.pool(evaluate)
    common.policy(evaluate)
    common.own_baseline(evaluate)
    evaluate.add_argument("--profile", action="store_true", help="also profile it if it is correct")
    evaluate.add_argument(
        "--deployment", action="store_true", help="also look at CUDA graph, stream and memory of a correct one's call"
    )
    evaluate.add_argument("--fresh", action="store_true", help="ignore cached results for this source")
    evaluate.add_argument("--json", action="store_true", help="print JSON")


def tune(verbs: argparse._SubParsersAction[Parser]) -> None:
    """`tune`."""
    tune = verbs.add_parser(
        "tune", help="try other numbers for what a kernel file declares open to tuning (tile sizes, stages, threads)"
    )
    tune.add_argument("task", metavar="TASK")
    tune.add_argument("candidate", metavar="CANDIDATE", help="Python file that defines ModelNew, correct as it is")
    tune.add_argument("--variants", type=int, default=12, metavar="N", help="sets of numbers at most (default 12)")
    tune.add_argument("--output", metavar="FILE", help="write the fastest variant to a file")
    common.required_language(tune)
    common.sizes(tune)
    common.policy(tune)
    common.pool(tune)
    tune.add_argument("--json", action="store_true", help="print JSON")


def screen(verbs: argparse._SubParsersAction[Parser]) -> None:
    """`screen`."""
    screen = verbs.add_parser("screen", help="show what a kernel's text breaks; builds and runs nothing")
    screen.add_argument("task", metavar="TASK")
    screen.add_argument("candidate", metavar="CANDIDATE", help="Python file that defines ModelNew")
    common.required_language(screen)
    screen.add_argument("--json", action="store_true", help="print JSON")


def compile_(verbs: argparse._SubParsersAction[Parser]) -> None:
    """`compile`."""
    compiling = verbs.add_parser("compile", help="compile a kernel file with nvcc or CuTe's Python DSL; needs no GPU")
    compiling.add_argument("candidate", metavar="FILE", help="Python file that defines ModelNew")
    compiling.add_argument("--task", metavar="TASK", help="what calls it: needed for a kernel in CuTe's Python DSL")
    compiling.add_argument("--arch", help="GPU architecture, such as sm_90a (default: that of this GPU)")
    compiling.add_argument("--json", action="store_true", help="print JSON")


def patch(verbs: argparse._SubParsersAction[Parser]) -> None:
    """`patch`."""
    patch = verbs.add_parser("patch", help="apply a raw model reply to a source file, as a run would")
    patch.add_argument("source", metavar="SOURCE", help="kernel file")
    patch.add_argument("reply", metavar="REPLY", help="file with the raw reply, or - for standard input")


def skill(verbs: argparse._SubParsersAction[Parser]) -> None:
    """`skill`."""
    skill = verbs.add_parser("skill", help="teach your coding agent to write kernels with Tilewright")
    what = skill.add_subparsers(dest="what", required=True, metavar="COMMAND")
    install = what.add_parser("install", help="write SKILL.md, AGENTS.md, references and scripts; overwrites nothing")
    install.add_argument("folder", metavar="DIR", help="such as .claude/skills/tilewright in your project")


def mcp(verbs: argparse._SubParsersAction[Parser]) -> None:
    """`mcp`."""
    mcp = verbs.add_parser("mcp", help="let agents use the evaluator, the knowledge base and runs; see docs/mcp.md")
    mcp.add_argument(
        "--task", dest="places", action="append", default=[], metavar="PATH",
        help="serve this task beside the shipped ones: a file, or a folder with files; may be repeated. References run "
        "as trusted programs",
    )  # fmt: skip
    mcp.add_argument(
        "--http", dest="port", type=positive, metavar="PORT",
        help="serve over HTTP at this port of 127.0.0.1 (default: over standard streams)",
    )  # fmt: skip
    mcp.add_argument(
        "--max-evaluations", type=count, default=100, metavar="N",
        help="evaluations that agents may ask for: check, evaluate, profile, tune, submit (default 100)",
    )  # fmt: skip
    mcp.add_argument(
        "--max-device-seconds", type=seconds, default=1800.0, metavar="S",
        help="seconds that they may hold the device (default 1800)",
    )  # fmt: skip
    mcp.add_argument("--max-runs", type=count, default=2, metavar="N", help="runs that agents may start (default 2)")
    common.toolchain(mcp)
    common.pool(mcp)
