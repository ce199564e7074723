"""What of the modules that a task imports is shown to a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.evaluator import tasks
from engine.evaluator.tasks import Task, shown
from engine.search.steps import conversation
from tests.engine.contexts import open_context
from tests.engine.test_imported import module

BODY = """import os, torch
from torch import nn
from .parts import Scale as Norm, Other
from .table import ENTRIES, entry


class Unused(nn.Module):
    def forward(self, x):
        return Other()(x)


class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(8, 8), Norm()

    def forward(self, x):
        return self.norm(self.linear(x))


@entry
def tiny():
    return Body()
"""
PARTS = """import torch
EPS = 1e-6


class Scale(torch.nn.Module):
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS)


class Other(torch.nn.Module):
    def forward(self, x):
        return x.cos()
"""
TABLE = """ENTRIES = {}


def entry(function):
    ENTRIES[function.__name__] = function
    return function


def create(name):
    return ENTRIES[name]()
"""
TASK = """import torch
from shownnet import create


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = create("tiny")

    def forward(self, x):
        return self.net(x)


def get_inputs():
    return [torch.randn(4, 8)]


def get_init_inputs():
    return []
"""


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """On the search path: a package whose registry finds a class that a task does not name."""
    monkeypatch.syspath_prepend(str(tmp_path))
    texts = {
        "__init__": "from . import body\nfrom .table import create\n",
        "body": BODY,
        "parts": PARTS,
        "table": TABLE,
    }
    for name, text in texts.items():
        module(tmp_path, f"shownnet.{name}", text)
    return tmp_path


def test_what_a_text_reaches_by_name_is_shown_with_its_file_and_the_rest_is_not(network: Path) -> None:
    found = {each.file: each for each in shown.modules(TASK)}
    assert {file: set(each.defines) for file, each in found.items()} == {
        "shownnet/body.py": {"Body", "tiny"},
        "shownnet/parts.py": {"Scale", "EPS"},
        "shownnet/table.py": {"ENTRIES", "entry", "create"},
    }
    body = found["shownnet/body.py"].text
    assert "@entry\ndef tiny():" in body
    assert "from .parts import Scale as Norm\n" in body
    assert "import torch\n" in body
    assert "Other" not in body
    assert "import os" not in body


def test_nothing_is_shown_of_what_is_installed_or_cannot_be_read(network: Path) -> None:
    module(network, "broken", "class Body(:\n")
    assert shown.modules("import torch, numpy, broken, no_such_module\nnumpy.array(broken.Body)\n") == []
    assert shown.modules("def f(:\n") == []


def test_what_there_is_no_room_for_is_named(network: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown._modules.cache_clear()
    monkeypatch.setattr(shown, "MOST_CHARACTERS", 100)
    found = {each.file: each for each in shown.modules(TASK)}
    assert "create" in found["shownnet/table.py"].defines
    assert set(found["shownnet/body.py"].left_out) == {"Body", "tiny"}
    context = open_context(network / "home")
    context.task = Task("net", TASK, {})
    assert "\n# left out for its length: tiny, Body\n```" in conversation.reference(context)


def test_a_prompt_shows_them_beside_the_task_and_the_class_follows_them(network: Path) -> None:
    context = open_context(network / "home")
    assert "What it reaches in the modules" not in conversation.reference(context)
    context.task = Task("net", TASK, {})
    told = conversation.reference(context)
    assert told.startswith(f"```python\n{TASK.strip()}\n```\n\nWhat it reaches in the modules that it imports")
    assert "`shownnet/body.py`:\n```python\nimport torch\n" in told
    assert "class Scale" in told
    (network / "net.py").write_text(TASK)
    assert tasks.read(network / "net.py").guessed_class == "matmul"


def test_a_model_may_be_imported_under_that_name(network: Path) -> None:
    (network / "net.py").write_text(
        TASK.replace("create\n\n", "body\nfrom shownnet.body import Body as Model\n\n", 1).replace(
            "class Model", "class Own"
        )
    )
    assert "class Body" in shown.text_with_modules(tasks.read(network / "net.py").text)
