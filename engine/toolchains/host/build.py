"""Builds one order into a library, or finds it in the content-addressed cache. Runs in trusted processes only."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from engine.evaluation import lease, sandbox
from engine.evaluation.sandbox import Walls
from engine.toolchains.host import diagnostics, flags, recipe, remarks
from engine.toolchains.host.installation import Installation
from engine.toolchains.host.order import Order
from engine.toolchains.host.recipe import Binding, Recipe

MAX_LOG = 400_000
HEADER_S = 600.0  # ours, once per machine: a candidate's short limit must not end it


class BuildFailed(Exception):
    """The compiler refused the source; `log` is everything it said."""

    def __init__(self, excerpt: str, log: str, is_timeout: bool = False) -> None:
        super().__init__(excerpt)
        self.log = log
        self.is_timeout = is_timeout


@dataclass(frozen=True, slots=True)
class Built:
    """A library ready to load."""

    library: str
    binding: str
    namespace: str
    seconds: float
    log: str
    remarks: tuple[str, ...]
    is_cached: bool = False


@dataclass(frozen=True, slots=True)
class Builder:
    """Builds with one installation into one cache folder."""

    here: Installation
    cache: Path
    limit_s: float = 300.0
    walls: Walls = field(default_factory=Walls)

    def build(self, wanted: Order, module_text: str) -> Built:
        """The library of an order: light header first, the stock one where the light one does not reach.

        Raises:
            BuildFailed: the compiler says no, or takes longer than the limit.
            flags.FlagRefused: the order asks for a flag that is not allowed.
        """
        if wanted.needs_stock:
            return self._build(wanted, module_text, Binding.STOCK)
        stock = recipe.write(wanted, module_text, self.here, Binding.STOCK, None)
        if self._find(stock):
            return self._build(wanted, module_text, Binding.STOCK)
        try:
            return self._build(wanted, module_text, Binding.STABLE)
        except BuildFailed as failure:
            if failure.is_timeout or not diagnostics.is_gap(failure.log):
                raise
        return self._build(wanted, module_text, Binding.STOCK)

    def prepare(self) -> None:
        """Build the common precompiled header ahead of the first candidate."""
        self._header(())

    def _build(self, wanted: Order, module_text: str, binding: Binding) -> Built:
        header = self._header(flags.allowed(wanted.flags)) if binding is Binding.STABLE else None
        plan = recipe.write(wanted, module_text, self.here, binding, header)
        if found := self._find(plan):
            return found
        folder = self.cache / "libraries"
        folder.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{plan.key[:16]}.", dir=folder))
        try:
            return self._run(plan, work, folder / plan.key[:32], module_text)
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _run(self, plan: Recipe, work: Path, home: Path, module_text: str) -> Built:
        started = time.monotonic()
        (work / "main.cpp").write_text(plan.text)
        (work / "build.ninja").write_text(plan.ninja)
        # g++ quotes the lines that #line points to from the file of that name.
        (work / recipe.CANDIDATE_FILE).write_text(module_text)
        done = sandbox.run([self.here.ninja, "-v"], work, self.limit_s, self.walls, self._readable())
        log = done.output[:MAX_LOG]
        if done.is_memory:
            raise BuildFailed("the compiler used more memory than a build may", log)
        if done.is_timeout:
            raise BuildFailed(f"the build took longer than {self.limit_s:.0f} s and was ended", log, is_timeout=True)
        if done.status != 0:
            raise BuildFailed(diagnostics.excerpt(log), log)
        said = (work / recipe.REMARKS).read_text(errors="replace") if (work / recipe.REMARKS).exists() else ""
        seconds = time.monotonic() - started
        built = Built(str(home / recipe.LIBRARY), plan.binding, plan.namespace, seconds, log, remarks.read(said))
        (work / "built.json").write_text(json.dumps(asdict(built)))
        for name in ("main.o", recipe.REMARKS, ".ninja_log", ".ninja_deps"):
            (work / name).unlink(missing_ok=True)
        _publish(work, home)
        return built

    def _readable(self) -> tuple[Path, ...]:
        """What a build reads beyond the system and Python's own packages."""
        here = self.here
        folders = (here.compiler, here.torch, here.cutlass_include, here.cuda_include, here.python_include)
        (self.cache / "headers").mkdir(parents=True, exist_ok=True)
        return (*map(Path, folders), recipe.SHIM, self.cache / "headers")

    def _find(self, plan: Recipe) -> Built | None:
        home = self.cache / "libraries" / plan.key[:32]
        try:
            plain = json.loads((home / "built.json").read_text())
        except FileNotFoundError:
            return None
        return Built(
            **{**plain, "library": str(home / recipe.LIBRARY), "remarks": tuple(plain["remarks"]), "is_cached": True}
        )

    def _header(self, extra: tuple[str, ...]) -> Path | None:
        """Folder with the precompiled header for these flags, built once per machine; None when the set is rare."""
        if not flags.has_shared_header(extra):
            return None
        words = recipe.header_flags(self.here, extra)
        key = hashlib.sha256(json.dumps([words, self.here.fingerprint, recipe.shim_version()]).encode()).hexdigest()
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
        shutil.copy(recipe.SHIM / "prefix.hpp", folder / "prefix.hpp")
        draft = folder / f"draft.{os.getpid()}.gch"
        command = [self.here.compiler, *words, "-x", "c++-header", str(folder / "prefix.hpp"), "-o", str(draft)]
        done = sandbox.run(command, cwd=folder, limit_s=HEADER_S)
        if done.status != 0:
            draft.unlink(missing_ok=True)
            raise sandbox.OwnFailure(
                f"the header for candidates does not compile here:\n{diagnostics.excerpt(done.output)}"
            )
        draft.replace(compiled)


def _publish(work: Path, home: Path) -> None:
    """Two builders of the same key may race: whoever is second keeps the first's folder."""
    try:
        work.rename(home)
    except OSError:
        if not (home / "built.json").exists():
            raise
