"""Judge every kernel file of the cheats suite, with screening and by the dynamic checks alone, and print a table.

python -m benchmarks.cheats                  the suite in tests/cheats/kernels/cpu
python -m benchmarks.cheats --folder PATH    any other folder with cheats/ and honest/ below it
Exit status 1 when a file does not get what it declares. Files that need isolation run only where it holds.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from engine.evaluator.toolchains.cpu import CpuToolchain
from tests.cheats import declaration, leftovers, running
from tests.cheats.declaration import KERNELS, Declaration
from tests.cheats.running import Mode, Outcome


def main() -> int:
    options = _options()
    files = [one for one in declaration.in_folder(options.folder) if options.only in one.name]
    modes = [Mode(options.mode)] if options.mode else list(Mode)
    leftovers.write_secret()
    try:
        failed = judge(files, modes)
    finally:
        leftovers.remove_secret()
    print(f"{len(files)} files, {failed} not as declared")
    return 1 if failed else 0


def judge(files: Sequence[Declaration], modes: Sequence[Mode]) -> int:
    """Print a line per file and its complaints below; returns how many files have any."""
    failed = 0
    print(f"{'file':42} " + " ".join(f"{mode:32}" for mode in modes))
    with tempfile.TemporaryDirectory(prefix="tilewright.") as folder:
        scratch = Path(folder)
        with CpuToolchain(scratch, running.TIMES, running.LIMITS) as toolchain:
            for declared in files:
                if declared.needs_walls and not running.walls_hold():
                    print(f"{declared.name:42} not run: needs walls")
                    continue
                outcomes = [(mode, running.run(toolchain, scratch, declared, mode)) for mode in modes]
                failed += report(declared, outcomes)
    return failed


def report(declared: Declaration, outcomes: Iterable[tuple[Mode, Outcome]]) -> bool:
    """One file's lines; true when something is not as declared."""
    cells, complaints = list[str](), list[str]()
    for mode, outcome in outcomes:
        wrong = running.complaints(declared, outcome, mode)
        complaints += [f"    {mode}: {text}" for text in wrong]
        speed = f" {outcome.speedup:.3g}x" if outcome.speedup else ""
        cells.append(f"{'!' if wrong else ' '}{outcome.verdict + speed:22} {outcome.seconds:5.2f} s")
    print(f"{declared.name:42} " + "  ".join(cells))
    print("".join(f"{text}\n" for text in complaints), end="", flush=True)
    return bool(complaints)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Judge the kernel files of the cheats suite.")
    parser.add_argument("--folder", type=Path, default=KERNELS, help="cheats/ and honest/ are looked for below it")
    parser.add_argument("--only", default="", metavar="TEXT", help="files whose folder/name holds this")
    parser.add_argument("--mode", choices=[str(mode) for mode in Mode], help="one mode alone")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
