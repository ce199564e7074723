"""The compile step of a language whose kernels are compiled when they are launched: the candidate is called once at the
task's sizes, in a process of its own, and what was compiled and tuned is kept for the processes that judge it."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.evaluator import languages, tasks
from engine.evaluator.build import cute_dsl, just_in_time
from engine.evaluator.checks import candidate_failures
from engine.evaluator.checks.candidate_failures import CandidateFailed, FailedBuild, Failure, WorkerEnded
from engine.evaluator.processes.evaluation_request import EvaluationRequest, FirstCalls
from engine.evaluator.processes.worker_pair import WorkerPair
from engine.evaluator.sandbox import OwnFailure
from storage import codec
from storage.results import kernel_names
from storage.results.evaluation_results import KernelResources
from storage.results.vocabulary import Verdict

NOTE = "built.json"
MAX_FILES = 4000
MAX_BYTES = 512 << 20
INSTALL = {
    (
        "triton",
        "cpu",
    ): "this kernel is written in Triton, which is not installed here; its interpreter checks kernels where there "
    "is no GPU: .venv/bin/python -m pip install -r requirements-triton.txt (1 GB installed)",
    (
        "triton",
        "cuda",
    ): "this kernel is written in Triton, which is not installed here: it comes with PyTorch's CUDA builds, see "
    "https://pytorch.org/get-started/locally",
    (
        "cute_dsl",
        "cuda",
    ): "this kernel is written in CuTe's Python DSL, which is not installed here: .venv/bin/python -m "
    "pip install -r requirements-cute-dsl.txt (0.5 GB installed)",
    ("cute_dsl", "cpu"): "this kernel is written in CuTe's Python DSL, which has no interpreter: judge it on a GPU "
    "(--toolchain cuda), or compile it alone: `python -m engine compile FILE --task TASK --arch sm_90a`",
}
Inspect = Callable[[Path, tuple[str, ...]], str]


def ahead(request: EvaluationRequest, folder: Path, inspect: Inspect | None = None) -> EvaluationRequest:
    """The request with what the compile step of its candidate gives, now or before; as it is where it needs none.

    Raises:
        OwnFailure: the language's package is not installed, or runs no kernel on this kind of device.
    """
    if not request.is_just_in_time:
        return request
    language = languages.of(request.source, request.language)
    version = language.compiler.version() if language.compiler else ""
    if not version or (request.device == "cpu" and not language.interpreted):
        raise OwnFailure(INSTALL[language.name, request.device])
    if request.device == "cpu":
        return request
    cache_folder = _kept(request, language.name, version)
    first_calls = _found(cache_folder) or _made(request, folder / "first", cache_folder, inspect)
    return replace(request, first_calls=first_calls)


def _kept(request: EvaluationRequest, language: str, version: str) -> Path:
    ours = "".join(Path(file).read_text() for file in (just_in_time.__file__, cute_dsl.__file__, __file__))
    key_parts = [request.source, request.task_source, version, request.builder.installation.fingerprint, ours]
    key_parts += (
        [json.dumps(modules)] if (modules := tasks.imported.contents(request.task_source, request.source)) else []
    )
    key_parts += [request.policy.variant] if request.policy.variant else []
    key_parts += [f"compiled for {request.details['arch']}"] if request.details.get("arch") else []
    return request.builder.cache / language / hashlib.sha256(json.dumps(key_parts).encode()).hexdigest()[:32]


def _found(cache_folder: Path) -> FirstCalls | None:
    try:
        note = json.loads((cache_folder / NOTE).read_text())
    except FileNotFoundError:
        return None
    resources = tuple(codec.from_plain(KernelResources, plain) for plain in note["resources"])
    return FirstCalls(cache_folder, None, resources, tuple(note["remarks"]), is_cached=True)


def _made(request: EvaluationRequest, folder: Path, cache_folder: Path, inspect: Inspect | None) -> FirstCalls:
    compiled = folder / just_in_time.CACHE
    compiled.mkdir(parents=True)
    with WorkerPair(request, folder, with_reference=False, inspect=inspect, compiles_to=compiled) as workers:
        reply = _called(workers)
        printed = candidate_failures.printed(workers.candidate.output)[-candidate_failures.TAIL :].strip()
    failed = workers.failed_build or _failure(reply, printed, is_all=bool(request.details.get("arch")))
    if failed or isinstance(reply, Failure):
        return FirstCalls(None, failed)
    try:
        choices, resources = _read(reply)
    except ValueError as error:
        return FirstCalls(None, FailedBuild(str(error), str(error), Verdict.REFUSED))
    remarks = tuple(map(str, choices))
    return _put(compiled, cache_folder, FirstCalls(None, None, resources, remarks), codec.to_plain(choices))


def _called(workers: WorkerPair) -> dict[str, Any] | Failure:
    try:
        workers.import_candidate()
        request = workers.request
        question = {"ask": "call_first", "task_source": request.task_source, "seed": workers.call_seed}
        question |= {"backward": request.policy.backward, "dtype": request.policy.dtype, "mode": request.policy.mode}
        workers.stage = "the first call"
        answer = workers.candidate.ask(question, workers.request.times.build_s)
        if "raised" in answer or "missing" in answer:
            raise CandidateFailed(answer, workers.stage)
    except (CandidateFailed, WorkerEnded) as error:
        return candidate_failures.of_error(error, workers.stage, workers.failed_build)
    return answer


def _failure(reply: dict[str, Any] | Failure, printed: str, *, is_all: bool) -> FailedBuild | None:
    """What a compile step may fail of; a kernel that runs into something else is for the check to judge, unless none
    follows (`is_all`)."""
    left = () if is_all else (Verdict.RUNTIME_ERROR, Verdict.OUT_OF_MEMORY)
    if not isinstance(reply, Failure) or reply.verdict in left:
        return None
    more = f"\nIt printed:\n{printed}" if printed and "PassManager" in reply.message else ""
    return FailedBuild(reply.message + more, f"{reply.message}\n{printed}", reply.verdict)


def _read(reply: dict[str, Any]) -> tuple[list[just_in_time.Choice], tuple[KernelResources, ...]]:
    choices = just_in_time.read_choices(reply.get("choices"))
    try:
        resources = tuple(
            KernelResources(
                kernel_names.short(str(kernel["kernel"]))[:200],
                int(kernel["registers"]),
                spill_stores=int(kernel["spill_stores"]),
                shared_bytes=int(kernel["shared_bytes"]),
                stack_bytes=int(kernel.get("stack_bytes", 0)),
            )
            for kernel in reply["kernels"]
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError("what the worker tells of its compiled kernels is malformed") from error
    return choices, resources


def _put(compiled: Path, cache_folder: Path, first_calls: FirstCalls, choices: Any) -> FirstCalls:
    """Keep it, plain files only: the folder was the candidate's."""
    cache_folder.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=".compiled.", dir=cache_folder.parent))
    try:
        (work / just_in_time.CACHE).mkdir()
        _copy(compiled, work / just_in_time.CACHE)
        (work / just_in_time.CHOICES).write_text(json.dumps(choices))
        note = {"resources": codec.to_plain(first_calls.resources), "remarks": first_calls.remarks}
        (work / NOTE).write_text(json.dumps(note))
        work.chmod(0o755)
        try:
            work.rename(cache_folder)
        except OSError:  # another process was first
            if not (cache_folder / NOTE).exists():
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return replace(first_calls, kept=cache_folder)


def _copy(source: Path, target: Path) -> None:
    """Files two folders deep, as the languages lay them out; links and whatever is too much stay behind."""
    count = size = 0
    for path in sorted(source.glob("*/*")):
        if path.is_symlink() or path.parent.is_symlink() or not path.is_file():
            continue
        count, size = count + 1, size + path.stat().st_size
        if count > MAX_FILES or size > MAX_BYTES:
            return
        copy = target / path.parent.name / path.name
        copy.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        copy.chmod(0o644)
