"""Builds one request with device code into a library, or finds it in the cache. Runs in trusted processes only."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from engine import sandbox
from engine.build import light_headers, runtime
from engine.build.build_cache import BuildCache
from engine.build.device import diagnostics, recipe
from engine.build.device.installation import DeviceInstallation
from engine.build.host.build import BuildFailed, Built, done_or_failed
from engine.build.host.installation import trees_of
from engine.build.host.recipe import LIBRARY, Binding, Recipe
from engine.build.request import CANDIDATE_FILE, BuildRequest
from engine.sandbox import Isolation


@dataclass(frozen=True, slots=True)
class DeviceBuilder:
    """Builds with one installation into one cache folder."""

    here: DeviceInstallation
    cache: Path
    limit_s: float = 300.0
    isolation: Isolation = field(default_factory=Isolation)

    def build(self, wanted: BuildRequest, module_text: str) -> Built:
        """The library of a request: light headers first, PyTorch's own where they do not reach.

        Raises:
            BuildFailed: a compiler says no, or takes longer than the limit.
            FlagRefused: the request asks for a flag that is not allowed.
        """
        stock = recipe.write(wanted, module_text, self.here, Binding.STOCK)
        if found := self._libraries.find(stock.key):
            return found
        if light_headers.can_do([*wanted.sources, *wanted.cuda_sources], wanted.functions):
            plan = recipe.write(wanted, module_text, self.here, Binding.STABLE, self._runtime())
            if found := self._libraries.find(plan.key):
                return found
            try:
                return self._make(plan, module_text)
            except BuildFailed as failure:
                if failure.is_timeout or not diagnostics.is_gap(failure.log):
                    raise
        return self._make(stock, module_text)

    def prepare(self) -> None:
        """Build what all candidates share ahead of the first one."""
        self._runtime()

    @property
    def _libraries(self) -> BuildCache:
        return BuildCache(self.cache / "libraries")

    def _runtime(self) -> Path:
        return runtime.object_file(self.here.compiler, self.here.compiler_version, self.cache)

    def _make(self, plan: Recipe, module_text: str) -> Built:
        started = time.monotonic()
        with self._libraries.workplace(plan.key) as work:
            for name, text in plan.files.items():
                (work / name).write_text(text)
            # Compilers quote the lines that #line points to from the file of that name.
            (work / CANDIDATE_FILE).write_text(module_text)
            log = self._compile(plan, work)
            kernels = diagnostics.kernel_resources(log)
            seconds, remarks = time.monotonic() - started, diagnostics.spills(kernels)
            built = Built(LIBRARY, plan.binding, plan.namespace, seconds, log, remarks, resources=kernels)
            return self._libraries.put(plan.key, work, built)

    def _compile(self, plan: Recipe, work: Path) -> str:
        """Both halves of nvcc's work at once; in one piece where that fails without an error that names a reason."""
        if not self._take_apart(plan, work):
            return self._ninja(work)
        try:
            return self._ninja(work)
        except BuildFailed as failure:
            if failure.is_timeout or diagnostics.has_reason(failure.log):
                raise
        (work / recipe.PHASES_FILE).write_text(plan.files[recipe.PHASES_FILE])
        return self._ninja(work)

    def _take_apart(self, plan: Recipe, work: Path) -> bool:
        if not plan.nvcc:
            return False
        told = sandbox.run([*plan.nvcc, *recipe.DRY_RUN], work, self.limit_s, self.isolation, self._readable())
        found = recipe.phases_of(told.output) if told.status == 0 else None
        if found is None:
            return False
        recipe.lay_out(work, found, plan.key)
        return True

    def _ninja(self, work: Path) -> str:
        command = [self.here.ninja, "-v", f"-j{recipe.jobs()}"]
        done = sandbox.run(command, work, self.limit_s, self.isolation, self._readable())
        return done_or_failed(done, self.limit_s, diagnostics.excerpt)

    def _readable(self) -> tuple[Path, ...]:
        """What a build reads beyond the system and Python's own packages."""
        here = self.here
        toolkit = Path(here.nvcc).parent.parent
        folders = (here.torch, here.cutlass_include, here.cuda_include, here.python_include)
        (self.cache / "headers").mkdir(parents=True, exist_ok=True)
        return (
            toolkit,
            *trees_of(here.compiler),
            *map(Path, folders),
            Path(here.cudart).parent,
            light_headers.SHIM,
            self.cache / "headers",
        )
