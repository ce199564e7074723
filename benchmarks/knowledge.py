"""How long retrieval, the page's queries, import and export take with many attempts.

python -m benchmarks.knowledge
python -m benchmarks.knowledge --rows 200 --rounds 1      smallest
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from storage.knowledge import browsing, exported, files, merging
from storage.knowledge.base import Base
from storage.knowledge.browsing import EvidenceFilter, TechniqueFilter
from storage.knowledge.records import (
    Bottleneck,
    Category,
    Evidence,
    Outcome,
    Prior,
    Revision,
    State,
    Technique,
)

STATES, TECHNIQUES, DEVICES = 16, 70, ("NVIDIA H100", "NVIDIA H200", "cpu")
FOLD = """
import os, sys, time
from pathlib import Path
from storage.knowledge import files
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
before, started = resident(), time.perf_counter()
base = files.load(Path(sys.argv[1]))
print(f"{time.perf_counter() - started:.2f} s, {resident() - before:.0f} MB")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000, help="attempts (100,000)")
    parser.add_argument("--rounds", type=int, default=5, help="each query so many times, nothing remembered (5)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        place = home / "knowledge"
        files.append_revision(known(), place)
        timed(f"append {options.rows:,} attempts", lambda: files.append_evidence(attempts(options.rows), place))
        size = (place / files.EVIDENCE).stat().st_size
        print(f"file: {size / 1e6:.1f} MB")
        fold(place)
        retrieve(place, options.rounds)
        exchange(home)
        query(home, options.rounds)


def known() -> Revision:
    """States, techniques and a prior for each pair."""
    states = tuple(State(state(n), Bottleneck.MEMORY, "A state of the benchmark.") for n in range(STATES))
    states += (State("discovered", Bottleneck.MEMORY, "Inherits.", is_discovered=True, inherits=state(0)),)
    techniques = tuple(Technique(technique(n), Category.MEMORY, "A technique.") for n in range(TECHNIQUES))
    priors = tuple(Prior(s.name, t.name, 1.2) for s in states[:-1] for t in techniques)
    return Revision("benchmark", 1.0, "benchmark", "to measure", states, techniques, priors)


def state(number: int) -> str:
    """A state's name."""
    return f"state {number}"


def technique(number: int) -> str:
    """A technique's name."""
    return f"technique {number}"


def attempts(count: int) -> Iterator[Evidence]:
    """Attempts with every field in use, the same ones each time."""
    draw = random.Random(1)
    for number in range(count):
        outcome = draw.choice(list(Outcome))
        yield Evidence(
            run_id=f"20260101-{number // 40:06}",
            candidate_id=f"c{number % 40:03}",
            technique=technique(draw.randrange(TECHNIQUES)),
            outcome=outcome,
            at=1e9 + number,
            state=state(draw.randrange(STATES)),
            task="square_matmul",
            kernel_class=draw.choice(["matmul", "loss"]),
            language="cute",
            toolchain="cuda",
            device=draw.choice(DEVICES),
            architecture="sm_90a",
            precision="fp32-exact",
            strategy="kernelblaster",
            model="some-model",
            parent_hash=f"{draw.getrandbits(256):064x}",
            child_hash=f"{draw.getrandbits(256):064x}",
            predicted_gain=draw.uniform(0.9, 2.0),
            gain=draw.uniform(0.5, 2.0) if outcome.is_timed else None,
            before={"dram_percent": 100 * draw.random(), "sm_percent": 100 * draw.random()},
            after={"dram_percent": 100 * draw.random(), "sm_percent": 100 * draw.random()},
            tokens=draw.randrange(9000),
            error="" if outcome.is_timed else f"error: no member named 'x{number}' in namespace",
        )


def timed(what: str, do: Callable[[], object], rounds: int = 1) -> None:
    """Print the median and the slowest of some rounds."""
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        do()
        seconds.append(time.perf_counter() - started)
    print(f"{what}: {1e3 * statistics.median(seconds):.1f} ms, slowest {1e3 * max(seconds):.1f} ms")


def fold(place: Path) -> None:
    """The first look of a process of its own."""
    done = subprocess.run([sys.executable, "-c", FOLD, place], capture_output=True, text=True, check=True)
    print(f"first fold: {done.stdout.strip()}")


def retrieve(place: Path, rounds: int) -> None:
    """What an engine asks once it has folded."""
    files.load(place)

    def advice(name: str) -> None:
        base = files.load(place)
        for one in base.techniques_of(name):
            base.figures(one, name)
            base.figures(one, name, device=DEVICES[0])

    timed("retrieve a state's techniques", lambda: advice(state(3)), rounds)
    timed("retrieve a discovered state's techniques", lambda: advice("discovered"), rounds)
    row, numbers = next(attempts(1)), iter(range(rounds))
    timed(
        "append one attempt",
        lambda: files.append_evidence([replace(row, run_id=f"new {next(numbers)}")], place),
        rounds,
    )


def exchange(home: Path) -> None:
    """Out into one file and into an empty folder."""
    file = home / "all.jsonl"
    timed("export", lambda: exported.write(file, files.load(home / "knowledge"), "benchmark"))
    timed("import", lambda: merging.import_file(file, folder=home / "other"))
    if len(files.load(home / "other").rows) != len(files.load(home / "knowledge").rows):
        raise SystemExit("the import lost rows")


def query(home: Path, rounds: int) -> None:
    """What the page asks, each time as if something had just been written."""
    for name, ask in asked().items():

        def fresh(ask: Callable[[Base], object] = ask) -> None:
            base = files.load(home / "knowledge")
            base._tallies.clear()
            ask(base)

        timed(f"query {name}", fresh, rounds)


def asked() -> dict[str, Callable[[Base], object]]:
    """What a page shows, by name."""
    on_device = TechniqueFilter(state=state(1), device=DEVICES[0])
    return {
        "states": browsing.states,
        "techniques": browsing.techniques,
        "techniques of a state on a device": lambda base: browsing.techniques(base, on_device),
        "evidence": browsing.attempts,
        "evidence, a late page with a text": lambda base: browsing.attempts(
            base, EvidenceFilter(text="member"), 50, 40_000
        ),
        "count of evidence": lambda base: browsing.count(base, EvidenceFilter(outcome="slower")),
        "a technique by device": lambda base: browsing.by_device(base, technique(1)),
        "negative evidence": browsing.negative,
        "predicted against measured": browsing.predicted,
        "revisions": browsing.revisions,
        "sums": browsing.sums,
        "choices": browsing.choices,
    }


if __name__ == "__main__":
    main()
