"""Hypothesis strategies for every kind of event, built from the records' own type hints."""

from __future__ import annotations

import typing
from typing import Any

from hypothesis import strategies as st

from storage import codec
from storage.results.evaluation_results import CompileResult, TimingResult
from storage.results.vocabulary import Verdict
from storage.run import events

KINDS: tuple[type, ...] = typing.get_args(events.Event)

_ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=30)  # lone surrogates and NUL included
_INTEGER = st.integers(-(2**53), 2**53)
_LATENCY = st.floats(1e-6, 1e6)


def any_event(kind: type) -> st.SearchStrategy[Any]:
    """Events of one kind with anything in them that their records allow."""
    return _of(kind)


def _of(hint: Any) -> st.SearchStrategy[Any]:
    special = {str: _ANY_TEXT, int: _INTEGER, float: st.floats(allow_nan=False), bool: st.booleans()}
    special[codec.EpochSeconds] = st.floats(0, codec.LATEST)
    if hint in special:
        return special[hint]
    if hint in (CompileResult, TimingResult):
        return _compiles() if hint is CompileResult else _timings()
    arguments = typing.get_args(hint)
    if type(None) in arguments:
        return st.none() | _of(next(a for a in arguments if a is not type(None)))
    if typing.get_origin(hint) is tuple:
        return st.lists(_of(arguments[0]), max_size=3).map(tuple)
    if arguments:
        return st.dictionaries(_ANY_TEXT, _of(arguments[1]), max_size=2)
    if isinstance(hint, type) and hasattr(hint, "__dataclass_fields__"):
        return st.builds(hint, **{name: _of(field) for name, field in _hints(hint).items()})
    return st.from_type(hint)


def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind, include_extras=True)


def _compiles() -> st.SearchStrategy[CompileResult]:
    def build(verdict: Verdict, **known: Any) -> CompileResult:
        return CompileResult(is_ok=verdict is Verdict.PASSED, verdict=verdict, **known)

    hints = typing.get_type_hints(CompileResult)
    known = {name: _of(hint) for name, hint in hints.items() if name not in ("is_ok", "verdict")}
    return st.builds(build, st.sampled_from(Verdict), **known)


def _timings() -> st.SearchStrategy[TimingResult]:
    pairs = st.lists(st.tuples(_LATENCY, _LATENCY), min_size=1, max_size=6)
    return st.builds(
        lambda both, name: TimingResult(tuple(c for c, _ in both), tuple(b for _, b in both), name), pairs, _ANY_TEXT
    )
