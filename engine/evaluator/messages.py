"""Length-prefixed JSON over a socket, for the engine and its fork server. Knows no message's meaning."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Mapping
from typing import Any


class LineBroken(Exception):
    """The other side went away."""


def send(line: socket.socket, message: Mapping[str, object]) -> None:
    """Length, then JSON."""
    text = json.dumps(message).encode()
    line.sendall(struct.pack("!Q", len(text)) + text)


def receive(line: socket.socket) -> dict[str, Any]:
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
