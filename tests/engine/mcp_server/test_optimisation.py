"""A scripted agent optimises swish on the processor through the server, as a coding agent would."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from engine.evaluator.toolchains.cpu import CpuToolchain
from tests.engine.mcp_server.clients import Agent, http_server, over_http, over_stdio, run
from tests.engine.mcp_server.test_cancelling import all_gone, is_free, judging
from tests.engine.swish_story import BROKEN, FIRST, WRONG

SIZES = {"batch_size": 16, "dim": 4096}
SLOW = FIRST.replace(
    "{ return x / (1.f + std::exp(-x)); }",
    "{ volatile float e = 0.f; for (int i = 0; i < 100; ++i) e = std::exp(-x); return x / (1.f + e); }",
)
OTHER = FIRST.replace("static float", "static inline float")
EVALUATIONS = 12
TRIES = 3  # a busy machine may spoil a timing, which then decides nothing
TOKEN = "agents"


@asynccontextmanager
async def agent_over(transport: str) -> AsyncIterator[Agent]:
    words = ("--max-evaluations", str(EVALUATIONS), "--max-runs", "1")
    if transport == "stdio":
        async with over_stdio(*words) as agent:
            yield agent
    else:
        with http_server(*words) as (port, _):
            async with over_http(port, TOKEN) as agent:
                yield agent


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_an_agent_optimises_swish_from_a_compile_error_to_a_run_within_its_budget(
    home: Path, monkeypatch: pytest.MonkeyPatch, transport: str
) -> None:
    monkeypatch.setenv("TILEWRIGHT_API_TOKEN", TOKEN)
    monkeypatch.setenv("TILEWRIGHT_TIMING_SECONDS", "0.5")
    run(optimised, transport)


async def optimised(transport: str) -> None:
    async with agent_over(transport) as agent:
        task = {"task": "swish", "sizes": SIZES}
        listed = await agent.call("list_tasks")
        assert "swish" in [row["task"] for row in listed["tasks"]]
        described = await agent.call("describe_task", **task)
        assert "x * torch.sigmoid(x)" in described["reference"]
        assert described["limit_ms"] > 0

        assert not (await agent.call("screen", task="swish", source=BROKEN))["is_refused"]
        broken = await agent.call("compile", **task, source=BROKEN)
        assert (broken["verdict"], "expected" in broken["message"]) == ("compile_error", True)
        wrong = await agent.call("check", **task, source=WRONG)
        assert (wrong["verdict"], "1 of 65536 elements" in wrong["message"]) == ("incorrect", True)
        slow = await timed(agent, SLOW)
        assert (slow["verdict"], slow["is_best_here"]) == ("passed", None)
        fast = await timed(agent, FIRST)
        assert (fast["is_best_here"], fast["latency_ms"] < slow["latency_ms"]) == (True, True)
        assert {"building", "checking", "timing"} <= set(agent.progress)
        profiled = await agent.call("profile", **task, source=FIRST)
        assert profiled["profile"] or profiled["no_profile"]
        known = await agent.call("knowledge", task="swish", kernel=fast["kernel"])
        assert known["techniques"]
        source = await agent.client.read_resource(f"tilewright://kernels/{fast['kernel']}/source")
        assert getattr(source.contents[0], "text", "") == FIRST

        await cancelled(agent)

        started = (await agent.call("start_run", **task, model="manual", depths=1))["run"]
        await agent.call("submit", run=started, source=FIRST, note="one pass")
        with anyio.fail_after(300):
            while not (told := await agent.call("wait", run=started, seconds=120))["best"]:
                assert told["state"] not in ("failed", "lost", "finished"), told
        best = await agent.call("best_kernels", task="swish", sizes=SIZES)
        assert (best["here"][0]["kernel"], best["runs"][0]["run"]) == (fast["kernel"], started)
        await agent.call("steer", run=started, command="stop")
        while (await agent.call("wait", run=started, seconds=60))["state"] not in ("stopped", "finished"):
            pass

        for _ in range(best["left"]["evaluations"]):
            assert (await agent.call("check", **task, source=FIRST))["verdict"] == "passed"
        assert "--max-evaluations" in await agent.refused("check", **task, source=FIRST)
        assert "--max-runs" in await agent.refused("start_run", **task, model="manual")
        assert_nothing_is_told(agent)


async def timed(agent: Agent, source: str) -> dict[str, Any]:
    """The evaluation of a correct kernel, asked for again as long as its timing decides nothing."""
    for _ in range(TRIES):
        answer = await agent.call("evaluate", task="swish", sizes=SIZES, source=source)
        assert answer["verdict"] == "passed"
        if "speedup" in answer:
            break
    return answer


async def cancelled(agent: Agent) -> None:
    """A call that is cancelled while it is timed leaves no process and holds no device."""
    judges = set[int]()
    with anyio.CancelScope() as scope:

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            if message == "timing":
                judges.update(judging())
                scope.cancel()

        asked = {"task": "swish", "sizes": SIZES, "source": OTHER}
        await agent.client.call_tool("evaluate", asked, progress_callback=on_progress)
    assert scope.cancelled_caught
    await all_gone(judges)
    with CpuToolchain() as toolchain:
        assert is_free(toolchain.lease_files)


def assert_nothing_is_told(agent: Agent) -> None:
    """No seed, and no answer without a version, a next step and what is left."""
    for _, answer in agent.answers:
        assert answer["version"] == 1
        assert answer["next"]
        assert set(answer["left"]) == {"evaluations", "device_s", "runs"}
        assert '"seed"' not in json.dumps(answer)
        assert '"trials"' not in json.dumps(answer)
