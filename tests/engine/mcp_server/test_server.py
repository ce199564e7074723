"""Who is answered, what is refused, and what the server offers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
from mcp import MCPError

import engine.__main__
from engine.evaluator import tasks
from engine.evaluator.request import Evaluator
from engine.evaluator.tasks import Task
from engine.mcp_server import answers, stages
from engine.mcp_server.shelf import Kernel
from engine.shown import schemas
from storage.results.evaluation_results import TimingResult
from storage.results.hardware_limit import HardwareLimit
from tests.engine.mcp_server.clients import ROOT, Agent, address, http_server, over_http, over_stdio, run
from tests.engine.swish_story import FIRST
from tests.engine.test_abreast import Known
from tests.samples import write_run

DOCUMENT = ROOT / "docs" / "mcp.md"
INITIALISE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}  # fmt: skip


def status(port: int, **headers: str) -> int:
    sent = {"accept": "application/json, text/event-stream", **headers}
    return httpx2.post(address(port), json=INITIALISE, headers=sent, timeout=30).status_code


def test_over_http_only_this_machine_with_the_token_is_answered(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_API_TOKEN", "secret")
    with http_server() as (port, _):
        token = {"authorization": "Bearer secret"}
        assert status(port, **token) == 200
        assert status(port) == 401
        assert status(port, authorization="Bearer other") == 401
        assert status(port, **token, origin=f"http://127.0.0.1:{port}") == 200
        assert status(port, **token, origin="http://evil.example") == 403
        assert status(port, **token, host="evil.example") == 421
        listening = subprocess.run(["cat", "/proc/net/tcp"], capture_output=True, text=True, check=True).stdout
        bound = [line.split()[1] for line in listening.splitlines() if line.split()[1].endswith(f":{port:04X}")]
        assert set(bound) == {f"0100007F:{port:04X}"}


def test_a_server_that_asks_for_no_token_answers_without_one(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILEWRIGHT_API_TOKEN", raising=False)

    async def listed(port: int) -> None:
        async with over_http(port) as agent:
            assert (await agent.call("list_tasks"))["tasks"]

    with http_server() as (port, _):
        run(listed, port)


def with_agent(work: Any, *words: str) -> None:
    async def at_work() -> None:
        async with over_stdio(*words) as agent:
            await work(agent)

    run(at_work)


def test_what_it_offers_is_what_its_document_says(home: Path) -> None:
    async def work(agent: Agent) -> None:
        tools = {tool.name for tool in (await agent.client.list_tools()).tools}
        rows = [line for line in DOCUMENT.read_text().splitlines() if line.startswith("| `")]
        assert tools == {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
        fields = (schemas.FOLDER.parent / "json.md").read_text()
        assert [name for name in tools if f"`{name}`" not in fields] == []
        templates = (await agent.client.list_resource_templates()).resource_templates
        assert len(templates) == 7

    with_agent(work)


def test_without_a_budget_nothing_is_judged_or_started_and_the_answer_says_what_to_do(home: Path) -> None:
    async def work(agent: Agent) -> None:
        for tool in ("check", "evaluate", "profile", "tune"):
            why = await agent.refused(tool, task="swish", source=FIRST)
            assert "start it again with a larger --max-evaluations" in why
        assert "--max-runs" in await agent.refused("start_run", task="swish")
        assert agent.answers[-1][1]["left"] == {"evaluations": 0, "device_s": 1800.0, "runs": 0}
        assert not list(home.glob("runs/*"))

    with_agent(work, "--max-evaluations", "0", "--max-runs", "0")


@pytest.mark.parametrize(("latency_ms", "limit_ms", "share"), [(2.0, 1.0, 0.5), (0.97, 0.97, 1.0), (0.5, None, None)])
def test_a_kernel_that_beats_the_measured_limit_is_told_no_share_of_it(
    latency_ms: float, limit_ms: float | None, share: float | None
) -> None:
    class Timed(Known):
        def time(self, task: Task, source: str) -> TimingResult:
            return TimingResult((latency_ms,) * 9, (3.0,) * 9)

        def limit(self, task: Task) -> HardwareLimit:
            return HardwareLimit("a processor", 1.0, 1.0, 1_000_000, 1)  # 1 ms

    task, source = tasks.find("swish").task("cpu"), f"{FIRST}# number 1\n"
    judged = stages.evaluated(cast(Evaluator, Timed()), lambda words: None, task, source)
    told, _ = answers.judged(task, Kernel("k1", "swish", source, judged), None)
    assert (told["latency_ms"], told["limit_ms"], told["limit_share"]) == (
        latency_ms, limit_ms and pytest.approx(limit_ms), share and pytest.approx(share),
    )  # fmt: skip


def test_a_read_only_server_tells_and_judges_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_READ_ONLY", "1")

    async def work(agent: Agent) -> None:
        assert (await agent.call("describe_task", task="swish"))["limit_ms"] is None
        assert not (await agent.call("screen", task="swish", source=FIRST))["is_refused"]
        assert (await agent.call("knowledge", task="swish"))["techniques"]
        for tool in ("compile", "check", "evaluate", "profile", "tune"):
            assert "read-only" in await agent.refused(tool, task="swish", source=FIRST)
        assert "read-only" in await agent.refused("start_run", task="swish", model="manual")
        assert agent.answers[-1][1]["left"]["evaluations"] == 100

    with_agent(work)


def test_an_agent_names_tasks_and_reads_no_file_of_the_machine(home: Path, tmp_path: Path) -> None:
    own = tmp_path / "doubled.py"
    own.write_text((ROOT / "tasks" / "activation" / "relu.py").read_text())

    async def work(agent: Agent) -> None:
        assert "doubled" in [row["task"] for row in (await agent.call("list_tasks"))["tasks"]]
        for name in (str(own), "../doubled.py", "tests", "no_task"):
            assert "list_tasks shows all" in await agent.refused("screen", task=name, source=FIRST)
        reference = await agent.client.read_resource("tilewright://tasks/doubled/reference")
        assert getattr(reference.contents[0], "text", "").startswith("import torch")
        for place in (
            "kernels/none/source",
            "runs/none/report",
            "runs/..%2F..%2Fetc/report",
            "tasks/nothing/reference",
        ):
            with pytest.raises(MCPError):
                await agent.client.read_resource(f"tilewright://{place}")

    with_agent(work, "--task", str(own))


def test_an_agent_sends_no_command_that_is_a_persons(home: Path) -> None:
    async def work(agent: Agent) -> None:
        for command in ("set_budget", "set_model", "approve", "skip", "answer", "submit", "nonsense"):
            assert "an agent cannot send" in await agent.refused("steer", run="any", command=command)
        assert "no run 'any'" in await agent.refused("steer", run="any", command="pause")

    with_agent(work)


def test_no_other_verb_needs_the_package(home: Path) -> None:
    code = (
        "import sys, engine.__main__ as e; e.main(['list']); e.main(['show', 'x', '--json']);"
        "sys.exit(any(name == 'mcp' or name.startswith(('mcp.', 'mcp_types', 'pydantic')) for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, capture_output=True).returncode == 0


def test_where_the_package_is_not_installed_the_verb_says_how_to_install_it(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine.__main__, "find_spec", lambda name: None)
    assert engine.__main__.main(["mcp"]) == 4
    pinned = re.search(r"^mcp==.*", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    assert pinned is not None
    assert f"`python -m pip install {pinned[0]}` installs it" in capsys.readouterr().err


def test_a_report_of_a_run_holds_no_detail_of_checks(home: Path) -> None:
    folder = write_run(home / "runs")

    async def work(agent: Agent) -> None:
        report = await agent.client.read_resource(f"tilewright://runs/{folder.run_id}/report")
        told = json.loads(getattr(report.contents[0], "text", ""))
        assert told["attempts"]
        assert not {"broken", "flagged", "flags"} & set(told["attempts"][0])
        status = await agent.call("run_status", run=folder.run_id)
        assert status["best"]["kernel"] == told["best"]
        failed = told["last_failures"][-1]["candidate"]
        why = await agent.client.read_resource(f"tilewright://runs/{folder.run_id}/kernels/{failed}/failure")
        assert getattr(why.contents[0], "text", "")
        source = await agent.client.read_resource(f"tilewright://runs/{folder.run_id}/kernels/{failed}/source")
        assert getattr(source.contents[0], "text", "")

    with_agent(work)
