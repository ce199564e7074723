"""Networks as archives: all that was captured, searched and measured, for somebody without the program and the GPU.
Exports, lists and opens them; `tasks/networks/examples/` has those that come with Tilewright.

An archive holds the network, its journal, the suite that searched kernels, every region's task, and the runs as their
own archives have them. Recorded tensors and weights stay where they are; paths of the machine are cut to their last
part. What comes out of an archive is decoded and written anew; nothing in it says where a file is to lie.
"""

from __future__ import annotations

import functools
import re
import secrets
import shutil
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine import examples
from engine.errors import EngineError
from engine.networks import applying, optimising, reporting, starting
from engine.suites.metering import Meter
from storage import codec, read_only, untrusted
from storage import files as stored
from storage.home import home
from storage.networks import files, ranking
from storage.networks.files import NetworkError, NetworkFolder
from storage.networks.proofs import Proof
from storage.networks.records import (
    NAME,
    CaptureProgressed,
    CaptureStarted,
    ChosenKernel,
    Event,
    Network,
    NetworkState,
    OriginalTimed,
    PartMeasured,
    ProofEnded,
    ProofProgressed,
    ProofStarted,
    ProofStopAsked,
    RegionRun,
    RegionTried,
    SearchStarted,
    StackMeasured,
)
from storage.networks.standing import Standing, fold, standing
from storage.run.folder import RUN_ID, RunFolder, runs_folder
from storage.suites import files as suites
from storage.suites import standing as suite_standing
from storage.suites.files import SuiteFolder
from storage.suites.records import (
    CellLeft,
    CellLinked,
    CellState,
    Defined,
    JudgedAgain,
    SuiteTask,
    Weighed,
)
from storage.suites.records import Event as SuiteEvent
from storage.untrusted import Limits, UntrustedError

SHIPPED = Path(__file__).resolve().parent.parent.parent / "tasks" / "networks" / "examples"
SUITE, RUNS, TASK, POLICY = "suite.jsonl", "runs", "task.py", "task.toml"
LARGEST_BYTES = 8_000_000
ARCHIVE, NETWORK_JSON = Limits(most_bytes=64 << 20, most_members=20_000), Limits(most_bytes=32 << 20)
_MEMBER = re.compile(
    rf"{re.escape(files.NETWORK)}|{re.escape(files.JOURNAL)}|{SUITE}|{files.REGIONS}/(?!\.)[\w.-]+/(?:{TASK}|{POLICY})|{RUNS}/(?!\.)[\w.-]+/.+",
    re.ASCII,
)
_OF_PROOF = (ProofStarted, OriginalTimed, RegionTried, StackMeasured, ProofEnded)
_NEWS = (CaptureProgressed, ProofProgressed, PartMeasured, ProofStopAsked)
_OF_CELLS = (CellLinked, CellLeft, Weighed, JudgedAgain)


@dataclass(frozen=True, slots=True)
class ExampleNetwork:
    """One archive: its network, its bytes, and whether it is open here."""

    path: Path
    network: Network
    size: int
    is_open: bool


@dataclass(frozen=True, slots=True)
class Unpacked:
    """What an archive holds, decoded. `tasks` are texts by their path in the network's folder, `runs` files by run."""

    network: Network
    lines: list[files.Line]
    suite: list[suites.Line]
    tasks: dict[str, bytes]
    runs: dict[str, dict[str, bytes]]


def export(folder: NetworkFolder, target: Path, say: applying.Say) -> int:
    """Write a network with its search and its runs as an archive, and return its bytes. A run that is not over, and
    whose kernel was not put back, is left out.

    Raises:
        EngineError: something is at work on it, a run that it needs is not over, the archive would be too large, or it
            would hold something that tells of a machine or a person.
        OSError: the disk is full or may not be written.
    """
    stands = standing(folder)
    network, runs = _exportable(folder, stands), _runs(stands, say)
    packed = {
        files.NETWORK: examples.without_paths(files.text_of(_portable(network)).encode()),
        files.JOURNAL: _journal(files.read(folder), stands.proof, runs),
        SUITE: _suite(stands, runs),
        **dict(_tasks(folder, network)),
    }
    for run_id, run in runs.items():
        packed |= {f"{RUNS}/{run_id}/{name}": text for name, text in examples.packed_files(run).items()}
    examples.see_that_nothing_is_private(packed)
    archive = examples.archive_of(packed, network.captured_at)
    if len(archive) > LARGEST_BYTES:
        raise EngineError(
            f"network {folder.name} makes an archive of {len(archive):,} bytes: at most {LARGEST_BYTES:,} are opened"
        )
    stored.make_folder(target.absolute().parent)
    stored.replace(target, archive)
    return len(archive)


def _exportable(folder: NetworkFolder, stands: Standing) -> Network:
    """Raises EngineError."""
    network = stands.network
    if network is None or stands.state is not NetworkState.CAPTURED:
        raise EngineError(f"network {folder.name} is {stands.state}: {stands.words}")
    if stands.is_proving or (stands.suite and suites.folder_of(stands.suite).has_runner):
        what = "measured in" if stands.is_proving else "searched for"
        raise EngineError(f"kernels are being {what} network {folder.name}: export it when that has ended")
    if stands.proof is not None and not stands.proof.is_over:
        raise EngineError(f"the measurement was broken off: `network apply {folder.name}` goes on, export it then")
    return network


def _portable(network: Network) -> Network:
    entry = Path(network.entry).name if network.entry.partition(":")[0].endswith(".py") else network.entry
    return replace(network, entry=entry, folder="", weights="", is_example=True)


def _runs(stands: Standing, say: applying.Say) -> dict[str, RunFolder]:
    """Runs of its regions that are here still and are over, or needed.

    Raises:
        EngineError: one whose kernel was put back is not.
    """
    by_region = applying.runs_by_region(stands)
    ids = dict.fromkeys(run_id for started in by_region.values() for run_id in started)
    needed = {kernel.run_id: region for region, kernel in stands.proof.kernels.items()} if stands.proof else {}
    runs = {run_id: RunFolder(runs_folder() / run_id) for run_id in [*ids, *needed]}
    there = {run_id: run for run_id, run in runs.items() if run.settings_file.exists()}
    if gone := [f"{run_id} (of region {region})" for run_id, region in needed.items() if run_id not in there]:
        raise EngineError(
            f"kernels were put back of runs that are not here any more: {', '.join(gone)}. Restore them with `undelete`"
        )
    for run_id in [run_id for run_id in there if run_id not in needed]:
        if why := examples.why_not_over(there[run_id]):
            say(f"left out: {why}")
            del there[run_id]
    return there


def _journal(lines: Sequence[files.Line], proof: Proof | None, run_ids: Container[str]) -> bytes:
    """The journal with its last proof, without what was only news."""
    events = [line.event for line in lines]
    first = events.index(proof.started) if proof else len(events)
    kept = [
        files.line_of(_short(line.event), line.time)
        for number, line in enumerate(lines)
        if not isinstance(line.event, _NEWS)
        and (number >= first or not isinstance(line.event, _OF_PROOF))
        and (not isinstance(line.event, RegionRun) or line.event.run_id in run_ids)
    ]
    return examples.without_paths("".join(f"{line}\n" for line in kept).encode())


def _short(event: Event) -> Event:
    if isinstance(event, CaptureStarted):
        return replace(event, pid=0, entry=Path(event.entry).name if ".py" in event.entry else event.entry)
    return event


def _suite(stands: Standing, runs: Mapping[str, RunFolder]) -> bytes:
    """The journal of the suite that searched, as one that nobody goes on with; empty where none did."""
    lines = suites.read(suites.folder_of(stands.suite)) if stands.suite else []
    suite = suite_standing.fold(lines)
    if suite is None:
        return b""
    kept = []
    for line in lines:
        event = line.event
        if isinstance(event, Defined):
            kept.append(suites.encode(_defined(event), line.time))
        elif isinstance(event, _OF_CELLS) and event.run_id in runs:
            kept.append(suites.encode(event, line.time))
    for cell, seen in suite.cells.items():
        if seen.run_id is not None and seen.run_id in runs:
            state = CellState.FAILED if seen.state is CellState.FAILED else CellState.FINISHED
            left = CellLeft(cell, seen.run_id, state, spent=Meter(runs[seen.run_id]).read().spent)
            kept.append(suites.encode(left, lines[-1].time))
    return examples.without_paths("".join(f"{line}\n" for line in kept).encode())


def _defined(suite: Defined) -> Defined:
    def short(task: SuiteTask) -> SuiteTask:
        return replace(task, task=f"{files.REGIONS}/{task.name}/{TASK}")

    return replace(suite, tasks=tuple(map(short, suite.tasks)), toml="", words=(), is_example=True)


def _tasks(folder: NetworkFolder, network: Network) -> Iterator[tuple[str, bytes]]:
    """Every region's task and policy, which asks for no recorded tensors."""
    for region in network.regions:
        if region.task:
            path = folder.path / region.task
            yield region.task, examples.without_paths(path.read_bytes())
            lines = path.with_suffix(".toml").read_bytes().splitlines(keepends=True)
            policy = b"".join(line for line in lines if not line.startswith(b"recorded = "))
            yield str(Path(region.task).with_suffix(".toml")), examples.without_paths(policy)


def shipped(folder: Path | None = None) -> list[ExampleNetwork]:
    """Every archive that comes with Tilewright, in the order of their names.

    Raises:
        EngineError: one of them is damaged.
    """
    return [_listed(path) for path in sorted((folder or SHIPPED).glob(f"*{examples.ENDING}"))]


def _listed(path: Path) -> ExampleNetwork:
    status = path.stat()
    network = _first(path, status.st_mtime_ns, status.st_size)
    return ExampleNetwork(path, network, status.st_size, _is_open(network))


@functools.lru_cache(maxsize=32)
def _first(path: Path, *_state: int) -> Network:
    """The network of an archive that is as it was when it was read: a page lists them with every look."""
    return _network(_members(path, only=files.NETWORK), path)


def _is_open(network: Network) -> bool:
    try:
        here = files.read_network(files.folder_of(network.name))
    except NetworkError:
        return False
    return here is not None and here.is_example and here.captured_at == network.captured_at


def open_shipped(name: str) -> NetworkFolder:
    """Open one that comes with Tilewright, by its network's name; raises as `open_archive` does."""
    path = next((one.path for one in shipped() if one.network.name == name), None)
    if path is None:
        raise EngineError(f"no example network {name}: `python -m engine examples list` shows all")
    return open_archive(path)


def open_archive(path: Path, name: str = "") -> NetworkFolder:
    """Put an archive's network, suite and runs beside those that are here; runs that are here stay as they are.
    `name` is what the network is called here.

    Raises:
        EngineError: the archive is damaged or none of ours, another network or suite has its name, the demo run is at
            work, or this server only shows runs.
        OSError: the disk is full or may not be written.
    """
    read_only.guard(EngineError, "open networks")
    if starting.is_demo_at_work():
        raise EngineError(
            "the demo run is at work on this machine, and so many runs would be read beside it: wait until it ends"
        )
    unpacked = _unpacked(path, name)
    folder = _vacant(unpacked.network)
    suite = _vacant_suite(unpacked.network.name)
    for run_id, contents in unpacked.runs.items():
        if examples.opened_before(run_id) is None:
            examples.lay_out(run_id, contents, path.name)
    if unpacked.suite and not suite.journal_file.exists():
        stored.make_folder(suite.path)
        lines = "".join(f"{suites.encode(_here(line.event, folder), line.time)}\n" for line in unpacked.suite)
        stored.replace(suite.journal_file, lines)
    if not folder.network_file.exists():
        _lay_out(folder, unpacked)
    return folder


def run_ids(folder: NetworkFolder) -> list[str]:
    """Runs of an opened network's regions."""
    return [run_id for started in applying.runs_by_region(standing(folder)).values() for run_id in started]


def _vacant(network: Network) -> NetworkFolder:
    """Where it is, or may be laid out. Raises EngineError."""
    folder = files.folder_of(network.name)
    if (folder.path.exists() or folder.path.is_symlink()) and not _is_open(network):
        raise EngineError(
            f"another network {network.name} is here already: `network import FILE --name OTHER` opens this one beside "
            "it, or `network delete` removes that one"
        )
    return folder


def _vacant_suite(network: str) -> SuiteFolder:
    """Raises EngineError."""
    folder = suites.folder_of(optimising.suite_name(network))
    suite = suite_standing.fold(suites.read(folder))
    if suite is not None and not suite.defined.is_example:
        raise EngineError(
            f"a suite {folder.name} is here already: `network import FILE --name OTHER` opens the network beside it"
        )
    return folder


def _here(event: SuiteEvent, folder: NetworkFolder) -> SuiteEvent:
    """A suite's event as it is written here: tasks are those of the opened folder."""
    if not isinstance(event, Defined):
        return event
    tasks = tuple(replace(one, task=str(folder.path / files.REGIONS / one.name / TASK)) for one in event.tasks)
    here = replace(event, name=optimising.suite_name(folder.name), tasks=tasks, is_example=True, words=())
    return replace(here, toml=optimising.as_text(here))


def _lay_out(folder: NetworkFolder, unpacked: Unpacked) -> None:
    """Whole or not at all: whoever looks for networks must not find half of one among them."""
    beside = NetworkFolder(home() / f".opening-{secrets.token_hex(4)}")
    try:
        stored.make_folder(beside.path)
        for name, text in unpacked.tasks.items():
            stored.make_folder((beside.path / name).parent)
            (beside.path / name).write_bytes(text)
        files.write_network(beside, unpacked.network)
        lines = "".join(f"{files.line_of(_named(line.event, folder.name), line.time)}\n" for line in unpacked.lines)
        stored.replace(beside.journal_file, lines)
        stored.make_folder(folder.path.parent)
        beside.path.rename(folder.path)
    finally:
        shutil.rmtree(beside.path, ignore_errors=True)


def _named(event: Event, network: str) -> Event:
    return SearchStarted(optimising.suite_name(network)) if isinstance(event, SearchStarted) else event


def _members(path: Path, only: str = "") -> dict[str, bytes]:
    """The files of an archive, of which the network stands first. Raises EngineError."""
    contents: dict[str, bytes] = {}
    try:
        for name, content in untrusted.archive_members(path, ARCHIVE):
            if not _MEMBER.fullmatch(name) or name in contents:
                raise EngineError(f"{path.name} is refused: it holds {name[:80]!r}, which no exported network has")
            contents[name] = content
            if name == only:
                break
    except (OSError, UntrustedError) as error:
        raise EngineError(f"{path.name} cannot be read: {error}") from error
    return contents


def _network(contents: Mapping[str, bytes], path: Path, name: str = "") -> Network:
    """Raises EngineError."""
    try:
        plain = untrusted.json_value(contents[files.NETWORK], files.NETWORK, NETWORK_JSON)
        network: Network = codec.from_plain(Network, plain)
    except KeyError:
        raise EngineError(
            f"{path.name} is no exported network: `network export NAME --output FILE` writes one"
        ) from None
    except ValueError as error:
        raise EngineError(f"{path.name} is damaged: {error}") from error
    if not NAME.fullmatch(name or network.name):
        raise EngineError(f"{name or network.name!r} is no name of a network: give another with --name")
    return replace(network, name=name or network.name, folder="", weights="", is_example=True)


def _unpacked(path: Path, name: str) -> Unpacked:
    """An archive, decoded and seen to fit together. Raises EngineError."""
    contents = _members(path)
    network = _network(contents, path, name)
    runs: dict[str, dict[str, bytes]] = {}
    for member, text in contents.items():
        if member.startswith(f"{RUNS}/"):
            _, run_id, inner = member.split("/", 2)
            runs.setdefault(run_id, {})[inner] = text
    tasks = {member: text for member, text in contents.items() if member.startswith(f"{files.REGIONS}/")}
    suite = [suites.decode(line) for line in contents.get(SUITE, b"").split(b"\n") if line]
    unpacked = Unpacked(network, files.lines_of(contents.get(files.JOURNAL, b"")), suite, tasks, runs)
    try:
        _see_that_it_fits(unpacked)
        _see_that_it_can_be_told(unpacked)
    except (EngineError, ValueError, ArithmeticError, LookupError, TypeError) as error:
        raise EngineError(f"{path.name} is refused: {error}") from error
    return unpacked


def _see_that_it_fits(unpacked: Unpacked) -> None:
    """Raises EngineError or ValueError."""
    regions = {region.name: region.task for region in unpacked.network.regions}
    for name, task in regions.items():
        if task and (task != f"{files.REGIONS}/{name}/{TASK}" or task not in unpacked.tasks):
            raise EngineError(f"the task of region {name} is not in it")
    for line in unpacked.suite:
        if isinstance(line.event, Defined) and any(not regions.get(task.name) for task in line.event.tasks):
            raise EngineError("its suite has tasks that are no regions of the network")
    if missing := _run_ids(unpacked) - unpacked.runs.keys():
        raise EngineError(f"it names runs that are not in it: {', '.join(sorted(missing)[:3])}")
    for run_id, contents in unpacked.runs.items():
        if not all(map(examples.MEMBER.fullmatch, contents)) or not RUN_ID.fullmatch(run_id):
            raise EngineError(f"run {run_id} holds something that no run has")
        settings = examples.settings_of(contents[examples.SETTINGS])
        if settings.run_id != run_id or not settings.is_example:
            raise EngineError(f"run {run_id} is no run of an exported network")


def _run_ids(unpacked: Unpacked) -> set[str]:
    kernels: list[RegionRun | ChosenKernel] = []
    for line in unpacked.lines:
        kernels += [line.event] if isinstance(line.event, RegionRun) else []
        kernels += line.event.kernels if isinstance(line.event, ProofStarted) else []
    cells = {line.event.run_id for line in unpacked.suite if isinstance(line.event, _OF_CELLS)}
    return {one.run_id for one in kernels} | cells


def _see_that_it_can_be_told(unpacked: Unpacked) -> None:
    """Tell it as the pages do; raises whatever that raises."""
    stands = fold(unpacked.lines, unpacked.network, is_at_work=False)
    ranking.ranked(unpacked.network, stands.limits)
    ranking.whole_of(unpacked.network)
    if stands.proof is not None:
        reporting.page(unpacked.network, stands.proof)


def plain(example: ExampleNetwork) -> dict[str, Any]:
    """For JSON: what the list says of an example."""
    return {
        "network": example.network.name, "device": example.network.device, "bytes": example.size,
        "is_open": example.is_open,
    }  # fmt: skip
