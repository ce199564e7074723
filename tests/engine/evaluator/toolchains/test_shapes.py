"""Any KernelBench-style file is a task: each shape of code loads, has a class, gives a prompt and judges itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import TaskError
from engine.evaluator import fitting, tasks
from engine.evaluator.fitting import Cost, smaller
from engine.evaluator.tasks import Size
from engine.evaluator.toolchains.cpu import CpuToolchain
from engine.search.steps import briefing
from storage.results.policy import Draws
from storage.results.vocabulary import Verdict
from tests.engine.evaluator.toolchains.fixtures import free
from tests.engine.evaluator.toolchains.shapes import HEAD, SHAPES, as_candidate
from tests.shared_servers import meter


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, (_, text) in SHAPES.items():
        (tmp_path / f"{name}.py").write_text(HEAD + text)
    (tmp_path / "notes.py").write_text("x = 1\n")
    return tmp_path


def test_a_folder_tells_its_tasks_with_their_classes_and_why_a_file_is_none(folder: Path) -> None:
    found = {entry.path.stem: entry for entry in tasks.in_folder(folder)}
    assert {name: str(one.task.guessed_class) for name, one in found.items() if one.task} == {
        name: kernel_class for name, (kernel_class, _) in SHAPES.items()
    }
    assert found["notes"].task is None
    assert "does not define Model" in found["notes"].reason
    with pytest.raises(TaskError, match=r"folder with 6 tasks.*attention\.py.*python -m engine tasks"):
        tasks.find(str(folder))
    with pytest.raises(TaskError, match="no folder with KernelBench-style files"):
        tasks.in_folder(folder / "absent")


@pytest.mark.parametrize("name", SHAPES)
def test_each_shape_of_code_gives_a_contract_and_judges_its_own_reference(
    name: str, folder: Path, cpu: CpuToolchain
) -> None:
    task = free(tasks.find(str(folder / f"{name}.py")).task("cpu"))
    assert "The contract of this run" in briefing.contract("cpu", task)
    if name == "norms_in_training":  # its dropout draws
        assert "evaluation mode" in cpu.examine(task).refusal
        task = replace(task, policy=replace(task.policy, draws=Draws.SEEDED))
    judged = cpu.check(task, as_candidate(task.source))
    assert judged.verdict is Verdict.PASSED, judged.message


def test_sizes_are_halved_from_the_largest_until_the_task_is_small_and_what_does_not_halve_stays() -> None:
    asked: list[dict[str, Size]] = []

    def measure(sizes: Mapping[str, Size]) -> Cost | None:
        asked.append(dict(sizes))
        if sizes["channels"] % 48:
            return None  # as where groups divide the channels
        elements = int(sizes["batch_size"]) * int(sizes["channels"]) * int(sizes["width"])
        return Cost(elements * 40, 2 * elements)

    sizes: dict[str, Size] = {"batch_size": 4096, "channels": 48, "width": 65535, "kernel_size": 11, "eps": 1e-5}
    found = smaller(sizes, measure)
    assert set(found) == {"batch_size", "width"}
    assert int(found["width"]) % 2 == 1
    cost = measure({**sizes, **found})
    assert cost is not None
    assert cost.bytes <= fitting.SMALL.bytes
    assert len(asked) < 30


def test_a_file_too_large_for_the_processor_gets_sizes_that_fit_and_a_persons_own_stay(tmp_path: Path) -> None:
    path = tmp_path / "large.py"
    path.write_text(HEAD + SHAPES["attention"][1].replace("2, 32, 16", "4096, 65536, 512"))
    task = tasks.read(path)
    found = fitting.sizes_that_fit(task, {"width": 64}, meter())
    cost = meter().cost(task.task("cpu", {**found, "width": 64}).source)
    assert set(found) == {"heads", "length"}
    assert cost is not None
    assert cost.bytes <= fitting.SMALL.bytes
    path.with_suffix(".toml").write_text("[sizes.cpu]\nheads = 2\n")
    assert fitting.sizes_that_fit(tasks.read(path), {}, meter()) == {}
