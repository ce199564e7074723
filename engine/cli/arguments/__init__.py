"""The command line's grammar and its help. Knows words, not what they do.

starting.py       verbs that start a run or go on with one
one_run.py        verbs about runs that are there
across_runs.py    verbs about many runs: knowledge, suites
networks.py       verbs about a network
outside_runs.py   verbs about a kernel file outside a run; what agents are given
common.py         options that several verbs share
"""

from __future__ import annotations

import argparse
import functools

from engine.argument_types import Parser
from engine.cli.arguments import across_runs, common, networks, one_run, outside_runs, starting
from storage.run import saved_models

DESCRIPTION = """\
Optimise the kernels of a PyTorch module, on a GPU or the processor, with a language model in the loop.
Without an API key, runs use recorded model replies; compiling, checking, timing and profiling are always real."""

EXAMPLES = """\
examples:
  python -m engine run swish                          a shipped task, recorded replies, CPU toolchain
  python -m engine run path/to/model.py --set N=512   any KernelBench-style file, one constant overridden
  python -m engine tasks FOLDER                       the KernelBench-style files in a folder: class, memory, sizes
  python -m engine tasks FILE --lint                  whether kernels can be judged on it, and what mends it if not
  python -m engine strategies                         search methods and their options
  python -m engine evaluate swish my_kernel.py        judge one file outside a run
  python -m engine tune swish my_kernel.py            try other tile sizes, threads, … that the file declares
  python -m engine screen swish my_kernel.py          what its text breaks, at once; builds and runs nothing
  python -m engine examples open                      runs from a GPU, to read, compare, replay and fork
  python -m engine replay RUN --speed 10              play back a run that has ended, ten times as fast
  python -m engine remeasure RUN 7 RUN 5              time two kernels again, in alternation
  python -m engine compile my_kernel.py --arch sm_90a      registers, spills and shared memory; needs no GPU
  python -m engine command RUN pause                  steer a running engine; also resume, stop, hint, roll_back ...
  python -m engine show RUN                           one run and its kernels
  python -m engine resume RUN --set-budget calls=80   continue a run with a higher limit
  python -m engine advance RUN RUN ...                go on with all replies that you have written
  python -m engine knowledge list                     what runs have learned: states, techniques, figures
  python -m engine mcp --max-evaluations 50           tools for your agent; see docs/mcp.md
  python -m engine skill install DIR                  teach your agent to write kernels with it
  python -m engine network capture app.py:make        a whole network; see docs/networks.md
  python -m engine network try                        a small one, from capture to result, without a key
  python -m engine suite run quick                    four tasks as one suite; see docs/suites.md

environment:
  TILEWRIGHT_HOME   folder of runs and caches (default ~/.tilewright)
  TILEWRIGHT_STRATEGIES=mine.search:Beam,...          strategies of your own that the dashboard offers
  TILEWRIGHT_ISOLATION=full           refuse to judge unless the sandbox is complete
  TILEWRIGHT_LEASES                   folder of the device locks, for containers that share a GPU (default /run/lock)
  TILEWRIGHT_CUTLASS_INCLUDE          folder with the CuTe headers (default: the pip package)
  TILEWRIGHT_COMPILED_BASELINE=off    do not time torch.compile once per run
  TILEWRIGHT_TIMING_SECONDS=2         seconds of timing samples per kernel (default 8); less is faster and noisier
  TILEWRIGHT_CHECK_SECONDS=4          seconds of correctness trials per kernel (default 12)
  OPENAI_API_KEY    key of an OpenAI-compatible endpoint; set OPENAI_BASE_URL for another provider or a local server
  TILEWRIGHT_MODEL  model name at that endpoint; prices.toml and budget.toml under TILEWRIGHT_HOME: see docs/models.md

exit codes: 0 success; 1 the run failed, the patch did not apply, the file does not compile, its text is refused or
            a task is not decided;
            2 bad input; 3 the run is already running; 4 something is missing on this machine (see doctor);
            130 interrupted"""


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line; exits with 2 on bad usage."""
    return _whole().parse_args(arguments)


@functools.cache
def _whole() -> Parser:
    parser = Parser(
        prog="python -m engine",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="COMMAND")
    starting.run(verbs)
    starting.resume(verbs)
    starting.advance(verbs)
    one_run.shown(verbs)
    one_run.labels(verbs)
    one_run.command(verbs)
    starting.fork(verbs)
    one_run.person(verbs)
    starting.import_(verbs)
    one_run.export(verbs)
    one_run.examples(verbs)
    one_run.replay(verbs)
    one_run.remeasure(verbs)
    outside_runs.evaluate(verbs)
    outside_runs.tune(verbs)
    outside_runs.screen(verbs)
    outside_runs.compile_(verbs)
    outside_runs.patch(verbs)
    _tasks(verbs)
    across_runs.knowledge(verbs)
    across_runs.suite(verbs)
    networks.network(verbs)
    _reproduce(verbs)
    outside_runs.mcp(verbs)
    outside_runs.skill(verbs)
    _machine(verbs)
    return parser


def _tasks(verbs: argparse._SubParsersAction[Parser]) -> None:
    listed = verbs.add_parser("tasks", help="list the shipped tasks and their sizes, or the tasks in a folder")
    listed.add_argument(
        "folder",
        nargs="?",
        metavar="FOLDER",
        help="folder of KernelBench-style files or problems; with --lint also one file or a shipped task's name "
        "(default: the shipped tasks)",
    )
    listed.add_argument(
        "--lint", action="store_true",
        help="examine each: whether kernels can be judged on it, and if not, why and what mends it; runs the reference "
        "and asks no model; exit code 1 unless each is decided",
    )  # fmt: skip
    common.sizes(listed)
    common.pool(listed)
    common.policy(listed)
    listed.add_argument("--json", action="store_true", help="with --lint: print JSON")
    strategies = verbs.add_parser("strategies", help="list search methods and their options")
    strategies.add_argument(
        "names", nargs="*", metavar="NAME", help="one of these, or package.module:Name for one of your own"
    )
    strategies.add_argument("--json", action="store_true", help="print JSON")


def _reproduce(verbs: argparse._SubParsersAction[Parser]) -> None:
    reproduce = verbs.add_parser("reproduce", help="judge the best kernels of a suite again, from its manifest")
    reproduce.add_argument("manifest", metavar="MANIFEST", help="file of `suite manifest`")
    reproduce.add_argument(
        "--task",
        dest="tasks",
        action="append",
        default=[],
        metavar="NAME",
        help="only kernels of this task (repeatable)",
    )
    reproduce.add_argument(
        "--device", default="", metavar="GPU", help="GPU, as for `run --device` (default: the first)"
    )
    common.pool(reproduce)
    reproduce.add_argument(
        "--run-references",
        action="store_true",
        help="also judge kernels of tasks that do not come with Tilewright: their references run outside the sandbox",
    )
    reproduce.add_argument("--output", metavar="FILE", help="write every answer there as JSON")


def _machine(verbs: argparse._SubParsersAction[Parser]) -> None:
    doctor = verbs.add_parser("doctor", help="check what is installed on this machine, and how to fix what is missing")
    doctor.add_argument("--json", action="store_true", help="print the findings as JSON")
    pool = verbs.add_parser("pool", help="show what the devices of this host do, and how busy they were")
    what = pool.add_subparsers(dest="what", required=True, metavar="COMMAND")
    status = what.add_parser("status", help="each device: what it does, how busy it was in the last hour, who waits")
    status.add_argument("--json", action="store_true", help="print JSON")
    tried = verbs.add_parser("try-model", help="ask the model endpoint for one word, to see whether a run could use it")
    tried.add_argument(
        "--model", type=saved_models.named, help="a saved model, or a name at the endpoint (default: TILEWRIGHT_MODEL)"
    )
    common.model_options(tried)
    tried.add_argument("--given", action="store_true", help=argparse.SUPPRESS)  # what the page Models asks, with a key
    tried.add_argument("--json", action="store_true", help="print what came of it as JSON")
