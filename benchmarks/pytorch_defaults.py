"""What PyTorch takes for a task with the settings that it ships with, beside full float32; on a GPU.

    python -m benchmarks.pytorch_defaults tasks/suites/levels/level2/*.py tasks/suites/levels/level3/*.py

Tilewright's baselines of class fp32 keep TF32 off. PyTorch as it ships lets cuDNN round a convolution's operands to
TF32 (`torch.backends.cudnn.allow_tf32`), not those of a product. A line a task: eager milliseconds of both, taken in
turn and each the median of its rounds, and how many times as fast the default is.
"""

from __future__ import annotations

import argparse
import importlib
import runpy
import statistics
from pathlib import Path
from typing import Any

import torch

ROUNDS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    for file in parser.parse_args().files:
        full, default = eager_ms(file)
        print(f"{file.stem} full float32 {full:.4f} ms, default {default:.4f} ms, {full / default:.3f}x", flush=True)


def eager_ms(file: Path) -> tuple[float, float]:
    """Median milliseconds of a task file's module, with TF32 off and with PyTorch's default."""
    do_bench = importlib.import_module("triton.testing").do_bench  # only where there is a GPU
    task: Any = runpy.run_path(str(file))
    torch.manual_seed(0)
    module = task["Model"](*task["get_init_inputs"]()).cuda()
    inputs = [value.cuda() if isinstance(value, torch.Tensor) else value for value in task["get_inputs"]()]
    taken: dict[bool, list[float]] = {False: [], True: []}
    with torch.no_grad():
        for _ in range(ROUNDS):
            for allowed in taken:
                torch.backends.cudnn.allow_tf32 = allowed
                taken[allowed].append(do_bench(lambda: module(*inputs), warmup=10, rep=60, return_mode="median"))
    return statistics.median(taken[False]), statistics.median(taken[True])


if __name__ == "__main__":
    main()
