"""What an event costs on the wire and in the server, with and without compression of the WebSocket, taken in turn.

    python -m benchmarks.wire
    python -m benchmarks.wire --rounds 1 --events 1      smallest

One browser follows a small run that gets an event a second, through a relay that counts bytes. Needs a Chromium.
"""

from __future__ import annotations

import argparse
import contextlib
import socket
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from benchmarks.chromium import Pages, of_one_visitor
from benchmarks.dashboard_scale import cpu_s
from tests.browser.conftest import new_home, start_server, stop_server
from tests.browser.play import PretendEngine, finished_depth


class Relay:
    """Hands every connection on to the port `target` and counts what comes back."""

    def __init__(self) -> None:
        self.received = self.target = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while near := self._next():
            try:
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:  # a browser also connects ahead, when there is no server any more
                near.close()
                continue
            threading.Thread(target=self._pump, args=(near, far, False), daemon=True).start()
            threading.Thread(target=self._pump, args=(far, near, True), daemon=True).start()

    def _next(self) -> socket.socket | None:
        with contextlib.suppress(OSError):  # it was closed
            return self._listener.accept()[0]
        return None

    def _pump(self, source: socket.socket, sink: socket.socket, is_counted: bool) -> None:
        with source, contextlib.suppress(OSError):  # one side is gone: the other notices
            while data := source.recv(65_536):
                self.received += len(data) * is_counted
                sink.sendall(data)
            sink.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Take no connection any more; those that there are end with their page."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def main(pages: Pages = of_one_visitor) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="pairs, in turns of who comes first (3)")
    parser.add_argument("--events", type=int, default=25, help="events a round, one a second (25)")
    options = parser.parse_args()
    print("| compressed | kB an event | ms of the server's processor time an event |\n|---|---|---|")
    with pages() as new_page, contextlib.closing(Relay()) as relay:
        for number in range(options.rounds):
            for is_on in (False, True) if number % 2 == 0 else (True, False):
                size, seconds = follow(new_page, relay, is_on, options.events)
                print(f"| {'yes' if is_on else 'no'} | {size / 1000:.0f} | {1000 * seconds:.0f} |", flush=True)


def follow(new_page: Callable[[], Page], relay: Relay, is_compressed: bool, events: int) -> tuple[float, float]:
    """Bytes and processor seconds an event."""
    home = new_home(Path(tempfile.mkdtemp()) / "home")
    engine = PretendEngine(home / "runs", "running", depths=60)
    engine.play_until(finished_depth, times=5)
    server = start_server(home, STREAMLIT_SERVER_ENABLE_WEBSOCKET_COMPRESSION=str(is_compressed).lower())
    relay.target = int(server.url.rpartition(":")[2])
    page = new_page()
    page.goto(f"http://127.0.0.1:{relay.port}/run?run=running")
    expect(page.get_by_role("table").first).to_be_visible(timeout=30_000)
    page.wait_for_timeout(1000 * min(4, events))
    size, spent = relay.received, cpu_s(server.process.pid)
    for _ in range(events):
        engine.play_until(lambda _event: True)
        page.wait_for_timeout(1000)
    size, spent = relay.received - size, cpu_s(server.process.pid) - spent
    page.close()
    engine.die()
    stop_server(server)
    return size / events, spent / events


if __name__ == "__main__":
    main()
