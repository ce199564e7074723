"""Starts the dashboard on the wanted port, or on the next free one: `python serve.py PORT`."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

TRIES = 100


def free_port(wanted: int, address: str) -> int:
    """The first port from `wanted` on that nothing listens on; 0 where there is none."""
    for port in range(wanted, min(wanted + TRIES, 65536)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
            except OSError:
                continue
            return port
    return 0


def main() -> None:
    """Become the web server."""
    wanted, folder = int(sys.argv[1]), Path(__file__).parent
    port = free_port(wanted, os.environ.get("STREAMLIT_SERVER_ADDRESS", "127.0.0.1"))
    if not port:
        sys.exit(
            f"tilewright: ports {wanted} to {wanted + TRIES - 1} are taken or not allowed: choose another, as in "
            f"make run PORT=9000"
        )
    if port != wanted:
        print(f"Port {wanted} is taken; the dashboard takes {port}.", flush=True)
    os.chdir(folder)
    os.execv(sys.executable, [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={port}"])


if __name__ == "__main__":
    main()
