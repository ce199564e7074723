"""Kill an engine with SIGKILL at random instants, resume it each time, and compare its history with an undisturbed run.

    python -m benchmarks.kill_engine swish --kills 20 --set batch_size=64 --set dim=4096
    python -m benchmarks.kill_engine swish --kills 1 --depths 0 --set batch_size=64 --set dim=4096     smallest

The base policy is `latest`, so that timing noise cannot send the two runs along different paths.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import time
from collections import Counter
from typing import Any

from engine import supervisor
from engine.argument_types import size
from storage import codec
from storage.run import events, journal
from storage.run.folder import RunFolder
from storage.run.settings import Budget, RunState

MEASURED = {
    *("seconds", "candidate_ms", "baseline_ms", "evidence", "proofs", "seed", "is_best", "reference_error"),
    "device_interval",  # on a busy machine the ends of several timings
    "prompt_blob",
    "log_blob",  # a compiler's whole output names the folders of caches
}
PROGRESS = (events.EngineStarted, events.StepStarted, events.LimitMeasured, events.RunStarted, events.Profiled)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--depths", type=int, help="default: those of the recording")
    parser.add_argument("--set", dest="overrides", action="append", type=size, default=[])
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    overrides = dict(options.overrides)
    settings: dict[str, Any] = {
        "model": "recorded",
        "overrides": overrides,
        "base_policy": "latest",
        "reply_seconds": 0.2,
    } | ({} if options.depths is None else {"budget": Budget(depths=options.depths)})
    calm = supervisor.start(supervisor.new_settings(options.task, **settings))
    took = wait_for_end(calm)
    folder = supervisor.start(supervisor.new_settings(options.task, **settings))
    kills = disturb(folder, options.kills, took, random.Random(options.seed))
    wait_for_end(folder)
    report(calm, folder, kills)


def wait_for_end(folder: RunFolder) -> float:
    """Seconds until the run's final event."""
    started = time.monotonic()
    while not (ends := [e for e in journal.read(folder.journal_file) if isinstance(e.event, events.RunEnded)]):
        if not supervisor.is_alive(folder) and time.monotonic() - started > 20:
            raise SystemExit(f"the engine of {folder.run_id} died:\n{folder.log_file.read_text()[-2000:]}")
        time.sleep(0.05)
    print(f"{folder.run_id}: {ends[-1].event}")
    while supervisor.is_alive(folder):
        time.sleep(0.02)
    return time.monotonic() - started


def disturb(folder: RunFolder, kills: int, took: float, dice: random.Random) -> int:
    """Kill and resume; returns how often an engine was really killed at work."""
    done = 0
    for _ in range(kills):
        time.sleep(dice.uniform(0.05, 2.0 * took / kills))
        if not supervisor.is_alive(folder):
            break
        os.kill(json.loads(folder.engine_file.read_text())["pid"], signal.SIGKILL)
        while supervisor.is_alive(folder):
            time.sleep(0.005)
        done += 1
        supervisor.resume(folder)
        while not supervisor.is_alive(folder) and not ended(folder):
            time.sleep(0.005)
    return done


def ended(folder: RunFolder) -> bool:
    return any(isinstance(e.event, events.RunEnded) for e in journal.read(folder.journal_file))


def history(folder: RunFolder) -> list[str]:
    """The journal without what time, noise and restarts change."""
    lines = []
    for entry in journal.read(folder.journal_file):
        if isinstance(entry.event, events.RunEnded):
            lines.append(f"RunEnded {entry.event.state} {entry.event.reason}")
        elif not isinstance(entry.event, PROGRESS):
            lines.append(
                f"{type(entry.event).__name__} {json.dumps(stable(codec.to_plain(entry.event)), sort_keys=True)}"
            )
    return lines


def stable(plain: Any) -> Any:
    """Plain values without measured ones: a check's numbers come from secret seeds, a timing's from the clock."""
    if isinstance(plain, dict):
        kept = {key: stable(value) for key, value in plain.items() if key not in MEASURED}
        if "trials" in kept:  # a secret seed draws their order, and how busy the machine is which of them are left out
            kept["trials"] = sorted(trial.partition(":")[0] for trial in kept["trials"])
        return {k: v for k, v in kept.items() if not isinstance(v, float)} | {
            "mismatch": None,
            "message": None,
            "is_cached": None,
        }
    return [stable(item) for item in plain] if isinstance(plain, list) else plain


def report(calm: RunFolder, folder: RunFolder, kills: int) -> None:
    """Say what was compared and whether it agreed."""
    expected, actual = history(calm), history(folder)
    entries = list(journal.read(folder.journal_file))
    seqs = [entry.seq for entry in entries]
    calls = Counter((e.event.step, e.event.call) for e in entries if isinstance(e.event, events.ModelCalled))
    restarts = sum(isinstance(e.event, events.EngineStarted) for e in entries) - 1
    print(f"kills at work: {kills}, engine restarts: {restarts}")
    print(f"events: {len(entries)}; sequence unbroken: {seqs == list(range(1, len(seqs) + 1))}")
    print(f"model calls: {len(calls)}, repeated: {sum(n - 1 for n in calls.values())}")
    print(f"same history as the undisturbed run ({len(expected)} entries): {expected == actual}")
    for a, b in zip(expected, actual, strict=False):
        if a != b:
            print("first difference:\n ", a[:400], "\n ", b[:400])
            break
    finished = [e.event.state for e in entries if isinstance(e.event, events.RunEnded)] == [RunState.FINISHED]
    raise SystemExit(0 if expected == actual and finished and max(calls.values()) == 1 else 1)


if __name__ == "__main__":
    main()
