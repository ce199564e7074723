"""An HTTP client that can be broken off while it waits. The only module that knows private names of httpx2.

`tests/test_private_names.py` says what it needs of httpx2 and httpcore2, and of which version.
"""

from __future__ import annotations

import functools
import os
import ssl
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

import httpcore2
import httpx2

from engine.errors import ModelError
from engine.search.llm.server_events import bound

WRITTEN_FOR = "2.16.2"
POLL_S = 0.1


class Watch(threading.local):
    """What is asked between two slices, by each thread its own. It raises to break off, which closes the connection."""

    def __init__(self) -> None:
        self.ask: Callable[[], None] = lambda: None


class WatchedStream(httpcore2.NetworkStream):
    """A connection that never waits longer than a slice without asking."""

    def __init__(self, inner: httpcore2.NetworkStream, watch: Watch) -> None:
        self._inner = inner
        self._watch = watch

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read what comes within `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            self._watch.ask()
            left = POLL_S if deadline is None else min(POLL_S, deadline - time.monotonic())
            try:
                return self._inner.read(max_bytes, max(left, 0.001))
            except httpcore2.ReadTimeout:
                if deadline is not None and time.monotonic() >= deadline:
                    raise

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write; a prompt is small, so this does not wait long."""
        self._inner.write(buffer, timeout)

    def close(self) -> None:
        """Close the connection."""
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        """This connection, encrypted and still watched."""
        return WatchedStream(self._inner.start_tls(ssl_context, server_hostname, timeout), self._watch)

    def get_extra_info(self, info: str) -> Any:
        """What the connection below knows."""
        return self._inner.get_extra_info(info)


class WatchedBackend(httpcore2.NetworkBackend):
    """Opens watched connections."""

    def __init__(self, inner: httpcore2.NetworkBackend, watch: Watch) -> None:
        self._inner = inner
        self._watch = watch

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        """Connect to a host."""
        return WatchedStream(self._inner.connect_tcp(host, port, timeout, local_address, socket_options), self._watch)

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore2.NetworkStream:
        """Connect to a socket of this machine."""
        return WatchedStream(self._inner.connect_unix_socket(path, timeout, socket_options), self._watch)

    def sleep(self, seconds: float) -> None:
        """Wait."""
        self._inner.sleep(seconds)


def watched_client(watch: Watch, timeout: httpx2.Timeout, address: str = "") -> httpx2.Client:
    """An HTTP client with the environment's proxies, all of whose connections are watched and whose answers end. The
    address is the one that it is to ask.

    Trap: a client that is handed a transport ignores the environment's proxies, so the backend is put in afterwards.

    Raises:
        ModelError: the environment names certificates or a proxy that cannot be used, or this version of httpx2 keeps
            its connections elsewhere; unwatched, a call could not be broken off.
    """
    client = _client(timeout, address)
    try:
        for transport in (client._transport, *client._mounts.values()):
            if transport is not None:  # an address that the environment excepts from its proxies
                pool: Any = vars(transport)["_pool"]
                pool._network_backend = WatchedBackend(pool._network_backend, watch)
    except (AttributeError, KeyError) as error:
        raise ModelError(
            f"httpx2 {version('httpx2')} keeps its connections elsewhere than httpx2 {WRITTEN_FOR}, for which "
            f"{__name__} was written ({error}): install the version in requirements.txt"
        ) from error
    return client


def _client(timeout: httpx2.Timeout, address: str) -> httpx2.Client:
    """A client that asks for answers as they are, since a few bytes can unpack to any number."""
    settings: dict[str, Any] = {
        "timeout": timeout, "follow_redirects": False, "verify": _certificates(),
        "headers": {"Accept-Encoding": "identity"}, "event_hooks": {"response": [bound]},
    }  # fmt: skip
    try:
        return httpx2.Client(**settings)
    except (ImportError, ValueError, httpx2.InvalidURL) as error:
        if urllib.request.proxy_bypass(urlsplit(address).hostname or ""):
            return httpx2.Client(**settings, trust_env=False)
        raise ModelError(_proxy_fault(error)) from None


def _proxy_fault(error: Exception) -> str:
    """The variable's value may hold a password, so that it is not quoted."""
    named = [name for name in os.environ if name.lower() in ("all_proxy", "http_proxy", "https_proxy")]
    where = " or ".join(sorted(named)) or "the environment"
    if isinstance(error, ImportError):
        socks = [name for name in sorted(named) if os.environ[name].lower().startswith("socks")]
        return (
            f"the proxy in {' and '.join(socks) or where} is a SOCKS proxy, for which the package socksio is needed: "
            "pip install socksio, name an HTTP proxy, or put the endpoint's host into NO_PROXY"
        )
    return f"the proxy in {where} has no valid address: correct it, or put the endpoint's host into NO_PROXY"


@functools.cache
def _certificates() -> ssl.SSLContext:
    """Whom to trust; read once, since that takes longer than everything else about a client."""
    try:
        return httpx2.create_ssl_context()
    except OSError as error:  # ssl.SSLError is one
        named = {name: os.environ[name] for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if os.environ.get(name)}
        where = " and ".join(f"{name} ({path})" for name, path in named.items()) or "the system's store"
        raise ModelError(
            f"the certificates in {where} cannot be read ({error.strerror or error}): correct it, or unset it"
        ) from None
