"""Builds one request into a library, or finds it in the content-addressed cache. Runs in trusted processes only."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from engine import sandbox
from engine.build import light_headers, request, runtime
from engine.build.build_cache import BuildCache, Built
from engine.build.host import diagnostics, flags, recipe
from engine.build.host.installation import Installation, trees_of
from engine.build.host.recipe import Binding, Recipe
from engine.build.request import BuildRequest
from engine.machine import lease
from engine.sandbox import Isolation

__all__ = ["BuildFailed", "Builder", "Built", "done_or_failed"]

MAX_LOG = 400_000
HEADER_S = 600.0  # ours, once per machine: a candidate's short limit must not end it


class BuildFailed(Exception):
    """The compiler refused the source; `log` is everything it said."""

    def __init__(self, excerpt: str, log: str, is_timeout: bool = False) -> None:
        super().__init__(excerpt)
        self.log = log
        self.is_timeout = is_timeout


@dataclass(frozen=True, slots=True)
class Builder:
    """Builds with one installation into one cache folder."""

    here: Installation
    cache: Path
    limit_s: float = 300.0
    isolation: Isolation = field(default_factory=Isolation)

    def build(self, wanted: BuildRequest, module_text: str) -> Built:
        """The library of a request: light header first, the stock one where the light one does not reach.

        Raises:
            BuildFailed: the compiler says no, or takes longer than the limit.
            flags.FlagRefused: the request asks for a flag that is not allowed.
            RequestRefused: the request has device code.
        """
        wanted = request.without_cuda(wanted)
        stock = recipe.write(wanted, module_text, self.here, Binding.STOCK)
        if found := self._libraries.find(stock.key):
            return found
        if light_headers.can_do(wanted.sources, wanted.functions):
            try:
                return self._light(wanted, module_text)
            except BuildFailed as failure:
                if failure.is_timeout or not diagnostics.is_gap(failure.log):
                    raise
        return self._make(stock, module_text)

    def prepare(self) -> None:
        """Build what all candidates share ahead of the first one."""
        self._runtime()
        self._header(())

    @property
    def _libraries(self) -> BuildCache:
        return BuildCache(self.cache / "libraries")

    def _light(self, wanted: BuildRequest, module_text: str) -> Built:
        header = self._header(flags.allowed(wanted.flags))
        plan = recipe.write(wanted, module_text, self.here, Binding.STABLE, header, self._runtime())
        return self._libraries.find(plan.key) or self._make(plan, module_text)

    def _make(self, plan: Recipe, module_text: str) -> Built:
        started = time.monotonic()
        with self._libraries.workplace(plan.key) as work:
            for name, text in plan.files.items():
                (work / name).write_text(text)
            # g++ quotes the lines that #line points to from the file of that name.
            (work / request.CANDIDATE_FILE).write_text(module_text)
            log = done_or_failed(
                sandbox.run([self.here.ninja, "-v"], work, self.limit_s, self.isolation, self._readable()), self.limit_s
            )
            said = (work / recipe.REMARKS).read_text(errors="replace") if (work / recipe.REMARKS).exists() else ""
            seconds = time.monotonic() - started
            built = Built(recipe.LIBRARY, plan.binding, plan.namespace, seconds, log, diagnostics.remarks(said))
            return self._libraries.put(plan.key, work, built)

    def _readable(self) -> tuple[Path, ...]:
        """What a build reads beyond the system and Python's own packages."""
        here = self.here
        folders = (here.torch, here.cutlass_include, here.cuda_include, here.python_include)
        (self.cache / "headers").mkdir(parents=True, exist_ok=True)
        return (*trees_of(here.compiler), *map(Path, folders), light_headers.SHIM, self.cache / "headers")

    def _runtime(self) -> Path:
        return runtime.object_file(self.here.compiler, self.here.compiler_version, self.cache)

    def _header(self, extra: tuple[str, ...]) -> Path | None:
        """Folder with the precompiled header for these flags, built once per machine; None when the set is rare."""
        if not flags.has_shared_header(extra):
            return None
        words = recipe.header_flags(self.here, extra)
        known = [words, self.here.fingerprint, light_headers.shim_version()]
        key = hashlib.sha256(json.dumps(known).encode()).hexdigest()
        folder = self.cache / "headers" / key[:32]
        compiled = folder / "prefix.hpp.gch"
        if compiled.exists():
            return folder
        folder.mkdir(parents=True, exist_ok=True)
        with lease.hold(folder / "lock"):
            if not compiled.exists():
                self._precompile(words, folder, compiled)
        return folder

    def _precompile(self, words: list[str], folder: Path, compiled: Path) -> None:
        shutil.copy(light_headers.SHIM / "prefix.hpp", folder / "prefix.hpp")
        draft = folder / f"draft.{os.getpid()}.gch"
        command = [self.here.compiler, *words, "-x", "c++-header", str(folder / "prefix.hpp"), "-o", str(draft)]
        done = sandbox.run(command, cwd=folder, limit_s=HEADER_S)
        if done.status != 0:
            draft.unlink(missing_ok=True)
            raise sandbox.OwnFailure(
                f"the header for candidates does not compile here:\n{diagnostics.excerpt(done.output)}"
            )
        draft.replace(compiled)


def done_or_failed(done: sandbox.Done, limit_s: float, excerpt: Callable[[str], str] = diagnostics.excerpt) -> str:
    """The log of a build that succeeded; `excerpt` cuts the log of one that did not.

    Raises:
        BuildFailed: it did not.
    """
    log = done.output[:MAX_LOG]
    if done.is_memory:
        raise BuildFailed("the compiler used more memory than a build may", log)
    if done.is_timeout:
        raise BuildFailed(f"the build took longer than {limit_s:.0f} s and was ended", log, is_timeout=True)
    if done.status != 0:
        raise BuildFailed(excerpt(log), log)
    return log
