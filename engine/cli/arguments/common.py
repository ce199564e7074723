"""Options that several verbs share. Knows words, not what they do."""

from __future__ import annotations

import argparse

from engine.argument_types import checked, size
from engine.evaluator.languages import LANGUAGES
from engine.evaluator.tasks import OWN_MODE
from engine.evaluator.toolchain_table import TABLE as TOOLCHAINS
from engine.search.methods.loading import TABLE, options_of
from storage.knowledge.choice import CHOICES, FROZEN, OWN, SEED
from storage.results.baselines import NONE, USUAL_IN_WORDS, Instead
from storage.results.policy import DTYPES, MODES, OWN_DTYPE, PRECISIONS, Draws, StateDict, Strides, Weights
from storage.run.models import NAMES, ModelRole, with_option

FORMER = {"base_policy": ("--base",)}  # how options were called before others came to begin alike
UNTIL_WAITING = "exit when the run waits for a person; advance goes on with it"


def sizes(parser: argparse.ArgumentParser) -> None:
    """Sizes of the task, toolchain and device."""
    parser.add_argument(
        "--set",
        dest="overrides",
        action="append",
        type=size,
        default=[],
        metavar="K=V",
        help="set a module-level number of the task; may be repeated",
    )
    toolchain(parser)


def toolchain(parser: argparse.ArgumentParser) -> None:
    """Toolchain and device."""
    parser.add_argument("--toolchain", default="cpu", choices=TOOLCHAINS, help="where kernels run (default: cpu)")
    parser.add_argument(
        "--device", default="", metavar="GPU",
        help="with cuda: a number, GPU-… or MIG-…, as in CUDA_VISIBLE_DEVICES, or a part of a model's name such as "
        "H200 (default: the first that is visible); with --pool ray a model's name",
    )  # fmt: skip


def model_options(parser: argparse.ArgumentParser) -> None:
    """Options of the model, by role."""
    parser.add_argument(
        "--option", dest="model_options", action="append", type=checked(lambda text: with_option((), text)),
        default=[], metavar="[ROLE.]NAME=VALUE",
        help=f"model option: {', '.join(NAMES)}; ROLE is one of {', '.join(ModelRole)}; may be repeated",
    )  # fmt: skip


def policy(parser: argparse.ArgumentParser) -> None:
    """What kernels may leave to PyTorch, how exact they must be, in which type, forward alone or backward too; and what
    is tried: `tasks.POLICY_OPTIONS` names them all."""
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
    parser.add_argument(
        "--mode", default="", choices=(OWN_MODE, *MODES),
        help="what both modules are put into: eval for evaluation mode, train for training mode, own for what the "
        "constructor leaves, which is mostly training mode (default: as the task says, else own)",
    )  # fmt: skip
    parser.add_argument(
        "--compare-modules", type=int, metavar="N",
        help="compare the outputs of modules up to N names deep too (layer1.0 is two), each on the inputs that it had: "
        "for networks in which rounding alone moves the last answer too far (default: as the task says, else 0, none)",
    )  # fmt: skip
    parser.add_argument(
        "--weights", default="", choices=tuple(Weights),
        help="vary: parameters, and buffers that training changes, are drawn anew between trials and between turns of "
        "a timing; fixed: they stay as constructed (default: as the task says, else vary)",
    )  # fmt: skip
    parser.add_argument(
        "--state-dict", default="", choices=tuple(StateDict),
        help="reference: weights of ModelNew have the reference's names, shapes and dtypes, or the kernel's file "
        "defines convert_state_dict; any: it may have others (default: as the task says, else reference)",
    )  # fmt: skip
    parser.add_argument(
        "--random", dest="draws", default="", choices=tuple(Draws),
        help="a forward that draws random numbers: refused, or seeded alike on both sides before each call, so that a "
        "kernel must draw what the reference draws (default: as the task says, else refused)",
    )  # fmt: skip
    parser.add_argument(
        "--strides", default="", choices=tuple(Strides),
        help="own: inputs lie in memory as get_inputs returns them; any: in one trial also with gaps or channels last "
        "(default: as the task says, else own)",
    )  # fmt: skip
    parser.add_argument(
        "--baselines", default="", metavar="NAMES",
        help=f"what kernels are told over beside eager PyTorch, with commas: {', '.join(Instead)}, or {NONE} (default: "
        f"as the task says, else {USUAL_IN_WORDS})",
    )  # fmt: skip


def own_baseline(parser: argparse.ArgumentParser) -> None:
    """A person's own baseline."""
    parser.add_argument(
        "--baseline", metavar="FILE",
        help="one more baseline of your own: a file with a class Baseline, which is made and called as the task's "
        "Model is and may call any library, or an export",
    )  # fmt: skip


def prompts(parser: argparse.ArgumentParser) -> None:
    """The flag for a prompt pack."""
    parser.add_argument(
        "--prompts", metavar="FOLDER",
        help="prompt pack: a folder with files named as in prompts/; they are used in place of the shipped ones",
    )  # fmt: skip


def asked_base(parser: argparse.ArgumentParser, usual: str) -> None:
    """The knowledge base; `usual` says which it is without this option."""
    choices = "; ".join(f"{name}: {about}" for name, about in CHOICES.items())
    parser.add_argument(
        "--knowledge", metavar="BASE",
        help=f"knowledge base that the run asks before a change: {choices}; {OWN}NAME: one that begins empty and holds "
        f"only what runs that name it have learned; or the path of another one, which is only read; {FROZEN}{SEED} or "
        f"{FROZEN}PATH: nothing that the run learns counts either (default: {usual})",
    )  # fmt: skip


def strategy_options(parser: argparse.ArgumentParser) -> None:
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
            f"--{name.replace('_', '-')}", *FORMER.get(name, ()), dest="strategy_options", action="append",
            metavar="VALUE", type=f"{name}={{}}".format, help="; ".join(words).replace("%", "%%"),
        )  # fmt: skip


def required_language(parser: argparse.ArgumentParser) -> None:
    """The one language that is accepted."""
    parser.add_argument(
        "--language", default="", choices=tuple(LANGUAGES), help="refuse a kernel of another language (default: any)"
    )


def pool(parser: argparse.ArgumentParser) -> None:
    """Where evaluations are done."""
    parser.add_argument(
        "--pool", metavar="POOL",
        help="where kernels are judged: local (this host), ray://HOST:PORT, or ray for the Ray cluster that this host "
        "is part of (default: TILEWRIGHT_POOL, else local)",
    )  # fmt: skip


def other_device(parser: argparse.ArgumentParser) -> None:
    """A GPU in place of the run's own."""
    parser.add_argument(
        "--device", metavar="GPU", help="GPU to use this time in place of the run's own, as for `run --device`"
    )
