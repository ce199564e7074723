"""The grammar of the verbs about many runs: what they have learned, and suites. Knows words, not what they do."""

from __future__ import annotations

import argparse

from engine.argument_types import Parser, positive, size, weight
from engine.cli.arguments import common
from engine.suites import definition, exporting
from storage.knowledge.merging import Prefer


def knowledge(verbs: argparse._SubParsersAction[Parser]) -> None:
    """`knowledge` and its commands."""
    parser = verbs.add_parser("knowledge", help="list, correct, export and import what runs have learned")
    what = parser.add_subparsers(dest="what", required=True, metavar="COMMAND")
    listing = what.add_parser("list", help="list states and techniques with what the evidence says of them")
    listing.add_argument("--state", help="only what is known in this state, with its figures there")
    listing.add_argument("--device", help="figures of one device only, such as 'NVIDIA H200'")
    listing.add_argument("--rules", action="store_true", help="failure rules instead: what recurs, and what mended it")
    show = what.add_parser("show", help="show a technique with its attempts, a state, or a failure rule")
    show.add_argument("name", metavar="NAME")
    changes = what.add_parser("revisions", help="list who changed what, newest last")
    for command in (listing, show, changes):
        command.add_argument("--json", action="store_true", help="print JSON")
    export = what.add_parser("export", help="write everything to one file")
    export.add_argument("file", metavar="FILE")
    export.add_argument("--origin", default="", help="name of this knowledge base elsewhere (default: this host)")
    imported = what.add_parser("import", help="take over what an exported file has and this folder has not")
    imported.add_argument("file", metavar="FILE")
    imported.add_argument("--prefer", choices=[str(side) for side in Prefer], help="whose version counts on a conflict")
    imported.add_argument("--origin", default="", help="name of where it is from (default: as the file says)")
    what.add_parser("learn", help="take over what the shipped examples show of techniques")
    revert = what.add_parser("revert", help="undo a revision; reverting a revert brings it back")
    revert.add_argument("revision", metavar="REVISION")
    disable = what.add_parser("disable", help="offer a technique, state or failure rule to no run any more")
    enable = what.add_parser("enable", help="offer it again")
    edit = what.add_parser("edit", help="change what is said of a technique, state or failure rule")
    for command in (disable, enable, edit):
        command.add_argument("name", metavar="NAME")
    edit.add_argument(
        "--set",
        dest="fields",
        action="append",
        required=True,
        metavar="FIELD=TEXT",
        type=_field,
        help="new text of a field, such as hurts='...'; lists take commas; may be repeated",
    )
    for command in (revert, disable, enable, edit):
        command.add_argument("--why", default="", help="the reason, for whoever reads the revisions")


def _field(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not FIELD=TEXT")
    return name.strip(), value


def suite(verbs: argparse._SubParsersAction[Parser]) -> None:
    """`suite` and its commands."""
    parser = verbs.add_parser("suite", help="run tasks x arms x repeats as one suite, and export what came of it")
    what = parser.add_subparsers(dest="what", required=True, metavar="COMMAND")
    run = what.add_parser("run", help="start a suite, or add arms and repeats to one; finished runs stay as they are")
    run.add_argument(
        "suite", metavar="SUITE", help=f"a shipped one ({', '.join(definition.shipped())}), or a .toml file"
    )
    run.add_argument("words", nargs="*", metavar="WORD", help="what the suite takes, such as LEVEL PATH of kernelbench")
    run.add_argument("--arms", default="", metavar="NAME,...", help="only these arms (default: all of the file)")
    run.add_argument(
        "--first", type=int, metavar="N", help="only the first N tasks of the file; a later `suite run` adds the others"
    )
    run.add_argument("--name", help="name of the suite here (default: that of the file)")
    run.add_argument(
        "--settings", default="", metavar="WORDS",
        help='further words of `run` for every run of the suite, such as --settings="--model manual --toolchain cpu"',
    )  # fmt: skip
    run.add_argument(
        "--weight", type=weight, metavar="NUMBER",
        help="share that all runs together have of a device that others want too (default: that of the file, else 1: "
        "as much as one run)",
    )  # fmt: skip
    resume = what.add_parser("resume", help="go on with a suite; finished runs stay as they are")
    resume.add_argument("suite", metavar="NAME")
    for command in (run, resume):
        command.add_argument("--repeats", type=int, metavar="N", help="repeats of each task and arm in all")
        command.add_argument(
            "--set-limit", dest="limits", action="append", default=[], type=size, metavar="NAME=NUMBER",
            help="limit of all runs together: model_calls, tokens, cost_usd or hours (of engine time)",
        )  # fmt: skip
        command.add_argument(
            "--at-once", type=positive, metavar="N",
            help="runs at the same time, which share the devices (default: one for each GPU of the first one's "
            "model, one on the CPU)",
        )  # fmt: skip
        common.pool(command)
        command.add_argument("--background", action="store_true", help="run in the background; see it in the dashboard")
    stop = what.add_parser("stop", help="end a suite's runner and its engines in order; resume goes on")
    show = what.add_parser("show", help="show a suite and its runs")
    show.add_argument("--json", action="store_true", help="print JSON")
    for command in (stop, show):
        command.add_argument("suite", metavar="NAME")
    export = what.add_parser("export", help="write what came of a suite: figures, comparisons, every run")
    export.add_argument("suite", metavar="NAME")
    export.add_argument("--format", choices=list(exporting.FORMATS), default="markdown", help="(default: markdown)")
    export.add_argument("--output", metavar="FILE", help="write it there (default: standard output)")
    export.add_argument(
        "--baseline", metavar="ARM", help="the arm that others are compared with (default: the suite's)"
    )
    export.add_argument("--unfinished", action="store_true", help="count runs that have not ended, as far as they are")
    export.add_argument(
        "--only-clean", action="store_true", help="count only best kernels that a person has marked clean"
    )
    adopt = what.add_parser("adopt", help="add runs that were made one by one to a suite")
    adopt.add_argument("suite", metavar="NAME", help="name of the suite here; a new one is made")
    adopt.add_argument("run_ids", nargs="+", metavar="RUN", help="a run that has ended")
    adopt.add_argument("--like", metavar="SUITE", help="take over tasks, classes and paper figures of this suite file")
    adopt.add_argument("--arm", default="", metavar="NAME", help="arm of all of them (default: each run's strategy)")
    manifest = what.add_parser(
        "manifest", help="write its best kernels with all it takes to judge them again elsewhere"
    )
    manifest.add_argument("suite", metavar="NAME")
    manifest.add_argument("--output", metavar="FILE", help="write it there (default: standard output)")
    listing = what.add_parser("list", help="list the suites that were started, and those that are shipped")
    listing.add_argument("--json", action="store_true", help="print JSON")
