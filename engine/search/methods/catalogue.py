"""Strategies that a person can choose: those of the table, and those of their own that TILEWRIGHT_STRATEGIES names.

Imports none of the latter, which may import anything: a child process describes each, once until its files change.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from engine.errors import EngineError
from engine.search.methods import independence_of, refused_verbs, refused_with_width, usual_knowledge, words_of
from engine.search.methods.loading import DEFAULT, TABLE, find_strategy, options_of
from engine.search.methods.options import Option, Value, labelled
from storage import codec
from storage.knowledge.choice import OFF
from storage.results.vocabulary import KernelClass
from storage.run import exposure
from storage.run.method_words import PLAIN, MethodWords
from storage.run.settings import RunSettings
from storage.run.steering.verbs import CommandKind

ROOT = Path(__file__).resolve().parent.parent.parent.parent
VARIABLE = "TILEWRIGHT_STRATEGIES"
# A strategy may import torch, and a machine may be busy.
LIMIT_S = 60.0
# What was missing may be elsewhere than in the files of a strategy that could not be imported.
TRY_AGAIN_S = 10.0


@dataclass(frozen=True, slots=True)
class StrategyDescription:
    """A strategy with what it is, its options, its words, and the verbs that it refuses, each with the reason.

    `knowledge` is the base that its runs ask unless somebody says otherwise, `independent` the values of options under
    which several of its step indexes can be at work at once, None where they cannot.
    `failure` says why it cannot be used, empty when it can; `is_known` is False while its description is being read.
    `files` are those that it was read from.
    """

    name: str
    about: str = ""
    options: tuple[Option, ...] = ()
    refuses: Mapping[CommandKind, str] = field(default_factory=dict)
    failure: str = ""
    is_known: bool = True
    files: tuple[str, ...] = ()
    words: MethodWords = PLAIN
    knowledge: str = OFF
    independent: Mapping[str, Value] | None = None

    @property
    def is_usable(self) -> bool:
        """Whether a run can be started with it."""
        return self.is_known and not self.failure


@dataclass(frozen=True, slots=True)
class _Read:
    """What a child has said, when, and the times of the files that it was said of."""

    description: StrategyDescription
    at: float
    changed: tuple[float, ...]

    def is_fresh(self) -> bool:
        """Whether a child would say the same."""
        is_old = bool(self.description.failure) and time.monotonic() - self.at > TRY_AGAIN_S
        return not is_old and self.changed == _changed(self.description.files)


_read: dict[str, _Read] = {}
_reading: dict[str, threading.Thread] = {}
_lock = threading.Lock()


def names() -> list[str]:
    """The table's strategies, then those that the variable names."""
    added = (name.strip() for name in os.environ.get(VARIABLE, "").split(","))
    return list(dict.fromkeys([*TABLE, *filter(None, added)]))


def descriptions() -> list[StrategyDescription]:
    """What `names` are, as far as that is known: never waits, and begins to read what is new or has changed."""
    return [_known(name) for name in names()]


def is_reading() -> bool:
    """Whether something of it is being read, for the first time or again."""
    return bool(_reading)


def description(name: str) -> StrategyDescription:
    """What one strategy is; waits where that is not known or has changed."""
    described = _known(name)
    while (thread := _reading.get(name)) is not None or not described.is_known:
        if thread is not None:
            thread.join()
        described = _known(name)
    return described


def in_words(settings: RunSettings, kernel_class: KernelClass | None = None) -> list[tuple[str, str]]:
    """(label, value) of the options of a run; by their names where nobody has described its strategy yet. With its
    class, the first step index at which its model is shown a profile is told on auto too."""
    options, step = _options(settings.strategy), words(settings.strategy).step
    told = labelled(options, settings.strategy_options, step)
    shows = next((option.label for option in options if option.name == exposure.OPTION), None)
    if kernel_class is None or exposure.asked_depth(settings) is not None:
        return told
    planned = exposure.of_run(settings, kernel_class)
    why = "auto, by kernel class" if planned.patience is None else "auto"
    return [(label, f"from {step} {planned.first} ({why})" if label == shows else value) for label, value in told]


def defaults(name: str) -> dict[str, Value]:
    """Values of the options of a strategy unless somebody says otherwise; empty where nobody has described it yet."""
    return {option.name: option.default for option in _options(name)}


def words(name: str) -> MethodWords:
    """What a strategy calls its step index; the plain word as long as nothing has described it."""
    if name in TABLE:
        return words_of(find_strategy(name))
    return _known(name).words if name in names() else _read[name].description.words if name in _read else PLAIN


def has_schedule(name: str) -> bool:
    """Whether its runs show profiles from a step index on that is one of its options, or follows from the class."""
    return any(option.name == exposure.OPTION for option in _options(name))


def short(name: str) -> str:
    """What a strategy is called where there is little room: that of somebody's own by its class."""
    return name.rpartition(":")[2]


def is_default(name: str) -> bool:
    """Whether a run follows it without anybody having chosen."""
    return name == DEFAULT


def refused_by(name: str, width: int = 1) -> Mapping[CommandKind, str]:
    """Verbs that a strategy never honours in a run of that width, each with the reason; empty as long as nothing has
    described it."""
    return refused_with_width(_known(name).refuses if name in names() else {}, width)


def _options(name: str) -> tuple[Option, ...]:
    """A strategy's options as far as they are known here: imports no strategy, and asks no child."""
    if name in TABLE:
        return options_of(name)
    return _read[name].description.options if name in _read else ()


def describe(name: str) -> StrategyDescription:
    """What one strategy is, found out by importing it here."""
    try:
        strategy = find_strategy(name)
        about = (strategy.__doc__ or "").strip().partition("\n")[0]
        files, words, asks = () if name in TABLE else _files(name), words_of(strategy), usual_knowledge(strategy)
        options = options_of(name)
        return StrategyDescription(
            name, about, options, refused_verbs(strategy), files=files, words=words, knowledge=asks,
            independent=independence_of(strategy),
        )  # fmt: skip
    except EngineError as error:
        return StrategyDescription(name, failure=str(error), files=_files(name))


def _known(name: str) -> StrategyDescription:
    if name in TABLE:
        return describe(name)
    with _lock:
        cached = _read.get(name)
        if cached is not None and cached.is_fresh():
            return cached.description
        if name not in _reading:
            _reading[name] = threading.Thread(target=_ask_child, args=(name,), daemon=True)
            _reading[name].start()
    return cached.description if cached is not None else StrategyDescription(name, is_known=False)


def _ask_child(name: str) -> None:
    described = _child_says(name)
    with _lock:
        _read[name] = _Read(described, time.monotonic(), _changed(described.files))
        del _reading[name]


def _child_says(name: str) -> StrategyDescription:
    """From where an engine would start, so that what is found here is found there."""
    command = [sys.executable, "-m", "engine", "strategies", "--json", name]
    try:
        done = subprocess.run(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return StrategyDescription(name, failure=f"strategy {name!r} was not imported within {LIMIT_S:.0f} s")
    try:
        (plain,) = json.loads(done.stdout.strip().rpartition("\n")[2])
        described: StrategyDescription = codec.from_plain(StrategyDescription, plain)
    except (ValueError, TypeError):
        reason = done.stderr.strip().rpartition("\n")[2] or f"the process ended with {done.returncode}"
        return StrategyDescription(name, failure=f"strategy {name!r} cannot be imported: {reason}")
    return replace(described, name=name)


def _files(name: str) -> tuple[str, ...]:
    """The files of its package that have been loaded, or the one that could not be."""
    module = name.partition(":")[0]
    package = module.partition(".")[0]
    loaded = {key: imported for key, imported in sys.modules.items() if key == package or key.startswith(f"{package}.")}
    files = {file for imported in loaded.values() if (file := getattr(imported, "__file__", None))}
    with contextlib.suppress(Exception):  # its package may raise anything
        spec = importlib.util.find_spec(module)
        files |= {spec.origin} if spec and spec.origin else set()
    return tuple(sorted(files))


def _changed(files: tuple[str, ...]) -> tuple[float, ...]:
    return tuple(path.stat().st_mtime if (path := Path(file)).exists() else 0.0 for file in files)
