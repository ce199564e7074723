"""The run that a form describes as a command to paste into a terminal: what differs from the defaults, and no key."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from engine import run_options
from engine.evaluator.tasks import OWN_MODE, TaskFile
from engine.search.methods.catalogue import StrategyDescription
from storage.results.policy import EVERYTHING, OWN_DTYPE
from storage.run.models import NAMES, ModelRole
from storage.run.steering.command_arguments import Ask


def of_form(
    task: TaskFile,
    toolchain: str,
    model: str,
    sizes: Mapping[str, float],
    strategy: StrategyDescription,
    fields: Mapping[str, Any],
) -> str:
    """The command, on several lines; `fields` are those that the form hands to the run's settings."""
    lines = [["python", "-m", "engine", "run", task.name if task.is_shipped else str(task.path)]]
    lines += [["--toolchain", toolchain], ["--model", model], ["--language", fields["language"]]]
    if fields.get("device"):
        lines.append(["--device", fields["device"]])
    lines += [["--set", f"{name}={value}"] for name, value in sizes.items()]
    lines += _policy(task, fields)
    lines += [["--strategy", strategy.name], *_options(strategy, model, fields["strategy_options"])]
    if fields["knowledge"] != strategy.knowledge:
        lines.append(["--knowledge", fields["knowledge"]])
    if "own_baseline" in fields:
        lines.append(["--baseline", fields["own_baseline"].name])
    lines += [words for option in run_options.OPTIONS if (words := option.words(fields))]
    lines += run_options.limit_words(fields["budget"])
    for option in fields.get("model_options", ()):
        role = "" if option.role is ModelRole.ALL else f"{option.role}."
        given = {name: getattr(option, name) for name in NAMES if getattr(option, name) is not None}
        lines += [["--option", f"{role}{name}={value}"] for name, value in given.items()]
    if fields.get("prompts_folder"):
        lines.append(["--prompts", fields["prompts_folder"]])
    if fields["ask_first"].which is not Ask.OFF:
        lines.append(["--ask-first", str(fields["ask_first"])])
    return " \\\n  ".join(shlex.join(words) for words in lines)


def _policy(task: TaskFile, fields: Mapping[str, Any]) -> Iterator[list[str]]:
    """The policy, where it is not the task's own."""
    usual = ("all",) if EVERYTHING in task.policy.library_operators else task.policy.library_operators
    if fields["library"] != (", ".join(usual) or "none"):
        yield ["--library", fields["library"]]
    if fields["precision"] != task.policy.precision:
        yield ["--precision", fields["precision"]]
    if fields["dtype"] != (task.policy.dtype or OWN_DTYPE):
        yield ["--dtype", fields["dtype"]]
    if fields["mode"] != (task.policy.mode or OWN_MODE):
        yield ["--mode", fields["mode"]]
    if fields["compare_modules"] != task.policy.compare_modules:
        yield ["--compare-modules", f"{fields['compare_modules']}"]
    if "baselines" in fields:
        yield ["--baselines", fields["baselines"]]
    if fields["backward"] != task.policy.backward:
        yield ["--backward" if fields["backward"] else "--no-backward"]


def _options(strategy: StrategyDescription, model: str, chosen: Mapping[str, Any]) -> Iterator[list[str]]:
    for option in strategy.options:
        value = chosen.get(option.name, option.default_for(model))
        if value != option.default_for(model):
            text = str(value).lower() if isinstance(value, bool) else "none" if value is None else value
            yield ["--strategy-option", f"{option.name}={text}"]
