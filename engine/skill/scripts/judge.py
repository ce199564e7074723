#!/usr/bin/env python3
"""Judges a kernel file with Tilewright and says in a few lines what came of it and what to do next.

    scripts/judge.py TASK KERNEL [--toolchain cuda] [--profile] [--baselines compile] [options of `evaluate`]

Exit code: 0 correct, 1 not correct, 2 and more: it could not be judged.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

COMMAND = Path(__file__).resolve().parent / "tilewright"


def main(words: Sequence[str]) -> int:
    """Judge one file."""
    if len(words) < 2:
        print(__doc__)
        return 2
    print("building, checking and timing: mostly one to two minutes", file=sys.stderr)
    done = subprocess.run([COMMAND, "evaluate", *words, "--json"], stdout=subprocess.PIPE, text=True, check=False)
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        return done.returncode or 2
    print("\n".join(told(answer)))
    return 0 if answer["verdict"] == "passed" else 1


def told(answer: dict[str, Any]) -> Iterator[str]:
    """The answer of `evaluate` as lines."""
    cached = "cached" in (answer["evidence"] or {})
    yield f"verdict: {answer['verdict']}" + " (remembered)" * cached
    remarks = [] if answer["profile"] else answer["remarks"]  # a profile has them too
    yield from filter(None, [answer["message"].strip(), *remarks])
    if answer["max_error"] is not None:
        yield f"error nearest its tolerance: {answer['max_error']:.2g} of {answer['tolerance']:.2g} allowed"
    if answer["speedup"] is not None:
        yield from speed(answer)
    elif answer.get("untimed"):
        yield f"not timed: {answer['untimed']}"
    if answer["profile"]:
        yield "profile: " + (answer["profile"].get("summary") or answer["profile"].get("unavailable", "")).strip()
    yield "next: " + advice(answer)


def speed(answer: dict[str, Any]) -> Iterator[str]:
    """How fast it is over what one would run instead."""
    low, high = answer["speedup_interval"]
    yield (f"speed-up: {answer['speedup']:.3g} over eager PyTorch (between {low:.3g} and {high:.3g}), "
           f"{answer['latency_ms']:.4g} ms against {answer['baseline_latency_ms']:.4g} ms")  # fmt: skip
    for other in answer["baselines"]:
        yield f"over {other['name']}: " + (other["failure"] or f"{other['speedup']:.3g}")


def advice(answer: dict[str, Any]) -> str:
    """What to do next."""
    if answer["verdict"] != "passed":
        return "mend what the message names, and nothing else; references/verdicts.md explains it"
    if answer["speedup"] is None:
        return "judge it again, on a machine that is quiet"
    low, high = answer["speedup_interval"]
    if high < 1:
        return (
            "keep a copy: it is correct, and slower than PyTorch. Change one thing; --profile says what holds it back"
        )
    if low <= 1:
        return "keep a copy: it is correct, and the noise hides whether it is faster. Change one thing"
    return "keep a copy: it is correct and faster. Change one thing more, or end (SKILL.md, When to stop)"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
