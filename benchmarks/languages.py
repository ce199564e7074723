"""One kernel in each language for four tasks, through the whole pipeline on a GPU: build, check, time.

    python -m benchmarks.languages [--task swish] [--language triton] [--set N=256] [--json FILE]

The CuTe kernels are those that the shipped recordings end with, the others lie in benchmarks/kernels. All are in the
fp32 class. Prints a table; with --json a file gets one line a kernel as soon as it is known, and a kernel that fails
is a row that says so. What all builds share is built first and is in no kernel's build time. `reply to verdict` is the
time from a reply's text to its verdict, processes and imports with it; `with timing` goes on until its speed-up is
known. `of the limit` is the hardware limit's time over the kernel's. A language whose package is not installed is left
out.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.recorded_kernels import kernels_of
from engine.argument_types import size
from engine.errors import EngineError
from engine.evaluator import tasks
from engine.evaluator.build import cute_dsl
from engine.evaluator.languages import LANGUAGES, CuteDsl
from engine.evaluator.request import Evaluator
from engine.evaluator.tasks import Task
from engine.evaluator.toolchain_table import find_toolchain
from engine.evaluator.toolchains.cuda import CompileGate
from engine.evaluator.toolchains.evaluating import evaluate
from storage.results.hardware_limit import HardwareLimit

KERNELS = Path(__file__).resolve().parent / "kernels"
RECORDINGS = Path(__file__).resolve().parents[1] / "tasks" / "recordings"
# The tasks, with the recording whose last kernel is the one in CuTe.
TASKS: Mapping[str, str | None] = {
    "swish": "swish.cuda.jsonl",
    "layer_norm": None,
    "softmax": "softmax.cuda.coder_judge.jsonl",
    "square_matmul": "square_matmul.cuda.wgmma.jsonl",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=TASKS, action="append")
    parser.add_argument("--language", choices=tuple(LANGUAGES), action="append")
    parser.add_argument("--set", dest="sizes", action="append", type=size, default=[], metavar="K=V")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = []
    with CompileGate() as gate:  # what all builds share, so that the first kernel's build is its own
        gate.prepare()
    toolchain = find_toolchain("cuda")(None)
    try:
        for name in options.task or TASKS:
            task = tasks.find(_reference(name)).task("cuda", dict(options.sizes))
            limit = toolchain.limit(task)
            for language in options.language or installed():
                rows.append({"task": name, "language": language} | judged(toolchain, task, limit, name, language))
                print(rows[-1]["task"], rows[-1]["language"], rows[-1]["verdict"], rows[-1]["speedup"], flush=True)
                if options.json:
                    with options.json.open("a") as file:
                        file.write(json.dumps(rows[-1]) + "\n")
    finally:
        toolchain.close()
    print(table(rows))


def installed() -> list[str]:
    """The languages that this machine can build for a GPU."""
    return [name for name in LANGUAGES if name != CuteDsl.name or cute_dsl.version()]


def _reference(name: str) -> str:
    own = KERNELS / f"{name}.py"
    return str(own) if own.exists() else name


def kernel(name: str, language: str) -> str:
    """The source of one cell of the table."""
    recording = TASKS[name]
    if language == "cute" and recording is not None:
        return kernels_of(RECORDINGS / recording)[-1]
    return (KERNELS / f"{name}.{language}.py").read_text()


def judged(toolchain: Evaluator, task: Task, limit: HardwareLimit, name: str, language: str) -> dict[str, Any]:
    """The answer of `evaluate` with the time of the hardware limit, or what went wrong."""
    started = time.monotonic()
    try:
        found = evaluate(toolchain, replace(task, language=language), kernel(name, language))
        return found | {"limit_ms": limit.limit_ms, "seconds": time.monotonic() - started}
    except EngineError as error:
        return {"verdict": "not judged", "message": str(error), "speedup": None}


def table(rows: list[dict[str, Any]]) -> str:
    """The results as Markdown."""
    lines = [
        "| task | language | build | reply to verdict | with timing | over eager | time | of the limit | "
        "registers, spilled bytes |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cell = f"{row['task']} | {row['language']}"
        if row["speedup"] is None:
            lines.append(f"| {cell} | {row['verdict']}: {(row['message'] or '')[:200]} | | | | | | |")
            continue
        low, high = row["speedup_interval"]
        verdict_s = sum(row["timeline"][stage]["total_s"] for stage in ("compile", "check"))
        used = [(one["registers"], one["spill_stores"]) for one in row["resources"]]
        lines.append(
            f"| {cell} | {row['compile_seconds']:.1f} s | {verdict_s:.1f} s | {row['seconds']:.1f} s | "
            f"{row['speedup']:.2f} ({low:.2f} to {high:.2f}) | "
            f"{row['latency_ms']:.3g} ms | {row['limit_ms'] / row['latency_ms']:.0%} | "
            f"{', '.join(str(n) for n, _ in used)}; {sum(n for _, n in used)} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
