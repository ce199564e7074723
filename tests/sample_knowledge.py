"""Synthetic evidence under a home, of any size: attempts of the shipped techniques in their states. The same seed gives
the same rows."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from storage.knowledge import files, seed
from storage.knowledge.failures import rule_id, worded_name
from storage.knowledge.records import (
    Bottleneck,
    Category,
    Evidence,
    FailureCase,
    Outcome,
    Prior,
    Revision,
    State,
    Technique,
)
from storage.results.vocabulary import KernelClass

DEVICES = (("NVIDIA H200", "sm_90a", "cuda"), ("NVIDIA L40S", "sm_89", "cuda"), ("AMD EPYC 9654", "avx512", "cpu"))
TASKS = (
    ("square_matmul", KernelClass.MATMUL),
    ("softmax", KernelClass.REDUCTION),
    ("swish", KernelClass.ACTIVATION),
    ("causal_attention", KernelClass.ATTENTION),
)
FAILURES = (Outcome.INCORRECT, Outcome.NOT_COMPILED, Outcome.PATCH_FAILED)
ERRORS = {
    Outcome.INCORRECT: "output[3, 17] is 0.25, expected 1.5; largest error 1.2e+00",
    Outcome.NOT_COMPILED: "error: no instance of function template <cute::copy> matches the argument list",
    Outcome.PATCH_FAILED: "edit 2: line 118 does not read as `old_code` says",
}


def write_knowledge(home: Path, attempts: int = 80, run_ids: Sequence[str] = ("told",), number: int = 0) -> None:
    """Evidence of these runs, failures, a discovered state, a technique of its own and a change by a person."""
    files.append_evidence(sample_rows(attempts, run_ids, number), home / "knowledge")
    files.append_cases(sample_cases(run_ids), home / "knowledge")
    for revision in sample_revisions(run_ids[0]):
        files.append_revision(revision, home / "knowledge")


def sample_rows(attempts: int, run_ids: Sequence[str], number: int = 0, start: float = 1.75e9) -> Iterator[Evidence]:
    """So many attempts, dealt out to the runs in turn; each run's kernels are called as those of `tests.samples`."""
    draw = random.Random(number)
    shipped = seed.revision()
    architectures = {one.name: one for one in shipped.techniques}
    for i in range(attempts):
        prior = shipped.priors[min(int(draw.expovariate(0.06)), len(shipped.priors) - 1)]
        fitting = [one for one in DEVICES if architectures[prior.technique].suits(architecture=one[1])]
        device, architecture, toolchain = draw.choice(fitting or DEVICES)
        task, kernel_class = draw.choice(TASKS)
        predicted = round(prior.gain * draw.uniform(0.85, 1.3), 2)
        worse = 0.22 if len(prior.technique) % 4 == 1 else 0.0
        gain = max(0.4, draw.lognormvariate(0.3 * (predicted - 1) - worse, 0.12))
        outcome = _outcome(gain, draw)
        is_timed = outcome.is_timed
        yield Evidence(
            run_id=run_ids[i % len(run_ids)],
            candidate_id=f"c{i // len(run_ids) + 1:03d}",
            technique=prior.technique,
            outcome=outcome,
            at=start + 240.0 * i,
            state=prior.state if draw.random() < 0.9 else "",
            task=task,
            kernel_class=kernel_class,
            language="cute",
            toolchain=toolchain,
            device=device,
            architecture=architecture,
            precision="fp32",
            strategy="kernelblaster" if i % 3 else "cutegen",
            model="sample-model",
            parent_hash=f"{i:064x}",
            child_hash=f"{i + 1:064x}",
            predicted_gain=predicted if draw.random() < 0.8 else None,
            gain=gain if is_timed else None,
            gain_low=gain * 0.985 if is_timed else None,
            gain_high=gain * 1.015 if is_timed else None,
            over_eager=2 * gain if is_timed else None,
            over_best=1.25 * gain if is_timed else None,
            limit_share=0.45,
            tokens=draw.randrange(4_000, 30_000),
            error=ERRORS.get(outcome, ""),
        )


def sample_cases(run_ids: Sequence[str], start: float = 1.75e9) -> Iterator[FailureCase]:
    """A failure that rules are made of, one that was never mended, and one whose rule has faded."""
    plain = FailureCase(run_ids[0], "c001", start, "cute", "cuda", task="square_matmul", model="sample-model")
    gemm = "no instance of function template `cute::gemm` matches the argument list"
    tail = "wrong output in the last columns"
    words = "bound the last tile's columns by N"
    faded = worded_name(rule_id("cute", "cuda", tail), words)
    failed = [
        (gemm, ()),
        (gemm, ()),
        (tail, ()),
        (tail, ()),
        (tail, (faded,)),
        (tail, (faded,)),
        ("`ptx` is unknown", ()),
    ]
    for number, (signature, told) in enumerate(failed, 2):
        shown = replace(plain, candidate_id=f"c{number:03d}", at=start + number, signature=signature, message=signature)
        yield replace(shown, told=told)
    yield replace(plain, candidate_id="c020", at=start + 20, mends=gemm, words="pass B as (N, K) to cute::gemm")
    yield replace(plain, candidate_id="c021", at=start + 21, mends=tail, words=words)


def _outcome(gain: float, draw: random.Random) -> Outcome:
    if draw.random() < 0.2:
        return draw.choice(FAILURES)
    return Outcome.FASTER if gain > 1.015 else Outcome.SLOWER if gain < 0.985 else Outcome.SAME


def sample_revisions(run_id: str, at: float = 1.7501e9) -> Iterator[Revision]:
    """What a run and a person have changed."""
    found = State(
        "discovered_memory_1", Bottleneck.MEMORY, "Loads hit the L2 and stores write partial sectors back.",
        ("partial writes",), is_discovered=True, inherits="cache_inefficient",
    )  # fmt: skip
    whole = Technique(
        "whole-sector stores", Category.MEMORY, "Collect results in shared memory and store whole sectors.",
        "Helps where a warp's stores touch parts of many sectors.", "Hurts where results are contiguous already.",
        architectures=("sm_",),
    )  # fmt: skip
    prior = Prior(found.name, whole.name, 1.2, 0.6)
    yield Revision(
        f"{run_id}-r1", at, run_id, "Stores wrote partial sectors in three kernels; no known state told so.", (found,),
        (whole,), (prior,),
    )  # fmt: skip
    changed = Prior("memory_bandwidth_saturated", "vectorised loads", 1.02, 0.3)
    yield Revision("person-1", at + 900, "ada@example.org", "No gain on H200 in five runs.", priors=(changed,))
