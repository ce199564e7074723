"""The tools of an agent that works in a folder of a run: as a command there, or as a server over standard streams. Each
call is answered by the run's engine, at a socket in that folder. Knows neither run nor task.

    ./tilewright check kernel.py
    ./tilewright mcp
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.search.llm.tools import OF_AGENTS

KERNEL = "kernel.py"
MOST_BYTES = 1 << 20
PASSED, FAILED, BAD_INPUT = 0, 1, 2
USAGE = "usage: ./tilewright {} [FILE]   (default: kernel.py), or ./tilewright mcp"


def ask(place: Path, tool: str, file: str) -> tuple[str, bool]:
    """What the engine answers to a tool's call on a file, and whether the kernel passed.

    Raises:
        OSError: the file cannot be read, or the engine does not listen any more.
    """
    with open(file, "rb") as opened:
        source = opened.read(MOST_BYTES).decode("utf-8", "replace")
    os.chdir(place.parent)  # a socket's path must be short
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.connect(place.name)
        line.sendall(json.dumps({"tool": tool, "source": source}).encode() + b"\n")
        with line.makefile("rb") as answers:
            answer = answers.readline()
    if not answer:
        raise ConnectionError("the engine ended the call: call again")
    told = json.loads(answer)
    return told["text"], told["is_passed"]


def serve(place: Path) -> None:
    """Offer the tools over standard streams until the agent is gone."""
    from mcp.server.mcpserver import MCPServer

    server: MCPServer[Any] = MCPServer("tilewright", log_level="WARNING")
    for name, about in OF_AGENTS.items():
        server.add_tool(_tool(place, name), name=name, description=f"{about} `file` is a path in this folder.")
    server.run("stdio")


def _tool(place: Path, name: str) -> Any:
    def call(file: str = KERNEL) -> str:
        try:
            return ask(place, name, file)[0]
        except OSError as error:
            return f"{file}: {error.strerror or error}"

    return call


def main(words: Sequence[str]) -> int:
    """One call, or the server."""
    place, *rest = words
    if rest == ["mcp"]:
        serve(Path(place))
        return PASSED
    if not rest or rest[0] not in OF_AGENTS or len(rest) > 2:
        print(USAGE.format("|".join(OF_AGENTS)), file=sys.stderr)
        return BAD_INPUT
    file = rest[1] if len(rest) == 2 else KERNEL
    try:
        text, is_passed = ask(Path(place), rest[0], file)
    except OSError as error:
        print(f"tilewright: {file}: {error.strerror or error}", file=sys.stderr)
        return BAD_INPUT
    print(text)
    return PASSED if is_passed else FAILED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
