"""Takes nvcc apart: its device half and its host half as steps that ninja runs at the same time.

nvcc runs one program after the other: preprocessor and cudafe++ for the host, preprocessor, cicc, ptxas and fatbinary
for the device, and last g++ on what both wrote. The commands here are nvcc's own, as its dry run tells them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FILE = "kernel.ninja"
MODULE_ID = "kernel.module_id"
DRY_RUN = ("--keep", "--keep-dir", ".", "--dryrun", "-c", "kernel.cu", "-o", "kernel.o")

_SETTING = re.compile(r"^#\$ ([A-Za-z_]\w*)=(.*)$")
_COMMAND = re.compile(r"^#\$ (\S.*)$")
_SHAPE = ("-E ", "cudafe++", "-E ", "cicc", "ptxas", "fatbinary", "-c -x c++")
_NEEDED = ("PATH", "CICC_PATH", "NVVMIR_LIBRARY_DIR", "LD_LIBRARY_PATH")


@dataclass(frozen=True, slots=True)
class Phases:
    """Shell commands of the three steps that nvcc's work falls into, run in one folder."""

    front: str
    device: str
    host: str

    def ninja(self) -> str:
        """Rules and build lines that make kernel.o of kernel.cu."""
        steps = {"front": self.front, "device": self.device, "host": self.host}
        rules = "".join(f"rule {name}\n  command = {_escape(text)}\n" for name, text in steps.items())
        return (
            f"{rules}build kernel.fatbin.c: device kernel.cu\n"
            "build kernel.cudafe1.cpp: front kernel.cu\n"
            "build kernel.o: host kernel.cudafe1.cpp | kernel.fatbin.c\n"
        )


def whole(command: str) -> str:
    """The same as one step, for an nvcc that works in another way."""
    return f"rule nvcc\n  command = {command} -c $in -o $out\nbuild kernel.o: nvcc kernel.cu\n"


def lay_out(folder: Path, found: Phases, key: str) -> None:
    """Put the steps into the build folder, with the id after which both halves name what is local to the file."""
    (folder / FILE).write_text(found.ninja())
    (folder / MODULE_ID).write_text(f"_{key[:8]}_9_kernel_cu_{key[8:16]}_0")


def read(dry_run: str) -> Phases | None:
    """The steps of nvcc's dry run for `-c kernel.cu -o kernel.o`; None when it is not the known shape."""
    settings, commands = _told(dry_run)
    if len(commands) != len(_SHAPE) or any(mark not in one for mark, one in zip(_SHAPE, commands, strict=True)):
        return None
    if any(name not in settings for name in _NEEDED) or "--gen_module_id_file" not in commands[1]:
        return None
    exports = " ".join(f"{name}={_quoted(settings[name])}" for name in _NEEDED)
    pre_host, front, pre_device, cicc, ptxas, fatbinary, host = commands
    front = front.replace("--gen_module_id_file", "")  # it is written before either half starts
    return Phases(
        f"export {exports}; {pre_host} && {front}",
        f"export {exports}; {pre_device} && {cicc} && {ptxas} && {fatbinary}",
        f"export {exports}; {host}",
    )


def _told(dry_run: str) -> tuple[Mapping[str, str], list[str]]:
    settings: dict[str, str] = {}
    commands: list[str] = []
    for line in dry_run.split("\n"):
        if match := _SETTING.match(line):
            settings[match[1]] = match[2].strip()
        elif (match := _COMMAND.match(line)) and not match[1].startswith("rm "):
            commands.append(match[1].strip())
    return settings, commands


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "'\\''") + "'"


def _escape(text: str) -> str:
    return text.replace("$", "$$")
