"""Resources: references, sources, profiles and failures of kernels, reports of runs. Read, never made."""

from __future__ import annotations

import functools
import json
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError

from engine import exporting
from engine.errors import EngineError
from engine.mcp_server import answers
from engine.mcp_server.served import Served
from engine.mcp_server.shelf import Shelf
from engine.search.steps.evaluate import describe_failure
from engine.shown import runs
from storage.run.blobs import Blobs
from storage.run.folder import RunFolder, find_run
from storage.run.record import Candidate
from storage.untrusted import UntrustedError

PYTHON, TEXT, JSON = "text/x-python", "text/plain", "application/json"


class Resources:
    """What is read by address; a server has one of it."""

    def __init__(self, served: Served, shelf: Shelf) -> None:
        self._served, self._shelf = served, shelf

    def add_to(self, server: MCPServer[Any]) -> None:
        """Offer them."""
        for address, read, kind in (
            ("tasks/{task}/reference", self.reference, PYTHON),
            ("kernels/{kernel}/source", self.source, PYTHON),
            ("kernels/{kernel}/profile", self.profile, TEXT),
            ("runs/{run}/report", self.report, JSON),
            ("runs/{run}/kernels/{kernel}/source", self.run_source, PYTHON),
            ("runs/{run}/kernels/{kernel}/profile", self.run_profile, TEXT),
            ("runs/{run}/kernels/{kernel}/failure", self.run_failure, TEXT),
        ):
            server.resource(f"tilewright://{address}", mime_type=kind)(_found(read))

    def reference(self, task: str) -> str:
        """The reference of a task, at its sizes here."""
        return self._served.task(task).source

    def source(self, kernel: str) -> str:
        """The source of a kernel that this server has judged."""
        return self._shelf.find(kernel).source

    def profile(self, kernel: str) -> str:
        """What the profile of a kernel that this server has profiled shows."""
        profile = self._shelf.find(kernel).judged.profile
        if profile is None:
            raise EngineError(f"kernel {kernel} has no profile: call profile with its source")
        return profile.summary

    def report(self, run: str) -> str:
        """A run as `show --json` tells it, without the details of checks."""
        return json.dumps(answers.report(runs.form(find_run(run))))

    def run_source(self, run: str, kernel: str) -> str:
        """The source of a run's kernel."""
        folder, candidate = _kernel(run, kernel)
        return Blobs(folder.blobs).get(candidate.created.source_blob)

    def run_profile(self, run: str, kernel: str) -> str:
        """What the profile of a run's kernel shows."""
        _, candidate = _kernel(run, kernel)
        if candidate.profiled is None or candidate.profiled.disturbance:
            raise EngineError(f"kernel {kernel} of run {run} has no profile that can be believed")
        return candidate.profiled.summary

    def run_failure(self, run: str, kernel: str) -> str:
        """Why a run's kernel failed, as the run's own model is told."""
        _, candidate = _kernel(run, kernel)
        if not candidate.has_failed:
            raise EngineError(f"kernel {kernel} of run {run} has not failed")
        return describe_failure(candidate)


def _kernel(run: str, kernel: str) -> tuple[RunFolder, Candidate]:
    folder = find_run(run)
    return folder, exporting.kernel_of(folder, runs.load(folder), kernel)


def _found(read: Any) -> Any:
    """The same, so that what is not there is told as such."""

    @functools.wraps(read)
    def reading(**words: str) -> str:
        try:
            text: str = read(**words)
        except (EngineError, UntrustedError, FileNotFoundError) as error:
            raise ResourceNotFoundError(str(error)) from error
        return text

    return reading
