"""The examples of docs/extending.md do what the guide says; that of a model is in the contract suite of the models."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from engine import tasks
from engine.errors import ProfileUnavailable
from pages.parts import index
from storage.records import KernelClass
from tests import documented, samples


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
