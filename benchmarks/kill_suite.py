"""Kill what works on a suite with SIGKILL at random instants, resume it each time, and compare its table with that of
an undisturbed one.

    python -m benchmarks.kill_suite quick --kills 5 --watched
    python -m engine suite run quick && python -m benchmarks.kill_suite quick --watched --undisturbed quick
    python -m benchmarks.kill_suite quick --kills 1 --task swish --settings="--depths 0 --set dim=4096"     smallest

Killed is an engine, the runner, everything at once (runner, engines, compilers, evaluators, server) or, with
`--watched`, the dashboard's server while a browser shows the suite: each once before any a second time. Only the
browser lives on. The base policy is `latest`, so that timing noise cannot send the two along different paths.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from benchmarks.kill_engine import history
from engine import supervisor
from engine.suites import definition
from storage.home import home
from storage.results import relative
from storage.run import events, journal, liveness
from storage.run.folder import RunFolder, runs_folder
from storage.suites import files, measured
from storage.suites.records import CellLeft, CellLinked, CellState
from storage.suites.results import RunResult
from storage.suites.standing import CellStanding, Suite, fold
from tests.browser.chromium import of_program
from tests.browser.conftest import ENDED, Server, start_server, stop_server

ROOT = Path(__file__).resolve().parent.parent
MARK = "TILEWRIGHT_KILLED_BY"


@dataclass
class Watch:
    """A dashboard and a page of it that shows the suite; killed servers come back on their port."""

    server: Server
    page: Page

    def kill(self) -> int:
        """Kill the server and start it again."""
        self.server.process.kill()
        self.come_back()
        return 1

    def come_back(self) -> None:
        """The server again, after it was killed."""
        self.server.process.wait()
        ENDED.append(int(self.server.url.rpartition(":")[2]))
        self.server = start_server(home(), **{MARK: str(os.getpid())})


@dataclass
class Kills:
    """How often each was killed at work, and the seconds after the start at which it was."""

    counts: Counter[str] = field(default_factory=Counter)
    at: list[str] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--task", help="only this task of the suite")
    parser.add_argument("--settings", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--undisturbed", help="compare with this suite, which has ended here, as it was started")
    parser.add_argument("--watched", action="store_true", help="with a dashboard and a browser that shows the suite")
    options = parser.parse_args()
    words = ["run", str(_only(options.suite, options.task))]
    if not options.undisturbed:
        words.append(f"--settings=--base-policy latest {options.settings}")
        assert begin([*words, "--name", "calm"]).wait() == 0
    elif options.settings:
        words.append(f"--settings={options.settings}")
    calm = options.undisturbed or "calm"
    lines, cells = files.read(files.folder_of(calm)), len(suite_of(calm).planned)
    took = lines[-1].time - lines[0].time
    print(f"undisturbed: {took:.0f} s for {cells} runs", flush=True)
    began = time.monotonic()
    begin([*words, "--name", "killed"])
    while fold(files.read(files.folder_of("killed"))) is None:  # there is nothing yet that can be killed
        time.sleep(0.05)
    with watched() if options.watched else contextlib.nullcontext() as watch:
        kills = disturb("killed", options.kills, took, random.Random(options.seed), watch)
        wait_for_end("killed")
        print(f"disturbed: {time.monotonic() - began:.0f} s", flush=True)
        if watch:
            expect(watch.page.get_by_text(f"all {cells} runs finished")).to_be_visible(timeout=60_000)
            print("the page that was open all the time shows every run finished")
    report(suite_of(calm), suite_of("killed"), kills)


@contextlib.contextmanager
def watched() -> Iterator[Watch]:
    """A dashboard of this home, and a browser that shows the suite."""
    server = start_server(home(), **{MARK: str(os.getpid())})
    with sync_playwright() as playwright:
        args = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=of_program(), args=args)
        page = browser.new_page()
        page.goto(f"{server.url}/benchmark?suite=killed")
        page.get_by_text("runs finished").wait_for(timeout=60_000)
        watch = Watch(server, page)
        try:
            yield watch
        finally:
            browser.close()
            stop_server(watch.server)


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
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ | {MARK: str(os.getpid())},
    )  # fmt: skip


def suite_of(name: str) -> Suite:
    suite = fold(files.read(files.folder_of(name)))
    assert suite is not None
    return suite


def run_of(cell: CellStanding) -> RunFolder:
    return RunFolder(runs_folder() / (cell.run_id or "-"))


def disturb(name: str, kills: int, took: float, dice: random.Random, watch: Watch | None) -> Kills:
    """Kill at random instants and resume."""
    done, began = Kills(), time.monotonic()
    victims: dict[str, Callable[[], int]] = {
        "engine": lambda: kill_engines(name),
        "runner": lambda: kill_runner(name),
        "everything": lambda: kill_everything(name, watch),
    } | ({"server": watch.kill} if watch else {})
    order = itertools.cycle(dice.sample(list(victims), len(victims)))
    for victim in itertools.islice(order, kills):
        time.sleep(dice.uniform(0.2, 0.9) * took / kills)
        killed = 0
        while not killed and not is_finished(name):
            killed = victims[victim]()
        if not killed:
            break
        done.counts[victim] += 1
        done.at.append(f"{victim} at {time.monotonic() - began:.0f} s ({killed} processes)")
        if not files.folder_of(name).has_runner:
            begin(["resume", name])
        wait_for_runner(name)
    return done


def is_finished(name: str) -> bool:
    folder = files.folder_of(name)
    return folder.journal_file.exists() and all(one.state is CellState.FINISHED for one in suite_of(name).planned)


def wait_for_runner(name: str) -> None:
    """Until a runner is at work again, so that the next one to be killed is there."""
    while not files.folder_of(name).has_runner and not is_finished(name):
        time.sleep(0.02)


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


def kill_engines(name: str) -> int:
    """Kill every engine of the suite that is at work."""
    return sum(kill_engine(run_of(one)) for one in suite_of(name).planned if one.run_id)


def kill_everything(name: str, watch: Watch | None) -> int:
    """Kill all processes of the suite and of the dashboard, again until none is left; then start the server again.

    Returns how many there were, 0 where no engine is at work: then nothing is killed.
    """
    if not any(one.run_id and liveness.is_held(run_of(one)) for one in suite_of(name).planned):
        return 0
    mark, killed = f"{MARK}={os.getpid()}".encode(), set()
    while found := _with(mark):
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        killed |= set(found)
        time.sleep(0.02)
    if watch:
        watch.come_back()
    return len(killed)


def _with(mark: bytes) -> list[int]:
    """Living processes that were started with this in their environment; this one was not."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (folder / "environ").read_bytes().split(b"\0"):  # empty for one that has ended
                found.append(int(folder.name))
    return found


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


def done_again(name: str) -> int:
    """How often a finished cell was taken up again."""
    finished, again = set(), 0
    for line in files.read(files.folder_of(name)):
        if isinstance(line.event, CellLinked):
            again += line.event.cell in finished
        elif isinstance(line.event, CellLeft) and line.event.state is CellState.FINISHED:
            finished.add(line.event.cell)
    return again


def judged(suite: Suite) -> Counter[str]:
    """How many events of each kind that costs something stand in the journals of a suite's runs."""
    kinds = (events.ModelCalled, events.Compiled, events.Checked, events.Timed)
    entries = (entry.event for one in suite.planned for entry in journal.read(run_of(one).journal_file))
    return Counter(type(event).__name__ for event in entries if isinstance(event, kinds))


def compare_speedups(calm: Suite, killed: Suite) -> None:
    """Each kernel's speed-up of both suites, and whether they differ by more than two sessions of one kernel do."""
    ours, theirs = measured.of_suite(calm), measured.of_suite(killed)
    apart = kernels = 0
    for one, other in zip(calm.planned, killed.planned, strict=True):
        mine, found = ours[one.run_id or ""], theirs[other.run_id or ""]
        again = {kernel.candidate_id: kernel for kernel in found.timed}
        for kernel in mine.timed:
            if (twin := again.get(kernel.candidate_id)) is None:
                continue
            ratio = relative.between_sessions(twin.speedup, twin.noise, kernel.speedup, kernel.noise)
            is_apart = ratio.is_faster or ratio.is_slower
            kernels, apart = kernels + 1, apart + is_apart
            print(
                f"  {one.cell.words}, {kernel.candidate_id}: {kernel.speedup:.3f}x and {twin.speedup:.3f}x, "
                f"noise of both and of two sessions {100 * ratio.noise:.0f} %{': apart' if is_apart else ''}"
            )
        print(f"  {one.cell.words}, best: {_best(mine)} and {_best(found)}")
    print(f"speed-ups within their intervals: {kernels - apart} of {kernels} kernels")


def _best(result: RunResult) -> str:
    best = result.best
    return f"{best.candidate_id} {best.speedup:.3f}x ({best.low:.3f}-{best.high:.3f})" if best else "none"


def report(calm: Suite, killed: Suite, kills: Kills) -> None:
    """Say what was compared and whether it agreed."""
    expected, actual = table(calm), table(killed)
    twice = sum((repeated(run_of(one)) for one in killed.planned), Counter[str]())
    again = done_again("killed")
    runs = {one.run_id for one in killed.planned} | {one.run_id for one in calm.planned}
    orphans = [path.name for path in runs_folder().iterdir() if path.name not in runs]
    starts = Counter(
        type(entry.event).__name__ for one in killed.planned for entry in journal.read(run_of(one).journal_file)
    )["EngineStarted"]
    print(f"killed at work: {'; '.join(kills.at) or 'nothing'}")
    print(f"engines started: {starts} for {len(actual)} cells; runs that belong to no cell: {len(orphans)}")
    print(f"undisturbed: {dict(judged(calm))}\nkilled:      {dict(judged(killed))}")
    print(f"done twice: {dict(twice) or 'nothing'}; finished cells taken up again: {again}")
    compare_speedups(calm, killed)
    print(f"same table as the undisturbed suite: {expected == actual}")
    for cell in expected:
        if expected[cell] != actual[cell]:
            print(f"first difference in {cell}:")
            pairs = zip(expected[cell], actual[cell], strict=False)
            print("\n".join(f"  {a[:300]}\n  {b[:300]}" for a, b in [p for p in pairs if p[0] != p[1]][:1]))
            break
    raise SystemExit(0 if expected == actual and not twice and not again and not orphans else 1)


if __name__ == "__main__":
    main()
