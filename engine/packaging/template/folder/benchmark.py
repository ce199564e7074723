"""What the kernels gain in one process, as a program would use them: python benchmark.py [--compile]

Calls of the kernel's module and of PyTorch's own alternate; on a GPU the L2 cache is overwritten before each. Prints
medians, their ratio and its 95 % interval.
"""

import argparse
import json
import statistics
import time

import tilewright_package as package
import torch
from tilewright_package import _operators


def timed(call, device, flush):
    if device.type == "cuda":
        flush.zero_()
        torch.cuda._sleep(1_000_000)  # the host is ahead of the GPU, as in a program that does not wait for each call
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        end.synchronize()
        return start.elapsed_time(end)
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1e3


def compared(kernel, other, device, seconds):
    flush = torch.empty(1 << 28, dtype=torch.uint8, device=device) if device.type == "cuda" else None
    for call in (kernel, other, kernel, other):
        call()
    ours, theirs = [], []
    until = time.monotonic() + seconds
    while len(ours) < 10 or (time.monotonic() < until and len(ours) < 500):
        ours.append(timed(kernel, device, flush))
        theirs.append(timed(other, device, flush))
    ratios = sorted(b / a for a, b in zip(ours, theirs, strict=True))
    count = len(ratios)
    aside = max(0, int((count - 1.96 * count**0.5) / 2))
    return {
        "kernel_ms": statistics.median(ours), "other_ms": statistics.median(theirs),
        "speedup": statistics.median(ratios), "interval": [ratios[aside], ratios[count - 1 - aside]], "pairs": count,
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compile", action="store_true", help="beside torch.compile too")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    device = torch.device(package.ENTRIES[0].device)
    found = []
    for number, entry in enumerate(package.ENTRIES):
        original = _operators.reference_of(entry).to(device).eval()
        module = package.from_module(original, is_same=True)
        inputs = [x.to(device) if isinstance(x, torch.Tensor) else x for x in package.example_inputs(entry)]
        others = {"eager": original}
        if options.compile:
            others["torch.compile"] = torch.compile(original)
        for name, other in others.items():
            with torch.no_grad():
                row = compared(lambda: module(*inputs), lambda: other(*inputs), device, options.seconds)  # noqa: B023
            found.append({"entry": number, "kernel": entry.kernel, "over": name, **row})
            low, high = row["interval"]
            if not options.json:
                print(
                    f"{entry.kernel}: {row['kernel_ms']:.4g} ms, {row['speedup']:.3g}x {name} ({low:.3g} to {high:.3g})"
                )
    if options.json:
        print(json.dumps(found))
    else:
        print(package.report())


if __name__ == "__main__":
    main()
