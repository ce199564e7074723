"""What is seen of a candidate beside its answers. On the CPU its worker is watched from outside while it runs: clock,
processor time, faults, switches, perf samples. On a GPU it is laid out for a program that is no worker, profiler or
sanitizer, and that is run. Knows no metric."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import re
import statistics
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engine.errors import ProfileUnavailable
from engine.evaluator import sandbox, tasks
from engine.evaluator.checks.candidate_failures import Failure, TimedCallFailed
from engine.evaluator.checks.clock import Call, waited_share
from engine.evaluator.checks.trials import Style
from engine.evaluator.machine import processes, quiet
from engine.evaluator.processes.evaluation_request import EvaluationRequest
from engine.evaluator.processes.timed_worker import TimedWorker
from engine.evaluator.processes.worker_pair import WorkerPair, call_candidate
from engine.evaluator.profiling import perf, sampled_lines
from engine.evaluator.profiling.cpu_profile import Observation
from engine.evaluator.profiling.device import nsight
from engine.evaluator.profiling.device.ceilings import DeviceCeilings
from engine.evaluator.profiling.device.profile import WITHOUT_COUNTERS, Subject
from engine.evaluator.profiling.device.profile import profile as profile_subject
from engine.evaluator.sandbox import Done, Isolation
from engine.evaluator.sandbox.probe import DEMANDED
from storage import codec
from storage.results.hardware_limit import HardwareLimit
from storage.results.profile_results import ProfileResult

MIN_CALLS = 1
MAX_CALLS = 2000
SAMPLED_S = 0.8
MAX_OUTPUT = 16 << 20  # bytes; the source lines of one product built on CuTe took 4 MB
RAN = 0.25  # of the busiest thread's time: waking and going back to sleep takes a waiting thread some, too


def observe(workers: WorkerPair, folder: Path) -> dict[str, Any] | Failure:
    """Call the candidate as a timing does, on one set of inputs for about a second, and report.

    Nothing is counted but what happens within the calls: in between the worker stands still.
    """
    assert workers.reference is not None
    leaves = workers.ask_reference("make", seed=int.from_bytes(os.urandom(6), "little"), style=str(Style.OWN))["leaves"]
    call_candidate(workers, leaves, "profile warm-up")
    workers.reference.stop()
    workers.ask_candidate("load", "a profiled call", leaves=leaves, poison="", seed=workers.call_seed)
    pid = workers.candidate.inner_pid
    quiet.raise_session(pid)
    side = TimedWorker(workers.candidate, functools.partial(_ask, workers), workers.shared, lambda reply: None)
    sampling = perf.Sampling(pid, folder, perf.hardware_events())
    time.sleep(0.15)
    try:
        side.halt()
        before, ran_before = _usage(pid), processes.each_ns(pid)
        calls = _calls(side)
        after, ran = _usage(pid), processes.each_ns(pid)
    except TimedCallFailed as error:
        return error.failure
    finally:
        shares, counts = sampling.finish()
    # The worker has loaded copies: what reads the tables reads what we have built.
    copies = {answer["library"]: built.library for answer, built in zip(workers.answers, workers.builds, strict=True)}
    lines, samples = sampled_lines.of(sampling.script(), copies)
    used = {name: (after[name] - before[name]) / len(calls) for name in before}
    groups = [workers.trusted[name] for name in ("inputs", "own", "weights")]
    processor = used["user"] + used["system"]
    return asdict(
        Observation(
            calls=len(calls),
            latency_ms=statistics.median(call.worker_ns for call in calls) / 1e6,
            wall_ms=sum(call.evaluator_ns for call in calls) / len(calls) / 1e6,
            processor_ms=used["processor_ns"] / 1e6,
            waited_share=waited_share(calls),
            ran=ran_threads([ran[name] - ran_before.get(name, 0) for name in ran], used["processor_ns"] * len(calls)),
            system_share=used["system"] / processor if processor else 0.0,
            minor_faults=used["minor_faults"],
            major_faults=used["major_faults"],
            voluntary_switches=used["voluntary"],
            involuntary_switches=used["involuntary"],
            threads=int(os.environ.get("OMP_NUM_THREADS", "1")),
            min_bytes=sum(tensor.nbytes for group in groups for tensor in group),
            min_flop=workers.needed_flop,
            libraries=tuple(copies.values()),
            remarks=tuple(remark for built in workers.builds for remark in built.remarks),
            shares=tuple(shares),
            lines=tuple(lines),
            samples=samples,
            counts={name: value / len(calls) for name, value in counts.items()},
        )
    )


def ran_threads(each_ns: Sequence[int], processor_ns: float) -> int | None:
    """How many threads worked in the calls, from what each was given; None where some ended with their call.

    However busy the machine is, a thread with work to do gets its turn: load changes how much it was given, not that.
    """
    if not each_ns or sum(each_ns) < (1 - RAN) * processor_ns:
        return None
    return sum(time_ns >= RAN * max(each_ns) for time_ns in each_ns)


def _ask(workers: WorkerPair, name: str, **arguments: Any) -> dict[str, Any]:
    return workers.ask_candidate(name, "a profiled call", **arguments)


def _calls(side: TimedWorker) -> list[Call]:
    deadline = time.monotonic() + SAMPLED_S
    calls: list[Call] = []
    while len(calls) < MIN_CALLS or (time.monotonic() < deadline and len(calls) < MAX_CALLS):
        calls.append(side.again())
    return calls


def _usage(pid: int) -> dict[str, float]:
    """Totals since the process started, as the kernel counts them; of switches those of the living threads."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    totals = {
        "minor_faults": float(words[7]),
        "major_faults": float(words[9]),
        "user": float(words[11]),
        "system": float(words[12]),
        "processor_ns": float(processes.total_ns(pid)),
        "voluntary": 0.0,
        "involuntary": 0.0,
    }
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            for line in (task / "status").read_text().splitlines():
                if line.startswith("voluntary_ctxt"):
                    totals["voluntary"] += float(line.split()[1])
                if line.startswith("nonvoluntary_ctxt"):
                    totals["involuntary"] += float(line.split()[1])
    return totals


WARM_UP_CALLS = 3
ISOLATION = "isolation"
PARAMETERS = Path("/proc/driver/nvidia/params")
SANITIZER_S = 60.0
MOST_ERRORS = 3
MOST_LINES = 12
_MARK = re.compile(r"^=+ ?")
_NOISE = re.compile(r"^(Host Frame|Saved host backtrace|in /|COMPUTE-SANITIZER|Program hit|ERROR SUMMARY|LEAK)")


@dataclass(frozen=True, slots=True)
class Staged:
    """A folder as `engine.evaluator.profiling.device.target` wants it, where the candidate's libraries are, and what
    else task and candidate import."""

    folder: Path
    libraries: Path
    modules: tuple[Path, ...] = ()

    @classmethod
    def of(cls, workers: WorkerPair, folder: Path) -> Staged:
        """From workers that have imported the candidate."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "candidate.py").write_text(workers.request.source)
        (folder / "task.py").write_text(workers.request.task_source)
        (folder / "builds.json").write_text(json.dumps(workers.answers))
        order: dict[str, object] = {"seed": workers.call_seed, "calls": WARM_UP_CALLS}
        policy = workers.request.policy
        order |= {
            "backward": policy.backward,
            "dtype": policy.dtype,
            "precision": policy.precision,
            "mode": policy.mode,
        }
        if workers.place is not None:
            order["kernels"] = str(workers.place.kept.resolve()) if workers.place.kept else ""
            order["language"] = workers.place.language
        (folder / "request.json").write_text(json.dumps(order))
        of_task = tasks.imported.files(workers.request.task_source)
        return cls(folder, workers.libraries, (*of_task, *tasks.imported.trees(policy.imports)))

    def run(self, words: list[str], limit_s: float, isolation: Isolation) -> Done:
        """Run a program in the folder, in a sandbox."""
        readable = (*nsight.readable_trees(words[0]), self.libraries, *self.modules)
        return sandbox.run(words, self.folder, limit_s, isolation, readable, max_output=MAX_OUTPUT)


def profile(request: EvaluationRequest, staged: Staged) -> dict[str, Any]:
    """The result as plain JSON, or `failure`."""
    details = request.details
    subject = Subject(
        staged.folder,
        str(details["kernel_hash"]),
        codec.from_plain(DeviceCeilings, details["ceilings"]),
        codec.from_plain(HardwareLimit, details["limit"]),
        Path(details["cache"]),
    )
    result: ProfileResult | None = None
    why = ""
    isolations = isolations_to_try(
        request.isolation, may_weaken=_may_weaken(request), is_for_administrators=_is_for_administrators()
    )
    for isolation in isolations:

        def run(command: list[str], limit_s: float, isolation: Isolation = isolation) -> Done:
            return staged.run(command, limit_s, isolation)

        try:
            profiled = profile_subject(subject, str(details["ncu"]) or None, run)
        except ProfileUnavailable as error:
            why = why or str(error)
            continue
        stood = ", ".join(name for name, stands, _ in isolation.described() if stands)
        profiled = dataclasses.replace(profiled, evidence={**profiled.evidence, ISOLATION: stood})
        if profiled.evidence.get("way") != WITHOUT_COUNTERS:
            return dict(codec.to_plain(profiled))
        result = result or profiled
    return dict(codec.to_plain(result)) if result else {"failure": why}


def isolations_to_try(isolation: Isolation, *, may_weaken: bool, is_for_administrators: bool) -> tuple[Isolation, ...]:
    """The isolation to try, strongest first, down to limits alone: hardware counters may ask for privileges.

    Where no weaker one is allowed there is one. A user number of its own gets no counter that the driver keeps for
    administrators, so that one is left out then.
    """
    if not may_weaken or not (isolation.has_namespaces or isolation.has_own_user):
        return (isolation,)
    opened = dataclasses.replace(
        isolation, has_own_user=False, needs_user_namespace=False, has_seccomp=False, landlock=0
    )
    weaker = (opened, Isolation(devices=isolation.devices))
    return weaker if is_for_administrators else (isolation, *weaker)


def _may_weaken(request: EvaluationRequest) -> bool:
    """Less isolation helps a profiler, where there is one, and only where nobody asks for all of it."""
    return bool(request.details["ncu"]) and os.environ.get(DEMANDED) != "full"


def _is_for_administrators() -> bool:
    """Whether the driver keeps its counters from ordinary users."""
    with suppress(OSError):
        return "RmProfilingAdminOnly: 1" in PARAMETERS.read_text()
    return False


def sanitize(request: EvaluationRequest, staged: Staged) -> str:
    """Run one call under memcheck and tell its first findings; an empty text when there are none."""
    tool = str(request.details.get("sanitizer", ""))
    if not tool:
        return ""
    # Tensors in one cached block are one allocation to the tool: without the cache it sees where each ends.
    words = ["/usr/bin/env", "PYTORCH_NO_CUDA_MEMORY_CACHING=1", tool, "--tool", "memcheck", "--show-backtrace", "no"]
    words += ["--print-limit", str(MOST_ERRORS), *nsight.target_command(staged.folder, "profile")]
    return sanitizer_findings(staged.run(words, SANITIZER_S, request.isolation).output)


def sanitizer_findings(output: str) -> str:
    """The tool's first errors, without its banners and host frames."""
    lines = [_MARK.sub("", line).rstrip() for line in output.splitlines() if line.startswith("=====")]
    kept = [line for line in lines if line.strip() and not _NOISE.match(line.strip())]
    return "\n".join(kept[:MOST_LINES])
