"""The grammar of `network` and its commands. Knows words, not what they do."""

from __future__ import annotations

import argparse

from engine.argument_types import Parser, positive, size
from engine.networks import small

"""The network that comes with Tilewright, with recorded replies for its regions."""


def network(verbs: argparse._SubParsersAction[Parser]) -> None:
    """`network` and its commands."""
    parser = verbs.add_parser("network", help="capture a whole network and rank the places that are worth a kernel")
    what = parser.add_subparsers(dest="what", required=True, metavar="COMMAND")
    capture = what.add_parser("capture", help="call a network, time its places, write each kind of place as a task")
    capture.add_argument(
        "entry", metavar="ENTRY",
        help="app.py:make or package.module:make, a function that returns a module and a list of workloads, each "
        "(name, weight, args, kwargs); or hf:FOLDER, a transformers configuration with its weights or random ones",
    )  # fmt: skip
    capture.add_argument("--name", help="name of the network here (default: that of the file)")
    capture.add_argument("--output", metavar="FOLDER", help="write it there, and only a link to it under the home")
    capture.add_argument("--mode", choices=("eval", "train"), default="eval", help="(default: eval)")
    capture.add_argument("--device", default="cpu", metavar="DEVICE", help="cpu or cuda (default: cpu)")
    capture.add_argument("--seed", type=int, default=0, metavar="N", help="of random weights and inputs (default: 0)")
    capture.add_argument(
        "--keep", type=positive, default=2, metavar="N", help="calls of each region whose tensors are kept (default: 2)"
    )
    capture.add_argument(
        "--most-mb", type=positive, default=4000, metavar="N", help="kept tensors of all regions (default: 4000)"
    )
    capture.add_argument(
        "--least-share", type=float, default=0.3, metavar="PERCENT",
        help="of a call: places that take less are no region (default: 0.3)",
    )  # fmt: skip
    capture.add_argument("--batch", type=positive, default=1, metavar="N", help="of hf: inputs (default: 1)")
    capture.add_argument("--tokens", type=positive, default=256, metavar="N", help="of hf: inputs (default: 256)")
    capture.add_argument("--no-compile", action="store_true", help="do not look at the network under torch.compile")
    capture.add_argument(
        "--max-autotune", action="store_true", help="time max-autotune too, on a GPU also a CUDA graph of it: minutes"
    )
    capture.add_argument("--no-limits", action="store_true", help="do not measure what the hardware allows")
    capture.add_argument("--again", action="store_true", help="capture anew what was captured before")
    rank = what.add_parser("rank", help="list regions by what a kernel would save of the whole")
    rank.add_argument("--limits", action="store_true", help="measure limits that are missing first")
    show = what.add_parser("show", help="show what was captured, and what kernels bring in the network")
    optimise = what.add_parser(
        "optimise", help="search kernels for regions, then put them back; goes on with what is begun"
    )
    apply = what.add_parser("apply", help="put kernels back into the network and measure them there")
    stop = what.add_parser("stop", help="stop the measurement that is at work; `apply` goes on with it")
    ship = what.add_parser("ship", help="write the package of the kernels that pay in the network")
    trial = what.add_parser("try", help="the shipped small network from capture to result, with recorded replies")
    report = what.add_parser("report", help="one HTML file on what kernels bring in the network")
    report.add_argument("--output", metavar="FILE", help="where to (default: print it)")
    reproduce = what.add_parser("reproduce", help="measure a package of `network ship` once more, in its network")
    reproduce.add_argument("folder", metavar="FOLDER", help="that `network ship` has written; its kernels are run here")
    reproduce.add_argument(
        "--entry",
        default="",
        metavar="ENTRY",
        help="what makes the network here (default: the same file, in this folder)",
    )
    _kernels(optimise, apply, ship, trial)
    reproduce.add_argument(
        "--seconds", type=float, default=12.0, metavar="S", help="at most for two ways and one workload (default: 12)"
    )
    reproduce.add_argument(
        "--way-seconds", type=float, default=600.0, metavar="S", help="at most until a way is ready (default: 600)"
    )
    export = what.add_parser(
        "export", help="write a network with its search and runs as an archive, without recorded tensors and weights"
    )
    export.add_argument("--output", required=True, metavar="FILE", help="where to, such as app.tar.xz")
    importing = what.add_parser("import", help="open an archive of `network export` beside what is here")
    importing.add_argument("file", metavar="FILE", help="that `network export` has written; nothing of it is run")
    importing.add_argument("--name", default="", help="of the network here (default: its own)")
    delete = what.add_parser("delete", help="remove what was captured; runs of its regions stay")
    for command in (rank, show, delete, optimise, apply, stop, ship, report, export):
        command.add_argument("network", metavar="NAME")
    listing = what.add_parser("list", help="list the networks that were captured")
    for command in (rank, show, listing):
        command.add_argument("--json", action="store_true", help="print JSON")


def _kernels(optimise: Parser, apply: Parser, ship: Parser, trial: Parser) -> None:
    """Options of searching kernels for a network, of putting them back, and of the package."""
    for command in (optimise, trial):
        command.set_defaults(top=None, regions="", settings="", recordings="", limits=[], at_once=None)
    optimise.add_argument(
        "--top", type=positive, metavar="N", help="regions, the largest saving first (default: all worth it)"
    )
    optimise.add_argument("--regions", metavar="NAME,...", help="these regions instead")
    optimise.add_argument(
        "--settings",
        metavar="WORDS",
        help='words of `run` for every region, such as --settings="--model o3 --depths 6"',
    )
    optimise.add_argument("--recordings", metavar="FOLDER", help="recorded replies, REGION.jsonl, of those to search")
    optimise.add_argument(
        "--set-limit", dest="limits", action="append", type=size, metavar="NAME=NUMBER",
        help="of all regions together: model_calls, tokens, cost_usd or hours; what is left goes where it saves most",
    )  # fmt: skip
    optimise.add_argument(
        "--at-once", type=positive, metavar="N", help="regions at the same time (default: one a device)"
    )
    optimise.add_argument("--search-only", action="store_true", help="do not put kernels back when the search ends")
    apply.add_argument(
        "--use", action="append", default=[], type=_region_run, metavar="REGION=RUN", help="the best kernel of this run"
    )
    apply.add_argument("--without", default="", metavar="NAME,...", help="leave these regions as they are")
    apply.add_argument(
        "--ways", default="", metavar="WAY,...",
        help="to call it: eager, torch.compile, max-autotune, CUDA graph, CUDA graph of max-autotune (default: the "
        "first two, on a GPU all)",
    )  # fmt: skip
    apply.add_argument("--again", action="store_true", help="measure anew what was begun or done with the same kernels")
    for command in (optimise, apply, trial):
        command.add_argument(
            "--seconds", type=float, default=12.0, metavar="S",
            help="at most for two ways to call the network with one workload, in turns (default: 12)",
        )  # fmt: skip
        command.add_argument(
            "--way-seconds", type=float, default=600.0, metavar="S",
            help="at most until a way to call it is compiled and tuned; one that is not is left out (default: 600)",
        )  # fmt: skip
    ship.add_argument("--output", required=True, metavar="FOLDER", help="where to")
    ship.add_argument("--name", default="", help="of the Python package (default: tilewright_ and the network's name)")
    ship.add_argument("--layout", choices=("wheel", "kernels"), default="wheel", help="(default: wheel)")
    ship.add_argument("--arch", default="", metavar="SM,...", help="GPUs that the wheel is built for")
    ship.add_argument("--licence", default="", help="of the kernels, as an SPDX name (default: not stated)")
    trial.add_argument("--name", default=small.NAME, help="of the network here (default: %(default)s)")
    trial.set_defaults(
        device="cpu", mode="eval", seed=0, keep=2, most_mb=4000, least_share=0.3, batch=1, tokens=256,
        no_compile=False, max_autotune=False,
        no_limits=False, recordings=str(small.FOLDER / "recordings"),
    )  # fmt: skip


def _region_run(text: str) -> tuple[str, str]:
    region, equals, run = text.partition("=")
    if not equals or not region or not run:
        raise argparse.ArgumentTypeError(f"{text!r} is not REGION=RUN")
    return region, run
