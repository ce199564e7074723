"""One suite of recordings on one device of this host and on several: how long it takes, and whether it says the same.

    python -m benchmarks.several_devices measure 0 --keep one.json          in about 3 minutes on one H200
    python -m benchmarks.several_devices measure 0,1 --keep two.json
    python -m benchmarks.several_devices compare one.json two.json

`measure` names devices as CUDA_VISIBLE_DEVICES does. It works in a home of its own, in which one kernel has been built
and timed on each device before: neither starts with headers to build or limits to measure. The eight tasks are of one
size, so that a device does not stand idle at the end because the other one has the longest run. `--depths` cuts the
recordings; `--settings` goes to each run, such as `--width 3`.
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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.suites import measured
from storage import device_use, journal
from storage import events as ev
from storage.folder import RunFolder, runs_folder
from storage.suites import files
from storage.suites.standing import fold

ROOT = Path(__file__).resolve().parent.parent
TASKS = ("elu", "gelu", "hard_sigmoid", "hard_tanh", "leaky_relu", "selu", "sigmoid", "softsign")


def main() -> int:
    """Measure or compare."""
    options = _options()
    if options.what == "measure":
        found = measure(options)
        print(json.dumps(found, indent=1))
        if options.keep:
            Path(options.keep).write_text(json.dumps(found))
        return 0
    one, several = (json.loads(Path(path).read_text()) for path in (options.one, options.several))
    print("\n".join(compared(one, several)))
    return 0


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """The suite's time, the share of it in which the devices were held, and what came of each cell."""
    os.environ["CUDA_VISIBLE_DEVICES"] = options.devices
    folder = Path(tempfile.mkdtemp(prefix="several-devices."))
    os.environ["TILEWRIGHT_HOME"] = str(folder / "home")
    settings = f"--toolchain {options.toolchain} --model recorded --collect off {options.settings}"
    first = ("run", options.tasks[0], *settings.split(), "--depths", "0")
    places = options.devices.split(",") if options.toolchain == "cuda" else []
    _engines([(*first, "--device", _place(options, device)) for device in places] or [first])
    file = folder / "devices.toml"
    limits = f"--depths {options.depths} --reply-seconds {options.reply_seconds}"
    file.write_text(f'tasks = {json.dumps(options.tasks)}\nrepeats = {options.repeats}\n'
                    f'settings = "{settings} {limits}"\n\n[arms]\nrecorded = ""\n')  # fmt: skip
    began = time.time()
    at_once = ("--at-once", str(options.at_once)) if options.at_once else ()
    _engines([("suite", "run", str(file), *at_once)])
    ended = time.time()
    suite = fold(files.read(files.folder_of("devices")))
    assert suite is not None
    results = measured.of_suite(suite)
    held = device_use.uses(began, ended + 1)
    names = sorted({one.device for one in held})
    return {
        "devices": options.devices, "seconds": round(ended - began, 1),
        "busy": {name: round(sum(one.ended - one.began for one in held if one.device == name) / (ended - began), 3)
                 for name in names},
        "waited_s": round(sum(one.waited_s for one in held) / max(len(held), 1), 2),
        "cells": [
            {"task": one.cell.task, "repeat": one.cell.repeat, "state": str(one.state),
             "verdicts": _verdicts(RunFolder(runs_folder() / (one.run_id or ""))),
             "speedups": [[kernel.speedup, kernel.noise] for kernel in results[one.run_id or ""].timed]}
            for one in suite.planned
        ],
    }  # fmt: skip


def _verdicts(run: RunFolder) -> list[str]:
    judged = [entry.event for entry in journal.read(run.journal_file)]
    return [str(one.result.verdict) for one in judged if isinstance(one, ev.Compiled | ev.Checked)]


def _place(options: argparse.Namespace, device: str) -> str:
    return str(options.devices.split(",").index(device)) if device.isdecimal() else device


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


def compared(one: dict[str, Any], several: dict[str, Any]) -> list[str]:
    """The ratio of times, verdicts that differ, and speed-ups that differ by more than both noises."""
    said = [f"time: {several['seconds']} / {one['seconds']} s = {several['seconds'] / one['seconds']:.3f}",
            f"busy: {one['busy']} and {several['busy']}"]  # fmt: skip
    apart, kernels, verdicts = [], 0, []
    for first, second in zip(one["cells"], several["cells"], strict=True):
        name = f"{first['task']} {first['repeat']}"
        if (first["state"], first["verdicts"]) != (second["state"], second["verdicts"]):
            verdicts.append(f"{name}: {first['verdicts']} and {second['verdicts']}")
        for (a, noise), (b, other) in zip(first["speedups"], second["speedups"], strict=False):
            kernels += 1
            if abs(math.log(a / b)) > noise + other:
                apart.append(f"{name}: {a:.3f}x and {b:.3f}x (±{100 * noise:.1f} %, ±{100 * other:.1f} %)")
    said.append(f"verdicts: {'the same' if not verdicts else '; '.join(verdicts)}")
    said.append(f"speed-ups beyond both noises: {len(apart)} of {kernels}" + "".join(f"\n  {one}" for one in apart))
    return said


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_subparsers(dest="what", required=True)
    measuring = what.add_parser("measure")
    measuring.add_argument("devices", help="as in CUDA_VISIBLE_DEVICES: 0 or 0,1")
    measuring.add_argument("--tasks", nargs="+", default=list(TASKS))
    measuring.add_argument("--toolchain", default="cuda")
    measuring.add_argument("--depths", type=int, default=1)
    measuring.add_argument("--repeats", type=int, default=1)
    measuring.add_argument("--settings", default="", help="for each run, as on its command line")
    measuring.add_argument("--reply-seconds", type=float, default=0.0, help="how long a recorded reply takes")
    measuring.add_argument("--at-once", type=int, help="runs at a time (default: one for each device)")
    measuring.add_argument("--keep", help="file for the figures")
    comparing = what.add_parser("compare")
    comparing.add_argument("one")
    comparing.add_argument("several")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
