"""sse-starlette, which the client library brings, puts its own handler of signals into uvicorn when it is imported.
Other tests of the same process look at uvicorn's, so that is put back."""

from __future__ import annotations

from importlib import import_module

import uvicorn

_own = uvicorn.Server.handle_exit
import_module("mcp")
uvicorn.Server.handle_exit = _own  # type: ignore[method-assign]
