"""Agents of tests: the real client library against a real server process, over standard streams or HTTP."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

ROOT = Path(__file__).resolve().parents[3]
START_S = 60.0


@dataclass
class Agent:
    """A client with what it was answered: (tool, answer) in order."""

    client: Client
    answers: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    progress: list[str] = field(default_factory=list)

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """An answer that is none of our failures."""
        answer, is_error = await self.ask(tool, **arguments)
        assert not is_error, answer
        return answer

    async def refused(self, tool: str, **arguments: Any) -> str:
        """Why it cannot be done."""
        answer, is_error = await self.ask(tool, **arguments)
        assert is_error, answer
        assert answer["version"] == 1
        return str(answer["error"])

    async def ask(self, tool: str, **arguments: Any) -> tuple[dict[str, Any], bool]:
        """The answer, and whether it is an error."""

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            self.progress.append(message or "")

        result = await self.client.call_tool(tool, arguments, progress_callback=on_progress)
        answer = result.structured_content
        assert answer is not None, result.content
        self.answers.append((tool, answer))
        return answer, bool(result.is_error)


def run(work: Callable[..., Awaitable[None]], *arguments: Any) -> None:
    """In a thread of its own: tests with a browser leave a loop at work in the first one."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(anyio.run, work, *arguments).result()


def command(*words: str) -> list[str]:
    return ["-m", "engine", "mcp", *words]


@asynccontextmanager
async def over_stdio(*words: str) -> AsyncIterator[Agent]:
    server = StdioServerParameters(command=sys.executable, args=command(*words), env=dict(os.environ), cwd=ROOT)
    async with Client(server) as client:
        yield Agent(client)


@asynccontextmanager
async def over_http(port: int, token: str = "") -> AsyncIterator[Agent]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx2.AsyncClient(headers=headers, timeout=120.0) as http_client:
        transport = streamable_http_client(address(port), http_client=http_client)
        async with Client(transport) as client:
            yield Agent(client)


def address(port: int) -> str:
    return f"http://127.0.0.1:{port}/mcp"


@contextmanager
def http_server(*words: str) -> Iterator[tuple[int, int]]:
    """A server of its own: its port and its process."""
    port = free_port()
    process = subprocess.Popen([sys.executable, *command("--http", str(port), *words)], cwd=ROOT)
    try:
        deadline = time.monotonic() + START_S
        while not is_open(port):
            assert process.poll() is None
            assert time.monotonic() < deadline, "the server does not start"
            time.sleep(0.05)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
