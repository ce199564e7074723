"""The head of an exported file: what the kernel reached, under which conditions, and what its verdict leaves open."""

from __future__ import annotations

import ast
import importlib.metadata
import re
from collections.abc import Iterator

from engine.evaluator import tasks
from engine.evaluator.toolchain_table import GPU, HOST, device_of
from storage.results import flags, relative
from storage.results.baselines import BEST_TIMED
from storage.results.check_records import CheckOutcome
from storage.results.evaluation_results import BUSY_PERCENT, TimingResult, used_by_others
from storage.run.labels import Mark
from storage.run.record import Candidate, Record, checks_of
from storage.run.settings import RunSettings

NEEDS = {
    HOST: """# Runs on the CPU. Needs PyTorch, ninja, a C++ compiler and, from pip, nvidia-cutlass, nvidia-cuda-runtime,
# nvidia-cuda-cccl and nvidia-cuda-crt: headers only, no GPU.""",
    GPU: """# Runs on an NVIDIA GPU. Needs a CUDA build of PyTorch, the CUDA toolkit (nvcc), ninja, a C++ compiler
# and CUTLASS: pip install nvidia-cutlass, or set CUTLASS_PATH.""",
}
NEEDS_TRITON = """# Runs on an NVIDIA GPU. Needs a CUDA build of PyTorch, which brings Triton along, and a C compiler.
# Import it from a file: Triton reads the text of its kernels there (KernelBench: backend triton)."""
NEEDS_CUTE_DSL = """# Runs on an NVIDIA GPU. Needs a CUDA build of PyTorch and CuTe's Python DSL:
# pip install "nvidia-cutlass-dsl[cu13]==4.8.1". Import it from a file: the DSL reads the text of its kernels there.
# It is compiled at the first call with each shape, which takes about a second."""
STATE = "state_dict"  # the check of it, as engine.evaluator.checks.findings names it
ALONE = "It was timed in a process of its own; inside one program expect less."
_DTYPES = {"bf16": "bfloat16", "fp16": "float16"}
_OTHER_DTYPES = re.compile(
    r"\b(dtype|double|half|bfloat16|float16|float64|float8\w*|complex\w*|numpy|np|from_numpy|set_default\w*)\b"
    r"|\.(to|type|load)\("
)
_PLAIN_MODULES = {"torch", "math", "typing", "dataclasses", "collections", "functools", "itertools", "__future__"}


def heading(
    run_id: str, record: Record, candidate: Candidate, number: int, measured: str, mark: Mark | None = None
) -> str:
    """The comment at the top of the file of one kernel; `measured` is a sentence on a timing in one program, `mark`
    what a person found who read it."""
    head = f"# Kernel {number} of Tilewright run {run_id}, task {record.settings.task_name}"
    timed = candidate.trusted if record.limit else None
    if timed and record.limit:
        head += f": {_over_eager(timed)} on {record.limit.model}{_over_best_alternative(record, timed)}"
    head += f"; {record.settings.policy.measured}" if record.settings.policy.variant else ""
    sentences = [
        *([f"It was {mark.in_words.rstrip('.')}."] if mark else ()),
        *(warnings(record, timed) if timed else ()),
        *_conditions(record, timed),
        *_notes(record, candidate),
        *([ALONE] if timed else ()),
        *([measured] if measured else ()),
    ]
    of_language = {"triton": NEEDS_TRITON, "cute_dsl": NEEDS_CUTE_DSL}
    needs = of_language.get(record.settings.language) or NEEDS[device_of(record.settings.toolchain)]
    return "\n".join([f"{head}.", *(f"# {sentence}" for sentence in sentences), needs])


def judged_dtype(settings: RunSettings) -> str:
    """The one floating dtype that a kernel was judged with; empty where the task's text may make others."""
    if settings.policy.dtype:
        return _DTYPES[settings.policy.dtype]
    names = [
        name
        for node in ast.walk(ast.parse(settings.task_source))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    ]
    is_plain = all(name.partition(".")[0] in _PLAIN_MODULES for name in names)
    return "float32" if is_plain and not _OTHER_DTYPES.search(settings.task_source) else ""


def judged_with(settings: RunSettings) -> str:
    """What a kernel was judged with, in words."""
    dtype = judged_dtype(settings)
    sizes = ", ".join(f"{name}={size}" for name, size in tasks.sizes_of(settings.task_source).items())
    return f"{f'{dtype} tensors' if dtype else 'the tensors of its task'}{f' at {sizes}' if sizes else ''}"


def _over_eager(timed: TimingResult) -> str:
    low, high = timed.speedup_interval
    faster = "" if low > 1 else ", slower than it" if high < 1 else ", not faster beyond the noise"
    return f"{timed.speedup:.3g}x eager PyTorch (95 % interval {low:.3g} to {high:.3g}x{faster})"


def _over_best_alternative(record: Record, timed: TimingResult) -> str:
    """The kernel over the fastest baseline beside eager, where that is faster than eager."""
    fastest = record.baseline.result if record.baseline else None
    if record.baseline is None or fastest is None or fastest.speedup <= 1:
        return ""
    over = relative.over(timed.figures, fastest.figures)
    slower = ", slower than it" if over.is_slower else "" if over.is_faster else ", not faster beyond the noise"
    interval = f"{over.low:.3g} to {over.high:.3g}x{slower}"
    return f"; {over.speedup:.3g}x {BEST_TIMED}, {record.baseline.name} ({interval})"


def warnings(record: Record, timed: TimingResult) -> Iterator[str]:
    """That a kernel is slower than eager, or than the best alternative: a sentence each."""
    low, high = timed.speedup_interval
    if high < 1:
        interval = f"95 % interval {low:.3g} to {high:.3g}x"
        yield f"This kernel is slower than eager PyTorch: {timed.speedup:.3g}x ({interval}). Do not use it for speed."
    fastest = record.baseline.result if record.baseline else None
    if record.baseline and fastest and fastest.speedup > 1:
        over = relative.over(timed.figures, fastest.figures)
        if over.is_slower:
            interval = f"95 % interval {over.low:.3g} to {over.high:.3g}x"
            name = record.baseline.name
            yield f"This kernel is slower than {name}: {over.speedup:.3g}x ({interval}). For speed use {name}."


def _conditions(record: Record, timed: TimingResult | None) -> Iterator[str]:
    settings = record.settings
    yield f"Judged with {judged_with(settings)}; {settings.policy.measured}, toolchain {settings.toolchain}."
    if timed:
        eager_ms = relative.baseline_ms(timed.speedup, timed.latency_ms) or timed.baseline_latency_ms
        beside = [f"eager {eager_ms:.4g} ms beside it by the pairs' median ratio"]
        for name, measured in record.alternatives.items():
            told = f"{measured.result.speedup:.3g}x eager" if measured.result else f"not timed ({measured.failure})"
            beside.append(f"{name} {' '.join(told.split())}")
        yield f"A call took {timed.latency_ms:.4g} ms. Baselines: {', '.join(beside)}."
        if load := _load(timed):
            yield f"While it was timed the machine was {load}."
    versions = ", ".join(f"{name} {version}" for name, version in _versions())
    yield f"Exported on a machine with {versions}; a run does not record those it was judged with."


def _load(timed: TimingResult) -> str:
    """Busy or quiet, where the timing tells."""
    share = used_by_others(timed.evidence)
    if share is None:
        return ""
    threads = timed.evidence.get("threads", "")
    told = f"others used {share} % of the processors before{f'; {threads} threads' if threads else ''}"
    return f"{'busy' if share > BUSY_PERCENT else 'quiet'} ({told})"


def _versions() -> Iterator[tuple[str, str]]:
    for title, package in (
        ("PyTorch", "torch"),
        ("CUTLASS", "nvidia-cutlass"),
        ("Triton", "triton"),
        ("CuTe DSL", "nvidia-cutlass-dsl"),
    ):
        try:
            yield title, importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue


def _notes(record: Record, candidate: Candidate) -> Iterator[str]:
    """What whoever uses the kernel must know of its verdict."""
    checked, settings, checks = candidate.checked, record.settings, checks_of(record.events, candidate, record.limit)
    if checks:
        yield f"{flags.counted(checks)}."
    for flag in flags.flags(checks):
        if flag.is_look:
            yield f"To look at, {flag.check}: {flag.advice}"
    if kept := tasks.kept_rules(checked.rules if checked else settings.policy.rules, settings.task_source):
        yield f"It was {kept}: whether it is right with those of a trained model is not known."
    proofs = checked.proofs if checked else ()
    if any(check.check == STATE and check.standing is CheckOutcome.FLAGGED for check in proofs):
        yield "It does not load the original's weights: names, shapes or dtypes of its state_dict are others."
    if not settings.policy.backward:
        yield "It has no backward: a gradient through it is refused (a run with --backward makes both passes)."
