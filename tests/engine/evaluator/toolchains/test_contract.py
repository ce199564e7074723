"""What every toolchain keeps to, on the processor and on a GPU: a bad kernel is a verdict, our own failure an error."""

from __future__ import annotations

import functools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from engine.errors import BaselineUnavailable, ProfileUnavailable, TaskError, ToolchainError
from engine.evaluator import tasks
from engine.evaluator.machine import processes
from engine.evaluator.profiling import roof
from engine.evaluator.request import Evaluator
from engine.evaluator.tasks import Task
from engine.evaluator.toolchains.cached import CachedToolchain
from engine.evaluator.toolchains.cpu import CpuToolchain
from engine.evaluator.toolchains.cuda import CudaToolchain
from engine.evaluator.toolchains.local import LocalToolchain
from storage.results.evaluation_results import CheckResult, TimingResult
from storage.results.timeline import Part
from storage.results.vocabulary import Verdict
from tests import documented
from tests.engine.evaluator.toolchains import kernels
from tests.engine.evaluator.toolchains.fixtures import free
from tests.gpu import faults


@dataclass(frozen=True, slots=True)
class Kind:
    """What the suite has to know of a toolchain: how it is made, and swish at a size and in a text that suit it.

    `lacking`: a variable and the value with which this machine lacks what it needs. `shared` is the fixture of one that
    lives as long as the session; without it the suite makes one, in the home of `home`. One that is not `is_played`
    is only asked what it lacks.
    """

    new: Callable[[Path | None], Evaluator]
    sizes: dict[str, int]
    honest: str
    lacking: tuple[str, str]
    home: str = "cpu_home"
    shared: str = ""
    is_on_gpu: bool = False
    is_played: bool = True


SMALL, LARGE = {"batch_size": 16, "dim": 4096}, {"batch_size": 1024, "dim": 16384}
NO_HEADERS, NO_GPU = ("TILEWRIGHT_CUTLASS_INCLUDE", "/nonexistent"), ("CUDA_VISIBLE_DEVICES", "")
DRAFT = documented.module("draft.py").DraftToolchain  # the example of docs/extending.md; what it judges with is cpu's
KINDS = {
    "cpu": Kind(CpuToolchain, SMALL, kernels.SWISH, NO_HEADERS, shared="cpu"),
    "cuda": Kind(CudaToolchain, LARGE, faults.kernel("right"), NO_GPU, "cuda_home", "gpu", is_on_gpu=True),
    "draft": Kind(DRAFT, SMALL, kernels.SWISH, NO_HEADERS, is_played=False),
}
REMEMBERED = "remembered"


@dataclass(frozen=True, slots=True)
class Subject:
    """A toolchain, a task for it and an honest kernel of that task."""

    toolchain: Evaluator
    name: str

    @property
    def task(self) -> Task:
        return tasks.find("swish").task(self.name, KINDS[self.name].sizes)

    @property
    def honest(self) -> str:
        return KINDS[self.name].honest

    def forward(self, *lines: str) -> str:
        """The honest kernel with other lines in forward; {call} stands for its own call."""
        head, _, call = self.honest.rpartition("        return ")
        return head + "".join(f"        {line.format(call=call.strip())}\n" for line in lines)


def every(*more: str, fixture: str = "subject") -> pytest.MarkDecorator:
    gpu = pytest.mark.gpu
    played = [pytest.param(name, marks=[gpu] * kind.is_on_gpu) for name, kind in KINDS.items() if kind.is_played]
    return pytest.mark.parametrize(fixture, [*played, *more], indirect=True)


@pytest.fixture(scope="session")
def lasting(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Evaluator]]:
    """Toolchains that live as long as the session, by name."""
    with ExitStack() as opened:

        @functools.cache
        def find(name: str) -> Evaluator:
            kind = KINDS[name]
            request.getfixturevalue(kind.home)
            if kind.shared:
                shared: Evaluator = request.getfixturevalue(kind.shared)
                return shared
            return opened.enter_context(closing(kind.new(None)))

        yield find


@pytest.fixture
def subject(request: pytest.FixtureRequest, tmp_path: Path, lasting: Callable[[str], Evaluator]) -> Subject:
    """On toolchains that live as long as the session; a remembering one begins with an empty memory."""
    if request.param == REMEMBERED:
        return Subject(CachedToolchain(lasting("cpu"), tmp_path / "results"), "cpu")
    return Subject(lasting(request.param), request.param)


@pytest.fixture
def own(request: pytest.FixtureRequest, tmp_path: Path, own_server: None) -> Iterator[Subject]:
    """On a toolchain and a fork server of the test's own, in a scratch folder of its own."""
    request.getfixturevalue(KINDS[request.param].home)
    with closing(KINDS[request.param].new(tmp_path / "scratch")) as toolchain:
        yield Subject(toolchain, request.param)


@every()
def test_an_honest_kernel_compiles_passes_and_is_timed(subject: Subject) -> None:
    toolchain, task, source = subject.toolchain, subject.task, subject.honest
    built = toolchain.compile(task, source)
    assert built.is_ok, built.diagnostics
    checked = toolchain.check(task, source)
    assert checked.verdict is Verdict.PASSED, checked.message
    assert checked.max_error is not None
    assert checked.tolerance is not None
    assert 0 < checked.max_error < 1e-6 < checked.tolerance
    assert checked.precision == "fp32-exact"
    assert {"own 1", "wide", "own 1 again"} <= set(checked.trials)
    timed = toolchain.time(task, source)
    assert isinstance(timed, TimingResult)
    assert len(timed.candidate_ms) >= 5
    assert int(timed.evidence["timed outputs checked"]) > len(timed.candidate_ms)
    for result, needed in ((built, Part.IMPORTING), (checked, Part.REFERENCE), (timed, Part.TIMING)):
        spent = result.timeline
        assert spent is not None
        assert spent.parts[needed] > 0
        assert sum(spent.parts.values()) < spent.total_s + 0.1, "parts follow each other"
    assert timed.timeline is not None
    assert timed.timeline.parts[Part.TIMING] < timed.timeline.lease_s < timed.timeline.total_s
    if not KINDS[subject.name].is_on_gpu:
        prepared_s = timed.timeline.parts[Part.INPUTS] + timed.timeline.parts[Part.DESCRIBING]
        assert timed.timeline.lease_s < timed.timeline.total_s - prepared_s, "others may time meanwhile"


@every(REMEMBERED)
def test_a_second_compile_of_the_same_source_comes_from_the_cache(subject: Subject) -> None:
    assert subject.toolchain.compile(subject.task, subject.honest).is_ok
    again = subject.toolchain.compile(subject.task, subject.honest)
    assert again.is_ok
    assert again.is_cached
    assert again.seconds < 10.0


@every(REMEMBERED)
def test_sources_that_are_built_together_have_the_results_of_each_and_a_brief_timing_is_one(subject: Subject) -> None:
    toolchain, task = subject.toolchain, subject.task
    lines = ("T = 1  # tune: 1, 2", "U = 1  # tune: one")
    sources = [f"{subject.honest}\n{lines[0]}\n", f"class ModelNew(:\n{lines[1]}\n", f"{subject.honest}\n{lines[1]}\n"]
    built = toolchain.compile_all(task, sources)
    assert [one.verdict for one in built] == [Verdict.PASSED, Verdict.COMPILE_ERROR, Verdict.PASSED]
    remarks = [[remark for remark in one.remarks if remark.startswith("tunable")] for one in built]
    assert remarks[0] == []
    assert "lists 'one', which is no whole number" in remarks[2][0]
    brief = toolchain.time_briefly(task, sources[0])
    assert isinstance(brief, TimingResult), brief.message
    assert brief.seconds < 30


@every()
def test_what_the_compiler_writes_for_a_task_is_text_with_its_kernels_and_calls(subject: Subject) -> None:
    policy = replace(subject.task.policy, dtype="bf16", backward=True)
    told = subject.toolchain.compiler_source(replace(subject.task, policy=policy))
    assert ("@triton.jit" if KINDS[subject.name].is_on_gpu else 'extern "C"') in told
    assert told.count("# in this order:") == 2, "both passes"
    assert ("*bf16" if KINDS[subject.name].is_on_gpu else "BFloat16*") in told
    found = subject.toolchain.compiled_start(replace(subject.task, language="triton"))
    assert ("@triton.jit" if KINDS[subject.name].is_on_gpu else 'extern "C"') in found.shown
    if KINDS[subject.name].is_on_gpu:
        assert subject.toolchain.compile(replace(subject.task, language="triton"), found.kernel).is_ok, found.reason
    else:
        assert (found.kernel, found.reason) == ("", "on the processor it writes C++, not Triton")


@every(REMEMBERED)
def test_what_does_not_compile_has_a_verdict_and_the_same_one_when_it_is_checked(subject: Subject) -> None:
    toolchain, task = subject.toolchain, subject.task
    for source, verdict, said in (
        ("", Verdict.COMPILE_ERROR, "no class ModelNew"),
        ("class ModelNew(:\n", Verdict.COMPILE_ERROR, "SyntaxError"),
        ("\ud83d", Verdict.RUNTIME_ERROR, "surrogates"),
        (f"{subject.honest}\nraise OSError('mine')\n", Verdict.RUNTIME_ERROR, "mine"),
    ):
        built = toolchain.compile(task, source)
        assert (built.is_ok, built.verdict) == (False, verdict), built
        assert said in built.diagnostics
    assert toolchain.check(task, "class ModelNew(:\n").verdict is Verdict.COMPILE_ERROR


@every()
def test_a_compilers_complaint_and_a_refused_text_are_told_in_their_own_words(subject: Subject) -> None:
    broken = subject.honest.replace("auto y = ", "nonsense y = ")
    built = subject.toolchain.compile(subject.task, broken)
    assert (built.is_ok, built.verdict) == (False, Verdict.COMPILE_ERROR)
    assert "nonsense" in built.diagnostics
    refused = subject.toolchain.compile(subject.task, subject.forward("return torch.jit.script(torch.relu)(x)"))
    assert (refused.is_ok, refused.verdict) == (False, Verdict.REFUSED)
    assert "torch.jit.script" in refused.diagnostics


@every()
def test_a_kernel_that_turns_out_wrong_or_dies_has_a_verdict_when_checked_or_timed_and_no_profile(
    subject: Subject,
) -> None:
    toolchain, task = subject.toolchain, free(subject.task)
    wrong, lost = subject.forward("return {call} * 1.1"), subject.forward("raise KeyError('lost')")
    for act, source, verdict, said in (
        (
            toolchain.check,
            wrong,
            Verdict.INCORRECT,
            "wrong in trial 'own 1' (inputs: what the reference's own `get_inputs` draws)",
        ),
        (toolchain.check, lost, Verdict.RUNTIME_ERROR, "lost"),
        (toolchain.time, wrong, Verdict.INCORRECT, "wrong in trial 'a timed call'"),
    ):
        result = act(task, source)
        assert isinstance(result, CheckResult)
        assert result.verdict is verdict, result.message
        assert said in result.message
    dead = subject.forward("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    with pytest.raises(ProfileUnavailable) as unavailable:
        toolchain.profile(task, dead)
    assert str(unavailable.value)
    assert "SIGSEGV" in str(unavailable.value) or subject.name != "cpu"


@every()
def test_a_task_whose_reference_fails_is_the_tasks_fault_not_the_candidates(subject: Subject, tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text(
        "import torch\n\n\nclass Model(torch.nn.Module):\n"
        "    def forward(self, x):\n        return x.no_such_thing()\n\n\n"
        "def get_inputs():\n    return [torch.rand(4)]\n\n\ndef get_init_inputs():\n    return []\n"
    )
    with pytest.raises(TaskError, match="no_such_thing"):
        subject.toolchain.check(tasks.read(path).task(), subject.honest)


@every()
def test_the_limit_is_what_the_machine_can_do_and_what_the_task_needs_and_a_second_look_never_lowers_it(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = subject.toolchain.limit(subject.task)
    monkeypatch.setattr(roof, "FRESH_S", 0)
    second = subject.toolchain.limit(subject.task)
    sizes = KINDS[subject.name].sizes
    assert (first.min_bytes, first.min_flop) == (2 * 4 * sizes["batch_size"] * sizes["dim"], 0)
    assert first.bandwidth_gb_s > 1
    assert first.limit_ms > 0
    assert first.facts is not None
    assert first.facts.processors > 0
    assert first.facts.memory_gb_s <= first.bandwidth_gb_s
    assert second.peak_gflop_s >= first.peak_gflop_s
    assert second.bandwidth_gb_s >= first.bandwidth_gb_s
    if not KINDS[subject.name].is_on_gpu:  # whose rates other programs lower
        assert first.others_share is not None
        assert second.others_share is not None
        assert 0 <= second.others_share <= first.others_share <= 1


@every(REMEMBERED)
def test_a_second_baseline_that_cannot_be_had_is_told_with_its_reason(subject: Subject) -> None:
    with pytest.raises(BaselineUnavailable, match="TILEWRIGHT_COMPILED_BASELINE"):
        subject.toolchain.baseline(subject.task)


@every(fixture="own")
def test_killed_or_closed_it_leaves_no_process_and_no_file_and_the_next_request_begins_anew(
    own: Subject, tmp_path: Path
) -> None:
    toolchain, endless = own.toolchain, own.forward("while True: {call}")
    others = processes.children(os.getpid())
    assert toolchain.compile(own.task, endless).is_ok
    assert list((tmp_path / "scratch").iterdir()) == []
    for pid in started_beside(others, toolchain):
        os.kill(pid, signal.SIGKILL)
    assert toolchain.compile(own.task, endless).is_ok, "a killed fork server is replaced"
    born = started_beside(others, toolchain)
    threading.Timer(1.0, toolchain.close).start()
    started = time.monotonic()
    with pytest.raises(ToolchainError, match="closed"):
        toolchain.check(own.task, endless)
    assert time.monotonic() - started < 120
    assert toolchain.compile(own.task, own.honest).is_ok, "a closed one begins anew"
    again = started_beside(others, toolchain)
    toolchain.close()
    toolchain.close()
    assert not [pid for pid in (*born, *again) if Path(f"/proc/{pid}").exists()]
    assert list((tmp_path / "scratch").iterdir()) == []


def started_beside(others: list[int], toolchain: Evaluator) -> list[int]:
    """Our children beside those known before: of one that judges here, its fork server is there at least."""
    found = [pid for pid in processes.children(os.getpid()) if pid not in others]
    assert found or not isinstance(toolchain, LocalToolchain)
    return found


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("is_remembered", [False, True])
def test_a_machine_that_lacks_something_says_what_whatever_it_is_asked(
    name: str, is_remembered: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TILEWRIGHT_COMPILED_BASELINE")
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv(*KINDS[name].lacking)
    with closing(KINDS[name].new(tmp_path / "scratch")) as inner:
        toolchain: Evaluator = CachedToolchain(inner, tmp_path / "results") if is_remembered else inner
        task = tasks.find("swish").task(name, KINDS[name].sizes)
        acts: list[Callable[[], object]] = [lambda: toolchain.limit(task), lambda: toolchain.baseline(task)]
        acts += [
            lambda act=act: act(task, KINDS[name].honest)  # type: ignore[misc]
            for act in (toolchain.compile, toolchain.check, toolchain.time, toolchain.profile)
        ]
        for act in acts:
            with pytest.raises(ToolchainError, match="GPU|TILEWRIGHT_CUTLASS_INCLUDE"):
                act()
        toolchain.close()
        toolchain.close()
