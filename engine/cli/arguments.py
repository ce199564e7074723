"""The command line's grammar and its help. Knows words, not what they do."""

from __future__ import annotations

import argparse
import functools

from engine.cli import arguments_across_runs
from engine.cli.argument_types import Parser, checked, size
from engine.exporting import SOLUTIONS
from engine.languages import DEFAULT as LANGUAGE
from engine.languages import LANGUAGES, of_toolchain
from engine.strategies import catalogue
from engine.strategies.loading import DEFAULT, TABLE, options_of
from engine.toolchain_table import TABLE as TOOLCHAINS
from storage import budgets
from storage.knowledge.choice import CHOICES, FROZEN, SEED
from storage.models import NAMES, ModelRole, with_option
from storage.policy import DTYPES, OWN_DTYPE, PRECISIONS
from storage.records import Budget, KernelClass
from storage.remeasurements import ROUNDS
from storage.verbs import VERBS, CommandKind

DESCRIPTION = """\
Optimise the GPU kernels of a PyTorch module with a language model in the loop.
Without an API key, runs use recorded model replies; compiling, checking, timing and profiling are always real."""

EXAMPLES = """\
examples:
  python -m engine run swish                          a shipped task, recorded replies, CPU toolchain
  python -m engine run path/to/model.py --set N=512   any KernelBench-style file, one constant overridden
  python -m engine tasks FOLDER                       the KernelBench-style files in a folder: class, memory, sizes
  python -m engine strategies                         search methods and their options
  python -m engine evaluate swish my_kernel.py        judge one file outside a run
  python -m engine tune swish my_kernel.py            try other tile sizes, threads, … that the file declares
  python -m engine screen swish my_kernel.py          what its text breaks, at once; builds and runs nothing
  python -m engine examples open                      finished runs from a GPU, to read, compare, replay and fork
  python -m engine replay RUN --speed 10              play back a finished run, ten times as fast
  python -m engine remeasure RUN 7 RUN 5              time two kernels again, in alternation
  python -m engine compile my_kernel.py --arch sm_90a      registers, spills and shared memory; needs no GPU
  python -m engine command RUN pause                  steer a running engine; also resume, stop, hint, roll_back ...
  python -m engine show RUN                           one run and its kernels
  python -m engine resume RUN --set-budget calls=80   continue a run with a higher limit
  python -m engine advance RUN RUN ...                go on with all replies that you have written
  python -m engine knowledge list                     what runs have learned: states, techniques, figures
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

exit codes: 0 success; 1 the run failed, the patch did not apply, the file does not compile or its text is refused;
            2 bad input; 3 the run is already running; 4 something is missing on this machine (see doctor);
            130 interrupted"""


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


UNTIL_WAITING = "exit when the run waits for a person; advance goes on with it"


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
    _run(verbs)
    _resume(verbs)
    _advance(verbs)
    _shown(verbs)
    _labels(verbs)
    _command(verbs)
    _fork(verbs)
    _person(verbs)
    _export(verbs)
    _examples(verbs)
    _replay(verbs)
    _remeasure(verbs)
    _evaluate(verbs)
    _tune(verbs)
    _screen(verbs)
    _compile(verbs)
    _patch(verbs)
    _tasks(verbs)
    arguments_across_runs.knowledge(verbs)
    arguments_across_runs.suite(verbs)
    _reproduce(verbs)
    _machine(verbs)
    return parser


def _resume(verbs: argparse._SubParsersAction[Parser]) -> None:
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
    leaving = resume.add_mutually_exclusive_group()
    leaving.add_argument("--background", action="store_true", help="run in the background; see it in the dashboard")
    leaving.add_argument("--until-waiting", action="store_true", help=UNTIL_WAITING)
    _other_device(resume)


def _shown(verbs: argparse._SubParsersAction[Parser]) -> None:
    listing = verbs.add_parser("list", help="list all runs, newest last")
    listing.add_argument("--json", action="store_true", help="print JSON")
    listing.add_argument("--tag", default="", metavar="TAG", help="only runs with this tag")
    listing.add_argument("--archived", action="store_true", help="only archived runs, which are left out otherwise")
    show = verbs.add_parser("show", help="show one run and its kernels")
    show.add_argument("run_id", metavar="RUN")
    show.add_argument("--json", action="store_true", help="print JSON")


def _screen(verbs: argparse._SubParsersAction[Parser]) -> None:
    screen = verbs.add_parser("screen", help="show what a kernel's text breaks; builds and runs nothing")
    screen.add_argument("task", metavar="TASK")
    screen.add_argument("candidate", metavar="CANDIDATE", help="Python file that defines ModelNew")
    _required_language(screen)
    screen.add_argument("--json", action="store_true", help="print JSON")


def _patch(verbs: argparse._SubParsersAction[Parser]) -> None:
    patch = verbs.add_parser("patch", help="apply a raw model reply to a source file, as a run would")
    patch.add_argument("source", metavar="SOURCE", help="kernel file")
    patch.add_argument("reply", metavar="REPLY", help="file with the raw reply, or - for standard input")


def _tasks(verbs: argparse._SubParsersAction[Parser]) -> None:
    listed = verbs.add_parser("tasks", help="list the shipped tasks and their sizes, or the tasks in a folder")
    listed.add_argument(
        "folder",
        nargs="?",
        metavar="FOLDER",
        help="folder of KernelBench-style files or problems (default: the shipped tasks)",
    )
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
    reproduce.add_argument("--device", default="", metavar="GPU", help="GPU, by index or UUID (default: the first)")
    reproduce.add_argument(
        "--run-references",
        action="store_true",
        help="also judge kernels of tasks that do not come with Tilewright: their references run outside the sandbox",
    )
    reproduce.add_argument("--output", metavar="FILE", help="write every answer there as JSON")


def _machine(verbs: argparse._SubParsersAction[Parser]) -> None:
    doctor = verbs.add_parser("doctor", help="check what is installed on this machine, and how to fix what is missing")
    doctor.add_argument("--json", action="store_true", help="print the findings as JSON")
    tried = verbs.add_parser("try-model", help="ask the model endpoint for one word, to see whether a run could use it")
    tried.add_argument("--model", help="model name at the endpoint (default: TILEWRIGHT_MODEL)")
    _model_options(tried)
    tried.add_argument("--json", action="store_true", help="print what came of it as JSON")


def _sizes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        dest="overrides",
        action="append",
        type=size,
        default=[],
        metavar="K=V",
        help="set a module-level number of the task; may be repeated",
    )
    parser.add_argument("--toolchain", default="cpu", choices=TOOLCHAINS, help="where kernels run (default: cpu)")
    parser.add_argument(
        "--device", default="", metavar="GPU",
        help="with cuda: a number, GPU-… or MIG-…, as in CUDA_VISIBLE_DEVICES (default: the first that is visible)",
    )  # fmt: skip


def _model_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--option", dest="model_options", action="append", type=checked(lambda text: with_option((), text)),
        default=[], metavar="[ROLE.]NAME=VALUE",
        help=f"model option: {', '.join(NAMES)}; ROLE is one of {', '.join(ModelRole)}; may be repeated",
    )  # fmt: skip


def _policy(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--library", default="", metavar="OPERATORS",
        help="what PyTorch may compute in forward: none, all, or operators such as conv2d,matmul (default: as the task "
        "says; none for the shipped ones)",
    )  # fmt: skip
    parser.add_argument("--precision", default="", choices=PRECISIONS, help="precision class (default: the task's)")
    parser.add_argument(
        "--dtype", default="", choices=(OWN_DTYPE, *DTYPES),
        help="what floating-point inputs and parameters are converted to, on both sides: a precision class of its own "
        "(own: as the task is written; default: as the task says)",
    )  # fmt: skip
    parser.add_argument(
        "--backward", action=argparse.BooleanOptionalAction, default=None,
        help="forward and backward: gradients of inputs and parameters are checked too, and both passes are timed "
        "together (default: as the task says; the shipped ones are forward alone)",
    )  # fmt: skip


def _prompts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--prompts", metavar="FOLDER",
        help="prompt pack: a folder with files named as in prompts/; they are used in place of the shipped ones",
    )  # fmt: skip


def _asked_base(parser: argparse.ArgumentParser, usual: str) -> None:
    choices = "; ".join(f"{name}: {about}" for name, about in CHOICES.items())
    parser.add_argument(
        "--knowledge", metavar="BASE",
        help=f"knowledge base that the run asks before a change: {choices}; or the path of another one, which is only "
        f"read; {FROZEN}{SEED} or {FROZEN}PATH: nothing that the run learns counts either (default: {usual})",
    )  # fmt: skip


def _strategy_options(parser: argparse.ArgumentParser) -> None:
    """Options by name, and a flag for each option of the strategies of the table: one where several share it."""
    parser.add_argument(
        "--strategy-option", dest="strategy_options", action="append", default=[], metavar="NAME=VALUE",
        help="an option of the strategy by name; may be repeated; `python -m engine strategies` lists them",
    )  # fmt: skip
    about: dict[str, list[str]] = {}
    for strategy in TABLE:
        for option in options_of(strategy):
            about.setdefault(option.name, []).append(f"{strategy}: {option.help()}")
    group = parser.add_argument_group("options of strategies")
    for name, words in about.items():
        group.add_argument(
            f"--{name.replace('_', '-')}", dest="strategy_options", action="append", metavar="VALUE",
            type=f"{name}={{}}".format, help="; ".join(words).replace("%", "%%"),
        )  # fmt: skip


def _required_language(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--language", default="", choices=tuple(LANGUAGES), help="refuse a kernel of another language (default: any)"
    )


def _toolchains(language: str) -> str:
    return " and ".join(name for name in TOOLCHAINS if language in of_toolchain(name))


def _run(verbs: argparse._SubParsersAction[Parser]) -> None:
    run = verbs.add_parser("run", help="optimise a task")
    run.add_argument(
        "task",
        metavar="TASK",
        help="a shipped task's name, or the path of a KernelBench-style file or of a problem's definition.json",
    )
    _sizes(run)
    _policy(run)
    _model_options(run)
    run.add_argument(
        "--model",
        help="model name, 'recorded', or 'manual' (you write the replies); default: the endpoint's, else recorded",
    )
    run.add_argument("--recording", metavar="FILE", help="recorded replies to replay instead of the shipped ones")
    called = ", ".join(f"{catalogue.words(name).steps} of {name}" for name in TABLE)
    run.add_argument("--depths", type=int, help=f"search steps after the first kernel: {called}")
    known = ", ".join(catalogue.names()).replace("%", "%%")
    run.add_argument(
        "--strategy", metavar="NAME",
        help=f"search method: {known}, or package.module:Name for one of your own (default: that of --recording, else "
        f"{DEFAULT})",
    )  # fmt: skip
    _strategy_options(run)
    _prompts(run)
    _asked_base(run, "that of the strategy: on for kernelblaster, off for the others")
    run.add_argument(
        "--language", choices=tuple(LANGUAGES),
        help=f"in which kernels are written (default: that of --recording, else {LANGUAGE}); "
        + "; ".join(f"{name}: {one.title}, on the toolchains {_toolchains(name)}" for name, one in LANGUAGES.items()),
    )  # fmt: skip
    run.add_argument(
        "--tune", type=int, default=0, metavar="N",
        help="after an accepted kernel, try up to N other sets of numbers for what it declares open to tuning (tile "
        "sizes, stages, threads) and keep the best; asks no model (default 0: off)",
    )  # fmt: skip
    run.add_argument(
        "--compiler-hint", action="store_true",
        help="show the model, with the first kernel, what torch.compile writes for it: Triton on a GPU, else C++",
    )  # fmt: skip
    run.add_argument("--collect", default="auto", choices=("auto", "on", "off"), help="collect profiles")
    run.add_argument("--max-calls", dest="model_calls", type=int, help="limit: model calls")
    run.add_argument("--max-tokens", dest="tokens", type=int, help="limit: input and output tokens")
    run.add_argument("--max-cost", dest="cost_usd", type=float, help="limit: US dollars")
    run.add_argument("--max-minutes", type=float, help="limit: minutes of engine time")
    run.add_argument("--target", dest="target_speedup", type=float, help="stop at this speed-up")
    run.add_argument(
        "--ask-first", metavar="RULE", help="ask for approval: off, calls or all; 'all yes 60' approves after 60 s"
    )
    run.add_argument("--reply-seconds", type=float, help="seconds a recorded reply takes")
    leaving = run.add_mutually_exclusive_group()
    leaving.add_argument("--background", action="store_true", help="run in the background; see it in the dashboard")
    leaving.add_argument("--until-waiting", action="store_true", help=UNTIL_WAITING)
    run.add_argument("--json", action="store_true", help="with --until-waiting: print JSON, as advance does")


def _advance(verbs: argparse._SubParsersAction[Parser]) -> None:
    advance = verbs.add_parser(
        "advance", help="let runs go on with the replies that have arrived, until each waits for a person again"
    )
    advance.add_argument("runs", nargs="+", metavar="RUN")
    advance.add_argument(
        "--jobs", type=checked(_positive), default="1", metavar="N",
        help="runs at work at a time (default 1); they compile side by side and measure in turn",
    )  # fmt: skip
    _other_device(advance)
    advance.add_argument("--json", action="store_true", help="print JSON: each run with its prompt in full")


def _other_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device", metavar="GPU", help="GPU to use this time in place of the run's own, as for `run --device`"
    )


def _positive(text: str) -> None:
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"expected a number of at least 1, got {text!r}")


def _fork(verbs: argparse._SubParsersAction[Parser]) -> None:
    fork = verbs.add_parser("fork", help="start a new run from a kernel of another run")
    fork.add_argument("run_id", metavar="RUN")
    fork.add_argument("candidate", metavar="KERNEL", help="number of the kernel to start from")
    fork.add_argument("--model", help="another model (default: that of RUN)")
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
    fork.add_argument("--class", dest="kernel_class", choices=[str(one) for one in KernelClass], help="kernel class")
    _strategy_options(fork)
    _prompts(fork)
    _asked_base(fork, "that of RUN")
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


def _labels(verbs: argparse._SubParsersAction[Parser]) -> None:
    label = verbs.add_parser("label", help="give runs a name, tags, a note, or archive them; without options show them")
    label.add_argument("run_ids", nargs="+", metavar="RUN")
    label.add_argument("--name", metavar="TEXT", help="name on screen; an empty one takes it away")
    label.add_argument("--tag", dest="tags", action="append", default=[], metavar="TAG", help="add; may be repeated")
    label.add_argument("--untag", action="append", default=[], metavar="TAG", help="take away; may be repeated")
    label.add_argument("--note", metavar="TEXT", help="a note, in place of the one before")
    moving = label.add_mutually_exclusive_group()
    moving.add_argument("--archive", dest="archived", action="store_true", default=None, help="leave out of lists")
    moving.add_argument("--unarchive", dest="archived", action="store_false", help="bring back into lists")
    delete = verbs.add_parser("delete", help="move runs to the trash; undelete brings them back for seven days")
    delete.add_argument("run_ids", nargs="+", metavar="RUN")
    undelete = verbs.add_parser("undelete", help="bring deleted runs back; without a run list them")
    undelete.add_argument("run_ids", nargs="*", metavar="RUN")


def _command(verbs: argparse._SubParsersAction[Parser]) -> None:
    command = verbs.add_parser(
        "command",
        help="steer a running engine: pause, hint, roll back and more",
        epilog=steering_help(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("run_id", metavar="RUN")
    command.add_argument("kind", choices=[str(kind) for kind in CommandKind], metavar="VERB")
    command.add_argument("argument", nargs="?", default="", metavar="ARGUMENT")


def _person(verbs: argparse._SubParsersAction[Parser]) -> None:
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
    imported = verbs.add_parser("import", help="import another system's kernels as a run")
    imported.add_argument("folder", metavar="FOLDER", help="saved nodes (JSON) or source files, one per step")
    imported.add_argument("--task", required=True, metavar="TASK", help="the task of these kernels: a name or a file")
    _sizes(imported)
    imported.add_argument("--model", help="model of the resumed run (default: the endpoint's, else manual)")
    imported.add_argument("--depths", type=int, default=10, help="search steps to add when the run is resumed")
    imported.add_argument("--evaluate", action="store_true", help="build, check and time each kernel here first")


def _export(verbs: argparse._SubParsersAction[Parser]) -> None:
    export = verbs.add_parser("export", help="write a run's best kernel as one Python file with a class ModelNew")
    export.add_argument("run_id", metavar="RUN")
    export.add_argument("--candidate", help="number of another kernel than the best")
    export.add_argument(
        "--format", default="", choices=SOLUTIONS,
        help="as a solution in JSON of the problem that the task was made from (default: a Python file)",
    )  # fmt: skip
    export.add_argument("--output", metavar="FILE", help="output file (default: standard output)")
    about = "write prompts, replies and rewards of a run as JSON Lines, to train on"
    experience = verbs.add_parser("experience", help=about)
    experience.add_argument("run_id", metavar="RUN")
    experience.add_argument("--output", metavar="FILE", help="output file (default: standard output)")


def _examples(verbs: argparse._SubParsersAction[Parser]) -> None:
    shown = verbs.add_parser("examples", help="finished runs that come with Tilewright: list, open, remove, pack")
    what = shown.add_subparsers(dest="what", required=True, metavar="COMMAND")
    listing = what.add_parser("list", help="list them")
    listing.add_argument("--json", action="store_true", help="print JSON")
    opening = what.add_parser("open", help="put examples beside the runs that are here, as runs of their own")
    opening.add_argument("run_ids", nargs="*", metavar="RUN", help="(default: all)")
    what.add_parser("remove", help="move the open examples to the trash")
    packing = what.add_parser(
        "pack", help="write finished runs as archives to tasks/examples, without paths of this machine"
    )
    packing.add_argument("run_ids", nargs="+", metavar="RUN")


def _replay(verbs: argparse._SubParsersAction[Parser]) -> None:
    replay = verbs.add_parser("replay", help="play back a run from its journal")
    replay.add_argument("run_id", metavar="RUN")
    pace = replay.add_mutually_exclusive_group()
    pace.add_argument("--speed", type=float, metavar="TIMES", help="playback speed, as a multiple of the original")
    pace.add_argument("--seconds", type=float, default=120.0, help="playback length in seconds (default 120)")
    replay.add_argument("--background", action="store_true", help="run in the background; see it in the dashboard")
    replay.add_argument("--delete", action="store_true", help="delete the replay RUN; the original run is kept")


def _remeasure(verbs: argparse._SubParsersAction[Parser]) -> None:
    again = verbs.add_parser("remeasure", help="time two kernels again on this machine, in alternation")
    again.add_argument(
        "kernels", nargs="*", metavar="RUN KERNEL", help="two kernels, each as a run and the kernel's number"
    )
    again.add_argument("--rounds", type=int, default=ROUNDS, help=f"timing sessions of each kernel (default {ROUNDS})")
    again.add_argument("--go-on", metavar="ID", help=argparse.SUPPRESS)  # how a server starts one it has prepared
    again.add_argument("--background", action="store_true", help="run in the background; follow it on the page Compare")
    again.add_argument("--json", action="store_true", help="print JSON")


def _evaluate(verbs: argparse._SubParsersAction[Parser]) -> None:
    evaluate = verbs.add_parser("evaluate", help="compile, check and time a kernel file")
    evaluate.add_argument("task", metavar="TASK")
    evaluate.add_argument("candidate", metavar="CANDIDATE", help="Python file that defines ModelNew")
    _required_language(evaluate)
    _sizes(evaluate)
    _policy(evaluate)
    evaluate.add_argument("--profile", action="store_true", help="also profile it if it is correct")
    evaluate.add_argument("--fresh", action="store_true", help="ignore cached results for this source")
    evaluate.add_argument("--json", action="store_true", help="print JSON")


def _tune(verbs: argparse._SubParsersAction[Parser]) -> None:
    tune = verbs.add_parser(
        "tune", help="try other numbers for what a kernel file declares open to tuning (tile sizes, stages, threads)"
    )
    tune.add_argument("task", metavar="TASK")
    tune.add_argument("candidate", metavar="CANDIDATE", help="Python file that defines ModelNew, correct as it is")
    tune.add_argument("--variants", type=int, default=12, metavar="N", help="sets of numbers at most (default 12)")
    tune.add_argument("--output", metavar="FILE", help="write the fastest variant to a file")
    _required_language(tune)
    _sizes(tune)
    _policy(tune)
    tune.add_argument("--json", action="store_true", help="print JSON")


def _compile(verbs: argparse._SubParsersAction[Parser]) -> None:
    compiling = verbs.add_parser("compile", help="compile a kernel file with nvcc; needs no GPU")
    compiling.add_argument("candidate", metavar="FILE", help="Python file that defines ModelNew")
    compiling.add_argument("--arch", help="GPU architecture, such as sm_90a (default: that of this GPU)")
    compiling.add_argument("--json", action="store_true", help="print JSON")
