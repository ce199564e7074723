"""A call that is cancelled is over at once, whatever the judging process does or waits for."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import MCPError

from engine.evaluator.machine import lease, processes
from engine.evaluator.toolchains.cpu import CpuToolchain
from tests.engine.mcp_server.clients import Agent, http_server, over_http, over_stdio, run
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
        judges = judging()
        group.cancel_scope.cancel()
    await all_gone(judges)


async def ask(agent: Agent) -> Any:
    return await agent.call("evaluate", **ASKED)


def is_free(files: lease.Files) -> bool:
    with lease.held_if_free(*files) as is_ours:
        return is_ours


def judging() -> set[int]:
    """Processes below the servers of this process that judge kernels."""
    servers = [pid for pid in processes.children(os.getpid()) if "-m engine mcp" in words_of(pid)]
    below = {pid for server in servers for pid in processes.descendants(server)}
    return {pid for pid in below if "spawn_main" in words_of(pid) or "engine.evaluator" in words_of(pid)}


async def all_gone(judges: set[int]) -> None:
    """Wait until none of them lives, and no other that judges."""
    assert judges
    with anyio.fail_after(WITHIN_S):
        while judging() or any(words_of(pid) for pid in judges):
            await anyio.sleep(0.02)


def words_of(pid: int) -> str:
    """The command line of a process; empty once it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def test_a_server_that_is_ended_in_the_middle_of_a_call_leaves_nothing_that_judges(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_TIMING_SECONDS", "60")
    monkeypatch.delenv("TILEWRIGHT_API_TOKEN", raising=False)
    with http_server() as (port, pid):
        run(ended, port, pid)


async def ended(port: int, pid: int) -> None:
    async with over_http(port) as agent, anyio.create_task_group() as group:
        group.start_soon(broken_off, agent)
        with anyio.fail_after(120):
            while "timing" not in agent.progress:
                await anyio.sleep(0.02)
        judges = judging()
        os.kill(pid, signal.SIGTERM)
        await all_gone(judges)


async def broken_off(agent: Agent) -> None:
    with pytest.raises(MCPError):
        await ask(agent)
