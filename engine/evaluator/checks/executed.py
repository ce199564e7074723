"""A task's text as a module of this process. Runs it."""

from __future__ import annotations

import sys
import types
from typing import Any

NAME, TASK_FILE = "task", "task.py"


def executed(source: str) -> dict[str, Any]:
    """The names that a task's text gives a value. Its module can be found as `task`: dataclasses ask for it."""
    module = types.ModuleType(NAME)
    sys.modules[NAME] = module
    exec(compile(source, TASK_FILE, "exec"), module.__dict__)
    return module.__dict__
