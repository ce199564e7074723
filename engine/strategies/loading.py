"""Which strategies there are, by name: those in the table, and anybody's as `package.module:Name`."""

from __future__ import annotations

import importlib
import typing
from collections.abc import Mapping
from typing import Any

from engine.errors import EngineError
from engine.strategies import Strategy, refused_verbs
from engine.strategies.options import NoOptions
from storage.records import CommandKind

TABLE: Mapping[str, str] = {
    "cutegen": "engine.strategies.cutegen.strategy:CuteGen",
    "coder_judge": "engine.strategies.coder_judge.strategy:CoderJudge",
}
METHODS = ("next", "again", "abandon", "refusal", "note")


def options_of(name: str) -> type[Any]:
    """The record of the options of a strategy.

    Raises:
        EngineError: as `open_strategy`.
    """
    found: type[Any] = getattr(_find(name), "options", NoOptions)
    return found


def verbs_refused_by(name: str) -> Mapping[CommandKind, str]:
    """Verbs that a strategy never honours, each with the reason.

    Raises:
        EngineError: as `open_strategy`.
    """
    return refused_verbs(_find(name))


def open_strategy(name: str) -> Strategy:
    """A strategy of that name, at its start.

    Raises:
        EngineError: there is none, or what was found is no strategy; the message says what is missing.
    """
    strategy: Strategy = _find(name)()
    return strategy


def _find(name: str) -> type[Any]:
    module_name, colon, class_name = TABLE.get(name, name).partition(":")
    if not colon:
        raise EngineError(
            f"unknown strategy {name!r}: use {', '.join(TABLE)}, or package.module:Name for one of your own"
        )
    try:
        found = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, ValueError) as error:
        raise EngineError(f"strategy {name!r} cannot be imported: {error}") from error
    except AttributeError as error:
        raise EngineError(f"strategy {name!r}: {module_name} has no {class_name}") from error
    if missing := [method for method in METHODS if not callable(getattr(found, method, None))]:
        raise EngineError(f"strategy {name!r} lacks {', '.join(missing)}: see engine/strategies/__init__.py")
    return typing.cast("type[Any]", found)
