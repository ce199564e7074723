"""Tasks and candidates in plain PyTorch, for what is asked of a reference and of a module's state."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from engine.evaluator import tasks
from engine.evaluator.tasks import Task
from storage.results.policy import EVERYTHING, Policy

IMPORTS = "import random\n\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
MODULE = """

class {name}(nn.Module):
    def __init__(self):
        super().__init__()
{init}

    def forward(self, {arguments}):
{forward}
"""
AFTER = """

def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""


def _indented(lines: str) -> str:
    return "\n".join(f"        {line}" for line in lines.splitlines())


def module(name: str, init: str, forward: str, arguments: str) -> str:
    return MODULE.format(name=name, init=_indented(init), forward=_indented(forward), arguments=arguments)


def reference(
    folder: Path,
    forward: str,
    *,
    init: str = "pass",
    inputs: str = "torch.randn(32, 48)",
    arguments: str = "x",
    policy: Policy | None = None,
) -> Task:
    path = folder / "reference.py"
    path.write_text(IMPORTS + module("Model", init, forward, arguments) + AFTER.format(inputs=inputs))
    read = tasks.read(path).task()
    policy = replace(policy or Policy(), library_operators=(EVERYTHING,))
    return Task(read.name, read.source, read.sizes, policy=policy)


def kernel(forward: str, *, init: str = "pass", arguments: str = "x", more: str = "") -> str:
    return IMPORTS + more + module("ModelNew", init, forward, arguments)
