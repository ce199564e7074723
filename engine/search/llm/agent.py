"""A program that works in a folder as the language model: it finds the step as files, calls tools there, and leaves the
kernel in `kernel.py`. Knows how it is asked and heard, not what its tools do."""

from __future__ import annotations

import re
import selectors
import socket
import tempfile
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from engine.search.llm import Completion, Message, OnText, Purpose
from engine.search.llm.command import Call, CommandModel, as_prompt, only_waits, secrets
from engine.search.llm.output import read_output
from engine.search.llm.workspace import MOST_LINE, WAITING, Workspace
from engine.search.patching.prediction import prose
from storage.run.saved_models import EVALUATIONS
from storage.run.steering.command_arguments import as_file_reply

SENDING_S = 2.0
# What a reader of replies would take for edits: JSON, and the marks of SEARCH/REPLACE blocks.
_EDITS = re.compile(r"[{}]|^\s*(?:<{5,}|={5,}|>{5,}|`{3,}|~{3,})")


class AgentModel(CommandModel):
    """Starts the agent once per call in a new folder and waits for its end."""

    def complete(self, messages: list[Message], purpose: Purpose, on_text: OnText) -> Completion:
        """The file that it leaves in `kernel.py`, after what it says of it; where it leaves none, what it prints.

        Raises:
            CallError: as of a program.
        """
        began, scrubber = time.monotonic(), secrets()
        with tempfile.TemporaryDirectory(prefix="tilewright.agent.", ignore_cleanup_errors=True) as folder:
            place = Path(folder)
            workspace = Workspace(place, purpose.bench, self._program.evaluations or EVALUATIONS, scrubber)
            try:
                workspace.furnish(messages, as_prompt(messages))
                call = Call(place, place / "TASK.md", scrubber, only_waits(on_text), self._timeout_s)
                around, environment = self._around, self._environment() | {"TMPDIR": folder}
                call.run(self._command(place, messages), around, environment, _desk(workspace, call))
                kernel = workspace.kernel()
            finally:
                workspace.close()
        found = read_output(self._program, call.text, call.errors)
        self._see_that_it_ended_well(found, call)
        if kernel is None:
            self._see_that_it_replied(found, call)
        text = found.reply if kernel is None else f"{said(found.reply)}\n\n{as_file_reply(kernel)}".lstrip()
        on_text(text)
        return self._completion(found, text, time.monotonic() - began)


def said(reply: str) -> str:
    """What an agent says of its kernel, without anything that could be read as a change of it."""
    return "\n".join(line for line in prose(reply) if not _EDITS.search(line)).strip()


def _desk(workspace: Workspace, call: Call) -> Iterable[tuple[int, partial[None]]]:
    """Where the agent's calls come in, if it may make any."""
    if workspace.listener is not None:
        yield workspace.listener.fileno(), partial(_admit, workspace, call)


def _admit(workspace: Workspace, call: Call, streams: selectors.BaseSelector) -> None:
    assert workspace.listener is not None
    caller, _ = workspace.listener.accept()
    if len(streams.get_map()) > WAITING:
        caller.close()
        return
    caller.setblocking(False)
    streams.register(caller, selectors.EVENT_READ, partial(_hear, workspace, call, caller, bytearray()))


def _hear(
    workspace: Workspace, call: Call, caller: socket.socket, request: bytearray, streams: selectors.BaseSelector
) -> None:
    """Take what has come of a request; answer it once it is whole. The agent's time stands still meanwhile."""
    try:
        piece = caller.recv(1 << 16)
    except OSError:
        piece = b""
    request += piece
    if piece and not request.endswith(b"\n") and len(request) <= MOST_LINE:
        return
    streams.unregister(caller)
    with caller:
        if request.endswith(b"\n"):
            began = time.monotonic()
            answer = workspace.answer(bytes(request))
            call.deadline += time.monotonic() - began
            _send(caller, answer)


def _send(caller: socket.socket, answer: bytes) -> None:
    """To one that does not listen any more nothing is sent; the same call is answered again when it comes."""
    caller.settimeout(SENDING_S)
    try:
        caller.sendall(answer)
    except OSError:
        return
