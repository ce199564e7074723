"""A suite from its TOML file: which tasks, which arms, how often. Reads files, starts nothing.

A file names `tasks` (shipped ones, or files; `*` stands for any characters), `arms` (name = words of `engine run`),
`settings` (words for every cell), `repeats` and `weight` (the share of devices that all cells have together). With
`budget = "headroom"` what the cells leave of `[limits]` goes, `more_steps` at a time, where most is left to save;
`[time_shares]` says which share of the total time each task has. `checks = "works"` asks whether every cell makes a
correct, timed kernel, in place of how fast it is. `[in_order]` names arms whose tasks are worked in the order of the
file, so many at a time.
`parameters` are words that are given beside the file's name and stand in braces in its texts; `{here}` is the folder of
the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from engine.errors import EngineError
from engine.evaluator.tasks import SHIPPED as TASKS
from storage import codec, untrusted
from storage.suites.records import NAME, Arm, BudgetRule, Defined, Purpose, SuiteLimits, SuiteTask
from storage.untrusted import UntrustedError

SHIPPED = TASKS / "suites"
MOST_REPEATS, MOST_CELLS, MOST_WEIGHT = 1000, 50_000, 1e6
CLASS = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _-]{0,39}")
ALL_TIME = 1.005  # shares are rounded
KEYS = {
    "name", "title", "about", "parameters", "tasks", "settings", "repeats", "arms", "baseline", "limits", "classes",
    "task_settings", "paper", "weight", "budget", "more_steps", "time_shares", "checks", "in_order",
}  # fmt: skip


def shipped() -> list[str]:
    """The suites that come with Tilewright."""
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


def find(name: str) -> Path:
    """A suite's file: a shipped one by name, or any by path.

    Raises:
        EngineError: there is none.
    """
    path = Path(name) if name.endswith(".toml") else SHIPPED / f"{name}.toml"
    if not path.is_file():
        raise EngineError(f"no suite {name!r}. Shipped: {', '.join(shipped())}. Or give the path of a .toml file")
    return path


def outline(name: str) -> tuple[str, list[str]]:
    """What a shipped suite is to find out, and the words that it takes."""
    plain = untrusted.read_toml(find(name))
    return plain.get("about", ""), plain.get("parameters", [])


def read(path: Path, words: Sequence[str] = ()) -> Defined:
    """What a file says, with `words` in place of its parameters.

    Raises:
        EngineError: it cannot be read, or says something that a suite cannot be; the message says where.
    """
    try:
        text = untrusted.read_text(path)
    except (FileNotFoundError, UntrustedError) as error:
        raise EngineError(f"a suite cannot be read: {error}") from error
    return of_text(text, path, words)


def of_text(text: str, path: Path, words: Sequence[str] = ()) -> Defined:
    """What a file at this path would say with this text; raises as `read`."""
    try:
        plain = untrusted.toml_table(text, f"{path}")
    except UntrustedError as error:
        raise EngineError(f"a suite cannot be read: {error}") from error
    if unknown := sorted(plain.keys() - KEYS):
        raise EngineError(f"{path}: unknown entry {', '.join(unknown)}. A suite has: {', '.join(sorted(KEYS))}")
    return _defined(path, _filled(path, plain, words), text, tuple(words))


def _filled(path: Path, plain: dict[str, Any], words: Sequence[str]) -> dict[str, Any]:
    """The entries with every parameter in its place."""
    names = plain.pop("parameters", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise EngineError(f"{path}: parameters = {names!r} is no list of names")
    if len(names) != len(words):
        takes = " ".join(name.upper() for name in names) or "no further words"
        raise EngineError(f"the suite {path.stem} takes {takes}, got {' '.join(words) or 'none'}")
    replacements = dict(zip(names, words, strict=True)) | {"here": str(path.parent.absolute())}

    def fill(value: Any) -> Any:
        if isinstance(value, str):
            return re.sub(r"\{(\w+)\}", lambda match: replacements.get(match[1], match[0]), value)
        if isinstance(value, list):
            return [fill(item) for item in value]
        return {name: fill(item) for name, item in value.items()} if isinstance(value, dict) else value

    filled: dict[str, Any] = fill(plain)
    return filled


def _defined(path: Path, plain: Mapping[str, Any], text: str, words: tuple[str, ...]) -> Defined:
    name = plain.get("name", path.stem)
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise EngineError(f"{path}: {name!r} is no name of a suite: use letters, digits, '.', '_' and '-'")
    orders = _in_order(path, plain)
    arms = [Arm(arm, settings, in_order=orders.get(arm, 0)) for arm, settings in _texts(path, plain, "arms").items()]
    arms = arms or [Arm("default")]
    baseline = plain.get("baseline", arms[0].name)
    if baseline not in [arm.name for arm in arms]:
        raise EngineError(f"{path}: baseline = {baseline!r} is none of its arms")
    repeats = plain.get("repeats", 1)
    if type(repeats) is not int or not 1 <= repeats <= MOST_REPEATS:
        raise EngineError(f"{path}: repeats = {repeats!r} is no number from 1 to {MOST_REPEATS:,}")
    weight = plain.get("weight", 1.0)
    if type(weight) not in (int, float) or not 0 < weight <= MOST_WEIGHT:
        raise EngineError(f"{path}: weight = {weight!r} is no number above 0, or more than {MOST_WEIGHT:,.0f}")
    budget, more_steps = plain.get("budget", BudgetRule.EVEN), plain.get("more_steps", 2)
    if budget not in list(BudgetRule):
        raise EngineError(f"{path}: budget = {budget!r} is none of {', '.join(BudgetRule)}")
    if type(more_steps) is not int or not 1 <= more_steps <= MOST_REPEATS:
        raise EngineError(f"{path}: more_steps = {more_steps!r} is no number from 1 to {MOST_REPEATS:,}")
    if (checks := plain.get("checks", Purpose.SPEED)) not in list(Purpose):
        raise EngineError(f"{path}: checks = {checks!r} is none of {', '.join(Purpose)}")
    title, about, settings = (str(plain.get(key, "")) for key in ("title", "about", "settings"))
    tasks = tuple(_tasks(path, plain))
    if (cells := len(tasks) * len(arms) * repeats) > MOST_CELLS:
        raise EngineError(f"{path}: {cells:,} runs are too many for one suite: at most {MOST_CELLS:,}")
    return Defined(
        name, tasks, tuple(arms), repeats, title, about, settings, baseline, _limits(path, plain), text, words,
        float(weight), BudgetRule(budget), more_steps, checks=Purpose(checks),
    )  # fmt: skip


def _tasks(path: Path, plain: Mapping[str, Any]) -> list[SuiteTask]:
    classes, settings = _texts(path, plain, "classes"), _texts(path, plain, "task_settings")
    paper, listed = plain.get("paper", {}), plain.get("tasks", [])
    if not isinstance(listed, list) or not isinstance(paper, dict):
        raise EngineError(f"{path}: tasks must be a list of names, and [paper] lines such as name = 1.5")
    for name, label in classes.items():
        if not CLASS.fullmatch(label):
            raise EngineError(f"{path}: classes.{name} = {label!r}: use letters, digits, spaces, '_' and '-'")
    paths = [task for text in listed for task in _named(path, str(text))]
    names = [Path(task).stem for task in paths]
    if not names or len(set(names)) != len(names):
        raise EngineError(f"{path}: {'two tasks have one name' if names else 'it names no task'}")
    time_shares = _time_shares(path, plain)
    strangers = sorted({*classes, *settings, *paper, *time_shares} - set(names))
    if strangers:
        raise EngineError(f"{path}: {', '.join(strangers)} is none of its tasks")
    if time_shares and (missing := sorted(set(names) - set(time_shares))):
        raise EngineError(f"{path}: [time_shares] says nothing of {', '.join(missing)}: name every task, or none")
    return [
        SuiteTask(name, task, settings.get(name, ""), classes.get(name, ""), paper.get(name), time_shares.get(name))
        for name, task in zip(names, paths, strict=True)
    ]


def _named(path: Path, text: str) -> list[str]:
    """The tasks that one entry stands for, files by the numbers in their names.

    Raises:
        EngineError: no file is called so.
    """
    if not text.endswith(".py") and "/" not in text:
        return [text]
    pattern = Path(text).absolute()
    if "*" not in text:
        return [str(pattern)]
    anchor = Path(pattern.anchor)
    paths = sorted((str(file) for file in anchor.glob(str(pattern.relative_to(anchor)))), key=_by_number)
    if not paths:
        raise EngineError(f"{path}: there is no file {pattern}")
    return paths


def _by_number(text: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", text)]


def _texts(path: Path, plain: Mapping[str, Any], key: str) -> dict[str, str]:
    texts = plain.get(key, {})
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise EngineError(f'{path}: [{key}] must be lines such as name = "text"')
    return texts


def _in_order(path: Path, plain: Mapping[str, Any]) -> dict[str, int]:
    orders = plain.get("in_order", {})
    if not isinstance(orders, dict) or not all(type(size) is int and size > 0 for size in orders.values()):
        raise EngineError(f"{path}: [in_order] must be lines such as arm = 1, so many tasks at a time")
    if strangers := sorted(set(orders) - set(_texts(path, plain, "arms"))):
        raise EngineError(f"{path}: in_order: {', '.join(strangers)} is none of its arms")
    return dict(orders)


def _time_shares(path: Path, plain: Mapping[str, Any]) -> dict[str, float]:
    shares = plain.get("time_shares", {})
    if not isinstance(shares, dict) or not all(type(share) in (int, float) and share > 0 for share in shares.values()):
        raise EngineError(f"{path}: [time_shares] must be lines such as name = 0.3")
    if sum(shares.values()) > ALL_TIME:
        raise EngineError(f"{path}: [time_shares] add up to {sum(shares.values()):g}, more than all of the time")
    return {name: float(share) for name, share in shares.items()}


def _limits(path: Path, plain: Mapping[str, Any]) -> SuiteLimits:
    if not isinstance(entries := plain.get("limits", {}), dict):
        raise EngineError(f"{path}: [limits] must be lines such as hours = 2")
    entries = dict(entries)
    allowed = [field.name for field in fields(SuiteLimits) if field.name != "engine_s"]
    if unknown := sorted(entries.keys() - {*allowed, "hours"}):
        raise EngineError(f"{path}: unknown limit {', '.join(unknown)}. There are: {', '.join([*allowed, 'hours'])}")
    hours = entries.pop("hours", None)
    if hours is not None and (type(hours) not in (int, float) or not 0 < hours < MOST_WEIGHT):
        raise EngineError(f"{path}: hours = {hours!r} is no number of hours")
    try:
        limits: SuiteLimits = codec.from_plain(SuiteLimits, entries)
    except codec.DecodeError as error:
        raise EngineError(f"{path}: [limits] {error}") from error
    return replace(limits, engine_s=None if hours is None else 3600.0 * hours)


def chosen(defined: Defined, arms: Sequence[str], repeats: int | None, first: int | None = None) -> Defined:
    """The definition with these arms alone, so many repeats and its first tasks alone, where they are given.

    Raises:
        EngineError: no such arm, or no such number of repeats or tasks.
    """
    if first is not None and not 1 <= first <= len(defined.tasks):
        raise EngineError(f"suite {defined.name} has {len(defined.tasks)} tasks: --first takes a number from 1 to that")
    by_name = {arm.name: arm for arm in defined.arms}
    if unknown := [name for name in arms if name not in by_name]:
        raise EngineError(f"no arm {', '.join(unknown)} in suite {defined.name}: it has {', '.join(by_name)}")
    if repeats is not None and not 1 <= repeats <= MOST_REPEATS:
        raise EngineError(f"{repeats} repeats cannot be run: give a number from 1 to {MOST_REPEATS:,}")
    kept = tuple(by_name[name] for name in dict.fromkeys(arms)) or defined.arms
    baseline = defined.baseline_arm if defined.baseline_arm in [arm.name for arm in kept] else kept[0].name
    return replace(
        defined, tasks=defined.tasks[:first], arms=kept, repeats=repeats or defined.repeats, baseline_arm=baseline
    )


def joined(before: Defined, now: Defined) -> Defined:
    """The suite as it is after one more `run`: tasks, arms and repeats are added, none is taken away or changed.

    Raises:
        EngineError: a task or an arm of the same name has other settings now.
    """
    if before.settings != now.settings:
        raise EngineError(_other(before.name, "its settings"))
    tasks, arms = {task.name: task for task in before.tasks}, {arm.name: arm for arm in before.arms}
    for task in now.tasks:
        earlier = tasks.get(task.name, task)
        if (earlier.task, earlier.settings) != (task.task, task.settings):
            raise EngineError(_other(before.name, f"task {task.name}"))
        tasks[task.name] = task
    for arm in now.arms:
        if arms.setdefault(arm.name, arm) != arm:
            raise EngineError(_other(before.name, f"arm {arm.name}"))
    return replace(
        now, tasks=tuple(tasks.values()), arms=tuple(arms.values()), repeats=max(before.repeats, now.repeats),
        baseline_arm=before.baseline_arm,
    )  # fmt: skip


def _other(name: str, what: str) -> str:
    return f"suite {name} was started with {what} set otherwise: give this one another name with --name"
