"""A call that is cancelled is over at once, whatever the judging process does or waits for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from engine.evaluator.machine import lease, processes
from engine.evaluator.toolchains.cpu import CpuToolchain
from tests.engine.mcp_server.clients import Agent, over_stdio, run
from tests.engine.swish_story import FIRST

ASKED = {"task": "swish", "sizes": {"batch_size": 16, "dim": 4096}, "source": FIRST}
WITHIN_S = 30.0


def test_a_cancelled_call_ends_whether_it_waits_for_the_device_or_holds_it_and_the_next_one_works(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_TIMING_SECONDS", "60")  # none ends before it is cancelled
    run(work)


async def work() -> None:
    with CpuToolchain() as toolchain:
        files = toolchain.lease_files
    async with over_stdio() as agent:
        with lease.hold(*files):
            await cancelled(agent, lambda: agent.progress.count("timing") > 1)
        before = agent.progress.count("timing")
        await cancelled(agent, lambda: agent.progress.count("timing") > before and not is_free(files))
        assert is_free(files)
        checked = await agent.call("check", **ASKED)
        assert checked["verdict"] == "passed"
        assert checked["left"]["evaluations"] == 97
        assert checked["left"]["device_s"] < 1800, "what was broken off has held the device too"


async def cancelled(agent: Agent, is_time: Callable[[], bool]) -> None:
    """Ask for an evaluation and cancel it when it is time; nothing that judges is left then."""
    async with anyio.create_task_group() as group:
        group.start_soon(ask, agent)
        with anyio.fail_after(120):
            while not is_time():
                await anyio.sleep(0.02)
        group.cancel_scope.cancel()
    with anyio.fail_after(WITHIN_S):
        while judging():
            await anyio.sleep(0.02)


async def ask(agent: Agent) -> Any:
    return await agent.call("evaluate", **ASKED)


def is_free(files: lease.Files) -> bool:
    with lease.held_if_free(*files) as is_ours:
        return is_ours


def judging() -> list[str]:
    """Processes below this one that judge kernels."""
    lines = []
    for pid in processes.descendants(os.getpid()):
        path = Path(f"/proc/{pid}/cmdline")
        lines.append(path.read_bytes().replace(b"\0", b" ").decode() if path.exists() else "")
    return [line for line in lines if "spawn_main" in line or "engine.evaluator" in line]
