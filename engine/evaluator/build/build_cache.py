"""Built libraries under the hash of all that went into them. Knows neither compilers nor candidates."""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from engine.evaluator.machine import lease
from storage import codec, files
from storage.results.evaluation_results import KernelResources

NOTE = "built.json"
LEAST_FREE = 32 << 20  # bytes; with less a build fails whatever it builds


@dataclass(frozen=True, slots=True)
class Built:
    """A library ready to load. `resources` is what the compiler gave each device kernel."""

    library: str
    binding: str
    namespace: str
    seconds: float
    log: str
    remarks: tuple[str, ...]
    is_cached: bool = False
    resources: tuple[KernelResources, ...] = ()


@dataclass(frozen=True, slots=True)
class BuildCache:
    """One folder of libraries; several processes may use it at once."""

    folder: Path

    def find(self, key: str) -> Built | None:
        """The library of this key, if it was built before."""
        folder = self._place(key)
        try:
            built: Built = codec.from_plain(Built, json.loads((folder / NOTE).read_text()))
        except FileNotFoundError:
            return None
        except ValueError:  # damaged: it is built again
            shutil.rmtree(folder, ignore_errors=True)
            return None
        return replace(built, library=str(folder / Path(built.library).name), is_cached=True)

    def found_or_built(self, key: str, build: Callable[[Path], Built]) -> Built:
        """The library of this key; `build` makes it in the folder that it is given. What another process is building
        is waited for: runs that begin with the same kernel build it once."""
        if built := self.find(key):
            return built
        lock = self.folder / f".{key[:32]}.lock"
        with lease.hold(lock), ExitStack() as left:
            left.callback(lock.unlink, missing_ok=True)  # whoever waits for it makes a new one
            if built := self.find(key):
                return built
            work = Path(tempfile.mkdtemp(prefix=f".{key[:16]}.", dir=self.folder))
            left.callback(shutil.rmtree, work, ignore_errors=True)
            return self._keep(key, work, self._on_a_disk_with_room(build, work))

    def _on_a_disk_with_room(self, build: Callable[[Path], Built], work: Path) -> Built:
        """What a compiler says on a full disk is no verdict on a kernel, and nobody is to be paid for mending that."""
        try:
            return build(work)
        except Exception as failed:  # whatever it is, the full disk comes first; else it is raised as it was
            if shutil.disk_usage(self.folder).free < LEAST_FREE:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(work)) from failed
            raise

    def _keep(self, key: str, work: Path, built: Built) -> Built:
        """What was built in `work`, of its files only the library."""
        folder, name = self._place(key), Path(built.library).name
        for path in work.iterdir():
            if path.name != name:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        files.replace(work / NOTE, json.dumps(asdict(built)))
        try:
            work.rename(folder)
        except OSError:  # of another host, which shares the folder and not its locks, or an older Tilewright
            if not (folder / NOTE).exists():
                raise
        return replace(built, library=str(folder / name))

    def _place(self, key: str) -> Path:
        return self.folder / key[:32]
