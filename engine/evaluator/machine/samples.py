"""Where a process is: the address of the instruction that each of its threads is at, sampled from outside by the kernel
(perf_event_open, software clock) while a processor works for it. Knows no library.

A sampled process can neither see nor stop it: the events are ours, and what it starts inherits them.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import platform
import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy

PERIOD_NS = 500_000
_CALLS = {"x86_64": 298, "aarch64": 241}
_RING = 64 << 10
_SOFTWARE, _CPU_CLOCK = 1, 0
_IP_TID_TIME = 1 | 2 | 4
# Disabled, inherited, without kernel and hypervisor, with the executable mappings that come, by the monotonic clock.
_FLAGS = 1 | 1 << 1 | 1 << 5 | 1 << 6 | 1 << 8 | 1 << 23 | 1 << 25
_MONOTONIC, _CLOSED_ON_EXEC = 1, 8
_ENABLE = 0x2400
_HEAD, _TAIL = 1024, 1032
_LOST, _SAMPLE, _MAPPED = 2, 9, 10
_EXECUTABLE, _WRITABLE = 4, 2
_libc = ctypes.CDLL(None, use_errno=True)


class NotPermitted(Exception):
    """This system does not let one process sample another."""


@dataclass(frozen=True, slots=True)
class Region:
    """Executable memory: `file` is device and inode as the kernel tells them, all zero where there is none."""

    begin: int
    end: int
    offset: int
    file: tuple[int, int, int]
    path: str
    is_writable: bool


@dataclass(frozen=True, slots=True)
class Taken:
    """Samples (thread, address, time of the monotonic clock), executable memory that came, and how many were lost."""

    samples: tuple[tuple[int, int, int], ...]
    came: tuple[Region, ...]
    lost: int


class Sampling:
    """Samples of one process and of all that it starts from here on, on the processors that it may use.

    Begun before it has threads, there is one event for each processor, whatever it starts later.
    """

    def __init__(self, pid: int) -> None:
        """Raises:
        NotPermitted: the system does not let this process do it.
        """
        self._pid = pid
        self._rings: list[tuple[int, mmap.mmap]] = []
        # Nobody can keep time with it.
        self.period_ns = int(PERIOD_NS * random.SystemRandom().uniform(0.8, 1.2))
        try:
            for processor in sorted(os.sched_getaffinity(0)):
                event = _open(pid, processor, self.period_ns)
                self._rings.append((event, mmap.mmap(event, mmap.PAGESIZE + _RING)))
        except OSError as error:
            self.close()
            raise NotPermitted(str(error.strerror)) from error

    def start(self) -> None:
        """Sample from here on, whenever it runs."""
        for event, _ in self._rings:
            fcntl.ioctl(event, _ENABLE, 0)

    def take(self) -> Taken:
        """What has come since the last time."""
        samples: list[tuple[int, int, int]] = []
        came: list[Region] = []
        lost = 0
        for _, ring in self._rings:
            for kind, record in _records(ring):
                if kind == _SAMPLE:
                    address, _, thread, at = struct.unpack_from("<QIIQ", record)
                    samples.append((thread, address, at))
                elif kind == _MAPPED:
                    came.append(_region(record))
                elif kind == _LOST:
                    lost += struct.unpack_from("<QQ", record)[1]
        return Taken(tuple(samples), tuple(region for region in came if region.begin < region.end), lost)

    @property
    def seen_ns(self) -> int:
        """Processor time of the process and what it has started, as far as it was on the sampled processors."""
        return sum(struct.unpack("<Q", os.read(event, 8))[0] for event, _ in self._rings)

    def close(self) -> None:
        """The end of it."""
        for event, ring in self._rings:
            ring.close()
            os.close(event)
        self._rings = []


def _open(pid: int, processor: int, period_ns: int) -> int:
    number = _CALLS.get(platform.machine())
    if number is None:
        raise OSError(0, f"no sampling on {platform.machine()}")
    attributes = struct.pack(
        "<IIQQQQQIIQQQQIiQIHH",
        *(_SOFTWARE, 112, _CPU_CLOCK, period_ns, _IP_TID_TIME, 0, _FLAGS),
        *(0, 0, 0, 0, 0, 0, 0, _MONOTONIC, 0, 0, 0, 0),
    )
    event = int(_libc.syscall(number, attributes, pid, processor, -1, _CLOSED_ON_EXEC))
    if event < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return event


def _records(ring: mmap.mmap) -> list[tuple[int, bytes]]:
    """Kind and content of each record that was not read yet."""
    head, tail = struct.unpack_from("<QQ", ring, _HEAD)
    first, last = tail % _RING, head % _RING
    data = mmap.PAGESIZE
    text = (
        ring[data + first : data + last]
        if first < last or head == tail
        else ring[data + first : data + _RING] + ring[data : data + last]
    )
    struct.pack_into("<Q", ring, _TAIL, head)
    records = []
    while text:
        kind, _, size = struct.unpack_from("<IHH", text)
        records.append((kind, text[8:size]))
        text = text[size:]
    return records


def _region(record: bytes) -> Region:
    _, _, begin, length, offset, major, minor, inode, _, rights, _ = struct.unpack_from("<IIQQQIIQQII", record)
    path = record[64:].partition(b"\0")[0].decode(errors="replace")
    return Region(begin, begin + length, offset, (major, minor, inode), path, bool(rights & _WRITABLE))


def executable(pid: int) -> list[Region]:
    """The executable memory that a process has now.

    Raises:
        OSError: this process may not look.
    """
    return [region for region, rights in _regions(pid) if "x" in rights]


def _regions(pid: int) -> Iterator[tuple[Region, str]]:
    for line in Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines():
        span, rights, offset, device, inode, *path = line.split(None, 5)
        begin, end = (int(address, 16) for address in span.split("-"))
        major, minor = (int(number, 16) for number in device.split(":"))
        file = major, minor, int(inode)
        yield Region(begin, end, int(offset, 16), file, path[0] if path else "", "w" in rights), rights


def altered(pid: int) -> set[int]:
    """Where executable memory begins that is no longer what its file holds: pages of it are the process's own.

    Raises:
        OSError: this process may not look.
    """
    addresses: set[int] = set()
    begin = -1
    for line in Path(f"/proc/{pid}/smaps").read_text(errors="replace").splitlines():
        name, *words = line.split()
        if name[-1] != ":":
            begin = int(name.partition("-")[0], 16) if "x" in words[0] else -1
        elif name == "Anonymous:" and begin >= 0 and words[0] != "0":
            addresses.add(begin)
    return addresses


def file_of(path: str | os.PathLike[str]) -> tuple[int, int, int]:
    """Device and inode of a file as the kernel tells them of mapped memory: not always what `stat` says.

    Raises:
        OSError, ValueError: it cannot be mapped.
    """
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 1, prot=mmap.PROT_READ) as page:
        address = numpy.frombuffer(page, numpy.uint8).ctypes.data
        return next(region.file for region, _ in _regions(os.getpid()) if region.begin <= address < region.end)
