"""Commands of `network` started from a page: each in a session of its own, so that it outlives tab and server. Imports
no torch."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from engine.errors import EngineError
from engine.networks import applying, elsewhere, optimising, small
from engine.packaging import networks as packages
from engine.packaging import packing
from engine.supervisor import ROOT, tail
from storage import codec, read_only
from storage.files import make_folder
from storage.networks import files
from storage.networks.files import NetworkError, NetworkFolder
from storage.networks.standing import standing
from storage.run import liveness
from storage.run.folder import RunFolder, all_runs
from storage.suites import files as suites

CAPTURE_LOG, KERNELS_LOG, HUGGING_FACE = "capture.log", "kernels.log", "hf:"
BEGINS_S = 30.0
"""How long is waited until a command of `network` has begun: a capture imports PyTorch first."""
_begun: list[tuple[str, subprocess.Popen[bytes]]] = []
"""What was started from this process, by the network's name."""


def capture_network(
    entry: str, name: str, mode: str, device: str, numbers: Mapping[str, int] = MappingProxyType({}), *,
    is_tuned: bool = False,
) -> NetworkFolder:  # fmt: skip
    """Start capturing a network in a session of its own, and wait until it has begun; what it writes is kept in the
    network's folder. Without a name it has that of the entry's file. `numbers` are options of `network capture` by
    name: keep, batch, tokens. `is_tuned` times max-autotune too.

    Raises:
        EngineError: the server is read-only, the entry or the name cannot be used, or the capture ended at once; what
            it wrote is quoted.
    """
    read_only.guard(EngineError, "capture networks")
    entry = _entry_of(entry.strip())
    try:
        folder = files.folder_of(name.strip() or files.name_for(entry))
    except NetworkError as error:
        raise EngineError(str(error)) from error
    if folder.network_file.exists() or folder.has_capture_at_work:
        raise EngineError(f"a network {folder.name} was captured here: choose another name, or delete that one")
    command = ["capture", entry, "--name", folder.name, "--mode", mode, "--device", device]
    command += [word for option, number in numbers.items() for word in (f"--{option}", str(number))]
    command += ["--max-autotune"] if is_tuned else []
    _begin_capture(folder, command, CAPTURE_LOG, "the capture")
    return folder


def has_small_network() -> bool:
    """Whether the small network came with this Tilewright."""
    return small.FOLDER.is_dir()


def try_small_network() -> NetworkFolder:
    """Start `network try` in a session of its own and wait until it has begun: the small network from capture to
    result, with recorded replies.

    Raises:
        EngineError: the server is read-only, the demo run or something else of this network is at work, or it ended at
            once; what it wrote is quoted.
    """
    read_only.guard(EngineError, "capture networks")
    if is_demo_at_work():
        raise EngineError(
            "the demo run is at work on this machine, and both would be timed wrongly: wait until it ends"
        )
    folder = files.folder_of(small.NAME)
    _see_that_nothing_works_on(folder)
    _begin_capture(folder, ["try"], KERNELS_LOG, "the small network")
    return folder


def is_demo_at_work() -> bool:
    """Whether the demo run is at work, which nothing is to disturb."""
    return any(liveness.is_held(run) and _is_demo(run) for run in all_runs())


def _is_demo(run: RunFolder) -> bool:
    try:
        return run.read_settings().is_demo
    except (OSError, codec.DecodeError, UnicodeDecodeError):
        return False


def _begin_capture(folder: NetworkFolder, command: Sequence[str], log: str, what: str) -> None:
    """Start a command that captures; of one that ends before it has begun nothing is left. Raises EngineError."""
    make_folder(folder.path)
    log_file, before = folder.path / log, files.read(folder)
    if said := _begin(command, log_file, lambda: files.read(folder) != before):
        log_file.unlink()
        if not before:
            shutil.rmtree(folder.path, ignore_errors=True)
        raise EngineError(f"{what} did not start; it wrote:\n{said}")


def _begin(command: Sequence[str], log_file: Path, has_begun: Callable[[], bool]) -> str:
    """Start a command of `network` in a session of its own and wait until it has begun; what it wrote where it failed
    before."""
    with open(log_file, "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "engine", "network", *command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log,
            stderr=log, start_new_session=True,
        )  # fmt: skip
    _begun[:] = [*(other for other in _begun if other[1].poll() is None), (log_file.parent.name, process)]
    deadline = time.monotonic() + BEGINS_S
    while process.poll() is None and not has_begun() and time.monotonic() < deadline:
        time.sleep(0.05)
    return "" if process.poll() in (None, 0) or has_begun() else tail(log_file)


def search_kernels(
    name: str, *, top: int | None = None, limits: Mapping[str, float] | None = None, settings: str = "",
    recordings: str = "",
) -> None:  # fmt: skip
    """Start `network optimise` in a session of its own and wait until it has begun: kernels are searched for `top`
    regions, or for all that are worth it, and then put back. `limits` are of all regions together, by their names.

    Raises:
        NetworkError: there is no such network.
        EngineError: the server is read-only, something is at work on the network, or it ended at once; what it wrote is
            quoted.
    """
    read_only.guard(EngineError, "search kernels")
    folder = files.find(name)
    _see_that_it_is_from_here(folder, elsewhere.NO_SEARCH)
    _see_that_nothing_works_on(folder)
    command = ["optimise", name]
    command += [f"--top={top}"] if top else []
    command += [f"--set-limit={limit}={number:g}" for limit, number in (limits or {}).items()]
    command += [f"--settings={settings}"] if settings else []
    command += [f"--recordings={recordings}"] if recordings else []
    suite = suites.folder_of(optimising.suite_name(name))  # that a search was asked for is journaled before its check
    _begin_kernels(folder, command, "the search", lambda: suite.has_runner or folder.has_proof_at_work)


def put_kernels_back(
    name: str, *, without: Sequence[str] = (), used: Mapping[str, str] | None = None, ways: Sequence[str] = ()
) -> None:
    """Start `network apply` in a session of its own and wait until it has begun: kernels are put back and measured in
    the network, but for the regions in `without`. `used` names runs by region.

    Raises:
        NetworkError: there is no such network.
        EngineError: as of `search_kernels`.
    """
    read_only.guard(EngineError, "measure kernels in networks")
    folder = files.find(name)
    _see_that_it_is_from_here(folder, elsewhere.NO_PROOF)
    _see_that_nothing_works_on(folder)
    command = ["apply", name, *(f"--use={region}={run_id}" for region, run_id in (used or {}).items())]
    command += [f"--without={','.join(without)}"] if without else []
    command += [f"--ways={','.join(ways)}"] if ways else []
    before = _journal_size(folder)
    _begin_kernels(
        folder, command, "the measurement", lambda: folder.has_proof_at_work or _journal_size(folder) != before
    )


def stop_measuring(name: str) -> bool:
    """Ask the measurement that is at work in a network to stop; whether one is. What was measured stays.

    Raises:
        NetworkError: there is no such network.
        EngineError: the server is read-only.
    """
    read_only.guard(EngineError, "stop measurements")
    return applying.stop(files.find(name))


def is_at_work(name: str) -> bool:
    """Whether a command on this network lives that was started from this process, also before it holds a lock."""
    return any(network == name and process.poll() is None for network, process in _begun)


def _see_that_it_is_from_here(folder: NetworkFolder, what: str) -> None:
    """Raises EngineError."""
    if (network := files.read_network(folder)) is not None:
        elsewhere.refuse(network, what)


def _see_that_nothing_works_on(folder: NetworkFolder) -> None:
    """Raises EngineError."""
    if folder.has_capture_at_work:
        raise EngineError(f"network {folder.name} is being captured: wait until that has ended")
    if folder.has_proof_at_work:
        raise EngineError(f"kernels are being measured in network {folder.name} already: wait until that has ended")
    if suites.folder_of(optimising.suite_name(folder.name)).has_runner:
        raise EngineError(f"kernels are being searched for network {folder.name}: wait until that has ended")
    if is_at_work(folder.name):
        raise EngineError(f"what was started here for network {folder.name} is still at work: wait until it has ended")


def _begin_kernels(folder: NetworkFolder, command: Sequence[str], what: str, has_begun: Callable[[], bool]) -> None:
    """Raises EngineError."""
    if said := _begin(command, folder.path / KERNELS_LOG, has_begun):
        raise EngineError(f"{what} did not start; it wrote:\n{said}")


def _journal_size(folder: NetworkFolder) -> int:
    return folder.journal_file.stat().st_size if folder.journal_file.exists() else 0


def packaged(name: str) -> dict[str, str]:
    """The package of the kernels that pay in a network, as texts by path: what `network ship` writes.

    Raises:
        NetworkError: there is no such network, or it is damaged.
        EngineError: no kernel pays, or one of them can be packaged no more.
    """
    stands = standing(files.find(name))
    if stands.network is None or stands.proof is None or not stands.proof.is_over:
        raise EngineError(f"no kernel was measured in network {name} yet")
    kernels = applying.kept_kernels(stands.network, stands.proof)
    return applying.texts(stands.network, kernels, packing.Asked(packages.name_of(name)), stands.proof)


def _entry_of(entry: str) -> str:
    """An entry that means the same wherever it is read. Raises EngineError."""
    if entry.startswith(HUGGING_FACE):
        return entry
    source, _, function = entry.rpartition(":")
    if not (source and function):
        wrong = f"{entry!r} names no network" if entry else "no entry is given"
        raise EngineError(f"{wrong}: write /path/to/app.py:make, a file and a function")
    if not source.endswith(".py"):
        return entry
    path = Path(source).expanduser()
    if not (path.is_absolute() and path.is_file()):
        raise EngineError(f"there is no file {source} on the machine of this server: give its whole path")
    return f"{path}:{function}"


def capture_log(folder: NetworkFolder) -> str:
    """The last lines that a capture started from here has written, by itself or as the small network's; empty where
    there are none."""
    return _last_lines(folder.path / CAPTURE_LOG) or _last_lines(folder.path / KERNELS_LOG)


def kernels_log(folder: NetworkFolder) -> str:
    """The last lines of the search or measurement that was started from here last; empty where there are none."""
    return _last_lines(folder.path / KERNELS_LOG)


def _last_lines(path: Path) -> str:
    return tail(path, 200) if path.exists() else ""
