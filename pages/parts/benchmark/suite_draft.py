"""A suite as the form has it: from a definition into fields, and from fields into its TOML file. Pure."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from storage.suites.records import BudgetRule, Defined, SuiteLimits

# Words of `engine run` that have a field of their own, in the order of an arm's row.
STRATEGY, LANGUAGE, MODEL, DEPTHS, TOOLCHAIN = "--strategy", "--language", "--model", "--depths", "--toolchain"
DEFAULT = "cutegen"  # the strategy of a run for which none is named
OF_ARM = (STRATEGY, LANGUAGE, MODEL, DEPTHS)
# What a file may say that the form has no field for; a copy keeps it, as far as its tasks and arms are left.
OF_TASKS, OF_ARMS = ("classes", "task_settings", "paper"), ("in_order",)
KEPT = ("checks", "weight", *OF_TASKS, *OF_ARMS)
_BARE = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class ArmDraft:
    """One row of arms; `more` are further words of `engine run`. An empty field is left to the run."""

    name: str
    strategy: str = ""
    language: str = ""
    model: str = ""
    depths: str = ""
    more: str = ""

    @property
    def words(self) -> str:
        """The arm's settings in the file."""
        values = zip(OF_ARM, (self.strategy, self.language, self.model, self.depths), strict=True)
        given = [word for flag, value in values if value for word in (flag, value)]
        return " ".join(part for part in (shlex.join(given), self.more.strip()) if part)


@dataclass(frozen=True, slots=True)
class Draft:
    """The whole form. `more` are words of `engine run` for every cell, `kept` entries of the file it began with."""

    tasks: tuple[str, ...]
    arms: tuple[ArmDraft, ...]
    title: str = ""
    about: str = ""
    toolchain: str = "cpu"
    more: str = ""
    repeats: int = 1
    limits: SuiteLimits = field(default_factory=SuiteLimits)
    budget: BudgetRule = BudgetRule.EVEN
    more_steps: int = 2
    kept: Mapping[str, Any] = field(default_factory=dict)

    @property
    def runs(self) -> int:
        """How many cells it has."""
        return len(self.tasks) * len(self.arms) * self.repeats


def draft_of(defined: Defined, plain: Mapping[str, Any]) -> Draft:
    """The fields of a definition that was read from a file with these entries: what its arms have in common stands in
    each of them."""
    common, shared = taken(shlex.split(defined.settings), (*OF_ARM, TOOLCHAIN))
    arms = []
    for arm in defined.arms:
        own, more = taken(shlex.split(arm.settings), OF_ARM)
        strategy, language, model, depths = (own.get(flag, common.get(flag, "")) for flag in OF_ARM)
        arms.append(ArmDraft(arm.name, strategy, language, model, depths, shlex.join(more)))
    return Draft(
        tuple(task.task for task in defined.tasks), tuple(arms), defined.title, defined.about,
        common.get(TOOLCHAIN, "cpu"), shlex.join(shared), defined.repeats, defined.limits, defined.budget,
        defined.more_steps, {key: plain[key] for key in KEPT if key in plain},
    )  # fmt: skip


def taken(words: Sequence[str], flags: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """The values of these flags, and the words that are left."""
    values: dict[str, str] = {}
    rest: list[str] = []
    left = list(words)
    while left:
        flag, equals, value = (word := left.pop(0)).partition("=")
        if flag in flags and (equals or left):
            values[flag] = value if equals else left.pop(0)
        else:
            rest.append(word)
    return values, rest


def toml_of(draft: Draft) -> str:
    """The file."""
    settings = " ".join(part for part in (f"{TOOLCHAIN} {draft.toolchain}", draft.more.strip()) if part)
    entries: dict[str, Any] = {key: text for key in ("title", "about") if (text := getattr(draft, key))}
    entries |= {"tasks": list(draft.tasks), "settings": settings, "repeats": draft.repeats}
    entries |= {"baseline": draft.arms[0].name} if draft.arms else {}
    if draft.budget is not BudgetRule.EVEN:
        entries |= {"budget": str(draft.budget), "more_steps": draft.more_steps}
    entries |= {key: value for key, value in draft.kept.items() if key not in (*OF_TASKS, *OF_ARMS)}
    tables: dict[str, dict[str, Any]] = {
        "arms": {arm.name: arm.words for arm in draft.arms},
        "limits": _limits(draft.limits),
    }
    tasks, arms = [Path(task).stem for task in draft.tasks], [arm.name for arm in draft.arms]
    for keys, names in ((OF_TASKS, tasks), (OF_ARMS, arms)):
        tables |= {
            key: {name: draft.kept[key][name] for name in draft.kept.get(key, {}) if name in names} for key in keys
        }
    lines = [f"{key} = {_value(value)}" for key, value in entries.items()]
    for name, table in tables.items():
        if table:
            lines += ["", f"[{name}]", *(f"{_key(key)} = {_value(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _limits(limits: SuiteLimits) -> dict[str, float]:
    hours = None if limits.engine_s is None else round(limits.engine_s / 3600, 4)
    values = {"model_calls": limits.model_calls, "tokens": limits.tokens, "cost_usd": limits.cost_usd, "hours": hours}
    return {name: value for name, value in values.items() if value is not None}


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _value(name)


def _value(value: Any) -> str:
    """A text, number or list of texts as TOML writes it; a JSON string is one of TOML but for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
