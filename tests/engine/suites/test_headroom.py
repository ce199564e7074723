"""What is left of a suite's budget goes where it is expected to save most, is asked for once, and is told in words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.cli.suites import settings_of_cell
from engine.suites import headroom, tables
from engine.suites.runner import Runner
from storage.knowledge import files as knowledge_files
from storage.knowledge.records import Evidence, Outcome
from storage.results.hardware_limit import HardwareLimit
from storage.run import events as ev
from storage.run import journal
from storage.run.folder import RunFolder, runs_folder
from storage.run.record import Record
from storage.run.settings import Budget
from storage.run.steering import commands
from storage.suites import files, measured, summary
from storage.suites.records import (
    Arm,
    BudgetRule,
    Cell,
    CellLeft,
    CellLinked,
    CellState,
    Defined,
    SuiteLimits,
    SuiteTask,
    Weighed,
)
from storage.suites.standing import Suite, fold
from tests import samples
from tests.engine.story import Story
from tests.engine.test_cli import tilewright
from tests.storage.knowledge_rows import attempt

CELL = Weighed(Cell("square_matmul", "a", 1), "story")


def limit(share: float) -> ev.LimitMeasured:
    """Kernels of a story take a millisecond, and reach this share of the limit."""
    return ev.LimitMeasured(HardwareLimit("a device", 1.0, 100.0, int(1e6 * share), 0))


def ended(share: float = 0.5, **budget: object) -> Story:
    """A run that has taken the one step that it was to take, which did not gain."""
    story = Story(budget=Budget(**{"depths": 1} | budget))  # type: ignore[arg-type]
    return story.tell(limit(share)).accepts("c001", 2.0).accepts("c002", 1.9, "c001")


def tries(gained: int, of: int, share: float | None, gain: float = 1.5, first: int = 1) -> list[Evidence]:
    shown = [(Outcome.FASTER, gain) if number < gained else (Outcome.SAME, 1.0) for number in range(of)]
    return [
        attempt(first + n, outcome, gain=gain, kernel_class="matmul", toolchain="cpu", limit_share=share)
        for n, (outcome, gain) in enumerate(shown)
    ]


def weigh(story: Story, rows: list[Evidence] = [], time_share: float | None = None) -> Weighed:  # noqa: B006
    return headroom.weigh(CELL, story.record, 2, time_share, headroom.by_class(rows))


def test_without_evidence_a_step_is_assumed_to_save_a_tenth_of_what_the_limit_leaves() -> None:
    cell = weigh(Story(budget=Budget(depths=0)).tell(limit(0.5)).accepts("c001", 2.0))
    assert cell.saving == pytest.approx(1 - 0.95**2)
    assert (cell.steps, cell.depths, cell.limits, cell.left) == (2, 2, "depths=2", 0.5)
    assert cell.why == (
        "50 % of the limit left; there are no attempts to learn from, so a step is assumed to save 10 % of that; "
        "2 more are expected to save 9.8 %"
    )


def test_tries_from_about_the_same_share_of_the_limit_count_and_those_from_elsewhere_only_without_them() -> None:
    far, near = tries(12, 12, 0.3), tries(3, 12, 0.8, 1.04, first=20)
    others = [replace(row, kernel_class="loss") for row in far] + [replace(row, toolchain="cuda") for row in far]
    cell = weigh(ended(0.89), [*far, *near, *others])
    assert "11 % of the limit left; gains there were 3.8 % in the median, in 3 of 12 attempts; " in cell.why
    assert (cell.tries, cell.gained) == (12, 3)
    cell = weigh(ended(0.89), [*far, *near[: headroom.ENOUGH - 1]])
    assert "gains on kernels of its class were 33 % in the median, in 15 of 16 attempts" in cell.why
    assert "none of 12 attempts there gained" in weigh(ended(0.8), tries(0, 12, 0.8)).why


def test_steps_are_never_expected_to_save_more_than_the_limit_leaves() -> None:
    assert weigh(ended(0.8), tries(12, 12, 0.8, 9.0)).saving == pytest.approx(0.2)


def test_a_cells_own_steps_that_brought_nothing_count_against_it_until_it_gets_none() -> None:
    story, rows = ended(depths=30), tries(6, 12, 0.5)
    before = weigh(story, rows)
    assert "its own last step brought nothing" in before.why
    for number in range(3, 12):
        story.accepts(f"c{number:03}", 1.9, "c001")
    after = weigh(story, rows)
    assert "its own last 10 steps brought nothing" in after.why
    assert 0 < after.saving < before.saving
    given_up = weigh(story, tries(0, 40, 0.5))
    assert given_up.steps == 0
    assert given_up.why.endswith("and for less than 1 % none are given")


@pytest.mark.parametrize(
    ("story", "why"),
    [
        (Story().tell(limit(0.5)), "no correct kernel, so nothing is known of what is left to gain"),
        (ended(0.953), "5 % of the limit left, which is below the noise of a timing"),
        (ended(target_speedup=1.5), "target reached: 2x (target 1.5x)"),
        (ended(limit_share=0.4), "50% of the hardware limit reached (to stop at 40%)"),
        (ended(model_calls=3).calls(3), "limit reached: 3 of 3 model calls"),
        (ended(stagnation_depths=1), "no improvement in the last 1 depths"),
    ],
)
def test_a_cell_near_its_limit_or_at_a_limit_of_its_own_gets_nothing_more(story: Story, why: str) -> None:
    cell = weigh(story, tries(12, 12, 0.5))
    assert (cell.steps, cell.why) == (0, why)
    assert headroom.best_of([cell]) is None


def test_a_limit_that_a_kernel_has_set_says_nothing_of_what_is_left() -> None:
    story = ended()
    known = story.record.limit
    assert known is not None
    cell = weigh(story.tell(ev.LimitMeasured(known.raised_to(known.limit_ms / 2))), tries(6, 12, 0.5))
    assert cell.left is None
    assert cell.why.startswith("the hardware limit is not known; gains on kernels of its class")
    assert cell.steps == 2


def test_the_cell_with_the_largest_part_of_the_time_is_first_and_counts_at_its_speed_of_now() -> None:
    small, large = weigh(ended(0.3), [], 0.1), weigh(ended(0.5), [], 0.6)
    assert headroom.best_of([small, large]) is large
    assert headroom.best_of([weigh(ended(0.3)), weigh(ended(0.5))]) != weigh(ended(0.5)), "each its own time"
    assert large.saving == pytest.approx(weigh(ended(0.5)).saving * 0.6 / 2.0)
    assert large.why.endswith("of the 60 % of the total time that it had, 2.00× as fast by now")


def test_a_file_says_how_what_is_left_is_given_and_a_suite_without_limits_has_nothing_to_give(
    home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('tasks = ["swish"]\nbudget = "headroom"\nmore_steps = 3\nsettings = "--model manual"\n')
    done = tilewright("suite", "run", str(file))
    assert done.returncode == 2
    assert 'budget = "headroom", which gives what is left of its limits, and it has none' in done.stderr


def suite_of(name: str = "mine") -> Suite:
    suite = fold(files.read(files.folder_of(name)))
    assert suite is not None
    return suite


def test_what_was_decided_is_told_in_words_by_suite_show_and_in_every_table(home: Path) -> None:
    tasks = (SuiteTask("swish", "swish"), SuiteTask("softmax", "softmax"), SuiteTask("relu", "relu"))
    defined = Defined("mine", tasks, (Arm("a"),), baseline_arm="a", budget=BudgetRule.HEADROOM)
    swish, softmax, relu = defined.cells
    for cell in (swish, softmax):
        samples.write_run(runs_folder(), cell.task, depths=2)
    files.append(
        files.folder_of("mine"), defined,
        *(event for cell in defined.cells for event in (
            CellLinked(cell, cell.task), CellLeft(cell, cell.task, CellState.FINISHED, "all 2 depths are done"))),
        Weighed(swish, "swish", "40 % of the limit left", 2, 4, 0.031, 0.4, 12, 3),
        CellLinked(swish, "swish"), CellLeft(swish, "swish", CellState.FINISHED, "all 4 depths are done"),
        Weighed(softmax, "softmax", "target reached: 2x (target 1.5x)"),
    )  # fmt: skip
    suite = suite_of()
    assert suite.cells[swish].headroom == "2 more steps: 40 % of the limit left"
    assert suite.cells[softmax].headroom == "no more steps: target reached: 2x (target 1.5x)"
    shown = tilewright("suite", "show", "mine").stdout
    assert "\nswish, a, repeat 1: 2 more steps: 40 % of the limit left\n" in shown
    table = tables.headroom_table(summary.gather(suite, measured.of_suite(suite)))
    assert [row[0] for row in table.rows] == ["swish", "softmax"]
    assert table.rows[0][3:6] == ("2", "40 %", "3.1 %")
    files.append(files.folder_of("mine"), CellLeft(swish, "swish", CellState.STOPPED, "the limit is reached"))
    stopped = suite_of()
    counted = summary.gather(stopped, measured.of_suite(stopped)).counted
    assert swish in [result.cell for result in counted], "it had ended before it got more steps"
    again = {cell.cell: cell for cell in headroom.weighed(suite, suite.finished)}
    assert again[relu].why.startswith("its run cannot go on: ")
    assert again[swish].why == "its run may go to 2 and not to the 4 it got"
    assert headroom.best_of(list(again.values())) == (again[softmax] if again[softmax].steps else None)


def test_a_runner_that_was_killed_after_it_decided_asks_the_run_once_and_the_limit_counts_what_is_spent_once(
    home: Path,
) -> None:
    cell, words = Cell("swish", "a", 1), "--model recorded --reply-seconds 0 --collect off --baselines none"
    settings = f"--toolchain cpu {words} --depths 0 --set dim=4096"
    defined = Defined("mine", (SuiteTask("swish", "swish"),), (Arm("a"),), settings=settings, more_steps=1)
    folder = files.folder_of("mine")
    files.append(folder, defined)
    assert runner().run() == "1 finished of 1 run"
    run = RunFolder(runs_folder() / str(suite_of().cells[cell].run_id))
    first = calls_of(run)
    assert first >= 2, "counted twice they would be more than the limit below"

    limited = replace(defined, budget=BudgetRule.HEADROOM, limits=SuiteLimits(model_calls=first + 2))
    files.append(folder, limited, Weighed(cell, run.run_id, "decided, then killed", 1, 1))
    assert suite_of().cells[cell].state is CellState.RUNNING
    assert runner().run().startswith(f"the suite's limit of {first + 2} model calls is reached")
    assert calls_of(run) >= first + 2
    sent = [command.argument for command in commands.read_from(run.commands_file)[0] if command.kind == "set_budget"]
    given = [line.event.limits for line in files.read(folder) if isinstance(line.event, Weighed) and line.event.steps]
    assert sent == given
    assert sent == [f"depths={number}" for number in range(1, len(sent) + 1)]
    asked = [entry.event for entry in journal.read(run.journal_file) if isinstance(entry.event, ev.CommandAcknowledged)]
    assert {command.command.asked_by for command in asked if command.command.kind == "set_budget"} == {"suite mine"}

    before = run.journal_file.stat().st_size
    assert runner().run().startswith(f"the suite's limit of {first + 2} model calls is reached")
    assert run.journal_file.stat().st_size == before
    assert knowledge_files.load(seeded=False).damaged == 0


def runner() -> Runner:
    return Runner(files.folder_of("mine"), [""], settings_of_cell, lambda run: False, lambda text: None)


def calls_of(run: RunFolder) -> int:
    return Record.of(run.read_settings(), list(journal.read(run.journal_file))).usage.model_calls
