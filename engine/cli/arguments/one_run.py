"""The grammar of the verbs about runs that are there: shown, labelled, steered, answered, exported, told again."""

from __future__ import annotations

import argparse

from engine.argument_types import Parser
from engine.exporting import SOLUTIONS
from engine.packaging import folders, packing
from storage.results.vocabulary import KernelClass
from storage.run.labels import MarkKind
from storage.run.remeasurements import ROUNDS
from storage.run.steering.verbs import VERBS, CommandKind


def shown(verbs: argparse._SubParsersAction[Parser]) -> None:
    """`list` and `show`."""
    listing = verbs.add_parser("list", help="list all runs, newest last")
    listing.add_argument("--json", action="store_true", help="print JSON")
    listing.add_argument("--tag", default="", metavar="TAG", help="only runs with this tag")
    listing.add_argument("--archived", action="store_true", help="only archived runs, which are left out otherwise")
    show = verbs.add_parser("show", help="show one run and its kernels")
    show.add_argument("run_id", metavar="RUN")
    show.add_argument("--json", action="store_true", help="print JSON")


NO_MARK = "none"


def labels(verbs: argparse._SubParsersAction[Parser]) -> None:
    """`label`, `mark`, `delete` and `undelete`."""
    label = verbs.add_parser("label", help="give runs a name, tags, a note, or archive them; without options show them")
    label.add_argument("run_ids", nargs="+", metavar="RUN")
    label.add_argument("--name", metavar="TEXT", help="name on screen; an empty one takes it away")
    label.add_argument("--tag", dest="tags", action="append", default=[], metavar="TAG", help="add; may be repeated")
    label.add_argument("--untag", action="append", default=[], metavar="TAG", help="take away; may be repeated")
    label.add_argument("--note", metavar="TEXT", help="a note, in place of the one before")
    moving = label.add_mutually_exclusive_group()
    moving.add_argument("--archive", dest="archived", action="store_true", default=None, help="leave out of lists")
    moving.add_argument("--unarchive", dest="archived", action="store_false", help="bring back into lists")
    mark = verbs.add_parser("mark", help="say what you found of a kernel that you read; without KIND show all marks")
    mark.add_argument("run_id", metavar="RUN")
    mark.add_argument("kernel", nargs="?", metavar="KERNEL", help="its number or id")
    mark.add_argument("kind", nargs="?", choices=[*map(str, MarkKind), NO_MARK], metavar="KIND",
                      help=f"{', '.join(MarkKind)}; {NO_MARK} takes the mark back")  # fmt: skip
    mark.add_argument("--note", default="", metavar="TEXT", help="why")
    delete = verbs.add_parser("delete", help="move runs to the trash; undelete brings them back for seven days")
    delete.add_argument("run_ids", nargs="+", metavar="RUN")
    undelete = verbs.add_parser("undelete", help="bring deleted runs back; without a run list them")
    undelete.add_argument("run_ids", nargs="*", metavar="RUN")


def command(verbs: argparse._SubParsersAction[Parser]) -> None:
    """`command`."""
    command = verbs.add_parser(
        "command",
        help="steer a running engine: pause, hint, roll back and more",
        epilog=steering_help(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("run_id", metavar="RUN")
    command.add_argument("kind", choices=[str(kind) for kind in CommandKind], metavar="VERB")
    command.add_argument("argument", nargs="?", default="", metavar="ARGUMENT")


def person(verbs: argparse._SubParsersAction[Parser]) -> None:
    """`answer`, `submit` and `record`."""
    answer = verbs.add_parser("answer", help="show the prompt that waits for you, or send your reply to it")
    answer.add_argument("run_id", metavar="RUN")
    answer.add_argument(
        "file", nargs="?", metavar="FILE", help="your reply, a whole kernel (.py), or -; leave out to see the prompt"
    )
    submit = verbs.add_parser("submit", help="submit a kernel that you edited as the next attempt")
    submit.add_argument("run_id", metavar="RUN")
    submit.add_argument("file", metavar="FILE", help="the whole kernel, or - for standard input")
    submit.add_argument("--parent", help="number of the kernel it is based on (default: the best)")
    submit.add_argument("--note", default="", help="what you changed, in a few words")
    record = verbs.add_parser("record", help="save a run's replies as a recording, to replay without a key")
    record.add_argument("run_id", metavar="RUN")
    record.add_argument("-o", "--output", metavar="FILE", help="output file (default: standard output)")


def export(verbs: argparse._SubParsersAction[Parser]) -> None:
    """`export` and `experience`."""
    export = verbs.add_parser("export", help="write a run's best kernel as one Python file with a class ModelNew")
    export.add_argument("run_id", metavar="RUN")
    export.add_argument("--candidate", help="number of another kernel than the best")
    export.add_argument(
        "--format", default="", choices=SOLUTIONS,
        help="as a solution in JSON of the problem that the task was made from (default: a Python file)",
    )  # fmt: skip
    export.add_argument("--output", metavar="FILE", help="output file (default: standard output)")
    export.add_argument(
        "--no-measure", action="store_true",
        help="leave out the timing in one process that the file's head tells of (about 10 s, on the processor alone)",
    )  # fmt: skip
    _package(verbs)
    about = "write prompts, replies and rewards of a run as JSON Lines, to train on"
    experience = verbs.add_parser("experience", help=about)
    experience.add_argument("run_id", metavar="RUN")
    experience.add_argument("--output", metavar="FILE", help="output file (default: standard output)")


def _package(verbs: argparse._SubParsersAction[Parser]) -> None:
    package = verbs.add_parser("package", help="write kernels of runs as an installable Python package of operators")
    package.add_argument("run_ids", metavar="RUN", nargs="+", help="runs of one task: several become one operator")
    package.add_argument(
        "--output", metavar="DIR", required=True, help="folder to write, which must not hold files yet"
    )
    package.add_argument("--name", default="", help="of the Python package (default: tilewright_ and the task's name)")
    package.add_argument("--candidate", help="number of another kernel than the best, of one run")
    package.add_argument(
        "--sizes", choices=packing.SIZES, default=packing.SIZES[0],
        help="which sizes reach the kernel: those that it was judged at, any first dimension, or any (default: exact)",
    )  # fmt: skip
    package.add_argument(
        "--arch", metavar="LIST", default="",
        help="GPUs to build for, such as sm_80,sm_90a (default: the one that the kernel was judged on)",
    )  # fmt: skip
    package.add_argument(
        "--layout", choices=folders.LAYOUTS, default=folders.WHEEL,
        help="a folder for pip, or for the kernel builder of Hugging Face (default: wheel)",
    )  # fmt: skip
    package.add_argument("--licence", default="", help="of the kernels, as an SPDX name (default: not stated)")


def examples(verbs: argparse._SubParsersAction[Parser]) -> None:
    """`examples` and its commands."""
    shown = verbs.add_parser("examples", help="runs and networks from a GPU that come along: list, open, remove, pack")
    what = shown.add_subparsers(dest="what", required=True, metavar="COMMAND")
    listing = what.add_parser("list", help="list them")
    listing.add_argument("--json", action="store_true", help="print JSON")
    opening = what.add_parser("open", help="put examples beside the runs and networks that are here")
    opening.add_argument("names", nargs="*", metavar="NAME", help="of runs and networks (default: all)")
    what.add_parser("remove", help="move the open examples to the trash")
    packing = what.add_parser(
        "pack", help="write runs that have ended as archives to tasks/examples, without paths of this machine"
    )
    packing.add_argument("run_ids", nargs="+", metavar="RUN")


def replay(verbs: argparse._SubParsersAction[Parser]) -> None:
    """`replay`."""
    replay = verbs.add_parser("replay", help="play back a run from its journal")
    replay.add_argument("run_id", metavar="RUN")
    pace = replay.add_mutually_exclusive_group()
    pace.add_argument("--speed", type=float, metavar="TIMES", help="playback speed, as a multiple of the original")
    pace.add_argument("--seconds", type=float, default=120.0, help="playback length in seconds (default 120)")
    replay.add_argument("--background", action="store_true", help="run in the background; see it in the dashboard")
    replay.add_argument("--delete", action="store_true", help="delete the replay RUN; the original run is kept")


def remeasure(verbs: argparse._SubParsersAction[Parser]) -> None:
    """`remeasure`."""
    again = verbs.add_parser("remeasure", help="time two kernels again on this machine, in alternation")
    again.add_argument(
        "kernels", nargs="*", metavar="RUN KERNEL", help="two kernels, each as a run and the kernel's number"
    )
    again.add_argument("--rounds", type=int, default=ROUNDS, help=f"timing sessions of each kernel (default {ROUNDS})")
    again.add_argument("--go-on", metavar="ID", help=argparse.SUPPRESS)  # how a server starts one it has prepared
    again.add_argument("--background", action="store_true", help="run in the background; follow it on the page Compare")
    again.add_argument("--json", action="store_true", help="print JSON")


def steering_help() -> str:
    """Every verb that `command` takes; verbs that one text is about stand on one line."""
    lines: list[list[str]] = []
    for kind, verb in VERBS.items():
        usage = f"{kind} {verb.usage}".strip()
        if verb.help:
            lines.append([usage, verb.help])
        else:
            lines[-1][0] += f" | {usage}"
    rows = [f"  {usage.ljust(28)}   {text}".replace("\n", "\n" + " " * 33) for usage, text in lines]
    return "\n".join(["verbs:", *rows]).format(classes=", ".join(KernelClass))
