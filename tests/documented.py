"""The complete examples of docs/extending.md, by the file name in their first line."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

TEXT = (Path(__file__).resolve().parent.parent / "docs" / "extending.md").read_text()
_BLOCK = re.compile(r"^```\w+\n# (\w+\.\w+)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXAMPLES = dict(_BLOCK.findall(TEXT))


def module(name: str) -> ModuleType:
    """An example as a module."""
    made = ModuleType(name.removesuffix(".py"))
    exec(compile(EXAMPLES[name], name, "exec"), made.__dict__)
    return made
