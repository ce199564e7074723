"""What many runs get from many GPUs, simulated from the times that steps were measured to take.

    python -m benchmarks.pool_simulation
    python -m benchmarks.pool_simulation --gpus 1 2 --runs 8 --iterations 2 --heads 1     smallest

A run asks its model, has the kernel built on a processor core, checked, timed and profiled on a GPU alone, and begins
again. One queue serves all GPUs, first come first served; `--width` runs for each GPU are at work at a time. Engines of
all runs share the cores of one host, the head; docs/scale.md says how their share was measured. Nothing fails.
Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import heapq
import random
import statistics
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

MODEL_S = (30.0, 90.0)
COMPILE_S = (4.0, 10.0)
CHECK_S, TIME_S, PROFILE_S = 7.0, 4.0, 7.0
CORES_PER_GPU = 4
ENGINE_S = 0.10
"""Processor seconds of an engine for one iteration, its evaluator's left out."""
START_S = 0.6
"""Processor seconds until an engine's process works."""
ENGINE_MIB = 45
SEED = 22


@dataclass
class Station:
    """Servers with one queue. `busy_s` adds up over servers, `waited_s` has one entry a service."""

    servers: int
    free: int = 0
    queue: deque[tuple[float, float, Callable[[float], None]]] = field(default_factory=deque)
    busy_s: float = 0.0
    waited_s: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.free = self.servers


class Simulation:
    """Events in order of their time; each calls what follows it."""

    def __init__(self, gpus: int, runs: int, iterations: int, width: int, head_cores: int) -> None:
        self._random = random.Random(SEED)
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._number = 0
        self._left, self._iterations = runs, iterations
        self.devices, self.cores, self.head = Station(gpus), Station(gpus * CORES_PER_GPU), Station(head_cores)
        self.took_s: list[float] = []
        self.end_s = 0.0
        for _ in range(min(runs, width * gpus)):
            self._begin(0.0)

    def run(self) -> Simulation:
        """Until the last run has ended."""
        while self._events:
            now, _, act = heapq.heappop(self._events)
            self.end_s = now
            act(now)
        return self

    def _at(self, time: float, act: Callable[[float], None]) -> None:
        self._number += 1
        heapq.heappush(self._events, (time, self._number, act))

    def _serve(self, station: Station, now: float, takes_s: float, then: Callable[[float], None]) -> None:
        if not station.free:
            station.queue.append((now, takes_s, then))
            return
        station.free -= 1
        self._occupy(station, now, now, takes_s, then)

    def _occupy(
        self, station: Station, now: float, since: float, takes_s: float, then: Callable[[float], None]
    ) -> None:
        station.busy_s += takes_s
        station.waited_s.append(now - since)

        def ended(end: float) -> None:
            if station.queue:
                self._occupy(station, end, *station.queue.popleft())
            else:
                station.free += 1
            then(end)

        self._at(now + takes_s, ended)

    def _begin(self, now: float) -> None:
        if self._left:
            self._left -= 1
            self._serve(self.head, now, START_S, lambda end: self._iterate(end, self._iterations))

    def _iterate(self, now: float, left: int) -> None:
        """One kernel: the engine's own work once before the model's call and once after each step, a fifth each."""
        if not left:
            self._begin(now)
            return
        devices, draw = self.devices, self._random.uniform

        def asked(t: float) -> None:
            self._at(t + draw(*MODEL_S), lambda t: engine(t, replied))

        def replied(t: float) -> None:
            self._serve(self.cores, t, draw(*COMPILE_S), lambda t: engine(t, built))

        def built(t: float) -> None:
            self._serve(devices, t, CHECK_S, lambda t: engine(t, checked))

        def checked(t: float) -> None:
            self._serve(devices, t, TIME_S, lambda t: engine(t, timed))

        def timed(t: float) -> None:
            self._serve(devices, t, PROFILE_S, profiled)

        def profiled(t: float) -> None:
            self.took_s.append(t - now)
            self._iterate(t, left - 1)

        def engine(t: float, then: Callable[[float], None]) -> None:
            self._serve(self.head, t, ENGINE_S / 5, then)

        engine(now, asked)


def row(found: Simulation, gpus: int, runs: int, width: int, head_cores: int) -> str:
    """One line of the table."""
    hours = found.end_s / 3600
    in_flight = min(runs, width * gpus)
    waits = found.devices.waited_s
    cells = (
        f"{gpus}",
        f"{in_flight:,}",
        f"{head_cores}",
        f"{len(found.took_s) / hours:,.0f}",
        f"{hours:,.1f} h",
        f"{found.devices.busy_s / found.end_s / gpus:.0%}",
        f"{statistics.median(found.took_s):.0f} s",
        f"{3 * statistics.mean(waits):.1f} s, {_high(waits):.1f} s",
        f"{found.head.busy_s / found.end_s:.1f}",
        f"{_high(found.head.waited_s):,.2f} s",
        f"{in_flight * ENGINE_MIB / 1024:,.0f} GiB",
    )
    return f"| {' | '.join(cells)} |"


def _high(values: list[float]) -> float:
    return sorted(values)[int(0.95 * (len(values) - 1))]


HEADINGS = (
    "GPUs",
    "Runs at once",
    "Cores of the head",
    "Iterations an hour",
    "All runs end after",
    "GPUs busy",
    "An iteration, median",
    "Waits for a GPU: an iteration's mean, one step's 95 %",
    "Cores that engines use",
    "One step waits for the head, 95 %",
    "Memory of engines",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, nargs="+", default=[1, 2, 8, 32, 64, 128, 256, 512])
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--iterations", type=int, default=10, help="of each run")
    parser.add_argument("--width", type=int, nargs="+", default=[6], help="runs at once for each GPU")
    parser.add_argument("--heads", type=int, nargs="+", default=[2, 16], help="cores of the host of all engines")
    options = parser.parse_args()
    print(f"| {' | '.join(HEADINGS)} |\n|{'---|' * len(HEADINGS)}")
    for gpus in options.gpus:
        for width in options.width:
            for cores in options.heads:
                found = Simulation(gpus, options.runs, options.iterations, width, cores).run()
                print(row(found, gpus, options.runs, width, cores), flush=True)


if __name__ == "__main__":
    main()
