"""What this machine has and lacks, each with what to do about it. Starts no engine and imports no torch."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from engine.llm import environment
from engine.toolchains.host.checks import Checked, checks
from storage.folder import home

Wall = tuple[str, bool, str]
"""Name of a wall, whether it stands on this machine, and what was found when it was tried."""

WALL_REMEDY = (
    "candidates run without it, and the Trust tab says so; a recent kernel with user namespaces, Landlock and seccomp "
    "allowed gives it"
)


def findings() -> list[Checked]:
    """Everything worth knowing before a run, required things first."""
    return [*checks(), _home(), _endpoint(), _cuda()]


def walls(probed: Iterable[Wall]) -> list[Checked]:
    """The walls around a candidate as lines of the report: each was tried here, not looked up."""
    return [Checked(name, stands, detail, "" if stands else WALL_REMEDY) for name, stands, detail in probed]


def print_findings(console: Console, probed: Sequence[Wall] = ()) -> bool:
    """Print the report, walls in a section of their own; True when a run with recorded replies can work here."""
    found = findings()
    _print(console, "what", found)
    if probed:
        console.print()
        _print(console, "wall around a candidate", walls(probed))
    return all(one.is_ok for one in found if one.is_required)


def _print(console: Console, subject: str, found: Sequence[Checked]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("", subject, "found", "what to do"):
        table.add_column(heading, overflow="fold")
    for one in found:
        mark = "[green]ok[/]" if one.is_ok else "[yellow]--[/]"
        table.add_row(mark, *map(escape, (one.name, one.detail, one.remedy)))
    console.print(table, highlight=False)


def _home() -> Checked:
    folder = home()
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    is_writable = os.access(existing, os.W_OK)
    remedy = "" if is_writable else "set TILEWRIGHT_HOME to a folder that you may write to"
    return Checked("runs folder", is_writable, str(folder), remedy)


def _endpoint() -> Checked:
    if environment.is_configured():
        where = os.environ.get("OPENAI_BASE_URL") or "OpenAI"
        return Checked("model endpoint", True, f"{environment.configured_model()} at {where}", "")
    remedy = "set OPENAI_API_KEY, and OPENAI_BASE_URL for another provider or a local server"
    return Checked("model endpoint", False, "none; recorded replies are used; optional", remedy)


def _cuda() -> Checked:
    return Checked("cuda toolchain", False, "not part of this version; optional", "use the cpu toolchain")
