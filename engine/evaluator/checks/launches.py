"""Kernels that ran on a GPU in a candidate's calls, from the driver's activity records: whose they are, what they took.

A kernel is the candidate's own when a library built for it holds its name, PyTorch's when an operator launched it, and
foreign otherwise: cuBLAS called from C++ is no operator.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import re
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from elftools.elf.elffile import ELFFile

from engine.evaluator.checks.candidate_failures import Failure
from storage.results.observed import ObservedKernel
from storage.results.policy import EVERYTHING, Policy
from storage.results.vocabulary import Verdict

MAX_NAME = 4000
MAX_ROWS = 40
OWN, LIBRARY, COPY, FOREIGN = "own", "PyTorch", "copy", "foreign"
_COPIES = ("Memcpy", "Memset")
_TO_HOST, _FROM_HOST = "Memcpy DtoH", "Memcpy HtoD"
_STRING = re.compile(rb"[A-Za-z_]\w{2,%d}(?=\0)" % MAX_NAME)


@dataclass(frozen=True, slots=True)
class Launched:
    """One kernel over some calls. `by` is the operator that launched it, empty when none did."""

    name: str
    by: str
    launches: int
    nanoseconds: int

    def __add__(self, other: Launched) -> Launched:
        return Launched(self.name, self.by, self.launches + other.launches, self.nanoseconds + other.nanoseconds)


@dataclass(frozen=True, slots=True)
class Trace:
    """What one observation tells. `attached` is False where the driver gave no record, not even of the worker's own.

    `calls` are launches and nanoseconds of each call of a turn, in order.
    """

    attached: bool
    rows: tuple[Launched, ...]
    calls: tuple[tuple[int, int], ...] = ()

    @classmethod
    def read(cls, seen: Any) -> Trace:
        """The `kernels` of what a worker that was to trace has seen.

        Raises:
            ValueError: there are none, or they are malformed.
        """
        try:
            kernels = seen["kernels"]
            rows = tuple(
                Launched(str(name)[:MAX_NAME], str(by)[:100], int(launches), max(0, int(took)))
                for name, by, launches, took in kernels["rows"]
            )
            calls = tuple((int(launches), max(0, int(took))) for launches, took in kernels["calls"])
            return cls(int(kernels["overwrites"]) > 0, rows, calls)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ValueError("what the worker tells of the kernels it saw is malformed") from error

    @property
    def launches(self) -> int:
        """Kernels and copies in all."""
        return sum(row.launches for row in self.rows)

    @property
    def nanoseconds(self) -> int:
        """Their own times on the device, added up; gaps between them do not count."""
        return sum(row.nanoseconds for row in self.rows)

    @property
    def asks_the_host(self) -> bool:
        """Whether numbers left the device: what is computed of them on the host shows in no record."""
        return any(row.name.startswith(_TO_HOST) for row in self.rows)


@dataclass(slots=True)
class Launches:
    """What ran on the device in a candidate's traced calls so far. `own` are the names in its libraries, `beginnings`
    how those names begin to which a language adds types and numbers."""

    policy: Policy
    own: set[str] = field(default_factory=set)
    beginnings: tuple[str, ...] = ()
    calls: int = 0
    totals: dict[tuple[str, str], Launched] = field(default_factory=dict)
    times: dict[tuple[str, str], list[float]] = field(default_factory=dict)  # microseconds a launch, of each trace

    def add(self, trace: Trace, calls: int, during: str) -> Failure | None:
        """One more trace, of `calls` calls; a Failure when somebody else's kernel computed."""
        if not trace.attached:
            return None
        self.calls += calls
        for row in trace.rows:
            key = (row.name, row.by)
            self.totals[key] = row + self.totals[key] if key in self.totals else row
            self.times.setdefault(key, []).append(row.nanoseconds / 1000 / max(1, row.launches))
        if EVERYTHING in self.policy.library_operators:
            return None
        if trace.asks_the_host and _comes_from_host(trace):
            return Failure(
                Verdict.REFUSED,
                f"{during}: no kernel ran on the GPU, and numbers were copied to the host and back: the result was "
                "computed on the host. Compute it in a kernel",
            )
        foreign = [row for row in trace.rows if self.origin(row) == FOREIGN]
        if not foreign:
            return None
        took = max(1, trace.nanoseconds)
        names = ", ".join(f"{row.name[:120]} ({row.nanoseconds / took:.0%} of the device's time)" for row in foreign)
        return Failure(
            Verdict.REFUSED,
            f"{during}: kernels ran on the GPU that the candidate's file does not define and no PyTorch operator "
            f"launched, a library fall-back: {names[:1000]}. Launch kernels of your own",
        )

    def origin(self, row: Launched) -> str:
        """Whose kernel it is."""
        if row.name in self.own or row.name.startswith(self.beginnings):
            return OWN
        if row.by:
            return LIBRARY
        return COPY if row.name.startswith(_COPIES) else FOREIGN

    @property
    def detail(self) -> str:
        """What was seen, for a check."""
        if not self.calls:
            return "the driver's activity records cannot be had here: kernels were not observed on the device"
        took = max(1, sum(row.nanoseconds for row in self.totals.values()))
        own_ns = sum(row.nanoseconds for row in self.totals.values() if self.origin(row) == OWN)
        return f"own kernels: {own_ns / took:.0%} of the device's time in {self.calls} traced calls"

    @property
    def table(self) -> tuple[ObservedKernel, ...]:
        """For a reader: each kernel per call, the longest first. Its time is the middle one of the traces: trials with
        infinities may take a path of a kernel that the task's own inputs never do."""
        calls = max(1, self.calls)
        each_us = {key: row.launches / calls * median(self.times[key]) for key, row in self.totals.items()}
        took = max(sum(each_us.values()), 1e-9)
        rows = sorted(self.totals.items(), key=lambda item: -each_us[item[0]])
        return tuple(
            ObservedKernel(row.name, self.origin(row), row.by, row.launches / calls, each_us[key], each_us[key] / took)
            for key, row in rows[:MAX_ROWS]
        )


def _comes_from_host(trace: Trace) -> bool:
    """Whether nothing but copies ran, and some of them from the host."""
    return all(row.name.startswith(_COPIES) for row in trace.rows) and any(
        row.name.startswith(_FROM_HOST) for row in trace.rows
    )


def kernel_names(library: Path) -> set[str]:
    """Names under which the kernels of a library register, as the driver's records give them; others are among them.

    Raises:
        OSError, ValueError: it cannot be read.
    """
    with open(library, "rb") as file:
        section = ELFFile(file).get_section_by_name(".rodata")
        data: bytes = section.data() if section else b""
    return {demangled(match.group().decode())[:MAX_NAME] for match in _STRING.finditer(data)}


@functools.cache
def _demangler() -> Any:
    function = ctypes.CDLL(ctypes.util.find_library("stdc++") or "libstdc++.so.6").__cxa_demangle
    function.restype = ctypes.c_void_p
    function.argtypes = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))
    return function


def demangled(name: str) -> str:
    """A C++ name as it is written, another as it is."""
    if not name.startswith("_Z"):
        return name
    status = ctypes.c_int()
    pointer = _demangler()(name.encode(), None, None, ctypes.byref(status))
    if not pointer:
        return name
    try:
        return ctypes.string_at(pointer).decode(errors="replace")
    finally:
        _free()(pointer)


@functools.cache
def _free() -> Any:
    function = ctypes.CDLL(None).free
    function.argtypes, function.restype = (ctypes.c_void_p,), None
    return function
