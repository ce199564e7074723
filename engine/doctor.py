"""What this machine has and lacks, each with what to do about it. Starts no engine and imports no torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from engine.evaluation.sandbox import Walls
from engine.llm import environment
from engine.toolchains.host.checks import Checked, checks
from storage import codec
from storage.folder import home

ALLOW_NAMESPACES = (
    "a kernel 5.13 or later (6.12 for every wall) with user namespaces allowed: on Ubuntu `sysctl "
    "kernel.apparmor_restrict_unprivileged_userns=0`, in a container --cap-add SYS_ADMIN --security-opt "
    "seccomp=unconfined; TILEWRIGHT_ISOLATION=full refuses to judge without them"
)


def findings() -> list[Checked]:
    """Everything worth knowing before a run, required things first."""
    return [*checks(), _home(), _endpoint(), _cuda()]


def walls() -> list[Checked]:
    """What stands between a generated kernel and this machine, raised and tried in a process of its own."""
    tried = subprocess.run([sys.executable, "-m", "engine.evaluation.sandbox.probe"], capture_output=True, text=True)
    if tried.returncode != 0:
        return [Checked("isolation", False, tried.stderr.strip().splitlines()[-1], ALLOW_NAMESPACES, is_required=True)]
    found: Walls = codec.from_plain(Walls, json.loads(tried.stdout))
    return [
        Checked(name, stands, detail, "" if stands else ALLOW_NAMESPACES) for name, stands, detail in found.described()
    ]


def print_findings(console: Console) -> bool:
    """Print the report, walls in a section of their own; True when a run with recorded replies can work here."""
    found, standing = findings(), walls()
    _print(console, "what", found)
    console.print()
    _print(console, "wall around a candidate", standing)
    return all(one.is_ok for one in (*found, *standing) if one.is_required)


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
