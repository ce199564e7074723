"""The walls around untrusted children and around compilers.

Covered: wall time, processor time, address space, file size, open files and core dumps are limited; the environment
is an allow-list without keys; standard output is bounded; only the judge's own pipes and one shared buffer are open;
every descendant is ended, whatever session or group it moved to; the scratch folder is removed.
Not covered yet: a candidate runs as the same user, so it can read and write this user's files, use the network, and
signal or trace other processes. Run candidates of models you do not trust under a user of their own.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from engine.evaluation import processes
from engine.evaluation.limits import Limits

PASSED_ON = (
    "PATH",
    "LANG",
    "LC_ALL",
    "TZ",
    "TILEWRIGHT_HOME",
    "TILEWRIGHT_CUTLASS_INCLUDE",
    "TILEWRIGHT_CUDA_INCLUDE",
    "CXX",
)
LEVEL = "limits: no namespaces, same user"


class OwnFailure(Exception):
    """Something of ours broke inside the evaluation processes; the engine turns it into a ToolchainError."""


@dataclass(frozen=True, slots=True)
class Done:
    """A finished command: exit status (negative for a signal) and its bounded output."""

    status: int
    output: str
    is_timeout: bool


def environment(threads: int) -> dict[str, str]:
    """What evaluation processes see. No key of the engine's own environment gets through.

    The malloc settings keep freed memory mapped: fresh 64 MB outputs would otherwise be paid for in page faults, which
    dominate short kernels and would be measured instead of them. The spin count keeps an OpenMP thread from holding the
    processor that its team mate waits for, for milliseconds: 0.2 ms bridge the gaps between a kernel's own regions.
    """
    kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return {
        **kept,
        "HOME": tempfile.gettempdir(),
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": str(threads),
        "GOMP_SPINCOUNT": "2000",
        "OPENBLAS_NUM_THREADS": "1",
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": "100000000000",
        "MALLOC_TOP_PAD_": "268435456",
    }


def enclose(limits: Limits, keep: Iterable[int], output: int, folder: Path) -> None:
    """Called in a fresh child before anything else: standard streams, descriptors, session, limits, folder."""
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    _close_all_but({0, 1, 2, *keep})
    os.setsid()
    os.chdir(folder)
    os.environ["HOME"] = os.environ["TMPDIR"] = str(folder)
    for kind, value in _values(limits).items():
        _, hard = resource.getrlimit(kind)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))


def run(command: list[str], cwd: Path, limit_s: float, max_output: int = 4_000_000) -> Done:
    """Run a trusted program on untrusted input; its whole tree is ended at the limit."""
    parent = os.getpid()

    def prepare() -> None:
        processes.die_with_parent(parent)
        for kind, value in _values(Limits(processor_s=int(limit_s) * 4 + 60)).items():
            resource.setrlimit(kind, (value, value))

    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(
            command,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            preexec_fn=prepare,
            env=_build_environment(os.environ, cwd),
        )
        is_timeout = _wait(child, limit_s)
        output.seek(0)
        return Done(child.returncode, output.read(max_output).decode(errors="replace"), is_timeout)


def _wait(child: subprocess.Popen[bytes], limit_s: float) -> bool:
    try:
        child.wait(limit_s)
    except subprocess.TimeoutExpired:
        processes.kill_tree(child.pid)
        child.wait()
        return True
    return False


def _build_environment(known: Mapping[str, str], folder: Path) -> dict[str, str]:
    """A compiler needs no malloc settings of ours, and its temporary files belong to the build folder."""
    return {
        **{k: v for k, v in known.items() if not k.startswith("MALLOC_")},
        "TMPDIR": str(folder),
        "LC_ALL": "C.UTF-8",
    }


def _values(limits: Limits) -> dict[int, int]:
    return {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_AS: limits.address_space,
        resource.RLIMIT_FSIZE: limits.file_size,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_CPU: limits.processor_s,
    }


def _close_all_but(keep: set[int]) -> None:
    opened = [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]
    for descriptor in opened:
        if descriptor not in keep:
            with suppress(OSError):
                os.close(descriptor)


def describe_signal(number: int) -> str:
    """`SIGSEGV (segmentation fault)`, or the bare number."""
    try:
        return f"{signal.Signals(number).name} ({signal.strsignal(number)})"
    except ValueError:
        return f"signal {number}"
