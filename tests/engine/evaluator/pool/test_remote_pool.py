"""Workers on other hosts: what they are asked, and what becomes of a run when they end."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import time
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import BaselineUnavailable, TaskError, ToolchainError
from engine.evaluator.machine import lease
from engine.evaluator.pool import on_ray, remote
from engine.evaluator.pool.on_ray import Head, RayCluster
from engine.evaluator.pool.plain import failure_text, read_request, read_result, result_text
from engine.evaluator.pool.remote import MOST_TRIES, RemotePool, WorkerLost
from engine.evaluator.request import KINDS, Baseline, Check, Compile, CompilerSource, Request, Time
from storage import device_use
from storage.device_use import KnownDevice, Stage
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult
from storage.results.timeline import Timeline
from storage.results.vocabulary import Verdict
from tests.engine.evaluator.pool.conftest import asked, beside


class PretendWorker:
    def __init__(self, name: str, model: str = "NVIDIA H200", failure: str = "", out: str = "") -> None:
        self.device = KnownDevice(name, model, out=out)
        self.failure, self.asked = failure, list[Request[object]]()

    def ask(self, request: str) -> str:
        if self.failure == "lost":
            raise WorkerLost(f"{self.device.device}: its host ended")
        if self.failure == "ending":
            return failure_text(ToolchainError("its processes ended"))
        if self.failure:
            return failure_text(TaskError(self.failure))
        read = read_request(request)
        self.asked.append(read.request)
        assert (read.device, read.model) == ("", "")
        evidence = {"where": self.device.device}
        if isinstance(read.request, Compile):
            return result_text(CompileResult(True, 1.0))
        if isinstance(read.request, Check):
            return result_text(CheckResult(Verdict.PASSED, 1.0, evidence=evidence))
        timeline = Timeline(0.0, 0.5, {"waiting for the device": 0.25})
        return result_text(TimingResult((1.0,) * 9, (2.0,) * 9, evidence=evidence, timeline=timeline))


class PretendCluster:
    def __init__(self, *workers: PretendWorker) -> None:
        self.living = list(workers)

    def workers(self, toolchain: str) -> list[PretendWorker]:
        return list(self.living)

    def troubles(self) -> list[str]:
        return ["three: its disk is full"]

    def forget(self, worker: object) -> None:
        self.living = [one for one in self.living if one is not worker]

    def close(self) -> None:
        self.living = []


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TILEWRIGHT_LEASES", str(tmp_path / "leases"))


def test_a_timing_stays_on_one_worker_and_moves_when_that_is_gone() -> None:
    one, two = PretendWorker("one"), PretendWorker("two")
    cluster = PretendCluster(one, two)
    with closing(RemotePool(cluster)) as pool, closing(RemotePool(cluster)) as other:
        assert [pool.evaluate(asked(Time)).evidence["where"] for _ in range(2)] == ["one", "one"]
        assert other.evaluate(asked(Time)).evidence["where"] == "two"
        cluster.living.remove(one)
        assert pool.evaluate(asked(Time, device="one")).evidence["where"] == "two"
        assert [(one.act, one.device) for one in device_use.uses(0.0, 1e12)] == [
            *[("time", "one")] * 2, ("time", "two"), ("time", "two")
        ]  # fmt: skip


def test_what_a_lost_worker_had_begun_is_asked_of_another_at_most_so_often() -> None:
    lost, other = PretendWorker("lost", failure="lost"), PretendWorker("other")
    with closing(RemotePool(PretendCluster(lost, other))) as pool:
        assert pool.evaluate(asked(Time, device="lost")).evidence["where"] == "other"
    dying = [PretendWorker(f"lost {number}", failure="lost") for number in range(MOST_TRIES + 1)]
    with (
        closing(RemotePool(PretendCluster(*dying))) as pool,
        pytest.raises(ToolchainError, match=rf"{MOST_TRIES} workers could not do it, one after the other: .*lost 2"),
    ):
        pool.evaluate(asked(Check))


def test_what_the_host_of_a_worker_cannot_do_is_asked_of_another() -> None:
    ending, other = PretendWorker("ending", failure="ending"), PretendWorker("other")
    with closing(RemotePool(PretendCluster(ending, other))) as pool:
        assert pool.evaluate(asked(Check, device="ending")).evidence["where"] == "other"


def test_only_the_model_that_is_asked_for_is_used_and_its_absence_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "NONE_S", 0.0)
    h100 = PretendWorker("one", "NVIDIA H100")
    with closing(RemotePool(PretendCluster(h100, PretendWorker("two")), rest=lambda _: None)) as pool:
        wanted = replace(asked(Check), model="NVIDIA H200")
        assert pool.evaluate(wanted).evidence["where"] == "two"
        assert h100.asked == []
        absent = replace(asked(Check), model="NVIDIA B200")
        with pytest.raises(ToolchainError, match="no worker with NVIDIA B200 for 0 s; it has NVIDIA H100, NVIDIA H200"):
            pool.evaluate(absent)


def test_a_run_keeps_to_the_model_that_most_have_or_that_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "NONE_S", 0.0)
    cluster = PretendCluster(
        PretendWorker("a", "NVIDIA A100"), PretendWorker("b", "NVIDIA H100"), PretendWorker("c", "NVIDIA H100")
    )
    with closing(RemotePool(cluster)) as pool, closing(RemotePool(cluster, "a100")) as other:
        assert pool.evaluate(asked(Check)).evidence["where"] in ("b", "c")
        assert other.evaluate(asked(Check)).evidence["where"] == "a"
        del cluster.living[1:]
        with pytest.raises(ToolchainError, match="no worker with NVIDIA H100 for 0 s; it has NVIDIA A100; three: its"):
            pool.evaluate(asked(Time))
        measured = replace(asked(Time), model="NVIDIA H100")
        with pytest.raises(ToolchainError, match="measured on NVIDIA H100, which is not called 'a100': resume it with"):
            other.evaluate(measured)


def test_a_device_that_its_host_has_taken_out_is_shown_and_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "NONE_S", 0.0)
    broken, well = PretendWorker("one", out="it cannot write memory"), PretendWorker("two")
    with closing(RemotePool(PretendCluster(broken, well))) as pool:
        assert {pool.evaluate(asked(Check)).evidence["where"] for _ in range(3)} == {"two"}
    assert [one.out for one in device_use.devices()] == ["it cannot write memory", ""]
    with (
        closing(RemotePool(PretendCluster(broken))) as pool,
        pytest.raises(ToolchainError, match="it has NVIDIA H200; one is out of use: it cannot write memory"),
    ):
        pool.evaluate(asked(Check))


def test_the_wait_for_a_workers_device_is_part_of_where_the_time_went() -> None:
    with closing(RemotePool(PretendCluster(PretendWorker("one")))) as pool:
        with lease.hold(*remote.lock_of("one")):
            timed = beside(lambda: pool.evaluate(asked(Time)))
            while not any(one.stage is Stage.WAITING for one in device_use.claims()):
                time.sleep(0.01)
            time.sleep(0.3)
        found = timed()
    waited_s = found.timeline.parts["waiting for the device"]
    assert 0.25 + 0.2 < waited_s < 0.26 + found.timeline.total_s
    assert float(str(found.evidence["lease wait"]).removesuffix(" s")) == pytest.approx(waited_s, abs=0.011)


def test_a_failure_there_is_the_same_failure_here_and_no_worker_is_blamed() -> None:
    with (
        closing(RemotePool(PretendCluster(PretendWorker("one", failure="Model is missing")))) as pool,
        pytest.raises(TaskError, match="Model is missing"),
    ):
        pool.evaluate(asked(Check))
    with pytest.raises(BaselineUnavailable, match="not compiled"):
        read_result(Baseline, failure_text(BaselineUnavailable("not compiled")))
    assert set(KINDS) | {"examine_confined"} >= set(device_use.WORDS)
    with pytest.raises(ToolchainError, match="with --fresh"):
        _ = RemotePool(PretendCluster()).fingerprint("cuda")


def test_a_head_that_answers_no_more_is_named_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_ray, "SEE_S", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        head = Head(f"127.0.0.1:{server.getsockname()[1]}")
        assert head.see()
    assert not head.see()
    monkeypatch.setattr(on_ray, "HEAD_S", 0.0)
    with pytest.raises(
        ToolchainError, match=r"the head of the Ray cluster at 127\.0\.0\.1:\d+ does not answer any more"
    ):
        head.see()


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray is installed")
def test_without_ray_it_is_said_how_to_get_it() -> None:
    with pytest.raises(ToolchainError, match=r"needs Ray, which is not installed: .* -r requirements-ray\.txt"):
        RayCluster("ray://nowhere:10001")


def test_no_key_of_the_environment_is_there_for_who_works(tmp_path: Path) -> None:
    text = (
        "import os; from engine.evaluator.pool import on_ray; on_ray._side()(on_ray._packed(), 'cpu', 'place'); "
        "print(sorted(name for name in os.environ if name in ('MY_API_KEY', 'HF_Token', 'RAY_AUTH_TOKEN', 'LANG')))"
    )
    names = ("MY_API_KEY", "HF_Token", "RAY_AUTH_TOKEN", "LANG")
    environment = {**os.environ, **dict.fromkeys(names, "C"), "TILEWRIGHT_WORKER_HOME": str(tmp_path / "worker")}
    told = subprocess.run(
        [sys.executable, "-c", text], env=environment, cwd=on_ray.ROOT, capture_output=True, check=True
    )
    assert told.stdout.decode().strip() == "['LANG', 'RAY_AUTH_TOKEN']"


def test_a_timing_that_finds_a_wrong_result_comes_back_as_a_check() -> None:
    found = read_result(Time, result_text(CheckResult(Verdict.INCORRECT, 1.0, message="wrong")))
    assert isinstance(found, CheckResult)
    with suppress(KeyError):
        assert read_result(CompilerSource, result_text("text")) == "text"
