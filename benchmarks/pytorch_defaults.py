"""What PyTorch takes for a task with the settings that it ships with, beside full float32; on a GPU.

    python -m benchmarks.pytorch_defaults tasks/suites/levels/level2/*.py tasks/suites/levels/level3/*.py
    python -m benchmarks.pytorch_defaults --compiled tasks/suites/levels/level2/*.py

Tilewright's baselines of class fp32 keep TF32 off. PyTorch as it ships lets cuDNN round a convolution's operands to
TF32 (`torch.backends.cudnn.allow_tf32`), not those of a product. A line a task and way: milliseconds of both, taken in
turn and each the median of its rounds, and how many times as fast the default is. `--compiled` has torch.compile and
its max-autotune as ways beside eager: minutes a task, most of them to compile.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import runpy
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

ROUNDS = 5
EAGER = "eager"
COMPILED = {"torch.compile": None, "max-autotune": "max-autotune-no-cudagraphs"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--compiled", action="store_true")
    options = parser.parse_args()
    for file in options.files:
        for way, (full, default, seconds) in timed(file, is_compiled=options.compiled).items():
            told = f"full float32 {full:.4f} ms, default {default:.4f} ms, {full / default:.3f}x"
            print(f"{file.stem} {way} {told}; ready after {seconds:.0f} s", flush=True)


def timed(file: Path, *, is_compiled: bool) -> dict[str, tuple[float, float, float]]:
    """By way: median milliseconds of a task file's module with TF32 off and with PyTorch's default, and the seconds
    until both could be called."""
    task: Any = runpy.run_path(str(file))
    torch.manual_seed(0)
    module = task["Model"](*task["get_init_inputs"]()).cuda()
    inputs = [value.cuda() if isinstance(value, torch.Tensor) else value for value in task["get_inputs"]()]
    figures = {}
    with torch.no_grad():
        for way in (EAGER, *COMPILED) if is_compiled else (EAGER,):
            began, calls = time.monotonic(), {}
            for allowed in (False, True):
                torch.backends.cudnn.allow_tf32 = allowed  # what is compiled is compiled for it
                called: Any = copy.deepcopy(module)
                calls[allowed] = called if way == EAGER else torch.compile(called, mode=COMPILED[way])
                calls[allowed](*inputs)
                torch.cuda.synchronize()
            seconds = time.monotonic() - began
            figures[way] = (*in_turn(calls, inputs), seconds)
            torch.compiler.reset()
    return figures


def in_turn(calls: dict[bool, Callable[..., Any]], inputs: list[Any]) -> tuple[float, float]:
    """Median milliseconds of two calls, by whether TF32 is allowed."""
    do_bench = importlib.import_module("triton.testing").do_bench  # only where there is a GPU
    taken: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(ROUNDS):
        for allowed, call in calls.items():
            torch.backends.cudnn.allow_tf32 = allowed
            taken[allowed].append(do_bench(lambda call=call: call(*inputs), warmup=10, rep=60, return_mode="median"))
    return statistics.median(taken[False]), statistics.median(taken[True])


if __name__ == "__main__":
    main()
