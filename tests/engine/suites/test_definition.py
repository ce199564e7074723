"""Suites from TOML files: the shipped ones, one's own, and what is refused with a reason."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from engine.cli.suites import settings_of_cell
from engine.errors import EngineError
from engine.suites import definition
from storage.suites.records import Arm, Cell, Defined, Spent, SuiteLimits, SuiteTask
from storage.suites.standing import Suite

RECORDED = ("quick", "demo")  # which have recorded replies for all of their tasks
WORDS = {"kernelbench": ("1", "{here}")}
KERNEL = "class Model: ...\ndef get_inputs(): ...\ndef get_init_inputs(): ...\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", definition.shipped())
def test_every_cell_of_a_shipped_suite_has_settings(name: str, tmp_path: Path) -> None:
    (tmp_path / "level1").mkdir()
    for number in (2, 10, 1):
        (tmp_path / "level1" / f"{number}_Task.py").write_text(KERNEL)
    defined = definition.read(definition.find(name), [str(tmp_path) if "{" in w else w for w in WORDS.get(name, ())])
    assert defined.title
    assert defined.about
    if name not in RECORDED:
        defined = replace(defined, settings=f"{defined.settings} --model manual")
    for task, arm in itertools.product(defined.tasks if name in RECORDED else defined.tasks[:1], defined.arms):
        settings = settings_of_cell(defined, Cell(task.name, arm.name, 1))
        assert settings.run_id
    if name == "kernelbench":
        assert (defined.name, [task.name for task in defined.tasks]) == (
            "kernelbench-level1", ["1_Task", "2_Task", "10_Task"],
        )  # fmt: skip


def test_an_arm_is_written_in_the_words_of_a_run(tmp_path: Path) -> None:
    text = 'tasks = ["swish"]\nsettings = "--model manual --depths 3"\n[arms]\nplain = ""\nother = "--strategy best_of"'
    defined = definition.read(write(tmp_path, text))
    plain, other = (settings_of_cell(defined, Cell("swish", arm, 1)) for arm in ("plain", "other"))
    assert (plain.strategy, other.strategy, other.budget.depths, other.model) == ("cutegen", "best_of", 3, "manual")


def test_an_arm_that_differs_in_its_knowledge_base_alone_is_compared_with_the_one_that_asks_none(
    tmp_path: Path,
) -> None:
    arms = {
        "other": "--strategy cutegen --knowledge off", "without": "--strategy evolve --knowledge off --width 2",
        "with": "--strategy evolve --knowledge own:it --width 2",
        "seed": "--knowledge=seed --strategy evolve --width 2",
        "wide": "--strategy evolve --knowledge on --width 4",
    }  # fmt: skip
    lines = "\n".join(f'{arm} = "{words}"' for arm, words in arms.items())
    suite = Suite(definition.read(write(tmp_path, f'tasks = ["swish"]\nbaseline = "other"\n[arms]\n{lines}')))
    assert {arm: suite.baseline_of(arm) for arm in arms} == {
        "other": "other", "without": "other", "with": "without", "seed": "without", "wide": "other",
    }  # fmt: skip
    assert replace(suite, compared_with="wide").baseline_of("with") == "wide"


def test_the_cells_of_a_suite_share_its_weight_and_have_none_of_their_own(tmp_path: Path) -> None:
    text = 'tasks = ["swish"]\nweight = 3\nsettings = "--model manual"\n[arms]\nplain = ""\nown = "--weight 2"'
    defined = definition.read(write(tmp_path, text))
    plain = settings_of_cell(defined, Cell("swish", "plain", 1))
    assert (plain.weight, plain.suite) == (3.0, "mine")
    with pytest.raises(EngineError, match="share one weight"):
        settings_of_cell(defined, Cell("swish", "own", 1))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tasks = []", "names no task"),
        ('tasks = ["swish", "swish"]', "two tasks have one name"),
        ('tasks = ["swish"]\nrepeat = 3', "unknown entry repeat"),
        ('tasks = ["swish"]\nweight = 0', "weight = 0 is no number above 0"),
        ('tasks = ["swish"]\nbaseline = "b"\n[arms]\na = ""', "none of its arms"),
        ('tasks = ["swish"]\n[limits]\nminutes = 3', "unknown limit minutes"),
        ('tasks = ["swish"]\n[classes]\nsoftmax = "activation"', "none of its tasks"),
        ('tasks = ["swish"]\n[classes]\nswish = "a/b"', "use letters, digits"),
        ('tasks = ["swish"]\n[in_order]\na = 1', "in_order: a is none of its arms"),
        ('tasks = ["swish"]\n[arms]\na = ""\n[in_order]\na = 0', "so many tasks at a time"),
        ('tasks = ["swish"]\nbudget = "most"', "budget = 'most' is none of even, headroom"),
        ('tasks = ["swish"]\nmore_steps = 0', "more_steps = 0 is no number from 1"),
        ('tasks = ["swish"]\n[time_shares]\nswish = -1', "lines such as name = 0.3"),
        ('tasks = ["swish", "gelu"]\n[time_shares]\nswish = 0.3', "says nothing of gelu: name every task, or none"),
        ('tasks = ["swish", "gelu"]\n[time_shares]\nswish = 0.3\ngelu = 0.9', "add up to 1.2"),
        ('tasks = ["nowhere/*.py"]', "there is no file"),
        ('parameters = ["level"]\ntasks = ["swish"]', "takes LEVEL"),
        ("tasks = ", "cannot be read"),
    ],
)
def test_a_file_that_is_no_suite_is_refused_with_a_reason(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(EngineError, match=said):
        definition.read(write(tmp_path, text))


def test_a_cell_that_cannot_be_run_is_named(tmp_path: Path) -> None:
    defined = definition.read(write(tmp_path, 'tasks = ["swish"]\n[arms]\nodd = "--depth-s 3"'))
    with pytest.raises(EngineError, match=r"swish, odd, repeat 1: unrecognized arguments: --depth-s"):
        settings_of_cell(defined, Cell("swish", "odd", 1))


def test_a_suite_grows_and_nothing_of_it_changes() -> None:
    before = Defined("s", (SuiteTask("a", "a"),), (Arm("one"),), 2, baseline_arm="one")
    now = Defined("s", (SuiteTask("b", "b"),), (Arm("two", "--depths 1"),), 1, baseline_arm="two")
    grown = definition.joined(before, now)
    assert ([t.name for t in grown.tasks], [a.name for a in grown.arms]) == (["a", "b"], ["one", "two"])
    assert (grown.repeats, grown.baseline_arm) == (2, "one")
    with pytest.raises(EngineError, match="arm two set otherwise: give this one another name"):
        definition.joined(grown, Defined("s", (), (Arm("two"),)))
    with pytest.raises(EngineError, match="it has one"):
        definition.chosen(before, ["three"], None)
    part = definition.chosen(grown, [], None, 1)
    assert [task.name for task in part.tasks] == ["a"]
    assert [task.name for task in definition.joined(part, grown).tasks] == ["a", "b"]
    with pytest.raises(EngineError, match="has 2 tasks: --first takes a number from 1 to that"):
        definition.chosen(grown, [], None, 3)


def test_a_limit_of_all_cells_is_told_when_it_is_reached() -> None:
    spent = Spent(3, 1000, None, 60.0) + Spent(1, 500, 0.5, 30.0)
    assert (spent.model_calls, spent.tokens, spent.cost_usd, spent.engine_s) == (4, 1500, None, 90.0)
    assert spent.over(SuiteLimits(model_calls=5)) == ""
    assert spent.over(SuiteLimits(tokens=1500)) == "the suite's limit of 1500 tokens is reached (1500 used)"
