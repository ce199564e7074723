"""A network's folder under TILEWRIGHT_HOME/networks: `network.json`, written once when a capture is whole, a journal
that is appended to, tasks and recorded tensors. Knows what a line is, not what it means."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import time
import typing
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from storage import codec, files, untrusted
from storage.home import home
from storage.locks import hold_file, is_file_held
from storage.networks.records import NAME, Event, Network, RegionRun
from storage.untrusted import Limits

JOURNAL, NETWORK, LOCK, REGIONS = "journal.jsonl", "network.json", "lock", "regions"
PROOF_LOCK, PACKAGES = "proof.lock", "packages"
_LIMITS = Limits(most_bytes=256 << 20)
_KINDS: dict[str, type] = {kind.__name__: kind for kind in typing.get_args(Event)}


class NetworkError(ValueError):
    """A network that is not there or cannot be read; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Line:
    """One event with its time in seconds since the epoch."""

    time: float
    event: Event


@dataclass(frozen=True, slots=True)
class NetworkFolder:
    """Paths inside one network's folder."""

    path: Path

    @property
    def name(self) -> str:
        """The folder's name is the network's."""
        return self.path.name

    @property
    def journal_file(self) -> Path:
        """What happened to it, appended."""
        return self.path / JOURNAL

    @property
    def network_file(self) -> Path:
        """What the capture found."""
        return self.path / NETWORK

    @property
    def lock_file(self) -> Path:
        """Held while a capture works on the folder."""
        return self.path / LOCK

    @property
    def has_capture_at_work(self) -> bool:
        """Whether one lives."""
        return is_file_held(self.lock_file)

    @property
    def proof_lock_file(self) -> Path:
        """Held while kernels are put back and measured."""
        return self.path / PROOF_LOCK

    @property
    def has_proof_at_work(self) -> bool:
        """Whether kernels are being measured in the network."""
        return is_file_held(self.proof_lock_file)

    def package(self, proof: int) -> Path:
        """The folder of the package that a proof measures."""
        return self.path / PACKAGES / f"proof-{proof}"

    def region(self, name: str) -> Path:
        """The folder of one region's task."""
        return self.path / REGIONS / name


def networks_folder() -> Path:
    """The folder that holds one folder per network."""
    return home() / "networks"


def folder_of(name: str) -> NetworkFolder:
    """Where a network of this name is or would be.

    Raises:
        NetworkError: no network can have this name.
    """
    if not NAME.fullmatch(name):
        raise NetworkError(f"{name!r} is no name of a network: use letters, digits, '.', '_' and '-'")
    return NetworkFolder(networks_folder() / name)


def find(name: str) -> NetworkFolder:
    """A network of this home.

    Raises:
        NetworkError: there is none.
    """
    folder = folder_of(name)
    if not folder.journal_file.exists():
        names = ", ".join(network.name for network in all_networks()) or "none yet"
        raise NetworkError(
            f"no network {name!r} was captured here: {names}. "
            "`python -m engine network capture app.py:make` captures one"
        )
    return folder


def all_networks() -> list[NetworkFolder]:
    """Every network whose capture was begun, by name."""
    root = networks_folder()
    if not root.is_dir():
        return []
    return [NetworkFolder(path) for path in sorted(root.iterdir()) if (path / JOURNAL).exists()]


def hold(folder: NetworkFolder) -> int:
    """Take the folder for a capture and return the open lock; it is released when the process ends, however it ends.

    Raises:
        AlreadyRunningError: another capture works on it.
        OSError: the folder cannot be made.
    """
    files.make_folder(folder.path)
    return hold_file(folder.lock_file)


def append(folder: NetworkFolder, *events: Event) -> None:
    """Write events; they are on disk when this returns.

    Raises:
        OSError: the disk is full or may not be written.
    """
    files.append(folder.journal_file, map(line_of, events))


def line_of(event: Event, at: float | None = None) -> str:
    """An event as a line of the journal, without its newline."""
    plain = {"kind": type(event).__name__, "time": time.time() if at is None else at, "event": codec.to_plain(event)}
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def note_run(task: Path, run_id: str) -> None:
    """Note a run in the journal of the network whose region its task is, where it is one."""
    for folder, region in of_task(task):
        append(folder, RegionRun(region, run_id))


def of_task(task: Path) -> Iterator[tuple[NetworkFolder, str]]:
    """The networks that a task is a region of, each with the region's name."""
    path = task.absolute().resolve()
    for folder in all_networks():
        regions = folder.path.resolve() / REGIONS
        if path.is_relative_to(regions) and path != regions:
            yield folder, path.relative_to(regions).parts[0]


def hold_proof(folder: NetworkFolder) -> int:
    """Take the folder for a proof, as `hold` does for a capture.

    Raises:
        AlreadyRunningError: another one is at work.
    """
    return hold_file(folder.proof_lock_file)


def encoded(event: Event) -> str:
    """An event as one line, without its time: what a process hands to the one that writes the journal."""
    return json.dumps({"kind": type(event).__name__, "event": codec.to_plain(event)}, ensure_ascii=False)


def decoded(line: bytes) -> Event:
    """An event of `encoded`.

    Raises:
        DecodeError: it is none.
    """
    return _decoded(line).event


def read(folder: NetworkFolder) -> list[Line]:
    """Every event that can be read; a torn last line, and one that is damaged, is left out."""
    try:
        return lines_of(folder.journal_file.read_bytes())
    except FileNotFoundError:
        return []


def lines_of(content: bytes) -> list[Line]:
    """The same of a journal's content."""
    lines = []
    for line in content[: content.rfind(b"\n") + 1].split(b"\n"):
        with contextlib.suppress(codec.DecodeError):
            lines += [_decoded(line)] if line else []
    return lines


def _decoded(line: bytes) -> Line:
    plain = codec.read_line(dict[str, typing.Any], line)
    kind = _KINDS.get(plain.get("kind", ""))
    if kind is None:
        raise codec.DecodeError(f"an event of a kind that this version does not know: {plain.get('kind')!r}")
    return Line(float(plain.get("time", 0.0)), codec.from_plain(kind, plain.get("event")))


def write_network(folder: NetworkFolder, network: Network) -> None:
    """Write what a capture found, whole or not at all.

    Raises:
        OSError: the disk is full or may not be written.
    """
    files.replace(folder.network_file, text_of(network))


def text_of(network: Network) -> str:
    """What a capture found, as its file has it."""
    return json.dumps(codec.to_plain(network), ensure_ascii=False, indent=1)


def read_network(folder: NetworkFolder) -> Network | None:
    """What a capture found; None where none is whole.

    Raises:
        NetworkError: the file is damaged.
    """
    try:
        text = untrusted.read_text(folder.network_file, _LIMITS)
        network: Network = codec.from_plain(Network, json.loads(text))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise NetworkError(
            f"{folder.network_file} cannot be read ({error}): delete the network and capture it again"
        ) from error
    # Older captures name a place once for each run of operators there.
    regions = (replace(region, places=tuple(dict.fromkeys(region.places))) for region in network.regions)
    return replace(network, regions=tuple(regions))


def delete(folder: NetworkFolder) -> int:
    """Remove a network with all that was captured of it, and return how many bytes that were. Its runs stay.

    Raises:
        NetworkError: a capture works on it.
        OSError: a file cannot be removed.
    """
    if folder.has_capture_at_work or folder.has_proof_at_work:
        what = "a capture works on" if folder.has_capture_at_work else "kernels are being measured in"
        raise NetworkError(f"{what} {folder.name}: stop it first (control-C where it runs)")
    freed, target = size_of(folder), folder.path.resolve()
    shutil.rmtree(target)
    if folder.path.is_symlink():
        folder.path.unlink()
    return freed


def size_of(folder: NetworkFolder) -> int:
    """Bytes on disk."""
    return sum(path.stat().st_size for path in folder.path.rglob("*") if path.is_file())


def name_for(entry: str) -> str:
    """What a network is called that was given no name: as its file, module or configuration, as far as a name can."""
    words = entry.removeprefix("hf:").rstrip("/").partition(":")[0]
    name = Path(words.removesuffix("/config.json")).name.removesuffix(".py")
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("._-") or "network"
