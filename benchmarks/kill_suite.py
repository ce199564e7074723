"""Kill a suite's runner, an engine of it or both with SIGKILL at random instants, resume it each time, and compare its
table with that of an undisturbed one.

    python -m benchmarks.kill_suite quick --kills 5
    python -m benchmarks.kill_suite quick --kills 1 --task swish --settings="--depths 0 --set dim=4096"     smallest

The base policy is `latest`, so that timing noise cannot send the two along different paths.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from benchmarks.kill_engine import history
from engine import supervisor
from engine.suites import definition
from storage import events, journal, liveness
from storage.folder import RunFolder, home, runs_folder
from storage.suites import files
from storage.suites.records import CellState
from storage.suites.standing import CellStanding, Suite, fold

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--task", help="only this task of the suite")
    parser.add_argument("--settings", default="")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    words = ["run", str(_only(options.suite, options.task)), f"--settings=--base-policy latest {options.settings}"]
    began = time.monotonic()
    assert begin([*words, "--name", "calm"]).wait() == 0
    took = time.monotonic() - began
    print(f"undisturbed: {took:.0f} s for {len(suite_of('calm').planned)} cells")
    begin([*words, "--name", "killed"])
    kills = disturb("killed", options.kills, took, random.Random(options.seed))
    wait_for_end("killed")
    report(suite_of("calm"), suite_of("killed"), kills)


def _only(suite: str, task: str | None) -> Path:
    """The suite's file, or one with a single task of it."""
    path = definition.find(suite)
    if task is None:
        return path
    draft = home() / "one-task.toml"
    draft.parent.mkdir(parents=True, exist_ok=True)
    plain = definition.read(path)
    draft.write_text(f'tasks = ["{task}"]\nsettings = "{plain.settings}"\n')
    return draft


def begin(words: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "engine", "suite", *words], cwd=ROOT, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def suite_of(name: str) -> Suite:
    suite = fold(files.read(files.folder_of(name)))
    assert suite is not None
    return suite


def run_of(cell: CellStanding) -> RunFolder:
    return RunFolder(runs_folder() / (cell.run_id or "-"))


def disturb(name: str, kills: int, took: float, dice: random.Random) -> Counter[str]:
    """Kill and resume; how often each was really killed."""
    done: Counter[str] = Counter()
    folder = files.folder_of(name)
    for _ in range(kills):
        time.sleep(dice.uniform(0.2, 0.9) * took / kills)
        if folder.journal_file.exists() and all(one.state is CellState.FINISHED for one in suite_of(name).planned):
            break
        victim = dice.choice(["runner", "engine", "both"])
        if victim in ("runner", "both"):
            done["runner"] += kill_runner(name)
        if victim in ("engine", "both"):
            done["engine"] += sum(kill_engine(run_of(one)) for one in suite_of(name).planned if one.run_id)
        if not folder.has_runner:
            begin(["resume", name])
    return done


def kill_runner(name: str) -> int:
    """Kill the runner that the journal names last, and wait until its lock is free."""
    started = [line.event for line in files.read(files.folder_of(name))]
    pids = [event.pid for event in started if hasattr(event, "pid")]
    folder = files.folder_of(name)
    if not pids or not folder.has_runner:
        return 0
    os.kill(pids[-1], signal.SIGKILL)
    while folder.has_runner:
        time.sleep(0.005)
    return 1


def kill_engine(run: RunFolder) -> int:
    """Kill an engine at work and wait until its lock is free."""
    if not supervisor.is_alive(run) or not run.engine_file.exists():
        return 0
    os.kill(json.loads(run.engine_file.read_text())["pid"], signal.SIGKILL)
    while liveness.is_held(run):
        time.sleep(0.005)
    return 1


def wait_for_end(name: str) -> None:
    """Wait until no runner is left and every cell is finished."""
    folder, started = files.folder_of(name), time.monotonic()
    while folder.has_runner or any(one.state is not CellState.FINISHED for one in suite_of(name).planned):
        if not folder.has_runner and time.monotonic() - started > 30:
            raise SystemExit(f"suite {name} is not at work and not finished: {suite_of(name).counts}")
        time.sleep(0.2)


def table(suite: Suite) -> dict[str, list[str]]:
    """What every cell has come to, without what time and noise change."""
    return {one.cell.words: [str(one.state), *history(run_of(one))] for one in suite.planned}


def repeated(run: RunFolder) -> Counter[str]:
    """Model calls and judgements of one kernel that were made twice."""
    found: Counter[str] = Counter()
    for entry in journal.read(run.journal_file):
        event = entry.event
        if isinstance(event, events.ModelCalled):
            found[f"call {event.step}.{event.call}"] += 1
        elif isinstance(event, (events.Compiled, events.Checked, events.Timed)):
            found[f"{type(event).__name__} {event.candidate_id}"] += 1
    return Counter({name: count for name, count in found.items() if count > 1})


def report(calm: Suite, killed: Suite, kills: Counter[str]) -> None:
    """Say what was compared and whether it agreed."""
    expected, actual = table(calm), table(killed)
    twice = sum((repeated(run_of(one)) for one in killed.planned), Counter[str]())
    runs = {one.run_id for one in killed.planned} | {one.run_id for one in calm.planned}
    orphans = [path.name for path in runs_folder().iterdir() if path.name not in runs]
    print(f"killed at work: runner {kills['runner']} times, engine {kills['engine']} times")
    print(f"cells: {len(actual)}; runs that belong to no cell: {len(orphans)}; done twice: {dict(twice) or 'nothing'}")
    print(f"same table as the undisturbed suite: {expected == actual}")
    for cell in expected:
        if expected[cell] != actual[cell]:
            print(f"first difference in {cell}:")
            pairs = zip(expected[cell], actual[cell], strict=False)
            print("\n".join(f"  {a[:300]}\n  {b[:300]}" for a, b in [p for p in pairs if p[0] != p[1]][:1]))
            break
    raise SystemExit(0 if expected == actual and not twice and not orphans else 1)


if __name__ == "__main__":
    main()
