"""Several GPUs of one host: which one does what, who waits, and what becomes of one that breaks."""

from __future__ import annotations

import re
import time
from contextlib import closing
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

import engine.__main__
from engine.errors import ProfileUnavailable, ToolchainError
from engine.evaluator.machine import devices, lease
from engine.evaluator.machine.devices import Device
from engine.evaluator.machine.turns import Share
from engine.evaluator.pool import plain
from engine.evaluator.pool.local import LocalPool
from engine.evaluator.pool.pooled import PooledToolchain
from engine.evaluator.request import Check, Compile, Profile, Time
from storage import device_use
from storage.device_use import DEVICE, VERSIONS, Stage
from storage.results.evaluation_results import TimingResult
from tests.engine.evaluator.machine.driver import FAST, TWIN
from tests.engine.evaluator.pool.conftest import ONE, OTHER, Pretend, asked, beside


def until(is_so: object) -> None:
    deadline = time.monotonic() + 30
    while not is_so():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.01)


def stages() -> list[tuple[str, Stage]]:
    return [(one.device, one.stage) for one in device_use.claims()]


def test_an_evaluation_travels_as_plain_json_and_names_no_path_of_this_host() -> None:
    request = asked(Time)
    text = plain.request_text(request)
    assert plain.read_request(text) == request
    assert str(Path(__file__).parents[4]) not in text
    assert str(Path.home()) + "/" not in text


def test_a_check_takes_whichever_device_is_free_and_a_timing_waits_for_its_own(two_gpus: pytest.MonkeyPatch) -> None:
    with closing(LocalPool()) as pool:
        first = pool.evaluate(asked(Time)).evidence
        assert first[DEVICE] == ONE
        assert re.fullmatch(rf"torch {re.escape(metadata.version('torch'))}(, nvcc [\d.]+)?", str(first[VERSIONS]))
        with lease.hold(*lease.of_host(f"gpu-{FAST}")):
            assert pool.evaluate(asked(Check, device=ONE)).evidence[DEVICE] == OTHER
            timed = beside(lambda: pool.evaluate(asked(Time, "r", ONE)))
            until(lambda: (ONE, Stage.WAITING) in stages())
            assert pool.evaluate(asked(Compile)).is_ok  # in another toolchain: the first one waits
            assert [one.queue[0].run_id for one in device_use.standing().devices if one.queue] == ["r"]
        assert timed().evidence[DEVICE] == ONE
        assert pool.evaluate(asked(Check, device=ONE)).evidence[DEVICE] == ONE


def test_a_check_that_waits_for_any_device_says_so_and_counts_the_wait(two_gpus: pytest.MonkeyPatch) -> None:
    with closing(LocalPool()) as pool:
        with lease.hold(*lease.of_host(f"gpu-{FAST}")), lease.hold(*lease.of_host(f"gpu-{TWIN}")):
            checked = beside(lambda: pool.evaluate(asked(Check)))
            until(lambda: ("", Stage.WAITING) in stages())
            assert len(device_use.standing().queue) == 1
        timeline = checked().timeline
    assert timeline.parts["waiting for the device"] > 0
    assert timeline.total_s >= timeline.parts["waiting for the device"]


def test_runs_that_begin_settle_on_the_device_that_fewest_have_and_stay_there(two_gpus: pytest.MonkeyPatch) -> None:
    with closing(LocalPool()) as first, closing(LocalPool()) as second:
        assert (first.settle("cuda"), second.settle("cuda")) == (ONE, OTHER)
        assert (first.settle("cuda"), second.settle("cuda", wanted=ONE)) == (ONE, OTHER)
        with closing(LocalPool()) as resumed:
            assert resumed.settle("cuda", wanted=OTHER) == OTHER  # where its kernels were timed before
    assert device_use.claims() == []


def test_runs_of_one_task_settle_on_different_devices(two_gpus: pytest.MonkeyPatch) -> None:
    tasks = "square", "long", "softmax", "long", "square", "softmax", "swish", "swish"
    pools = [LocalPool() for _ in tasks]
    settled = [pool.settle("cuda", task=task) for pool, task in zip(pools, tasks, strict=True)]
    assert len(set(zip(tasks, settled, strict=True))) == len(tasks), "no two of a task on one device"
    for pool, device in zip(pools, settled, strict=True):
        if device == ONE:
            pool.close()
    with closing(LocalPool()) as late, closing(LocalPool()) as later:
        assert (late.settle("cuda", task="long"), later.settle("cuda", task="long")) == (ONE, ONE)  # it has fewer runs
    for pool in pools:
        pool.close()


@pytest.mark.usefixtures("home")
def test_a_run_on_the_processors_is_at_work_there_between_its_evaluations() -> None:
    with closing(LocalPool()) as pool:
        assert pool.settle("cpu", run_id="r1") == ""
        assert [one.runs for one in device_use.standing().devices] == [1]
    assert [one.runs for one in device_use.standing().devices] == [0]


def test_a_device_that_fails_its_health_check_is_taken_out_and_another_one_asked(
    two_gpus: pytest.MonkeyPatch,
) -> None:
    def broken(gpu: Device) -> None:
        if gpu.uuid == FAST:
            raise ToolchainError("the reference's process broke")

    two_gpus.setattr(Pretend, "on_check", staticmethod(broken))
    with closing(LocalPool()) as pool:
        with pytest.raises(ToolchainError, match="the reference's process broke"):
            pool.evaluate(asked(Check, device=ONE))  # the device is well: it is the failure of something else
        two_gpus.setenv("BROKEN_DEVICE", FAST)
        assert pool.evaluate(asked(Check, device=ONE)).evidence[DEVICE] == OTHER
        assert pool.evaluate(asked(Time, device=ONE)).evidence[DEVICE] == OTHER
        out = {one.device: one.out for one in device_use.devices()}
        assert out == {ONE: "the driver cannot write memory: no such thing (error 999)", OTHER: ""}
    with closing(LocalPool()) as later:
        assert later.settle("cuda") == OTHER
    two_gpus.delenv("BROKEN_DEVICE")
    with closing(LocalPool()) as mended:
        assert mended.settle("cuda") == ONE


def test_when_no_device_of_the_model_is_left_the_reason_is_told(two_gpus: pytest.MonkeyPatch) -> None:
    def broken(gpu: Device) -> None:
        raise ToolchainError("its process broke")

    two_gpus.setattr(Pretend, "on_check", staticmethod(broken))
    two_gpus.setenv("CUDA_VISIBLE_DEVICES", ONE)
    two_gpus.setenv("BROKEN_DEVICE", FAST)
    with closing(LocalPool()) as pool:
        with pytest.raises(ToolchainError, match=rf"{ONE} \(Fast One\) was taken out of use: the driver cannot write"):
            pool.evaluate(asked(Check))
        with pytest.raises(ToolchainError, match=r"no Fast One of this host can be used\. GPU-.*cannot write memory"):
            pool.evaluate(asked(Check))


def test_a_run_stays_on_one_model_of_device(two_gpus: pytest.MonkeyPatch) -> None:
    two_gpus.delenv("CUDA_VISIBLE_DEVICES")  # the fast one and the slow one
    with closing(LocalPool()) as pool:
        assert pool.settle("cuda", "Fast One") == ONE
        with pytest.raises(ToolchainError, match="measured on Other One and the GPU here is Fast One"):
            pool.settle("cuda", "Other One")
        toolchain = PooledToolchain(pool, "cuda", "r", "Slow One")
        assert toolchain.check(asked(Check).request.task, "class ModelNew: pass").evidence[DEVICE] not in (ONE, OTHER)


def test_what_a_kernel_cannot_have_blames_no_device(two_gpus: pytest.MonkeyPatch) -> None:
    def unavailable(*_: object) -> None:
        raise ProfileUnavailable("no profiler")

    two_gpus.setattr(Pretend, "_profile", unavailable)
    two_gpus.setenv("BROKEN_DEVICE", FAST)
    with closing(LocalPool()) as pool, pytest.raises(ProfileUnavailable, match="no profiler"):
        pool.evaluate(asked(Profile))
    assert not any(one.out for one in device_use.devices())


def test_what_a_device_did_in_the_last_hour_is_added_up(two_gpus: pytest.MonkeyPatch) -> None:
    held_s = 0.05
    two_gpus.setattr(Pretend, "on_check", staticmethod(lambda gpu: time.sleep(held_s)))
    with closing(LocalPool()) as pool:
        for _ in range(2):
            pool.evaluate(asked(Check, device=OTHER))
        one, other = device_use.standing().devices
    assert (one.known.device, one.acts, one.busy) == (ONE, 0, 0.0)
    assert (other.known.device, other.acts, other.known.model) == (OTHER, 2, "Fast One")
    assert 2 * held_s / 3600 <= other.busy < 1


def test_the_processes_that_judge_are_begun_before_the_driver_names_its_devices(
    two_gpus: pytest.MonkeyPatch,
) -> None:
    told, usable = list[str](), devices.usable

    def named() -> list[Device]:
        told.append("named")
        return usable()

    two_gpus.setattr(Pretend, "begin", lambda _: told.append("begun"))
    two_gpus.setattr(devices, "usable", named)
    with closing(LocalPool()) as pool:
        pool.evaluate(asked(Time))
    assert told == ["begun", "named"]


def test_the_processes_that_judge_are_started_before_a_device_is_waited_for(two_gpus: pytest.MonkeyPatch) -> None:
    free: list[bool] = []

    def start() -> None:
        with lease.held_if_free(*lease.of_host(f"gpu-{FAST}", f"gpu-{TWIN}")) as is_free:
            free.append(is_free)

    two_gpus.setattr(Pretend, "on_start", staticmethod(start))
    with closing(LocalPool()) as pool:
        pool.evaluate(asked(Time))
        pool.evaluate(asked(Check))
    assert free
    assert free[0]
    assert free[1]


def test_who_waits_is_told_in_the_order_of_turns_with_the_reason(
    two_gpus: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    weighty, now = Share("a suite", 2.0, done=0.25), Share("a run", is_now=True)
    with closing(LocalPool()) as pool:
        pool.settle("cuda", wanted=ONE)
        with lease.hold(*lease.of_host(f"gpu-{FAST}")):
            timed = [beside(lambda: pool.evaluate(replace(asked(Time, "late", ONE), share=weighty)))]
            until(lambda: stages().count((ONE, Stage.WAITING)) == 1)
            timed.append(beside(lambda: pool.evaluate(replace(asked(Time, "steered", ONE), share=now))))
            until(lambda: stages().count((ONE, Stage.WAITING)) == 2)
            assert engine.__main__.main(["pool", "status"]) == 0
        assert all(isinstance(one(), TimingResult) for one in timed)
    told = capsys.readouterr().out
    # For how much of its time this process has had a device depends on the tests before this one.
    assert (
        f"Waiting for {ONE}, the next first:\n"
        "  1. timing steered: first, a person waits for it; weight 1, 0 s of the device so far\n"
        "  2. timing late: weight 2, 0 s of the device so far, 25% of its search done\n"
    ) in re.sub("(, 0% of its search done)?, a device for [0-9]+% of its time", "", told)
