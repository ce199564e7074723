"""The command line's grammar and its help. Knows words, not what they do."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from engine.strategies.base_policy import POLICIES
from storage import budgets
from storage.models import NAMES, ModelRole, with_option
from storage.records import Budget, CommandKind, KernelClass
from storage.remeasurements import ROUNDS

DESCRIPTION = """\
Tilewright writes, checks and speeds up GPU kernels for a PyTorch module with a language model in the loop.
Without a key it replays recorded replies; compiling, checking, timing and profiling are always real."""

EXAMPLES = """\
examples:
  python -m engine run swish                          a shipped task, recorded replies, CPU toolchain
  python -m engine run path/to/model.py --set N=512   any KernelBench-style file, one constant overridden
  python -m engine evaluate swish my_kernel.py        judge one file outside a run
  python -m engine replay RUN --speed 10              tell a finished run once more, as a run to watch
  python -m engine remeasure RUN 7 RUN 5              time two kernels again, taking turns
  python -m engine compile my_kernel.py --arch sm_90a      registers, spills and shared memory, without a device
  python -m engine command RUN pause                  steer a running engine; also resume, stop, hint, roll_back ...
  python -m engine show RUN                           what a run did, depth by depth
  python -m engine resume RUN --set-budget calls=80   go on with more budget

environment:
  TILEWRIGHT_HOME   where runs are kept (default ~/.tilewright)
  TILEWRIGHT_ISOLATION=full           judge only behind every wall
  TILEWRIGHT_LEASES                   folder of the locks on devices, for containers that share one (default /run/lock)
  TILEWRIGHT_CUTLASS_INCLUDE          folder with the CuTe headers (default: those that pip installs)
  TILEWRIGHT_COMPILED_BASELINE=off    do not time torch.compile once per run
  TILEWRIGHT_TIMING_SECONDS=2         sample each kernel's time for so long (default 8); less is quicker and noisier
  TILEWRIGHT_CHECK_SECONDS=4          the same for its results (default 12)
  OPENAI_API_KEY    key of an OpenAI-compatible endpoint; OPENAI_BASE_URL for another provider or a local server
  TILEWRIGHT_MODEL  model to ask there; prices.toml and budget.toml under TILEWRIGHT_HOME: see docs/models.md

exit codes: 0 done, 1 the run failed, the patch did not apply or the file does not compile, 2 bad input,
            3 another engine works on the run, 4 this machine lacks something (see doctor), 130 interrupted"""

STEERING = """\
verbs:
  pause | resume | stop          after the step in flight
  collect auto|on|off            profiles for people
  expose auto|on|off             profiles for the model
  roll_back CANDIDATE            leave the depth in flight; the next one starts from that kernel
  set_base CANDIDATE             the next depth starts from that kernel, this one goes on
  pin CANDIDATE | unpin          every next depth starts from that kernel, until unpinned
  hint "TEXT"                    added to the next prompt
  ban "TEXT" | require "TEXT"    what every kernel must not use, or must use, until lifted
  lift RULE                      lift a rule: its words, or the id of the command that set it
  submit CANDIDATE HASH          a kernel edited by hand (use the verb submit, which sends this)
  set_model "NAME [OPTIONS]"     another model for all next calls, as in "gpt-5 reasoning_effort=high"
  retry "NAME [OPTIONS] [step=N]"   the last step of the model (or step N) again, by this model
  set_budget "calls=80 cost=5"   other limits from here on; also tokens, minutes, depths, target, stagnation
  answer STEP.CALL HASH          a person's reply (use the verb answer, which sends this)
  take_over next|all|off         answer the next call, or all of them, yourself
  ask_first off|calls|all [yes|no SECONDS]   wait for a yes before each step; what silence means after that time
  approve | skip                 the step that waits
  set_class CLASS                one of: """ + ", ".join(KernelClass)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line; prints help and exits with 2 on bad usage."""
    parser = argparse.ArgumentParser(
        prog="python -m engine",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    _run(verbs)
    resume = verbs.add_parser("resume", help="go on with a run that was stopped, lost or failed")
    resume.add_argument("run_id", metavar="RUN")
    resume.add_argument(
        "--set-budget",
        dest="budget",
        action="append",
        type=_checked(lambda text: budgets.changed(Budget(), text)),
        default=[],
        metavar="NAME=NUMBER",
        help=f"continue with another limit: {', '.join(budgets.FIELDS)}; none lifts it; may be repeated",
    )
    resume.add_argument("--background", action="store_true", help="detach; follow it in the dashboard or with show")
    listing = verbs.add_parser("list", help="all runs, newest last")
    listing.add_argument("--json", action="store_true", help="machine-readable output")
    show = verbs.add_parser("show", help="one run, depth by depth")
    show.add_argument("run_id", metavar="RUN")
    show.add_argument("--json", action="store_true", help="machine-readable output")
    _command(verbs)
    _fork(verbs)
    _person(verbs)
    _export(verbs)
    _replay(verbs)
    _remeasure(verbs)
    _evaluate(verbs)
    _compile(verbs)
    patch = verbs.add_parser("patch", help="apply a raw model reply to a source, as a run would")
    patch.add_argument("source", metavar="SOURCE", help="kernel file")
    patch.add_argument("reply", metavar="REPLY", help="file with the raw reply, or - for standard input")
    verbs.add_parser("tasks", help="the shipped tasks with their sizes")
    doctor = verbs.add_parser("doctor", help="what this machine has and lacks, and what to do about it")
    doctor.add_argument("--json", action="store_true", help="print one JSON list of findings")
    return parser.parse_args(arguments)


def size(text: str) -> tuple[str, int | float]:
    """`NAME=NUMBER` as a pair.

    Raises:
        argparse.ArgumentTypeError: anything else.
    """
    name, equals, value = text.partition("=")
    try:
        number: int | float = int(value, 0)
    except ValueError:
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
    if not equals or not name.isidentifier() or number != number:
        raise argparse.ArgumentTypeError(f"expected NAME=NUMBER, got {text!r}")
    return name, number


def _checked(check: Callable[[str], object]) -> Callable[[str], str]:
    """A converter that hands on a text which `check` has nothing against."""

    def convert(text: str) -> str:
        try:
            check(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error
        return text

    return convert


def _sizes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        dest="overrides",
        action="append",
        type=size,
        default=[],
        metavar="K=V",
        help="override a module-level number of the task; may be repeated",
    )
    parser.add_argument("--toolchain", default="cpu", choices=("cpu", "cuda"), help="where kernels run (default: cpu)")


def _run(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    run = verbs.add_parser("run", help="optimise a task", formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    run.add_argument("task", metavar="TASK", help="a shipped task's name or the path of a KernelBench-style file")
    _sizes(run)
    run.add_argument(
        "--option",
        dest="model_options",
        action="append",
        type=_checked(lambda text: with_option((), text)),
        default=[],
        metavar="[ROLE.]NAME=VALUE",
        help=f"how the model is asked: {', '.join(NAMES)}; for one of {', '.join(ModelRole)}; may be repeated",
    )
    run.add_argument(
        "--model",
        help="model name, 'recorded', or 'manual' (you answer); default: the endpoint if one is set, else recorded",
    )
    run.add_argument("--recording", metavar="FILE", help="recorded replies to replay instead of the shipped ones")
    run.add_argument("--depths", type=int, help="optimisation steps after the first correct kernel")
    run.add_argument("--base", dest="base_policy", help=f"base kernel policy: {POLICIES}")
    run.add_argument("--max-repairs", type=int, help="patches per generated kernel (5)")
    run.add_argument("--max-regenerations", type=int, help="fresh starts per depth (2)")
    run.add_argument("--expose-from", dest="expose_from_depth", type=int, help="first depth whose prompt has a profile")
    run.add_argument("--collect", default="auto", choices=("auto", "on", "off"), help="profile kernels for people")
    run.add_argument("--max-calls", dest="model_calls", type=int, help="budget: model calls")
    run.add_argument("--max-tokens", dest="tokens", type=int, help="budget: tokens in and out")
    run.add_argument("--max-cost", dest="cost_usd", type=float, help="budget: US dollars")
    run.add_argument("--max-minutes", type=float, help="budget: minutes of work")
    run.add_argument("--target", dest="target_speedup", type=float, help="stop at this speed-up")
    run.add_argument("--ask-first", metavar="RULE", help="wait for a yes: off, calls or all, then e.g. 'yes 60'")
    run.add_argument("--reply-seconds", type=float, help="pace of recorded replies")
    run.add_argument("--background", action="store_true", help="detach; follow it in the dashboard or with show")


def _fork(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    fork = verbs.add_parser("fork", help="start a new run from a kernel of another one, with other settings")
    fork.add_argument("run_id", metavar="RUN")
    fork.add_argument("candidate", metavar="KERNEL", help="id of the kernel to begin with, as in c003")
    fork.add_argument("--model", help="another model (default: that of RUN)")
    fork.add_argument(
        "--option",
        dest="model_options",
        action="append",
        default=[],
        metavar="[ROLE.]NAME=VALUE",
        type=_checked(lambda text: with_option((), text)),
        help="how the model is asked; may be repeated",
    )
    fork.add_argument("--class", dest="kernel_class", choices=[str(one) for one in KernelClass], help="kernel class")
    fork.add_argument("--base", dest="base_policy", help=f"base kernel policy: {POLICIES}")
    shown = fork.add_mutually_exclusive_group()
    shown.add_argument(
        "--expose-from", dest="expose_from_depth", type=int, help="first depth whose prompt has a profile"
    )
    shown.add_argument("--no-profiles", action="store_true", help="never show the model a profile")
    fork.add_argument(
        "--set-budget",
        dest="budget",
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        type=_checked(lambda text: budgets.changed(Budget(), text)),
        help=f"another limit than RUN has: {', '.join(budgets.FIELDS)}; may be repeated",
    )
    fork.add_argument("--hint", default="", help="a hint for the first prompt")


def _command(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = verbs.add_parser(
        "command", help="steer a run", epilog=STEERING, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.add_argument("run_id", metavar="RUN")
    command.add_argument("kind", choices=[str(kind) for kind in CommandKind], metavar="VERB")
    command.add_argument("argument", nargs="?", default="", metavar="ARGUMENT")


def _person(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    answer = verbs.add_parser("answer", help="answer the call that a run waits for, in the place of its model")
    answer.add_argument("run_id", metavar="RUN")
    answer.add_argument(
        "file", nargs="?", metavar="FILE", help="raw reply, or a whole kernel (.py), or -; without: the prompt"
    )
    submit = verbs.add_parser("submit", help="hand in a kernel edited by hand as the run's next attempt")
    submit.add_argument("run_id", metavar="RUN")
    submit.add_argument("file", metavar="FILE", help="the whole kernel, or - for standard input")
    submit.add_argument("--parent", help="the kernel it was made from (default: the run's best)")
    submit.add_argument("--note", default="", help="what was changed, in a few words")
    record = verbs.add_parser("record", help="save a run's replies as a recording that replays without a key")
    record.add_argument("run_id", metavar="RUN")
    record.add_argument("-o", "--output", metavar="FILE", help="where to write it (default: standard output)")
    imported = verbs.add_parser("import", help="take another system's result as a run to look at and go on from")
    imported.add_argument("folder", metavar="FOLDER", help="saved nodes (JSON) or source files, one per step")
    imported.add_argument("--task", required=True, metavar="TASK", help="the task they solve: a name or a file")
    _sizes(imported)
    imported.add_argument("--model", help="who goes on from it when it is resumed (default as for run, else manual)")
    imported.add_argument("--depths", type=int, default=10, help="further depths that a resumed run may take")
    imported.add_argument("--evaluate", action="store_true", help="build, check and time each kernel here first")


def _export(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    export = verbs.add_parser("export", help="write a run's best kernel as a ModelNew file that stands alone")
    export.add_argument("run_id", metavar="RUN")
    export.add_argument("--candidate", help="another kernel than the best")
    export.add_argument("--output", metavar="FILE", help="where to write it (default: standard output)")


def _replay(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    replay = verbs.add_parser("replay", help="tell a run once more from its journal, as a run of its own to watch")
    replay.add_argument("run_id", metavar="RUN")
    pace = replay.add_mutually_exclusive_group()
    pace.add_argument("--speed", type=float, metavar="TIMES", help="how many times as fast as the run was")
    pace.add_argument("--seconds", type=float, default=120.0, help="how long it shall last in all (120)")
    replay.add_argument("--background", action="store_true", help="detach; follow it in the dashboard or with show")
    replay.add_argument("--delete", action="store_true", help="RUN is a replay: delete it, its run is not touched")


def _remeasure(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    again = verbs.add_parser("remeasure", help="time two kernels again, taking turns on this machine")
    again.add_argument(
        "kernels", nargs="*", metavar="RUN KERNEL", help="two runs, or one run twice, each with a kernel's number or id"
    )
    again.add_argument("--rounds", type=int, default=ROUNDS, help=f"sessions of each kernel ({ROUNDS})")
    again.add_argument("--go-on", metavar="ID", help=argparse.SUPPRESS)  # how a server starts one it has prepared
    again.add_argument("--background", action="store_true", help="detach; follow it on the page Compare")
    again.add_argument("--json", action="store_true", help="one JSON object on standard output")


def _evaluate(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    evaluate = verbs.add_parser("evaluate", help="compile, check and time any candidate file outside a run")
    evaluate.add_argument("task", metavar="TASK")
    evaluate.add_argument("candidate", metavar="CANDIDATE", help="Python file that defines ModelNew")
    _sizes(evaluate)
    evaluate.add_argument("--profile", action="store_true", help="profile it too, if it passes")
    evaluate.add_argument("--fresh", action="store_true", help="measure again even if this source was judged before")
    evaluate.add_argument("--json", action="store_true", help="one JSON object on standard output")


def _compile(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    compiling = verbs.add_parser("compile", help="compile a candidate with nvcc; needs no device and runs no kernel")
    compiling.add_argument("candidate", metavar="FILE", help="Python file that defines ModelNew")
    compiling.add_argument("--arch", help="architecture as in sm_90a (default: the device here)")
    compiling.add_argument("--json", action="store_true", help="one JSON object on standard output")
