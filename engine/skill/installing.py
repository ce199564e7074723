"""Writes the skill into a folder, with a command that starts this Tilewright. Overwrites nothing."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from engine.errors import EngineError
from storage import files

SOURCE = Path(__file__).resolve().parent
ROOT = SOURCE.parent.parent
COMMAND = "scripts/tilewright"
_OURS = ("SKILL.md", "AGENTS.md", "references/*.md", "scripts/*.py")


def texts() -> dict[str, str]:
    """The skill's files by their names in its folder."""
    found = sorted(path for pattern in _OURS for path in SOURCE.glob(pattern))
    command = f'PYTHONPATH={shlex.quote(str(ROOT))} exec {shlex.quote(sys.executable)} -m engine "$@"'
    return {path.relative_to(SOURCE).as_posix(): path.read_text() for path in found} | {
        COMMAND: f"#!/bin/sh\n# Starts the Tilewright that wrote this folder.\n{command}\n"
    }


def install(folder: Path) -> list[Path]:
    """Write what is not there yet. Returns the paths that were written.

    Raises:
        EngineError: another file has the name of one of the skill's, or the folder cannot be written.
    """
    wanted = {folder / name: text for name, text in texts().items()}
    try:
        missing = {path: text for path, text in wanted.items() if not path.exists()}
        other = [path for path in wanted if path not in missing and path.read_text(errors="replace") != wanted[path]]
        if other:
            names = ", ".join(map(str, other))
            raise EngineError(
                f"nothing was written: {names} would be overwritten. Move it away, or name another folder"
            )
        for path, text in missing.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o755 if path.parent.name == "scripts" else 0o644)
    except OSError as error:
        raise EngineError(files.explained(error)) from error
    return sorted(missing)
