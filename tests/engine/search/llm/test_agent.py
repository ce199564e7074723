"""Agents in a folder of their own: what they find there, what they may call, and what they leave."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.errors import CallError
from engine.evaluator.sandbox import hiding
from engine.search.llm import Completion, Message, Purpose, Section, ToolAnswer, Workbench
from engine.search.llm.agent import AgentModel, said
from engine.search.patching.proposed_patch import read_patch
from engine.search.patching.reply import find_python, labelled
from storage.run.models import CallFailure
from storage.run.saved_models import Program, SavedModel
from tests.engine.swish_story import FIRST, SECOND

ROOT = Path(__file__).resolve().parents[4]
GUIDE, REST = "Keep it simple.\n", "Reply with edits.\n"
MESSAGES = [
    Message("system", "Be short."),
    Message("user", GUIDE + REST, (Section("Guide", len(GUIDE)), Section("Reply format", len(REST)))),
]
NO_TOOLS = Workbench("class Model: ...\n", FIRST, None)
Ask = Callable[..., Completion]


class Bench:
    """Remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, bool]] = []

    def __call__(self, tool: str, source: str, is_left: bool) -> ToolAnswer:
        self.asked.append((tool, source, is_left))
        return ToolAnswer("right" if is_left else "none left", is_passed=is_left, was_done=is_left)


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def ask(tmp_path: Path, bench: Bench) -> Ask:
    (tmp_path / "home/keys").mkdir(parents=True)
    (tmp_path / "home/keys/work").write_text("sk-planted")

    def asking(script: str, tools: Workbench | None = None, **fields: Any) -> Completion:
        def around(failed: int, scratch: Path) -> list[str]:
            return hiding.guarded(os.getpid(), failed, scratch, [tmp_path / "home"], [ROOT, Path(sys.prefix)])

        program = Program(("sh", "-c", script), evaluations=2, **fields)
        model = AgentModel(SavedModel("mine", program=program), around, ())
        heard: list[str] = []
        with_tools = Workbench(NO_TOOLS.reference, NO_TOOLS.kernel, bench)
        done = model.complete(MESSAGES, Purpose("optimise", None, 0, bench=tools or with_tools), heard.append)
        assert "".join(heard) == done.text
        return done

    return asking


def test_it_finds_the_step_as_files_and_is_told_so_on_standard_input(ask: Ask) -> None:
    text = ask("cat; cat guide.md reference.py; tail -2 prompt.md; ls -a").text
    assert text.startswith("You work in this folder")
    assert "You have 2 evaluations" in text
    assert f"{GUIDE}{NO_TOOLS.reference}{REST}" in text
    assert {"kernel.py", ".mcp.json", "tilewright", "TASK.md"} <= set(text.split())
    assert "change it there" in text
    assert "profile.md" not in text.rpartition(REST)[2].split()


def test_a_first_kernel_is_not_there_yet(ask: Ask, bench: Bench) -> None:
    text = ask("cat; ls", Workbench(NO_TOOLS.reference, "", bench)).text
    assert "It is not here yet: write it." in text
    assert "kernel.py" not in text.rpartition("line of its own.")[2].split()


def test_what_it_leaves_is_the_reply_after_what_it_says_of_it(ask: Ask) -> None:
    script = f"cat > kernel.py <<'END'\n{SECOND}END\n" + (
        "echo 'Technique: inlining'; echo '```'; echo 'class ModelNew: wrong'; echo '```';"
        'echo \'[{"action": "delete", "line_number": 1}]\'; echo "<<<<<<< SEARCH"'
    )
    text = ask(script).text
    assert find_python(text) == read_patch(text).file == SECOND
    assert labelled(text, "Technique") == "inlining"
    assert "wrong" not in text


def test_where_it_leaves_the_kernel_as_it_was_what_it_prints_is_the_reply(ask: Ask) -> None:
    assert ask("touch kernel.py; echo nothing helps").text == "nothing helps\n"
    with pytest.raises(CallError, match="empty reply") as caught:
        ask("true")
    assert caught.value.failure is CallFailure.EMPTY
    words = ask("cat; ls -a", NO_TOOLS).text
    assert "Print your reply" in words
    assert not {"tilewright", ".mcp.json"} & set(words.split())


def test_each_call_of_a_tool_is_carried_out_and_counted_until_none_is_left(ask: Ask, bench: Bench) -> None:
    script = (
        "echo one > a.py; for tool in compile check evaluate profile screen; do ./tilewright $tool a.py; echo $?; done;"
        "./tilewright fly a.py 2>&1; ./tilewright check gone.py 2>&1; true"
    )
    text = ask(script).text
    assert [(tool, left) for tool, _, left in bench.asked] == [
        ("compile", True), ("check", True), ("evaluate", True), ("profile", False), ("screen", True)
    ]  # fmt: skip
    assert {source for _, source, _ in bench.asked} == {"one\n"}
    assert [line for line in text.splitlines() if line.startswith("Evaluations left")] == [
        f"Evaluations left: {left}." for left in (2, 1, 0, 0, 0)
    ]
    assert [line for line in text.splitlines() if line.isdigit()] == ["0", "0", "0", "1", "0"]
    assert "usage: ./tilewright screen|" in text
    assert "gone.py: No such file or directory" in text


def test_its_time_stands_still_while_a_tool_works_and_counts_otherwise(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CallError, match="did not end within 1 seconds"):
        ask("sleep 600", timeout_s=1)
    real, passed = time.monotonic, [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: real() + passed[0])

    def slow(tool: str, source: str, is_left: bool) -> ToolAnswer:
        passed[0] += 1000.0
        return ToolAnswer("right", is_passed=True, was_done=True)

    done = ask("./tilewright check", Workbench(NO_TOOLS.reference, FIRST, slow), timeout_s=100)
    assert done.text.startswith("right")
    assert done.seconds > 1000


def test_it_reads_no_key_and_changes_nothing_of_what_judges(ask: Ask, tmp_path: Path) -> None:
    judging = ROOT / "engine/evaluator/request.py"
    script = f"cat {tmp_path / 'home/keys/work'}; echo x >> {judging}; touch {sys.prefix}/made; echo tried; touch here"
    before = judging.read_bytes()
    assert ask(script).text == "tried\n"
    assert judging.read_bytes() == before
    assert not Path(sys.prefix, "made").exists()


@pytest.mark.parametrize("place", ["ln -s {secret} kernel.py", "mkfifo kernel.py", "mkdir kernel.py"])
def test_what_is_left_is_read_only_where_it_is_a_plain_file_of_the_folder(ask: Ask, tmp_path: Path, place: str) -> None:
    secret = tmp_path / "home/keys/work"
    assert ask(f"rm kernel.py; {place.format(secret=secret)}; echo left").text == "left\n"


def test_a_folder_that_was_put_in_the_place_of_its_own_is_not_read(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/kernel.py").write_text("secret")
    done = ask(f"here=$(pwd); cd /; mv $here {tmp_path}/moved; ln -s {tmp_path}/other $here; echo $here")
    Path(done.text.splitlines()[0]).unlink()
    assert "secret" not in done.text


def test_its_tools_are_offered_over_the_protocol_that_agents_speak(ask: Ask, bench: Bench, tmp_path: Path) -> None:
    client = tmp_path / "client.py"
    client.write_text(CLIENT)
    text = ask(f"echo one > a.py; {sys.executable} {client}").text
    assert text.splitlines() == ["check compile evaluate profile screen", "right", "", "Evaluations left: 1."]
    assert bench.asked == [("check", "one\n", True)]


CLIENT = """
import json
from pathlib import Path
import anyio
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

async def main():
    (server,) = json.loads(Path(".mcp.json").read_text())["mcpServers"].values()
    async with stdio_client(StdioServerParameters(**server)) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        print(*sorted(tool.name for tool in (await session.list_tools()).tools))
        print((await session.call_tool("check", {"file": "a.py"})).content[0].text)

anyio.run(main)
"""


def test_what_is_no_request_is_answered_so_and_a_caller_that_goes_away_is_let_go(ask: Ask, bench: Bench) -> None:
    send = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect('.tilewright.sock');"
        "s.sendall(sys.argv[1].encode())"
    )
    tell = send + "; print(s.makefile().readline())"
    requests = ("no json\n", '{"tool": "fly", "source": "x"}\n', json.dumps({"tool": "check", "source": 3}) + "\n")
    lines = [f"{sys.executable} -c \"{tell}\" '{request}'" for request in requests]
    text = ask("\n".join([f'{sys.executable} -c "{send}" half', *lines, "./tilewright compile; true"])).text
    assert text.count("There is no such tool") == len(requests)
    assert [tool for tool, _, _ in bench.asked] == ["compile"]


def test_a_reply_without_code_is_kept_as_it_is() -> None:
    assert (
        said("Kernel class: activation\n\n```python\nx = 1\n```\nSo it is.\n")
        == "Kernel class: activation\n\nSo it is."
    )
