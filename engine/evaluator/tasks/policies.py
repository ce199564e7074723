"""The policy of a task: as the TOML file beside it says, and as a person wants it for one run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from engine.errors import TaskError
from storage import codec
from storage.codec import DecodeError
from storage.results import baselines
from storage.results.policy import (
    DTYPES,
    EVERYTHING,
    MODES,
    OWN_DTYPE,
    PRECISIONS,
    Draws,
    Policy,
    StateDict,
    Strides,
    Weights,
)

KINDS: Mapping[str, type[StrEnum]] = {
    "weights": Weights, "state_dict": StateDict, "draws": Draws, "strides": Strides
}  # fmt: skip
OWN_MODE = "own"
SECRET = "secret"
DEEPEST = 8
POLICY_OPTIONS = ("library", "precision", "dtype", "backward", "mode", "compare_modules", "baselines", *KINDS)
"""What a person may choose for one run, by name."""


def policy_with(policy: Policy, library: str = "", precision: str = "", **others: Any) -> Policy:
    """A task's policy as a person wants it for one run; an empty text, or None, leaves it as it is.

    Args:
        policy: of the task.
        library: what PyTorch may compute: `none`, `all`, or names of operators with commas between them.
        precision: one of PRECISIONS.
        **others: the rest of POLICY_OPTIONS. `dtype` is one of DTYPES, or `own` for tensors as the task is written;
            `backward` whether a call is forward and backward; `mode` one of MODES, or `own` for what the constructor
            leaves; `compare_modules` how many names deep; `baselines` names with commas between them; each other a
            value of its type in KINDS.

    Raises:
        TaskError: a name that no operator can have, or no such choice.
    """
    if unknown := others.keys() - set(POLICY_OPTIONS):
        raise TypeError(f"no choice of a policy: {', '.join(sorted(unknown))}")
    changed: dict[str, Any] = {name: value for name, value in others.items() if value not in ("", None)}
    for name, default in (("dtype", OWN_DTYPE), ("mode", OWN_MODE)):
        if changed.get(name) == default:
            changed[name] = ""
    if "baselines" in changed:
        changed["baselines"] = tuple(name.strip() for name in changed["baselines"].split(",") if name.strip())
    for name in KINDS.keys() & changed:
        changed[name] = _of_kind(name, changed[name])
    operators = _operators(library, policy.library_operators)
    chosen = replace(policy, library_operators=operators, precision=precision or policy.precision, **changed)
    if fault := _fault(chosen):
        raise TaskError(fault)
    return chosen


def _operators(library: str, usual: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(name.strip() for name in library.split(",") if name.strip())
    if wrong := [name for name in names if not name.isidentifier()]:
        raise TaskError(f"{wrong[0]!r} is no operator's name; write none, all, or names such as conv2d,matmul")
    return {("none",): (), ("all",): (EVERYTHING,), (): usual}.get(names, names)


def _of_kind(name: str, text: str) -> StrEnum:
    try:
        return KINDS[name](text)
    except ValueError:
        raise TaskError(f"{name} {text!r} is unknown; choose {' or '.join(KINDS[name])}") from None


def _fault(policy: Policy) -> str:
    """What is wrong with a policy's precision, dtype, mode and comparison; empty where nothing is."""
    if policy.precision not in PRECISIONS:
        return f"precision {policy.precision!r} is unknown; choose {' or '.join(PRECISIONS)}"
    if policy.dtype and policy.dtype not in DTYPES:
        return f"dtype {policy.dtype!r} is unknown; choose {' or '.join(DTYPES)}, or leave it out"
    if policy.mode and policy.mode not in MODES:
        return f"mode {policy.mode!r} is unknown; choose {' or '.join(MODES)}, or leave it out"
    if fault := baselines.fault(policy.baselines):
        return fault
    if not 0 <= policy.compare_modules <= DEEPEST:
        return f"compare_modules is {policy.compare_modules}: write how many names deep, from 0 to {DEEPEST}"
    if policy.compare_modules and (policy.backward or policy.precision == PRECISIONS[-1]):
        other = "backward" if policy.backward else f"precision {PRECISIONS[-1]}"
        return f"modules cannot be compared one by one with {other}: leave out one of the two"
    if policy.dtype and policy.precision != PRECISIONS[0]:
        return (
            f"dtype {policy.dtype} is a precision class of its own: leave out precision {policy.precision}, which is "
            "about float32 tensors"
        )
    return ""


def read_policy(plain: Mapping[str, Any], path: Path) -> Policy:
    """The entries of [policy] in a TOML file.

    Raises:
        TaskError: an entry is unknown or cannot be what it is.
    """
    entries = {field.name for field in fields(Policy)} - {"rules"}  # a task is judged by the rules that hold now
    if unknown := sorted(set(plain) - entries):
        raise TaskError(
            f"{path}: unknown entry in [policy]: {', '.join(unknown)}. Available: {', '.join(sorted(entries))}."
        )
    if plain.get("other_sizes") == SECRET:
        plain = {name: value for name, value in plain.items() if name != "other_sizes"} | {"secret_sizes": True}
    try:
        for name in KINDS.keys() & plain:
            _of_kind(name, str(plain[name]))
        policy: Policy = codec.from_plain(Policy, plain)
    except TaskError as error:
        raise TaskError(f"{path}: {error}") from None
    except DecodeError as error:
        raise TaskError(f"{path}: [policy] cannot be read: {error}") from error
    if fault := _fault(policy):
        raise TaskError(f"{path}: {fault}")
    if policy.recorded:
        policy = replace(policy, recorded=str(path.parent.absolute() / policy.recorded))
    if not 0 <= policy.counts_operations <= 1:
        raise TaskError(
            f"{path}: counts_operations is {policy.counts_operations}; write a share from 0 to 1, true or false"
        )
    return policy
