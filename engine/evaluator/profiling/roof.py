"""The machine's own limits, measured and kept: copy bandwidth by working set, and single precision FMA rate.

Other work on the machine can only make a limit look lower, so of all measurements the highest is kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from engine.errors import ToolchainError
from engine.evaluator import sandbox
from engine.evaluator.build.host.installation import Installation
from engine.evaluator.machine import quiet
from engine.evaluator.machine.turns import Turn
from storage import files
from storage.results.hardware_limit import DeviceFacts

SOURCE = Path(__file__).with_name("roof.cpp")
FLAGS = ("-O3", "-march=native", "-fopenmp", "-std=c++20")
LIMIT_S = 120
FRESH_S = 600  # engines that start one after the other need not each look again
PROCESSORS = Path("/sys/devices/system/cpu")


@dataclass(frozen=True, slots=True)
class Roof:
    """`copy_gb_s` maps a working set in bytes to read plus written gigabytes per second.

    `threads` may be used, on `cores` cores; `caches` holds bytes by level, instructions' left out. `others_share` is
    what others used of the processors just before the quietest measurement; None in files of before.
    """

    device: str
    threads: int
    copy_gb_s: Mapping[str, float]
    peak_gflop_s: float
    architecture: str = ""
    vector_bits: int = 0
    cores: int = 0
    caches: Mapping[str, int] = field(default_factory=dict)
    others_share: float | None = None

    @property
    def facts(self) -> DeviceFacts:
        """What a model is told of the machine."""
        return DeviceFacts(
            self.architecture, self.threads, self.copy_gb_s[max(self.copy_gb_s, key=int)], {"fp32": self.peak_gflop_s},
            cores=self.cores, vector_bits=self.vector_bits, l1_bytes=self.caches.get("1", 0),
            l2_bytes=self.caches.get("2", 0), l3_bytes=self.caches.get("3", 0),
        )  # fmt: skip

    def bandwidth_gb_s(self, working_set: int) -> float:
        """The best rate any set of this size or larger can see: a small task lives in a cache, and is faster there."""
        sizes = sorted(map(int, self.copy_gb_s))
        fitting = [size for size in sizes if size <= working_set] or sizes[:1]
        return max(self.copy_gb_s[str(size)] for size in sizes if size >= fitting[-1])


def measured(installation: Installation, cache: Path, turn: Turn, *, again: bool = False) -> Roof:
    """This machine's roof from the cache; measured now, alone inside `turn`, if there is none yet or when asked to look
    again.

    Who asks to look again within ten minutes of the last look gets what that found, unless the machine was busy then.

    Raises:
        ToolchainError: the measuring program does not build or run here.
    """
    threads = len(os.sched_getaffinity(0))
    key_parts = [installation.processor, threads, SOURCE.read_text(), FLAGS, installation.compiler_version]
    key = hashlib.sha256(json.dumps(key_parts).encode()).hexdigest()[:16]
    file = cache / f"machine-{key}.json"
    known_roof = Roof(**json.loads(file.read_text())) if file.exists() else None
    is_fresh = file.exists() and time.time() - file.stat().st_mtime <= FRESH_S
    was_busy = known_roof is not None and (known_roof.others_share or 0.0) > quiet.BUSY
    if known_roof is None or (again and (was_busy or not is_fresh)):
        with turn():
            others_share = quiet.wait()
            cache.mkdir(parents=True, exist_ok=True)
            seen = _measure(installation, cache / f"roof-{key}", threads)
            roof = _highest(replace(seen, others_share=others_share), known_roof)
        files.replace(file, json.dumps(asdict(roof), indent=1))
    return Roof(**json.loads(file.read_text()))


def _highest(new: Roof, old: Roof | None) -> Roof:
    if old is None:
        return new
    copies = {size: max(rate, old.copy_gb_s.get(size, 0.0)) for size, rate in new.copy_gb_s.items()}
    quietest = min(share for share in (new.others_share, old.others_share) if share is not None)
    return replace(new, copy_gb_s=copies, peak_gflop_s=max(new.peak_gflop_s, old.peak_gflop_s), others_share=quietest)


def _measure(installation: Installation, program: Path, threads: int) -> Roof:
    try:
        if not program.exists():  # every engine measures when it starts, with what was compiled once
            draft = program.with_suffix(f".{os.getpid()}")
            subprocess.run([installation.compiler, *FLAGS, str(SOURCE), "-o", draft], check=True, capture_output=True)
            draft.replace(program)
        done = subprocess.run(
            [program],
            check=True,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            env=sandbox.environment(threads),
            preexec_fn=_first_of_all,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ToolchainError(f"this machine's limits could not be measured: {error}") from error
    return _parsed(done.stdout, installation.processor, threads)


def _first_of_all() -> None:
    """As timed kernels go, which would else seem faster than the machine."""
    quiet.raise_priority()
    quiet.go_before_all()


def _parsed(text: str, processor: str, threads: int) -> Roof:
    rows = [line.split() for line in text.splitlines()]
    copies = {row[1]: float(row[2]) for row in rows if row[0] == "copy"}
    peak = next(float(row[1]) for row in rows if row[0] == "fma")
    _, architecture, bits = next(row for row in rows if row[0] == "vector")
    return Roof(
        f"{processor.split(' [')[0]}, {threads} threads", threads, copies, peak, architecture, int(bits), *_topology()
    )


def _topology(system: Path = PROCESSORS) -> tuple[int, dict[str, int]]:
    """Cores behind the processors that this process may use, and the caches of one of them; empty where Linux does not
    tell."""
    processors = sorted(os.sched_getaffinity(0))
    siblings = {_text_of(system / f"cpu{number}/topology/thread_siblings_list") for number in processors} - {""}
    caches: dict[str, int] = {}
    for cache in sorted((system / f"cpu{processors[0]}/cache").glob("index*")):
        size = _text_of(cache / "size")
        if _text_of(cache / "type") != "Instruction" and size.endswith("K"):
            caches[_text_of(cache / "level")] = int(size[:-1]) << 10
    return len(siblings), caches


def _text_of(file: Path) -> str:
    return file.read_text().strip() if file.is_file() else ""
