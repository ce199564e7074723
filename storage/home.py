"""Where everything that is kept lies: one folder for runs, suites, knowledge and caches."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """`TILEWRIGHT_HOME`, or `~/.tilewright`."""
    return Path(os.environ.get("TILEWRIGHT_HOME") or Path.home() / ".tilewright").absolute()
