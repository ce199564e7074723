"""The examples of docs/extending.md do what the guide says; that of a model is in the contract suite of the models."""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast

import pytest
from streamlit.testing.v1 import AppTest

from engine import exporting, supervisor
from engine.cli import arguments
from engine.errors import EngineError, ProfileUnavailable, TaskError, ToolchainError
from engine.evaluator import tasks, toolchain_table
from engine.evaluator.request import Evaluator
from engine.evaluator.toolchain_table import Entry
from engine.search.steps.conversation import synthesise
from pages.parts import index
from storage.results.vocabulary import KernelClass
from tests import documented, samples
from tests.engine.contexts import open_context
from tests.engine.evaluator.toolchains.kernels import SWISH
from tests.engine.story import asks
from tests.engine.test_judgement import GivenResults


def test_every_example_is_one_that_a_test_runs() -> None:
    assert set(documented.EXAMPLES) == {
        "program.py", "draft.py", "fastest.py", "clamped_sum.py", "clamped_sum.toml",
    }  # fmt: skip


def test_the_task_is_read_with_its_sizes_class_and_policy(tmp_path: Path) -> None:
    for name in ("clamped_sum.py", "clamped_sum.toml"):
        (tmp_path / name).write_text(documented.EXAMPLES[name])
    found = tasks.find(str(tmp_path / "clamped_sum.py"))
    assert (found.title, found.kernel_class) == ("Clamped sum", KernelClass.REDUCTION)
    assert found.task("cpu").sizes == {"batch_size": 256, "width": 16384}
    assert found.task("cuda").sizes == {"batch_size": 16384, "width": 65536}
    assert found.task("cuda", {"batch_size": 64}).sizes == {"batch_size": 64, "width": 65536}
    assert found.policy.other_sizes == ({"batch_size": 3, "width": 1000},)


def test_the_toolchain_is_one_and_takes_no_profile(tmp_path: Path) -> None:
    with documented.module("draft.py").DraftToolchain(tmp_path / "scratch") as toolchain:
        assert toolchain.name == "draft"
        with pytest.raises(ProfileUnavailable, match="draft"):
            toolchain.profile(tasks.find("swish").task(), "")


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of the toolchain of the guide, with the entry that the guide gives it."""
    name, *values = re.findall(r'^    "draft": Entry\("([^"]+)", (\w+), (\w+)\),$', documented.TEXT, re.MULTILINE)[0]
    entry = Entry(name, *(getattr(toolchain_table, value) for value in values))
    monkeypatch.setitem(toolchain_table.TABLE, "draft", entry)
    return "draft"


def test_one_entry_makes_a_toolchain_known_everywhere(listed: str, tmp_path: Path) -> None:
    words = ["evaluate", "swish", "kernel.py", "--toolchain", listed]
    assert arguments.parse(words).toolchain == listed
    assert supervisor.available_toolchains()[listed] == supervisor.available_toolchains()["cpu"]
    assert tasks.find("swish").task(listed).sizes == tasks.find("swish").task("cpu").sizes
    sizes = {"batch_size": 1 << 17, "dim": 1 << 17}
    settings = supervisor.new_settings("swish", toolchain=listed, model="manual", overrides=sizes)
    with pytest.raises(TaskError, match="smaller sizes, for example"):
        supervisor.see_that_it_fits(settings, tasks.find("swish"))
    with pytest.raises(EngineError, match="a device is a GPU"):
        supervisor.new_settings("swish", toolchain=listed, model="manual", device="0")
    assert exporting.standing_alone(SWISH, listed) == exporting.standing_alone(SWISH, "cpu") != SWISH
    context = open_context(tmp_path)
    prompts = []
    for name in ("cpu", listed):
        context.toolchain = cast(Evaluator, GivenResults())
        context.toolchain.name = name
        prompts.append([m.text for m in synthesise(context, asks("synthesise"))])
    assert prompts[0] == prompts[1]


@pytest.mark.parametrize("name", toolchain_table.TABLE)
def test_the_table_says_of_a_toolchain_what_its_class_says(name: str) -> None:
    found = toolchain_table.find_toolchain(name)
    assert (found.name, found.device) == (name, toolchain_table.device_of(name))


def test_what_is_no_toolchain_is_told_with_those_that_are() -> None:
    with pytest.raises(ToolchainError, match="unknown toolchain 'tpu': use cpu or cuda"):
        toolchain_table.find_toolchain("tpu")


def test_the_page_shows_the_fastest_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path))
    monkeypatch.setenv("TILEWRIGHT_WATCH", "poll")
    page = tmp_path / "fastest.py"
    page.write_text(documented.EXAMPLES["fastest.py"])
    opened = index.open_index()
    try:
        app = AppTest.from_file(str(page), default_timeout=30).run()
        assert [info.value for info in app.info] == ["No kernel has been timed yet."]
        samples.write_run(tmp_path / "runs", "r1", depths=4)
        opened.ingest.catch_up()
        app = AppTest.from_file(str(page), default_timeout=30).run()
        assert not app.exception
        assert [caption.value for caption in app.caption] == ["1 run with a timed kernel."]
    finally:
        index.close_index()
