"""The folder in which an agent works: the step as files, the tools that it calls there, and what it leaves in
`kernel.py`. Knows a workbench by its protocol, neither run nor evaluator.

Nothing in the folder is trusted: what the agent leaves is read by the folder's own descriptor, if it is a plain file.
"""

from __future__ import annotations

import json
import os
import shlex
import socket
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.search import prompting
from engine.search.llm import Message, Workbench
from engine.search.llm.protocols import Scrubber
from engine.search.llm.tools import COSTLY, OF_AGENTS
from engine.search.patching.edits import MAX_KERNEL
from engine.search.patching.reply import whole_characters

ROOT = Path(__file__).resolve().parents[3]
KERNEL, SOCKET, COMMAND = "kernel.py", ".tilewright.sock", "tilewright"
CLIENT = "engine.mcp_server.workspace_tools"
SECTIONS = {"Guide": "guide.md", "Profile": "profile.md"}
MOST_FREE = 200  # calls of one turn that cost no evaluation
MOST_LINE = 8 * MAX_KERNEL  # bytes of one request
WAITING = 8  # agents' calls that may wait for an answer


class Workspace:
    """One call's folder, open until `close`."""

    def __init__(self, folder: Path, bench: Workbench | None, evaluations: int, without: Scrubber) -> None:
        """`evaluations`: how often the agent may check, time or profile. `without` takes secrets out of its texts."""
        self._folder, self._bench, self._without = folder, bench, without
        self._left, self._free = evaluations, MOST_FREE
        self._place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.listener: socket.socket | None = None

    def close(self) -> None:
        """Answer no call any more."""
        if self.listener is not None:
            self.listener.close()
        os.close(self._place)

    def furnish(self, messages: Sequence[Message], prompt: str) -> None:
        """Write the step as files."""
        bench = self._bench
        self._write("prompt.md", prompt)
        for name, text in _sections(messages).items():
            self._write(name, text)
        if bench is not None:
            self._write("reference.py", bench.reference)
        if bench is not None and bench.kernel:
            self._write(KERNEL, bench.kernel)
        self._write("TASK.md", self._task())

    def _task(self) -> str:
        if self._bench is None or self._bench.use is None:
            return prompting.fill("agent/words.md")
        self._open_tools()
        tools = "\n".join(f"- `{name}`: {about}" for name, about in OF_AGENTS.items())
        begin = "agent/change.md" if self._bench.kernel else "agent/first.md"
        return prompting.fill(
            "agent/task.md", tools=tools, evaluations=f"{self._left}", begin=prompting.text(begin).strip()
        )

    def _open_tools(self) -> None:
        """A command and a server's description, both for the socket that is listened to from now on."""
        words = [sys.executable, "-m", CLIENT, str(self._folder / SOCKET)]
        line = " ".join(map(shlex.quote, words))
        self._write(COMMAND, f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {line} "$@"\n', 0o700)
        server = {"command": words[0], "args": [*words[1:], "mcp"], "env": {"PYTHONPATH": str(ROOT)}}
        self._write(".mcp.json", json.dumps({"mcpServers": {"tilewright": server}}, indent=1))
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        self.listener.bind(f"/proc/self/fd/{self._place}/{SOCKET}")  # the folder's own path may be too long
        self.listener.listen(WAITING)
        self.listener.setblocking(False)

    def _write(self, name: str, text: str, mode: int = 0o600) -> None:
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode, dir_fd=self._place)
        with open(file, "w", encoding="utf-8", errors="replace") as opened:
            opened.write(text)

    def answer(self, line: bytes) -> bytes:
        """What a request is answered, both one line of JSON."""
        try:
            request = json.loads(line)
            tool, source = request["tool"], request["source"]
            if tool not in OF_AGENTS or not isinstance(source, str):
                raise ValueError
        except (ValueError, TypeError, KeyError, RecursionError):
            return _line(f"There is no such tool: use {', '.join(OF_AGENTS)} with a file.", is_passed=False)
        if len(source) > MAX_KERNEL:
            return _line(f"The file has {len(source):,} characters: {MAX_KERNEL:,} at most.", is_passed=False)
        return self._use(tool, self._without.whole(whole_characters(source)))

    def _use(self, tool: str, source: str) -> bytes:
        assert self._bench is not None
        assert self._bench.use is not None
        costs = tool in COSTLY
        answer = self._bench.use(tool, source, (self._left if costs else self._free) > 0)
        if costs:
            self._left -= answer.was_done
        else:
            self._free -= answer.was_done
        return _line(f"{answer.text}\n\nEvaluations left: {self._left}.", is_passed=answer.is_passed)

    def kernel(self) -> str | None:
        """The text of `kernel.py` where the agent has left another one than it was given; None otherwise."""
        try:
            file = os.open(KERNEL, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self._place)
        except OSError:
            return None
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            return None
        with open(file, "rb") as opened:
            text = self._without.whole(opened.read(4 * MAX_KERNEL + 4).decode("utf-8", "replace"))
        given = self._bench.kernel if self._bench is not None else ""
        return text if text.strip() and text.rstrip() != given.rstrip() else None


def _line(text: str, *, is_passed: bool) -> bytes:
    answer: dict[str, Any] = {"text": text, "is_passed": is_passed}
    return json.dumps(answer).encode() + b"\n"


def _sections(messages: Sequence[Message]) -> dict[str, str]:
    """The sections that are worth a file of their own, the last of each name."""
    found = dict[str, str]()
    for message in messages:
        position = 0
        for section in message.sections:
            text = message.text[position : position + section.length]
            position += section.length
            if section.name in SECTIONS and text.strip():
                found[SECTIONS[section.name]] = text
    return found
