"""Source to loaded module, cold cache: our builds against stock load_inline, verdict by verdict, and once more cached.

    python -m benchmarks.builds                                         shipped kernels on the cpu toolchain
    python -m benchmarks.builds --toolchain cuda --candidates FILE.jsonl --limit 6 --jobs 4

Ours is timed from the request to the module imported in its sandbox, screening included, one source after the other.
What all candidates of a machine share (precompiled headers, the runtime behind the light headers) is built first and
told by itself. Stock is torch.utils.cpp_extension in a process of its own with an empty TORCH_EXTENSIONS_DIR and our
include paths and flags, timed from the import of the file on, `import torch` not counted. With --jobs N that many
stock builds run at the same time, which is told: it can only slow them where processors are few.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.recorded_kernels import kernels_of
from benchmarks.stock_build import BUILT, FAILED
from engine.evaluator import tasks
from engine.evaluator.build.device import installation as device
from engine.evaluator.build.host import flags
from engine.evaluator.build.host import installation as host
from engine.evaluator.toolchains.cpu import CpuToolchain
from engine.evaluator.toolchains.cuda import CompileGate
from storage.results.evaluation_results import CompileResult
from storage.results.policy import Policy
from storage.results.vocabulary import Verdict

ROOT = Path(__file__).resolve().parent.parent
# Everything may be used: what is compared is compilers, not what a candidate may do.
FREE = Policy()


@dataclass(frozen=True, slots=True)
class Row:
    """One source: seconds of ours, of stock and of ours again, and what both said."""

    name: str
    ours_s: float
    stock_s: float
    again_s: float
    ours: str
    stock: str
    is_same_verdict: bool
    is_same_place: bool

    @property
    def ratio(self) -> float:
        """How many times faster ours is."""
        return self.stock_s / self.ours_s


class Compiles(Protocol):
    """What both toolchains offer here."""

    def compile(self, source: str) -> CompileResult:
        """Build and import."""
        ...


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toolchain", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--arch", help="architecture for a machine without a device")
    parser.add_argument("--candidates", type=Path, help="JSON Lines with `id` and `candidate`")
    parser.add_argument("--files", type=Path, nargs="*", default=[], help="candidate files")
    parser.add_argument("--limit", type=int, default=1000, help="most sources")
    parser.add_argument("--jobs", type=int, default=1, help="stock builds at the same time")
    parser.add_argument("--json", type=Path, help="write the rows there too")
    options = parser.parse_args()
    sources = dict(list(_sources(options))[: options.limit])
    with tempfile.TemporaryDirectory(prefix="builds.") as folder:
        os.environ["TILEWRIGHT_HOME"] = f"{folder}/home"
        ours, again = _ours(options, sources)
        with ThreadPoolExecutor(options.jobs) as pool:
            settings = _settings(options)
            stock = dict(zip(sources, pool.map(lambda text: _stock(text, settings), sources.values()), strict=True))
    rows = [_row(name, ours[name], again[name], stock[name]) for name in sources]
    report(rows, options.jobs)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) | {"ratio": row.ratio} for row in rows], indent=1))


def report(rows: list[Row], jobs: int) -> None:
    """One line per source, then the medians."""
    for row in rows:
        same = ("same" if row.is_same_verdict else "OTHER") + " verdict"
        place = "" if row.stock == "ok" or row.is_same_place else ", other place"
        print(
            f"{row.name:28.28} ours {row.ours_s:6.2f} s  stock {row.stock_s:6.1f} s  {row.ratio:5.1f}x  "
            f"again {row.again_s:5.3f} s  {row.ours} / {row.stock}: {same}{place}"
        )
    ratios = [row.ratio for row in rows]
    print(f"{len(rows)} sources, {jobs} stock builds at a time")
    print(f"median {statistics.median(ratios):.1f}x, least {min(ratios):.1f}x, most {max(ratios):.1f}x")
    again = [row.again_s for row in rows]
    print(f"again: median {statistics.median(again):.3f} s, most {max(again):.3f} s")
    print(f"{sum(not row.is_same_verdict for row in rows)} verdicts differ")


def _sources(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    if options.candidates:
        for line in options.candidates.read_text().splitlines():
            row = json.loads(line)
            yield f"{row['id']} {row.get('task', '')}", row["candidate"]
    for path in options.files:
        yield path.stem, path.read_text()
    if not options.candidates and not options.files:
        for path in sorted((ROOT / "tasks" / "recordings").glob("*.jsonl")):
            if json.loads(path.read_text().split("\n")[0]).get("toolchain", "cpu") == options.toolchain:
                yield from ((f"{path.stem} {number}", text) for number, text in enumerate(kernels_of(path)))


def _ours(
    options: argparse.Namespace, sources: dict[str, str]
) -> tuple[dict[str, tuple[float, CompileResult]], dict[str, float]]:
    started = time.monotonic()
    with _toolchain(options) as toolchain:
        print(f"what all candidates share: {time.monotonic() - started:.1f} s", flush=True)
        first: dict[str, tuple[float, CompileResult]] = {}
        for name, text in sources.items():
            started = time.monotonic()
            result = toolchain.compile(text)
            first[name] = (time.monotonic() - started, result)
            print(f"ours: {name}: {result.verdict} {first[name][0]:.2f} s", flush=True)
        again = {}
        for name, text in sources.items():
            started = time.monotonic()
            toolchain.compile(text)
            again[name] = time.monotonic() - started
    return first, again


@contextmanager
def _toolchain(options: argparse.Namespace) -> Iterator[Compiles]:
    if options.toolchain == "cuda":
        with CompileGate(options.arch, FREE) as gate:
            gate.prepare()
            yield gate
        return
    task = tasks.find("swish").task("cpu", {})
    with CpuToolchain() as cpu:
        cpu._ask("prepare", task, "")

        class OfTask:
            def compile(self, source: str) -> CompileResult:
                return cpu.compile(task, source)

        yield OfTask()


def _settings(options: argparse.Namespace) -> dict[str, object]:
    """What stock is given beside the file, so that it finds what ours finds."""
    if options.toolchain == "cuda":
        here = device.find(options.arch)
        arch = re.sub(r"sm_(\d+)(\d)(a?)", r"\1.\2\3", here.arch)
        return {
            "include": [here.cutlass_include],
            "cflags": [],
            "arch": arch,
            "cuda_home": str(Path(here.nvcc).parents[1]),
        }
    cpu = host.find()
    shim = ROOT / "engine" / "evaluator" / "build" / "shim" / "vector_length.hpp"
    words = [*flags.BASE, *flags.LAST, "-w", "-include", str(shim)]
    return {"include": [cpu.cutlass_include, cpu.cuda_include, f"{cpu.cuda_include}/cccl"], "cflags": words}


def _stock(text: str, settings: dict[str, object]) -> tuple[float, bool, str]:
    """Seconds, whether it loaded, and what it said."""
    with tempfile.TemporaryDirectory(prefix="stock.") as folder:
        (Path(folder) / "candidate.py").write_text(text)
        environment = os.environ | {"TORCH_EXTENSIONS_DIR": f"{folder}/extensions"}
        if "arch" in settings:
            environment |= {"TORCH_CUDA_ARCH_LIST": str(settings["arch"]), "CUDA_HOME": str(settings["cuda_home"])}
        command = [sys.executable, "-m", "benchmarks.stock_build", f"{folder}/candidate.py", json.dumps(settings)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, check=False)
    said = done.stdout + done.stderr
    match = re.search(rf"({BUILT}|{FAILED}) ([\d.]+)", said)
    if match is None:
        raise SystemExit(f"stock did not get to the candidate:\n{said[-3000:]}")
    print(f"stock: {match[0]}", flush=True)
    return float(match[2]), match[1] == BUILT, said


def _row(name: str, ours: tuple[float, CompileResult], again_s: float, stock: tuple[float, bool, str]) -> Row:
    result = ours[1]
    is_ok = result.verdict is Verdict.PASSED
    return Row(
        name,
        ours[0],
        stock[0],
        again_s,
        "ok" if is_ok else str(result.verdict),
        "ok" if stock[1] else "failed",
        is_ok == stock[1],
        _first_place(result.diagnostics, is_ok) == _first_place(stock[2], stock[1]),
    )


def _first_place(said: str, is_ok: bool) -> str:
    """The words of the first compile error, which both ways must share; line numbers count from other places."""
    match = None if is_ok else re.search(r"\berror: (.{10,60})", said)
    return match[1] if match else ""


if __name__ == "__main__":
    main()
