"""The server: what it offers, over standard streams or over HTTP on this machine alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import CallToolResult, InputRequiredResult, TextContent
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from engine.errors import EngineError
from engine.evaluator.request import Evaluator
from engine.mcp_server import answers
from engine.mcp_server.bench import Bench
from engine.mcp_server.budgets import Allowed, Budget
from engine.mcp_server.kernel_tools import KernelTools
from engine.mcp_server.resources import Resources
from engine.mcp_server.run_tools import RunTools
from engine.mcp_server.served import Served
from engine.mcp_server.shelf import Shelf
from storage import access_token
from storage.knowledge.exported import KnowledgeError
from storage.run.steering.commands import CommandError
from storage.untrusted import UntrustedError

HOST = "127.0.0.1"
PATH = "/mcp"
CLOSING_S = 3
INSTRUCTIONS = """\
Tilewright judges kernels that replace a PyTorch module. list_tasks and describe_task say what is wanted. Write one
Python file with class ModelNew. screen and compile cost nothing; check, evaluate, profile, tune and submit cost
evaluations. Every answer says in `next` what to do and in `left` what may still be spent. Change one thing at a time,
profile what is fastest, ask knowledge for techniques. Inputs of a check are told to nobody: a kernel must be right for
any values and weights."""
TOLD = (EngineError, CommandError, KnowledgeError, UntrustedError, FileNotFoundError)


@dataclass(frozen=True, slots=True)
class Offer:
    """What a person lets agents use."""

    toolchain: str
    device: str
    places: Sequence[str]
    allowed: Allowed


class Server(MCPServer[Any]):
    """Our own failures are answers too: they say what happened, what to do and what is left."""

    def __init__(self, budget: Budget) -> None:
        super().__init__("tilewright", instructions=INSTRUCTIONS, log_level="WARNING")
        self._budget = budget

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """What the tool answers, or why it cannot."""
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if not isinstance(error.__cause__, TOLD):
                raise
            plain = answers.refusal(self._budget.left, str(error.__cause__))
            content = [TextContent(type="text", text=json.dumps(plain))]
            return CallToolResult(content=list(content), structured_content=plain, is_error=True)


def serve(offer: Offer, open_evaluator: Callable[[], Evaluator], port: int | None) -> None:
    """Serve until whoever started it is gone, or it is ended; with a port over HTTP.

    Raises:
        TaskError: a place holds no task.
    """
    budget, shelf, served = Budget(offer.allowed), Shelf(), Served(offer.places, offer.toolchain)
    bench = Bench(open_evaluator, budget, offer.allowed.device_s)
    server = Server(budget)
    kernels, runs = KernelTools(bench, served, shelf), RunTools(budget, served, shelf, offer.device)
    for tool in (*kernels.all(), *runs.all()):
        server.add_tool(tool)
    Resources(served, shelf).add_to(server)
    try:
        anyio.run(server.run_stdio_async) if port is None else _serve_http(server, port)
    finally:
        bench.close()


def _serve_http(server: Server, port: int) -> None:
    hosts = [f"{name}:{port}" for name in (HOST, "localhost")]
    security = TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts])
    app = Gate(server.streamable_http_app(streamable_http_path=PATH, transport_security=security, host=HOST))
    # A call that is at work when the server is asked to end is cancelled after that time, not waited for.
    config = uvicorn.Config(app, host=HOST, port=port, log_level="warning", timeout_graceful_shutdown=CLOSING_S)
    uvicorn.Server(config).run()


class Gate:
    """Middleware: where the dashboard's token is set, nobody is answered without it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, or refuse with what to do."""
        is_asking = scope["type"] == "http" and access_token.is_set()
        if not is_asking or access_token.is_in(Headers(scope=scope).get("authorization", "")):
            return await self._app(scope, receive, send)
        remedy = f"send the header “Authorization: Bearer” with the server's {access_token.VARIABLE}"
        headers = {"WWW-Authenticate": "Bearer", "Cache-Control": "no-store"}
        return await JSONResponse({"error": "token required", "remedy": remedy}, 401, headers)(scope, receive, send)
