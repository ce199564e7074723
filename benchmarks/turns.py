"""What it costs a run that is alone to have its turn by the line for a device, and not by the lock alone.

    python -m benchmarks.turns          half a minute

Both are had in turn, one after the other, of the same lock; the folder of the line is there and empty, as it is once
anybody has waited.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from contextlib import AbstractContextManager
from pathlib import Path

from engine.evaluator.machine import lease, turns


def main() -> int:
    """Print microseconds of either, and of their difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=20_000, help="of each kind (default 20000)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        lock = Path(name) / "tilewright.gpu-none.lock"
        (Path(name) / turns.QUEUE).mkdir()
        pairs = [(_us(lease.hold(lock)), _us(turns.hold(lock))) for _ in range(options.turns)]
    differences = sorted(line - plain for plain, line in pairs)
    found = {
        "lock alone, us": statistics.median(plain for plain, _ in pairs),
        "turn in line, us": statistics.median(line for _, line in pairs),
        "difference, us": statistics.median(differences),
        "difference in one of twenty, us": differences[int(0.95 * len(differences))],
    }
    print(json.dumps({what: round(us, 1) for what, us in found.items()}, indent=1))
    return 0


def _us(turn: AbstractContextManager[object]) -> float:
    began = time.perf_counter()
    with turn:
        pass
    return 1e6 * (time.perf_counter() - began)


if __name__ == "__main__":
    raise SystemExit(main())
