"""What people choose for a run beside its task, model and method: each option and each limit described once.

The command line's flags, the settings that they make, the form's words, the command that a form is the same as, and
the list of a run's settings follow from these. A method describes its own (engine/search/methods/options.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.argument_types import Parser, share, weight
from storage.run.settings import Budget, RunSettings, Start


@dataclass(frozen=True, slots=True)
class RunOption:
    """An option whose `name` is a field of RunSettings."""

    name: str
    flag: str
    about: str
    """For a shell."""
    default: Any
    help: str
    """For a form."""
    label: str = ""
    """For a list of settings; without one the option stands in none."""
    in_words: Callable[[Any], str] = str
    """The value, for a list of settings."""
    read: Callable[[str], Any] = int
    metavar: str | None = None
    choices: Sequence[str] = ()

    def add_to(self, parser: Parser) -> None:
        """The flag; what is not given is None, so that a suite knows."""
        if isinstance(self.default, bool):
            parser.add_argument(self.flag, dest=self.name, action="store_true", help=self.about)
        elif self.choices:
            parser.add_argument(self.flag, dest=self.name, type=self.read, choices=self.choices, help=self.about)
        else:
            parser.add_argument(self.flag, dest=self.name, type=self.read, metavar=self.metavar, help=self.about)

    def words(self, fields: Mapping[str, Any]) -> list[str]:
        """The flag with what a form has chosen; nothing where that is the default."""
        value = fields.get(self.name, self.default)
        if value == self.default:
            return []
        return [self.flag] if value is True else [self.flag, f"{value:g}" if isinstance(value, float) else f"{value}"]


def _variants(count: int) -> str:
    return f"up to {count:,} variant{'' if count == 1 else 's'} of each accepted kernel"


OPTIONS = (
    RunOption(
        "tune", "--tune",
        "after an accepted kernel, try up to N other sets of numbers for what it declares open to tuning (tile "
        "sizes, stages, threads) and keep the best; asks no model (default 0: off)",
        0,
        "After an accepted kernel, so many other sets of numbers at most are tried for what it declares open to "
        "tuning: tile sizes, stages, threads. The best becomes a kernel of its own. It asks no model and takes time; "
        "0 is off.",
        "Tuner", _variants, metavar="N",
    ),
    RunOption(
        "compiler_hint", "--compiler-hint",
        "show the model, with the first kernel, what torch.compile writes for it: Triton on a GPU, else C++",
        False,
        "With the first kernel the model sees the kernels that PyTorch's compiler writes for the module: Triton on a "
        "GPU, C++ on the processor.",
        "Compiler hint", lambda _: "the model is shown what torch.compile writes",
    ),
    RunOption(
        "start", "--start",
        "whose kernel is the first: model (default), or compiled: the Triton kernels that torch.compile "
        "generates, with --language triton; where they call a library, the model writes it and sees them as a hint",
        Start.MODEL,
        "The Triton kernels that PyTorch's compiler generates for the module become kernel 1, checked and timed as any "
        "other. Where they leave work to a library (a matrix product), the model writes the first kernel and sees them "
        "as a hint.",
        "First kernel", lambda _: "what torch.compile generates, where it calls no library",
        read=str, choices=tuple(map(str, Start)),
    ),
    RunOption(
        "width", "--width",
        "work on N kernels at once, where they do not build on each other: their replies are waited for side by "
        "side (best_of, evolve, reward_loop with refines=no, trajectories of kernelblaster, walks of graph_search; "
        "default 1)",
        1,
        "So many are written at the same time: their replies are waited for side by side, within the same limits. "
        "Kernels are still judged one after the other. Of trajectories, those of one round are written at the same "
        "time.",
        "Width", lambda width: f"{width} at work at once", metavar="N",
    ),
    RunOption(
        "weight", "--weight",
        "share of a device that other runs and suites want too: of those who want it all the time one with 2 has "
        "twice as much of its time as one with 1 (default 1)",
        1.0,
        "Where several runs and suites want one device all the time, each has of its time by its weight: with 2 twice "
        "as much as one with 1. A run that has the device for itself is no faster for it.",
        read=weight, metavar="NUMBER",
    ),
)  # fmt: skip
BY_NAME = {option.name: option for option in OPTIONS}
LISTED = ("width", "tune", "compiler_hint", "start")


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit whose `name` is a field of Budget, written as `factor` of it."""

    name: str
    flag: str
    about: str
    read: Callable[[str], float] = int
    factor: int = 1


LIMITS = (
    Limit("depths", "--depths", ""),  # what it counts is for the methods to say
    Limit("model_calls", "--max-calls", "limit: model calls"),
    Limit("tokens", "--max-tokens", "limit: input and output tokens"),
    Limit("cost_usd", "--max-cost", "limit: US dollars", float),
    Limit("target_speedup", "--target", "stop at this speed-up", float),
    Limit(
        "limit_share",
        "--stop-at",
        "stop at this share of the hardware limit, such as 90%%, or when what is left to it is below the noise",
        share,
    ),
    Limit("wall_s", "--max-minutes", "limit: minutes of engine time", float, 60),
)


def add_limits(parser: Parser) -> None:
    """The flags of all limits but that of the step indexes."""
    for limit in LIMITS[1:]:
        parser.add_argument(limit.flag, dest=limit.name, type=limit.read, help=limit.about)


def chosen(options: Any) -> dict[str, Any]:
    """The settings that a parsed command line asks for."""
    given = {option: getattr(options, option.name) for option in OPTIONS}
    return {
        option.name: option.default if value is None else type(option.default)(value) for option, value in given.items()
    }


def budget_of(options: Any, usual: Budget) -> Budget:
    """The limits that a parsed command line asks for."""
    asked = {limit.name: (getattr(options, limit.name), limit.factor) for limit in LIMITS}
    limits: dict[str, Any] = {
        name: None if value is None else value * factor for name, (value, factor) in asked.items()
    }
    return Budget(**limits | ({"depths": usual.depths} if limits["depths"] is None else {}))


def limit_words(budget: Budget) -> Iterator[list[str]]:
    """The flags of the limits that a budget has."""
    for limit in LIMITS:
        if (value := getattr(budget, limit.name)) is not None:
            number = value / limit.factor if limit.factor != 1 else value
            yield [limit.flag, f"{number:g}" if isinstance(number, float) else f"{number}"]


def in_words(settings: RunSettings) -> Iterator[tuple[str, str]]:
    """(label, value) of what was chosen otherwise than usual."""
    for option in map(BY_NAME.__getitem__, LISTED):
        if (value := getattr(settings, option.name)) != option.default:
            yield option.label, option.in_words(value)
