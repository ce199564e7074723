"""What the tuner gains on recorded kernels, and what the same change cost as steps of a model.

    python -m benchmarks.tuner [--toolchain cpu] [--case NAME] [--variants 12] [--rounds 5] [--set N=1024]

Each case is a kernel of a shipped recording as the model wrote it, with its own numbers declared open to tuning, and
the kernel that the model's later steps in the same recording led to. The tuner works on the first; then all three are
timed in turns, each against eager PyTorch. A gain is the median over rounds of the ratio of two speed-ups with its 95 %
interval. Prints a table, or with --json a line for each case.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.recorded_kernels import kernels_of, parents_of
from engine.argument_types import size
from engine.cli import tuned
from engine.evaluator import tasks
from engine.evaluator.build import tunables
from engine.evaluator.request import Evaluator
from engine.evaluator.tasks import Task
from engine.evaluator.toolchain_table import find_toolchain
from engine.search.llm.recording import read_recording
from engine.shown import sweeps
from storage import codec
from storage.results.evaluation_results import TimingResult, median_ranks
from storage.run.models import CHARACTERS_PER_TOKEN

RECORDINGS = Path(__file__).resolve().parents[1] / "tasks" / "recordings"


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel of a recording by its place among those that the recording leads to, and `later`, the model's own next
    stop. `declared` are texts of the source and what stands in their place."""

    task: str
    toolchain: str
    recording: str
    start: int
    later: int
    declared: Mapping[str, str]
    sizes: Mapping[str, int] = field(default_factory=dict)


CASES: Mapping[str, Case] = {
    "matmul": Case(
        "square_matmul", "cpu", "square_matmul.jsonl", 11, 22,
        {
            "constexpr int VL = 16, RM = 8;": "constexpr int VL = 16;",
            "constexpr int VL = 8, RM = 4;": "constexpr int VL = 8;",
            "typedef float vec": "constexpr int RM = 8;  // tune: 4, 8, 16\ntypedef float vec",
            "constexpr int RV = 2, RN = RV * VL;": "constexpr int RV = 2;  // tune: 1, 2, 3\n"
            "constexpr int RN = RV * VL;",
            "constexpr int BM = 64, BK = 256;": "constexpr int BM = 64;  // tune: 16, 32, 64, 128\n"
            "constexpr int BK = 256;  // tune: 128, 256, 512, 1024\nstatic_assert(BM % RM == 0);",
        },
    ),
    "matmul_early": Case(
        "square_matmul", "cpu", "square_matmul.jsonl", 4, 11,
        {
            "constexpr int BM = 64, BN = 128, BK = 16;": "constexpr int BM = 64;  // tune: 32, 64, 128\n"
            "constexpr int BN = 128;  // tune: 64, 128, 256, 512\n"
            "constexpr int BK = 16;  // tune: 16, 64, 128, 256, 512\n",
        },
    ),
    "softmax": Case(
        "softmax", "cpu", "softmax.jsonl", 7, 12,
        {"constexpr int WAYS = 4;": "constexpr int WAYS = 4;  // tune: 1, 2, 4, 8, 12, 16\n"},
    ),
    "swish_gpu": Case(
        "swish", "cuda", "swish.cuda.jsonl", 4, 5,
        {
            "constexpr int THREADS = 256;": "constexpr int THREADS = 256;  // tune: 128, 256, 512",
            "constexpr int LOADS = 4;": "constexpr int LOADS = 4;  // tune: 1, 2, 4\n",
        },
        {"batch_size": 1024, "dim": 131072},
    ),
    "softmax_gpu": Case(
        "softmax", "cuda", "softmax.cuda.jsonl", 5, 8,
        {
            "constexpr int CLUSTER = 16;": "constexpr int CLUSTER = 16;  // tune: 8, 16\n",
            "constexpr int PART_THREADS = 512;": "constexpr int PART_THREADS = 512;  // tune: 256, 512, 1024\n",
        },
        {"batch_size": 512, "dim": 393216},
    ),
}  # fmt: skip


def declaring(case: Case, source: str) -> str:
    """The kernel with its own numbers declared open to tuning.

    Raises:
        SystemExit: the recording has changed, so that a text is not there.
    """
    for old, new in case.declared.items():
        if source.count(old) != 1:
            raise SystemExit(f"{case.recording}: {old!r} stands {source.count(old)} times in kernel {case.start}")
        source = source.replace(old, new)
    return source


def calls_between(path: Path, first: str, last: str) -> tuple[int, int]:
    """Model calls that led from one kernel to another in a recording, and about how many tokens their replies have."""
    parents, replies = parents_of(path), read_recording(path).replies
    line, source = list[str](), last
    while source != first:
        source = parents[source]
        line.append(hashlib.sha256(source.encode()).hexdigest())
    texts = [text for (_, about), found in replies.items() if about in line for text in found]
    return len(texts), int(sum(map(len, texts)) / CHARACTERS_PER_TOKEN)


def in_turns(toolchain: Evaluator, task: Task, sources: Mapping[str, str], rounds: int) -> dict[str, list[float]]:
    """Speed-ups over eager, round by round; the order changes so that drift favours none."""
    found: dict[str, list[float]] = {name: [] for name in sources}
    for number in range(rounds):
        names = list(sources)[:: 1 if number % 2 == 0 else -1]
        for name in names:
            timed = toolchain.time(task, sources[name])
            if not isinstance(timed, TimingResult):
                raise SystemExit(f"{name} failed while it was timed: {timed.message}")
            found[name].append(timed.speedup)
    return found


def ratio(mine: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Median ratio of the rounds, and its distribution-free 95 % interval (of few rounds the least and the largest)."""
    ratios = sorted(one / other for one, other in zip(mine, theirs, strict=True))
    low, high = median_ranks(len(ratios))
    return [statistics.median(ratios), ratios[low], ratios[high]]


def run(name: str, case: Case, toolchain: Evaluator, variants: int, rounds: int, sizes: Mapping[str, Any]) -> Any:
    """One case as plain values."""
    path = RECORDINGS / case.recording
    kernels = kernels_of(path)
    written, later = kernels[case.start], kernels[case.later]
    source = declaring(case, written)
    task = tasks.find(case.task).task(case.toolchain, dict(case.sizes) | dict(sizes))
    toolchain.compile_all(task, [source, later])

    def say(progress: str) -> None:
        print(f"{name}: {progress}", file=sys.stderr, flush=True)

    sweep, best, seconds = sweeps.tune(
        toolchain, task, source, variants, say, lambda number, sweep: say(tuned.variant_line(number, sweep))
    )
    sources = {"as written": source, "tuned": best or source, "model": later}
    speedups = in_turns(toolchain, task, sources, rounds)
    calls, tokens = calls_between(path, written, later)
    kept = sweep.kept
    return {
        "case": name, "task": case.task, "toolchain": case.toolchain, "sizes": dict(task.sizes),
        "declared": [f"{one.name}={one.value}" for one in tunables.read(source).tunables],
        "variants": len(sweep.variants), "failed": sum(one.has_failed for one in sweep.variants.values()),
        "kept": dict(kept.values) if kept else None, "seconds": round(seconds, 1),
        "as_written": statistics.median(speedups["as written"]),
        "gain": ratio(speedups["tuned"], speedups["as written"]),
        "model_gain": ratio(speedups["model"], speedups["as written"]),
        "model_calls": calls, "model_reply_tokens": tokens, "rounds": rounds, "speedups": speedups,
        "sweep": codec.to_plain(sweeps.form("", sweep)),
    }  # fmt: skip


def row(found: Mapping[str, Any]) -> str:
    """A line of the table in docs/tuning.md."""
    gain, model = (f"{one[0]:.2f} ({one[1]:.2f} to {one[2]:.2f})" for one in (found["gain"], found["model_gain"]))
    kept = ", ".join(f"{name} {number}" for name, number in (found["kept"] or {}).items()) or "as written"
    return (
        f"| {found['case']}: {', '.join(found['declared'])} | {found['as_written']:.2f} | {kept} | {gain} | "
        f"{found['variants']}, {found['seconds']:.0f} s | 0 | {model} | {found['model_calls']} | "
        f"{found['model_reply_tokens']:,} |"
    )


def main() -> None:
    """Run the cases of a toolchain."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toolchain", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--case", choices=tuple(CASES))
    parser.add_argument("--variants", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--set", dest="sizes", action="append", type=size, default=[], metavar="NAME=NUMBER")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    print("| kernel | speed-up | kept | gain | variants | tokens | the model's later kernel | calls | reply tokens |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, case in CASES.items():
        if (options.case or name) == name and case.toolchain == options.toolchain:
            toolchain: Evaluator = find_toolchain(case.toolchain)()
            try:
                found = run(name, case, toolchain, options.variants, options.rounds, dict(options.sizes))
            finally:
                toolchain.close()
            print(json.dumps(found) if options.json else row(found), flush=True)


if __name__ == "__main__":
    main()
