"""The suite of KernelBench's levels 2 and 3: its rule, its files, its order."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from engine.cli.suites import settings_of_cell
from engine.evaluator import tasks
from engine.evaluator.request import Evaluator
from engine.search.actions import Ask, Expects
from engine.search.steps import guidance
from engine.search.steps.conversation import synthesise
from engine.suites import definition
from storage.run import events as ev
from storage.suites.records import Cell, SuiteTask
from tests.engine.contexts import open_context
from tests.engine.every_prompt import limit_of
from tests.engine.test_cli import tilewright
from tests.guard.engine_side import NoToolchain

MOST_CHARACTERS = 20_000  # of a first prompt with its system message
STEP, LAST = 8, {2: 100, 3: 50}
REPLACED = {2: {56: 57, 80: 81}, 3: {24: 25, 48: 50}}
LEVELS = definition.read(definition.find("levels"))
FOLDER = definition.SHIPPED / "levels"


def numbers(level: int) -> list[int]:
    paths = (Path(task.task) for task in LEVELS.tasks)
    return sorted(int(path.stem.partition("_")[0]) for path in paths if path.parent.name == f"level{level}")


def test_every_eighth_file_is_a_task_or_replaced_by_a_later_one() -> None:
    for level, last in LAST.items():
        eighths = range(STEP, last + 1, STEP)
        assert numbers(level) == [REPLACED[level].get(number, number) for number in eighths]
    assert (len(numbers(2)), len(numbers(3))) == (12, 6)


def test_its_files_are_there_with_their_licence_and_no_others() -> None:
    assert {Path(task.task) for task in LEVELS.tasks} == set(FOLDER.glob("*/*.py"))
    assert "MIT License" in (FOLDER / "LICENSE").read_text()
    assert all(tasks.read(Path(task.task)).policy.mode == "" for task in LEVELS.tasks)


def test_tables_count_networks_apart_from_chains() -> None:
    levels = {task.kernel_class: set[str]() for task in LEVELS.tasks}
    for task in LEVELS.tasks:
        levels[task.kernel_class].add(re.sub(r".*/(level\d)/.*", r"\1", task.task))
    assert levels == {"level 2": {"level2"}, "network": {"level3"}}


def test_one_arm_learns_from_its_own_earlier_tasks_alone() -> None:
    manual = LEVELS.settings + " --model manual"
    words = {arm.name: arm for arm in LEVELS.arms}
    assert words["with_memory"].settings.replace("own:memory", "off") == words["without_memory"].settings
    assert (words["with_memory"].in_order, words["without_memory"].in_order) == (4, 0)
    defined = replace(LEVELS, settings=manual)
    settings = settings_of_cell(defined, Cell(LEVELS.tasks[0].name, "with_memory", 1))
    assert settings.knowledge == "own:levels.memory"


@pytest.mark.parametrize("task", LEVELS.tasks, ids=lambda task: task.name)
def test_a_first_prompt_is_short_and_says_how_a_chain_becomes_few_passes(task: SuiteTask, tmp_path: Path) -> None:
    file = tasks.read(Path(task.task))
    context = open_context(tmp_path, language="cuda", task_name=file.name, kernel_class=file.guessed_class)
    context.task, context.toolchain = file.task("cuda"), cast(Evaluator, NoToolchain("cuda"))
    context.record.apply(ev.LimitMeasured(limit_of("sm_90a")))
    messages = synthesise(context, Ask("synthesise", 0, None, Expects.SOURCE, synthesise))
    assert sum(len(message.text) for message in messages) <= MOST_CHARACTERS
    guide = guidance.fusion(context)
    assert guide.startswith("The reference is a recurrence" if "GRU" in task.name else "The reference is a chain")
    assert guide in messages[1].text
    assert "Headroom on this device:\n- The hardware allows " in messages[1].text
    assert guide in guidance.guide(context)
    left = file.policy.library_operators
    assert ("your share is everything between them" in guide) is bool(left)
    assert all(f"`{name}`" in guide for name in left)


def test_a_shipped_suite_is_shown_before_it_is_started(home: Path) -> None:
    shown = tilewright("suite", "show", "levels")
    assert shown.returncode == 0
    assert "arm with_memory: " in shown.stdout
    assert "4 at a time, in this order" in shown.stdout
    assert all(task.name in shown.stdout for task in LEVELS.tasks)
    assert "levels: not started here. `python -m engine suite run levels` starts it." in shown.stdout
    assert "suite run kernelbench LEVEL PATH` starts it" in tilewright("suite", "show", "kernelbench").stdout
