"""What can be set of CuTeGen. Knows words and limits, not what is done with them."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass

from engine.errors import EngineError
from engine.strategies.options import Value, option, read
from storage.records import RunSettings

POLICIES = "latest, best, or patience=K (latest, but back to the best after K depths without improvement)"


def check_policy(policy: str) -> None:
    """Raises EngineError for a policy nobody knows."""
    if policy not in ("latest", "best") and not re.fullmatch(r"patience=[1-9]\d*", policy):
        raise EngineError(f"unknown base policy {policy!r}: use {POLICIES}")


@dataclass(frozen=True, slots=True)
class CuteGenSettings:
    """Settings of the method. `expose_from_depth` None: by kernel class."""

    base_policy: str = option("patience=2", f"base kernel policy: {POLICIES}", check=check_policy)
    max_repairs: int = option(5, "patches per generated kernel", least=0)
    max_regenerations: int = option(2, "new kernels per depth after failed patches", least=0)
    expose_from_depth: int | None = option(None, "first depth at which the model is shown profiles", least=0)


def settings_of(settings: RunSettings) -> CuteGenSettings:
    """CuTeGen's part of a run's settings."""
    return _read(tuple(sorted(settings.strategy_options.items())))


@functools.lru_cache(maxsize=64)
def _read(values: tuple[tuple[str, Value], ...]) -> CuteGenSettings:
    known: Mapping[str, Value] = dict(values)
    return read(CuteGenSettings, known)
