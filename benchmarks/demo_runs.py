"""Run the recorded demos to their end, one after the other, and print what happened on the way as a table.

python -m benchmarks.demo_runs square_matmul swish softmax
python -m benchmarks.demo_runs swish --set batch_size=64 --set dim=4096 --depths 0      smallest
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from typing import Any

from benchmarks.kill_engine import wait_for_end
from engine import supervisor
from engine.argument_types import size
from engine.search.llm.recording import recorded_tasks
from storage.results.vocabulary import Verdict
from storage.run import events, journal
from storage.run.folder import RunFolder
from storage.run.record import Record
from storage.run.settings import Budget


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", metavar="TASK", help="default: every task with a recording")
    parser.add_argument("--set", dest="overrides", action="append", type=size, default=[])
    parser.add_argument("--depths", type=int, help="default: those of the recording")
    options = parser.parse_args()
    for name in options.tasks or recorded_tasks("cpu", "cutegen"):
        started = time.time()
        fields: dict[str, Any] = {} if options.depths is None else {"budget": Budget(depths=options.depths)}
        overrides = dict(options.overrides)
        folder = supervisor.start(supervisor.new_settings(name, model="recorded", overrides=overrides, **fields))
        took = wait_for_end(folder)
        report(folder, took, first_point(folder) - started)


def first_point(folder: RunFolder) -> float:
    """Time of the first kernel that was correct and timed."""
    return next(e.time for e in journal.read(folder.journal_file) if isinstance(e.event, events.Timed))


def report(folder: RunFolder, took: float, first: float) -> None:
    """One demo's figures."""
    entries = list(journal.read(folder.journal_file))
    record = Record.of(folder.read_settings(), entries)
    verdicts = Counter(a.verdict for a in record.candidates.values())
    failed_patches = [e.event for e in entries if isinstance(e.event, events.PatchTried) and not e.event.is_applied]
    curve, slower = list[str](), 0
    for done in record.concluded:
        timed = record.candidates[done.candidate_id].timed if done.candidate_id else None
        if timed and done.outcome == "accepted":
            base = record.candidates[done.base_id].timed if done.base_id else None
            slower += bool(base and timed.speedup < 0.95 * base.speedup)
            curve.append(f"{timed.speedup:.3g}")
    exposed = [d.depth for d in record.concluded if d.is_profile_exposed]
    best = record.best.timed if record.best else None
    print(f"  {record.settings.sizes}, {took:.0f} s in all, first curve point after {first:.0f} s")
    if best:
        low, high = best.speedup_interval
        print(f"  best {record.best_id}: {best.speedup:.3g}x eager ({low:.3g} to {high:.3g}), {best.latency_ms:.3g} ms")
    print(f"  curve: {' '.join(curve)}; steps more than 5 % slower than their base: {slower}")
    print(
        f"  compile failures {verdicts[Verdict.COMPILE_ERROR]}, wrong values {verdicts[Verdict.INCORRECT]}, "
        f"patches not applied {len(failed_patches)}, all attempts {len(record.candidates)}, "
        f"profile shown to the model at depths {exposed or 'none'}"
    )


if __name__ == "__main__":
    main()
