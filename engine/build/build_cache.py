"""Built libraries under the hash of all that went into them. Knows neither compilers nor candidates."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from storage import codec
from storage.evaluation_results import KernelResources

NOTE = "built.json"


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
        place = self._place(key)
        try:
            built: Built = codec.from_plain(Built, json.loads((place / NOTE).read_text()))
        except FileNotFoundError:
            return None
        return replace(built, library=str(place / Path(built.library).name), is_cached=True)

    @contextmanager
    def workplace(self, key: str) -> Iterator[Path]:
        """A folder to build in, gone afterwards unless it was kept."""
        self.folder.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{key[:16]}.", dir=self.folder))
        try:
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def put(self, key: str, work: Path, built: Built) -> Built:
        """Keep what was built in `work`, of its files only the library.

        Two builders of the same key may race: whoever is second keeps the first's folder.
        """
        place, name = self._place(key), Path(built.library).name
        for path in work.iterdir():
            if path.name != name:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        (work / NOTE).write_text(json.dumps(asdict(built)))
        try:
            work.rename(place)
        except OSError:
            if not (place / NOTE).exists():
                raise
        return replace(built, library=str(place / name))

    def _place(self, key: str) -> Path:
        return self.folder / key[:32]
