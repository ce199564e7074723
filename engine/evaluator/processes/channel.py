"""How the processes talk: one bounded line of JSON each way between evaluator and worker, sized JSON over a socket
between engine and fork server. Knows no meaning.
"""

from __future__ import annotations

import json
import os
import select
import socket
import struct
from collections.abc import Mapping
from typing import Any

MAX_LINE = 8 << 20
ASKS_TURN, HAS_TURN = "asks for the device", "has the device"


class ChannelClosed(Exception):
    """The other side is gone."""


class BadLine(Exception):
    """The other side sent something that is not one bounded JSON object per line."""


class Channel:
    """One end: a descriptor to read from and one to write to. Nothing received is ever unpickled."""

    def __init__(self, read_from: int, write_to: int) -> None:
        self.read_from = read_from
        self.write_to = write_to
        self._buffer = b""

    def send(self, message: Mapping[str, object]) -> None:
        """Write one line.

        Raises:
            ChannelClosed: nobody reads any more.
        """
        rest = memoryview(json.dumps(message).encode() + b"\n")
        try:
            while rest:
                rest = rest[os.write(self.write_to, rest) :]
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ChannelClosed from error

    def receive(self) -> dict[str, Any]:
        """Wait for one line, without a limit: for the worker's end.

        Raises:
            ChannelClosed: the other side is gone.
        """
        while (message := self.take()) is None:
            self.fill()
        return message

    def fill(self) -> None:
        """Read what is there; blocks when nothing is.

        Raises:
            ChannelClosed: end of file.
            BadLine: a line longer than any answer.
        """
        piece = os.read(self.read_from, 1 << 16)
        if not piece:
            raise ChannelClosed
        self._buffer += piece
        if len(self._buffer) > MAX_LINE:
            raise BadLine("the answer is too long")

    def take(self) -> dict[str, Any] | None:
        """The next whole line, if one has arrived.

        Raises:
            BadLine: it is no JSON object.
        """
        line, newline, rest = self._buffer.partition(b"\n")
        if not newline:
            return None
        self._buffer = rest
        try:
            message = json.loads(line)
        except ValueError as error:
            raise BadLine("the answer is not JSON") from error
        if not isinstance(message, dict):
            raise BadLine("the answer is not an object")
        return message

    @property
    def has_surplus(self) -> bool:
        """True when something arrived that nobody asked for."""
        return bool(self._buffer) or bool(select.select([self.read_from], [], [], 0)[0])

    def close(self) -> None:
        """Close both descriptors."""
        os.close(self.read_from)
        os.close(self.write_to)


def pair() -> tuple[Channel, Channel]:
    """The two ends of a new channel."""
    there_read, here_write = os.pipe()
    here_read, there_write = os.pipe()
    return Channel(here_read, here_write), Channel(there_read, there_write)


class LineBroken(Exception):
    """The other side went away."""


def send_message(line: socket.socket, message: Mapping[str, object]) -> None:
    """Length, then JSON."""
    text = json.dumps(message).encode()
    line.sendall(struct.pack("!Q", len(text)) + text)


def receive_message(line: socket.socket) -> dict[str, Any]:
    """The next message.

    Raises:
        LineBroken: there is none any more.
    """
    (size,) = struct.unpack("!Q", _exactly(line, 8))
    message: dict[str, Any] = json.loads(_exactly(line, size))
    return message


def _exactly(line: socket.socket, count: int) -> bytes:
    pieces = bytearray()
    while len(pieces) < count:
        piece = line.recv(min(1 << 20, count - len(pieces)))
        if not piece:
            raise LineBroken("the other side ended")
        pieces += piece
    return bytes(pieces)
