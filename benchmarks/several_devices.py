"""One suite of recordings on one device of this host and on several: how long it takes, and whether it says the same.

    python -m benchmarks.several_devices measure 0 --at-once 4 --keep one.json
    python -m benchmarks.several_devices measure 0,1 --at-once 8 --keep two.json
    python -m benchmarks.several_devices compare one.json two.json

`measure` names devices as CUDA_VISIBLE_DEVICES does. It works in a home of its own, in which one kernel has been built
and timed on each device before: no measurement starts with headers to build or limits to measure, or finds kernels that
another one built. The recordings are those of the four tasks that have three depths and more, failures among them, each
replayed twice, one after the other in the queue and the longest first: with as many runs at a time for each device,
none stands idle at the end. Sizes are the tasks' own, but for half the rows of the two that would not fit into the
80 GB of an H100. `--pool` measures the same on a cluster, whose devices DEVICES counts.

    python -m benchmarks.several_devices measure 0 --times 1 --samples 6 --reply-seconds 20 --keep narrow.json \\
        --tasks softmax,batch_size=1024 swish,batch_size=1024
    python … --settings="--width 3" --keep wide.json

`--samples` has `best_of` write the first kernels that the recordings lead to, each from nothing: the same kernels and
the same time for a reply whatever the width, so that the shares of time in which the device is busy compare.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.recorded_kernels import kernels_of
from engine.search.llm.recording import Line, shipped_recording, write_recording
from storage import device_use
from storage.results import relative
from storage.run import events as ev
from storage.run import journal
from storage.run.folder import RunFolder, runs_folder
from storage.run.settings import StepKind
from storage.suites import files
from storage.suites.standing import fold

ROOT = Path(__file__).resolve().parent.parent
TASKS = ("square_matmul", "diagonal_matmul", "softmax,batch_size=2048", "swish,batch_size=2048")


@dataclass(slots=True)
class Judged:
    """What came of one kernel of a run: every verdict in order; the last timing, where there is one, and its device."""

    verdicts: list[str] = field(default_factory=list)
    speedup: float | None = None
    noise: float = 0.0
    device: str = ""


def main() -> int:
    """Measure or compare."""
    asked = options()
    if asked.what == "measure":
        found = measure(asked)
        print(json.dumps({name: value for name, value in found.items() if name != "cells"}, indent=1))
        if asked.keep:
            Path(asked.keep).write_text(json.dumps(found))
        return 0
    print("\n".join(compared(*(json.loads(Path(path).read_text()) for path in (asked.one, asked.other)))))
    return 0


def measure(asked: argparse.Namespace) -> dict[str, Any]:
    """The suite's time, the share of it in which the devices were held, and what came of each cell's kernels."""
    os.environ["CUDA_VISIBLE_DEVICES"] = asked.devices
    folder = Path(tempfile.mkdtemp(prefix="several-devices."))
    os.environ["TILEWRIGHT_HOME"] = str(folder / "home")
    _prepare(asked)
    file = folder / "devices.toml"
    file.write_text(definition(asked, folder))
    at_once = ("--at-once", str(asked.at_once)) if asked.at_once else ()
    began = time.time()
    _engines([("suite", "run", str(file), *at_once, *_pool(asked))])
    ended = time.time()
    suite = fold(files.read(files.folder_of("devices")))
    assert suite is not None
    runs = [RunFolder(runs_folder() / (one.run_id or "-")) for one in suite.planned]
    cells = [
        {"cell": one.cell.words, "state": str(one.state),
         "kernels": kernels(run)}
        for one, run in zip(suite.planned, runs, strict=True)
    ]  # fmt: skip
    held = device_use.uses(began, ended + 1)
    return {
        "devices": asked.devices, "pool": asked.pool or "local", "seconds": round(ended - began, 1),
        "judged": sum(len(one["kernels"]) for one in cells),
        "states": {one["cell"]: one["state"] for one in cells},
        "busy": {
            name: round(sum(one.ended - one.began for one in held if one.device == name) / (ended - began), 3)
            for name in sorted({one.device for one in held})
        },
        "waited_s": round(sum(one.waited_s for one in held) / max(len(held), 1), 2),
        "parts_s": {"checks": _parts(runs, ev.Checked), "timings": _parts(runs, ev.Timed)},
        "cells": cells,
    }  # fmt: skip


def _prepare(asked: argparse.Namespace) -> None:
    """One run of the first task on each device, side by side."""
    task, *sizes = asked.tasks[0].split(",")
    first = ("run", task, *_sizes(sizes), *_settings(asked), "--depths", "0", "--reply-seconds", "0", *_pool(asked))
    places = asked.devices.split(",") if asked.toolchain == "cuda" else [""]
    chosen = asked.toolchain == "cuda" and not asked.pool  # a cluster's devices have names of their own
    _engines([(*first, "--device", _place(asked, one)) if chosen else first for one in places])


def definition(asked: argparse.Namespace, folder: Path) -> str:
    """The suite's file."""
    depths = asked.samples - 1 if asked.samples else asked.depths
    words = [*_settings(asked), "--depths", str(depths), "--reply-seconds", str(asked.reply_seconds)]
    if asked.samples:
        words += ["--strategy", "best_of", "--samples", str(asked.samples)]
    tasks = {task: _sizes(sizes) for task, *sizes in (one.split(",") for one in asked.tasks)}
    if asked.samples:
        for task, own in tasks.items():
            own += ["--recording", str(_samples(task, asked.toolchain, asked.samples, folder))]
    lines = [f"tasks = {json.dumps(list(tasks))}", f"settings = {json.dumps(' '.join([*words, asked.settings]))}"]
    lines += ["[arms]", *(f'{name} = ""' for name in ("once", "again")[: asked.times])]
    lines += ["[task_settings]", *(f"{task} = {json.dumps(' '.join(own))}" for task, own in tasks.items())]
    return "\n".join(lines) + "\n"


def _samples(task: str, toolchain: str, count: int, folder: Path) -> Path:
    """A recording for `best_of`: as many kernels of the shipped one, each as a whole."""
    shipped = shipped_recording(task, toolchain)
    kernels = kernels_of(shipped)[:count] if shipped else []
    if len(kernels) < count:
        raise SystemExit(f"the recording of {task} leads to {len(kernels)} kernels, not to {count}")
    lines = [Line(StepKind.SYNTHESISE, None, f"Approach: number {number}.\n\n```python\n{kernel}```\n", number)
             for number, kernel in enumerate(kernels)]  # fmt: skip
    file = folder / f"{task}.jsonl"
    header = {"task": task, "toolchain": toolchain, "model": "recorded", "settings": {"strategy": "best_of"}}
    file.write_text(write_recording(header, lines), encoding="utf-8")
    return file


def _settings(asked: argparse.Namespace) -> list[str]:
    return ["--toolchain", asked.toolchain, "--model", "recorded", "--collect", "off"]


def _sizes(given: Sequence[str]) -> list[str]:
    return [word for size in given for word in ("--set", size)]


def _pool(asked: argparse.Namespace) -> list[str]:
    return ["--pool", asked.pool] if asked.pool else []


def _place(asked: argparse.Namespace, device: str) -> str:
    return str(asked.devices.split(",").index(device)) if device.isdecimal() else device


def kernels(run: RunFolder) -> dict[str, dict[str, Any]]:
    """By source, so that the order in which kernels were written does not count."""
    found: dict[str, Judged] = {}
    sources: dict[str, str] = {}
    for entry in journal.read(run.journal_file):
        match entry.event:
            case ev.CandidateCreated(candidate_id=name, source_blob=source):
                sources[name] = source[:12]
                found.setdefault(source[:12], Judged())
            case ev.Compiled(candidate_id=name, result=result) | ev.Checked(candidate_id=name, result=result):
                found[sources[name]].verdicts.append(str(result.verdict))
            case ev.Timed(candidate_id=name, result=result):
                one = found[sources[name]]
                one.speedup, one.noise = result.speedup, result.noise
                one.device = str(result.evidence.get(device_use.DEVICE, ""))
            case _:
                pass
    return {source: asdict(one) for source, one in found.items() if one.verdicts}


def _parts(runs: Sequence[RunFolder], kind: type[ev.Checked | ev.Timed]) -> dict[str, float]:
    """Mean seconds of the checks or timings of all runs: the lease's, and each part's."""
    entries = (entry.event for run in runs for entry in journal.read(run.journal_file))
    found = [event.result.timeline for event in entries if isinstance(event, kind) and event.result.timeline]
    seconds = defaultdict[str, float](float)
    for one in found:
        for name, spent_s in {"the device was held": one.lease_s, **one.parts}.items():
            seconds[name] += spent_s / len(found)
    return {name: round(seconds[name], 3) for name in sorted(seconds, key=lambda name: -seconds[name])}


def _engines(commands: Sequence[Sequence[str]]) -> None:
    """Command lines of the engine, side by side."""
    begun = [
        subprocess.Popen([sys.executable, "-m", "engine", *words], cwd=ROOT, text=True,
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for words in commands
    ]  # fmt: skip
    for words, process in zip(commands, begun, strict=True):
        said = process.communicate()[1]
        if process.returncode not in (0, 1):
            raise SystemExit(f"{' '.join(words)}: {said[-2000:]}")


def compared(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """The ratio of times; of the kernels that both judged the verdicts and speed-ups that differ: by more than the sum
    of both noises, and by the rule for two sessions (`relative.between_sessions`)."""
    pairs = list(_pairs(one, other))
    in_both = {name for name, _, _ in pairs}
    verdicts = [f"{name}: {first.verdicts} and {second.verdicts}"
                for name, first, second in pairs if first.verdicts != second.verdicts]  # fmt: skip
    timed = [(name, first, second, first.speedup, second.speedup) for name, first, second in pairs
             if first.speedup and second.speedup]  # fmt: skip
    apart = [
        f"{name}: {a:.3f}x and {b:.3f}x (±{100 * first.noise:.1f} %, ±{100 * second.noise:.1f} %)"
        for name, first, second, a, b in timed if abs(math.log(a / b)) > first.noise + second.noise
    ]  # fmt: skip
    ratios = [relative.between_sessions(a, first.noise, b, second.noise) for _, first, second, a, b in timed]
    by_session = sum(one.is_faster or one.is_slower for one in ratios)
    return [
        f"time: {other['seconds']} / {one['seconds']} s = {other['seconds'] / one['seconds']:.3f}",
        f"busy: {one['busy']} and {other['busy']}",
        f"kernels judged: {one['judged']} and {other['judged']}, {len(in_both)} of them the same",
        f"states: {'the same' if one['states'] == other['states'] else (one['states'], other['states'])}",
        f"verdicts that differ: {len(verdicts)} of {len(pairs)}", *(f"  {line}" for line in verdicts),
        f"speed-ups beyond both noises: {len(apart)} of {len(timed)}, of two sessions: {by_session}",
        *(f"  {line}" for line in apart),
    ]  # fmt: skip


def _pairs(one: dict[str, Any], other: dict[str, Any]) -> Iterator[tuple[str, Judged, Judged]]:
    theirs = {cell["cell"]: cell["kernels"] for cell in other["cells"]}
    for cell in one["cells"]:
        for source, kernel in cell["kernels"].items():
            if source in theirs.get(cell["cell"], {}):
                yield f"{cell['cell']}, {source}", Judged(**kernel), Judged(**theirs[cell["cell"]][source])


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_subparsers(dest="what", required=True)
    measuring = what.add_parser("measure")
    measuring.add_argument("devices", help="as in CUDA_VISIBLE_DEVICES: 0 or 0,1")
    measuring.add_argument("--tasks", nargs="+", default=list(TASKS), help="with their sizes: swish,batch_size=1024")
    measuring.add_argument("--toolchain", default="cuda")
    measuring.add_argument("--depths", type=int, default=3)
    measuring.add_argument("--times", type=int, choices=(1, 2), default=2, help="how often each is replayed")
    measuring.add_argument("--samples", type=int, help="this many kernels of each recording, written by best_of")
    measuring.add_argument("--settings", default="", help="for each run, as on its command line")
    measuring.add_argument("--reply-seconds", type=float, default=0.0, help="how long a recorded reply takes")
    measuring.add_argument("--at-once", type=int, help="runs at a time (default: one for each device)")
    measuring.add_argument("--pool", default="", help="ray or ray://HOST:PORT")
    measuring.add_argument("--keep", help="file for the figures")
    comparing = what.add_parser("compare")
    comparing.add_argument("one")
    comparing.add_argument("other")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
