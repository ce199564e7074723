"""Faults of a GPU in words for the model: what happened, and where to look. Pure functions over what torch says."""

from __future__ import annotations

import re

_ERROR = re.compile(r"CUDA (?:driver )?error: *([^\n]+)|(an illegal memory access was encountered)", re.IGNORECASE)
_LINE = re.compile(r'^ *File "candidate\.py", line \d+, in .*\n.*$', re.MULTILINE)
# Behind the walls there is no management library to ask for the numbers of the message about missing memory.
_MEMORY = ("out of memory", "nvmlInit_v2_() INTERNAL ASSERT", "CUBLAS_STATUS_ALLOC_FAILED")

_HINTS: tuple[tuple[str, str], ...] = (
    (
        "illegal memory access",
        "a kernel left its tensors; check the grid, index ranges and remainders",
    ),
    ("misaligned address", "a vector load or store at an address that is no multiple of its size; check offsets"),
    ("invalid configuration", "the launch asks for a grid or block that is zero or larger than the device allows"),
    (
        "too many resources requested",
        "registers times threads exceed a multiprocessor's; use fewer threads, or __launch_bounds__",
    ),
    (
        "invalid argument",
        "a launch or copy does not take what it was given; more than 48 KB of shared memory needs cudaFuncSetAttribute",
    ),
    ("cluster", "the cluster is larger than the device can place; check its size and the shared memory per block"),
    ("device-side assert", "an index or a condition that the kernel asserts does not hold"),
    ("no kernel image", "the library holds no code for this device; do not pass architecture flags of your own"),
    ("unspecified launch failure", "the kernel crashed; check shared memory indices, barriers and asynchronous copies"),
    ("illegal instruction", "the kernel crashed on an instruction; check descriptors of tensor and copy instructions"),
    ("illegal barrier", "a barrier was used against its rules; check arrival counts and phases"),
    ("hardware stack", "the kernel's stack overflowed or is corrupt; check recursion and local arrays"),
)


def is_device_memory(text: str) -> bool:
    """True when an exception says that the device's memory does not suffice."""
    return any(sign in text for sign in _MEMORY)


def words(text: str, trace: str) -> str:
    """A device's fault without torch's advice on debugging; an empty text when it is none."""
    found = _ERROR.search(text)
    if not found:
        return ""
    name = (found[1] or found[2]).strip().rstrip(".")
    hint = next((f": {told}" for sign, told in _HINTS if sign in name.lower()), "")
    where = "\n".join(match[0] for match in _LINE.finditer(trace))
    seen = f"\nIt showed here, and may come from an earlier launch:\n{where}" if where else ""
    return f"CUDA error: {name}{hint}.{seen}"
