"""Editors on Windows write a byte order mark before a text. Python reads over it, and so does what reads files here."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from engine import importing, supervisor
from engine.cli import given, person
from engine.evaluator import tasks
from engine.evaluator.tasks import problems
from engine.search import daily, prompt_pack
from engine.search.llm import prices
from engine.search.patching.reply import find_python
from engine.suites import definition
from storage.run.steering.command_arguments import as_file_reply
from tests.engine.test_problems import problem, workload
from tests.engine.test_tasks import FOREIGN

MARK = b"\xef\xbb\xbf"
KERNEL = "import torch\n\n\nclass ModelNew:\n    pass\n"
SUITE = 'tasks = ["swish"]\nsettings = "--model manual"\n[arms]\nplain = ""\n'
READERS: dict[str, tuple[str, str, Callable[[Path], object]]] = {
    "task": ("task.py", FOREIGN, lambda path: tasks.read(path).text),
    "kernel": ("kernel.py", KERNEL, lambda path: given.kernel(str(path))),
    "reply": ("kernel.py", KERNEL, lambda path: person._text(str(path))),
    "kernel to import": ("step_1.py", KERNEL, lambda path: importing.read_kernels(path.parent)[0].source),
    "prices": ("prices.toml", "[m]\ninput = 1\n", prices.read_prices),
    "limits of a day": ("budget.toml", "[day]\ncost = 1\n", daily.read_limits),
    "suite": ("suite.toml", SUITE, lambda path: definition.read(path).toml),
    "prompt": ("system.md", "text", lambda path: prompt_pack._text(path)),
}


@pytest.mark.parametrize(("name", "text", "read"), READERS.values(), ids=READERS)
def test_a_file_says_the_same_with_a_mark(tmp_path: Path, name: str, text: str, read: Callable[[Path], object]) -> None:
    path = tmp_path / name
    path.write_text(text)
    plain = read(path)
    path.write_bytes(MARK + text.encode())
    assert read(path) == plain


def test_what_stands_beside_a_task_may_have_a_mark(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text(FOREIGN)
    (tmp_path / "task.toml").write_bytes(MARK + b'title = "A title"\n')
    assert tasks.read(tmp_path / "task.py").title == "A title"


def test_a_problem_may_have_marks(tmp_path: Path) -> None:
    folder = problem(tmp_path, workload(4), workload(8))
    plain = problems.read(folder / problems.DEFINITION)
    for name in (problems.DEFINITION, problems.WORKLOADS):
        (folder / name).write_bytes(MARK + (folder / name).read_bytes())
    assert problems.read(folder / problems.DEFINITION) == plain


def test_a_pasted_module_may_have_a_mark_and_is_the_same_task(home: Path) -> None:
    pasted = supervisor.module_of("\ufeff" + FOREIGN, "mine")
    assert pasted == supervisor.module_of(FOREIGN, "mine")


def test_a_pasted_kernel_may_have_a_mark() -> None:
    assert find_python(as_file_reply("\ufeff" + KERNEL)) == find_python("\ufeff" + KERNEL) == KERNEL


def test_a_reply_on_standard_input_may_have_a_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(MARK + KERNEL.encode())))
    assert person._raw("-") == KERNEL
