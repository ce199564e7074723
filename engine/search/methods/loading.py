"""Which strategies there are, by name: those in the table, and anybody's as `package.module:Name`."""

from __future__ import annotations

import importlib
import re
import typing
from collections.abc import Mapping
from typing import Any

from engine.errors import EngineError
from engine.search.methods import Strategy
from engine.search.methods.options import Option, described
from storage.run.method_words import PLAIN, MethodWords

DEFAULT = "cutegen"
TABLE: Mapping[str, str] = {
    "cutegen": "engine.search.methods.cutegen.strategy:CuteGen",
    "coder_judge": "engine.search.methods.coder_judge.strategy:CoderJudge",
    "kernelblaster": "engine.search.methods.kernelblaster.strategy:KernelBlaster",
    "best_of": "engine.search.methods.best_of.strategy:BestOf",
    "reward_loop": "engine.search.methods.reward_loop.strategy:RewardLoop",
    "evolve": "engine.search.methods.evolve.strategy:Evolve",
    "graph_search": "engine.search.methods.graph_search.strategy:GraphSearch",
}
METHODS = ("next", "again", "abandon", "refusal", "note")
# Where what a strategy imports lay before; the longest name that fits counts.
MOVED: Mapping[str, str] = {
    **{
        f"engine.{name}": f"engine.search.{name}"
        for name in ("actions", "context", "limits", "llm", "prompting", "steps")
    },
    "engine.strategies": "engine.search.methods",
    "engine.patching": "engine.search.patching",
    "engine.languages": "engine.evaluator.languages",
    "engine.tasks": "engine.evaluator.tasks",
    "engine.toolchains": "engine.evaluator.toolchains",
    "engine.record": "storage.run.record",
    "storage.records": "storage.run.settings, or storage.results.vocabulary for Verdict and KernelClass",
    **{f"storage.{name}": f"storage.run.{name}" for name in ("events", "journal", "method_words", "models")},
    **{f"storage.{name}": f"storage.run.steering.{name}" for name in ("verbs", "command_arguments")},
    "storage.evaluation_results": "storage.results.evaluation_results",
}


def options_of(name: str) -> tuple[Option, ...]:
    """The options of a strategy; empty where it has none.

    Raises:
        EngineError: as `open_strategy`, or one of them is none.
    """
    options = getattr(find_strategy(name), "options", None)
    return () if options is None else described(options)


def open_strategy(name: str) -> Strategy:
    """A strategy of that name, at its start.

    Raises:
        EngineError: there is none, or what was found is no strategy; the message says what is missing.
    """
    strategy: Strategy = find_strategy(name)()
    return strategy


def find_strategy(name: str) -> type[Any]:
    """The class of that name.

    Raises:
        EngineError: as `open_strategy`.
    """
    module_name, colon, class_name = TABLE.get(name, name).partition(":")
    if not colon:
        raise EngineError(
            f"unknown strategy {name!r}: use {', '.join(TABLE)}, or package.module:Name for one of your own"
        )
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # a module of somebody's own may raise anything while it is imported
        what = "" if isinstance(error, ImportError | ValueError) else f"{type(error).__name__}: "
        raise EngineError(f"strategy {name!r} cannot be imported: {what}{error}{_moved(error)}") from error
    strategy = getattr(module, class_name, None)
    if strategy is None:
        raise EngineError(f"strategy {name!r}: {module_name} has no {class_name}")
    if missing := [method for method in METHODS if not callable(getattr(strategy, method, None))]:
        raise EngineError(f"strategy {name!r} lacks {', '.join(missing)}: see engine/search/methods/__init__.py")
    if not isinstance(getattr(strategy, "words", PLAIN), MethodWords):
        raise EngineError(f"strategy {name!r}: its words are no MethodWords of storage/run/method_words.py")
    return typing.cast("type[Any]", strategy)


def _moved(error: Exception) -> str:
    """Where a module of ours is now that somebody's own strategy was written for at its former place."""
    asked = re.match(r"cannot import name '(\w+)' from '([\w.]+)'", str(error))
    name = f"{asked[2]}.{asked[1]}" if asked else str(getattr(error, "name", None) or "")
    former = max((old for old in MOVED if f"{name}.".startswith(f"{old}.")), key=len, default="")
    return f"; what was {former} is {MOVED[former]} now: change the import" if former else ""
