"""What ptxas says about each kernel, and kernel names as people read them. Runs no tool."""

from __future__ import annotations

import re
from dataclasses import replace

from storage.records import KernelResources

_ENTRY = re.compile(r"Compiling entry function '(\S+)' for '(\w+)'")
_PROPERTIES = re.compile(r"Function properties for (\S+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_HIDDEN = ("_GLOBAL__N_", "_INTERNAL_")
_BUILT_IN = {
    "v": "void", "b": "bool", "c": "char", "a": "int8", "h": "uint8", "s": "short", "t": "ushort", "i": "int",
    "j": "unsigned", "l": "long", "m": "ulong", "x": "longlong", "f": "float", "d": "double",
}  # fmt: skip


def read(log: str) -> tuple[KernelResources, ...]:
    """One record per kernel, in the order of compilation."""
    found: list[KernelResources] = []
    about = ""
    for line in log.split("\n"):
        if match := _ENTRY.search(line):
            found.append(KernelResources(readable(match[1]), 0))
            about = match[1]
        elif match := _PROPERTIES.search(line):
            about = match[1] if found and readable(match[1]) == found[-1].kernel else ""
        elif found and about and (match := _STACK.search(line)):
            stack, stores, loads = map(int, match.groups())
            found[-1] = replace(found[-1], stack_bytes=stack, spill_stores=stores, spill_loads=loads)
        elif found and (match := _REGISTERS.search(line)):
            shared = _SHARED.search(line)
            found[-1] = replace(found[-1], registers=int(match[1]), shared_bytes=int(shared[1]) if shared else 0)
    return tuple(found)


def remarks(kernels: tuple[KernelResources, ...]) -> tuple[str, ...]:
    """What is worth a person's or a model's eyes: registers that did not fit."""
    return tuple(
        f"{one.kernel}: {one.spill_stores} bytes spilled to and {one.spill_loads} read back from local memory, "
        f"{one.registers} registers per thread"
        for one in kernels
        if one.spill_stores or one.spill_loads
    )


def readable(symbol: str) -> str:
    """`gemm<float, 128>` of a mangled name: the last part of the name with its plain template arguments."""
    if not symbol.startswith("_Z"):
        return symbol
    rest = symbol[2:].removeprefix("N").lstrip("KVL")
    parts: list[str] = []
    while match := re.match(r"L?(\d+)", rest):
        size, start = int(match[1]), match.end()
        parts.append(rest[start : start + size])
        rest = rest[start + size :]
        if rest.startswith("I") and not symbol.startswith("_ZN"):
            break
    names = [part for part in parts if not part.startswith(_HIDDEN)]
    name = names[-1] if names else symbol
    return f"{name}<{', '.join(args)}>" if rest.startswith("I") and (args := _arguments(rest[1:])) else name


def _arguments(text: str) -> list[str]:
    """Plain types and constants; a longer type ends the list with `...`."""
    found: list[str] = []
    while text and text[0] != "E":
        if match := re.match(r"L[a-z](n?)(\d+)E", text):
            found.append(f"{'-' if match[1] else ''}{match[2]}")
            text = text[match.end() :]
        elif match := re.match(r"(\d+)", text):
            end = match.end() + int(match[1])
            found.append(text[match.end() : end])
            text = text[end:]
            if text.startswith("I"):
                return [*found, "..."]
        elif text[0] in _BUILT_IN:
            found.append(_BUILT_IN[text[0]])
            text = text[1:]
        else:
            return [*found, "..."]
    return found
