"""Kernels put back into a network: which ones, their package, and the process that measures them there.

The process may die of a kernel. Then that region's kernel is what crashed, and a new process goes on with the next one.
Imports no torch.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from engine import connecting
from engine.errors import EngineError
from engine.networks import elsewhere, fingerprint
from engine.packaging import networks as packages
from engine.packaging.kernels import PackagedKernel
from engine.packaging.networks import CannotBePutBack
from engine.packaging.packing import Asked
from storage import codec, untrusted
from storage import files as stored
from storage.networks import files, proofs, ranking
from storage.networks.files import NetworkFolder
from storage.networks.proofs import Proof
from storage.networks.records import (
    COMPILED,
    CUDA_GRAPH,
    EAGER,
    MAX_AUTOTUNE,
    TUNED_GRAPH,
    CaptureEnded,
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
    Region,
    RegionTried,
    StackMeasured,
    TensorFacts,
    Verdict,
)
from storage.networks.standing import Standing, standing
from storage.run import journal
from storage.run.folder import RunFolder, runs_folder
from storage.run.record import Record
from storage.suites import files as suites
from storage.suites import standing as suite_standing

ROOT = Path(__file__).resolve().parent.parent.parent
SCRATCH, SHIPPED, COMPILER_CACHE = "scratch", "in_network.json", "inductor-"
DEATHS = 3  # in a row without a region to blame
STOP = -1000  # no process ends so
STOPPED = "it was stopped"
GOES_ON = "What was measured is kept: the same command goes on"
LOOKS_EVERY_S = 0.3
ANEW = 6
"""How the process ends that has told what failed and can itself not go on: another one does."""
WAY_S = 600.0
COMPILERS = 12
WAYS_ON_GPU = (EAGER, COMPILED, MAX_AUTOTUNE, CUDA_GRAPH, TUNED_GRAPH)
GOMP_SPINCOUNT = "2000"
WAYS = (EAGER, COMPILED)
TOLD = (ProofProgressed, OriginalTimed, PartMeasured, RegionTried, StackMeasured, ProofEnded)
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Times:
    """At most for one pair of ways to call the network and one workload: of a trial, and of the stack at the end."""

    trial_s: float = 12.0
    stack_s: float = 20.0
    way_s: float = WAY_S
    """At most until a way to call the network is ready: compiled, tuned, captured, called once."""

    @classmethod
    def of_trial(cls, seconds: float, way_s: float = WAY_S) -> Times:
        """Those of so long a trial; what is kept at the end is worth longer."""
        return cls(seconds, 1.6 * seconds, way_s)


@dataclass(frozen=True, slots=True)
class Shipped:
    """What stands beside a shipped package, to be measured again: the network without what a capture alone needs."""

    network: Network
    proof: Proof


@dataclass(frozen=True, slots=True)
class Reproduced:
    """A shipped package, measured then and now."""

    network: Network
    then: Proof
    now: Proof


def runs_by_region(stands: Standing) -> dict[str, list[str]]:
    """Runs that were started for regions: one by one, and as cells of the suite that searched last."""
    runs = {region: list(ids) for region, ids in stands.runs.items()}
    if stands.suite:
        suite = suite_standing.fold(suites.read(suites.folder_of(stands.suite)))
        for cell, cell_standing in suite.cells.items() if suite else ():
            if cell_standing.run_id and cell_standing.run_id not in runs.get(cell.task, ()):
                runs.setdefault(cell.task, []).append(cell_standing.run_id)
    return runs


def best_kernels(stands: Standing, used: Mapping[str, str]) -> list[ChosenKernel]:
    """Of every region with a correct kernel the fastest one, those first that save most; `used` names runs by region
    that are to be used whatever others there are.

    Raises:
        EngineError: a run or a region that is named is not there, or has no correct kernel.
    """
    network = stands.network
    assert network is not None
    by_name = {region.name: region for region in network.regions}
    if strangers := sorted(used.keys() - by_name.keys()):
        raise EngineError(f"network {network.name} has no region {', '.join(strangers)}: see `network show`")
    runs = runs_by_region(stands)
    found = []
    for name, region in by_name.items():
        ids = [used[name]] if name in used else runs.get(name, [])
        kernels = [kernel for run_id in ids if (kernel := _kernel(region, run_id, is_asked=name in used))]
        if kernels:
            found.append(max(kernels, key=lambda kernel: kernel.speedup or 0.0))
    saved = _savings(network, found)
    return sorted(found, key=lambda kernel: -saved[kernel.region])


def _kernel(region: Region, run_id: str, *, is_asked: bool) -> ChosenKernel | None:
    folder = RunFolder(runs_folder() / run_id)
    try:
        record = Record.of(folder.read_settings(), list(journal.read(folder.journal_file)))
    except (OSError, codec.DecodeError) as error:
        if is_asked:
            raise EngineError(f"run {run_id} cannot be read: {error}") from error
        return None
    if record.best is None:
        if is_asked:
            raise EngineError(f"run {run_id} has no correct kernel yet")
        return None
    timed = record.best.trusted
    low, high = timed.speedup_interval if timed else (None, None)
    return ChosenKernel(
        region.name, run_id, record.best.candidate_id, timed.speedup if timed else None, low, high
    )  # fmt: skip


def _savings(network: Network, kernels: Iterable[ChosenKernel]) -> dict[str, float]:
    """Milliseconds of one call of all workloads, weighted, that the gains in isolation would save."""
    scales = {workload.name: workload.weight * ranking.scale(workload) for workload in network.workloads}
    uses = {region.name: region.uses for region in network.regions}
    return {
        kernel.region: sum(scales[use.workload] * use.eager_ms for use in uses[kernel.region])
        * (1 - 1 / kernel.speedup if kernel.speedup else 0.0)
        for kernel in kernels
    }


def apply(
    folder: NetworkFolder, say: Say, *, used: Mapping[str, str] | None = None, without: Collection[str] = (),
    ways: Sequence[str] = (), times: Times | None = None, is_anew: bool = False,
) -> Proof:  # fmt: skip
    """Put kernels back and measure them in the network. One that was broken off with the same kernels goes on.

    Raises:
        EngineError: there is no kernel, or the network cannot be made any more.
        AlreadyRunningError: another proof is at work on it.
    """
    stands = standing(folder)
    network = stands.network
    if network is None or stands.state is not NetworkState.CAPTURED:
        raise EngineError(f"network {folder.name} is {stands.state}: {stands.words}")
    elsewhere.refuse(network, elsewhere.NO_PROOF)
    kernels = best_kernels(stands, used or {})
    if unknown := sorted(set(without) - {region.name for region in network.regions}):
        raise EngineError(f"network {folder.name} has no region {', '.join(unknown)}: see `network show`")
    if not kernels:
        raise EngineError(
            f"no region of network {folder.name} has a correct kernel yet: `network optimise {folder.name}` searches "
            "some, or start a run for a region, or name one with --use REGION=RUN"
        )
    kernels = [kernel for kernel in kernels if kernel.region not in without]
    lock = files.hold_proof(folder)
    try:
        package = _packaged(network, kernels)
        asked = ProofStarted(
            0, tuple(kernels), tuple(sorted(without)), tuple(ways or _ways(network)),
            fingerprint.measured_with(network, package.texts),
        )  # fmt: skip
        started, why = fingerprint.begun(stands.proof, asked, is_anew=is_anew)
        if why:
            say(f"it begins anew: {why}")
        files.append(folder, started)
        _write_package(folder, started, package, say)
        return _proven(folder, network, started, package.name, say, times or Times())
    except KeyboardInterrupt:
        files.append(folder, ProofEnded(STOPPED))
        raise
    finally:
        os.close(lock)


def stop(folder: NetworkFolder) -> bool:
    """Ask the proof that is at work to stop, from whatever process; whether one is. What was measured stays, and the
    same command goes on."""
    if folder.has_proof_at_work:
        files.append(folder, ProofStopAsked())
        return True
    return False


def _ways(network: Network) -> tuple[str, ...]:
    return WAYS if network.device == "cpu" else WAYS_ON_GPU


def reproduced(package: Path, entry: str, say: Say, times: Times) -> Reproduced:
    """Measure a shipped package once more, in the network that it is for. Nothing of it is kept.

    Raises:
        EngineError: it is no package of a network, or the network cannot be made.
    """
    shipped = _read_shipped(package)
    network = replace(shipped.network, entry=entry or shipped.network.entry, folder=str(Path.cwd()))
    kernels = tuple(
        kernel for kernel in shipped.proof.started.kernels if kernel.region in proofs.shipped(shipped.proof)
    )
    with tempfile.TemporaryDirectory(prefix="tilewright.network.") as scratch:
        folder = NetworkFolder(Path(scratch, network.name))
        stored.make_folder(folder.path)
        files.write_network(folder, network)
        started = ProofStarted(1, kernels, (), shipped.proof.started.ways)
        files.append(folder, CaptureStarted(network.entry, network.mode, network.device), CaptureEnded(), started)
        shutil.copytree(package, folder.package(1))
        return Reproduced(network, shipped.proof, _proven(folder, network, started, _package_in(package), say, times))


def _read_shipped(package: Path) -> Shipped:
    try:
        text = untrusted.read_text(package / SHIPPED, untrusted.Limits(most_bytes=64 << 20))
        shipped: Shipped = codec.from_plain(Shipped, json.loads(text))
    except FileNotFoundError:
        raise EngineError(f"{package} has no {SHIPPED}: give a folder that `network ship` has written") from None
    except ValueError as error:
        raise EngineError(f"{package / SHIPPED} cannot be read: {error}") from error
    return shipped


def _package_in(folder: Path) -> str:
    names = [path.parent.name for path in folder.glob("*/_table.py")]
    if len(names) != 1:
        raise EngineError(f"{folder} holds {len(names)} packages: give a folder that `network ship` has written")
    return names[0]


def _proven(
    folder: NetworkFolder, network: Network, started: ProofStarted, package: str, say: Say, times: Times
) -> Proof:  # fmt: skip
    deaths = 0
    while True:
        code, reason = _run_process(folder, network, started.number, package, say, times)
        proof = standing(folder).proof
        assert proof is not None
        if code == 0:
            files.append(folder, ProofEnded())
            break
        if code == STOP:
            files.append(folder, ProofEnded(STOPPED))
            raise EngineError(f"the measurement in network {folder.name} was stopped. {GOES_ON}")
        if code == ANEW:
            deaths = 0
            continue
        if reason:
            raise EngineError(f"the kernels cannot be measured in network {folder.name}: {reason}")
        died = f"its process ended by {signal.Signals(-code).name}" if code < 0 else f"its process ended with {code}"
        if proof.region:
            say(f"{proof.region}: {died}")
            files.append(folder, RegionTried(proof.region, Verdict.CRASHED, died, proof.kept))
            deaths = 0
            continue
        deaths += 1
        if deaths >= DEATHS:
            files.append(folder, ProofEnded(f"{died}, {DEATHS} times, while it was {proof.words or 'starting'}"))
            raise EngineError(f"{died}, {DEATHS} times in a row, while it was {proof.words or 'starting'}: see above")
    ended = standing(folder).proof
    assert ended is not None
    return ended


@dataclass(frozen=True, slots=True)
class _Packaged:
    """The package with every kernel that can be put back, and why others cannot, by region. Without any it has no
    name."""

    name: str
    texts: Mapping[str, str]
    unfit: Mapping[str, str]
    count: int


def _packaged(network: Network, kernels: Sequence[ChosenKernel]) -> _Packaged:
    unfit: dict[str, str] = {}
    taken: list[tuple[Region, PackagedKernel]] = []
    for kernel in kernels:
        region = next(region for region in network.regions if region.name == kernel.region)
        try:
            taken.append((region, packages.taken(region, kernel, len(taken) + 1)))
        except CannotBePutBack as error:
            unfit[region.name] = str(error)
    if not taken:
        return _Packaged("", {}, unfit, 0)
    name = packages.name_of(network.name)
    return _Packaged(name, texts(network, taken, Asked(name), None), unfit, len(taken))


def _write_package(folder: NetworkFolder, started: ProofStarted, package: _Packaged, say: Say) -> None:
    """Write it, and journal what cannot be put back."""
    known = _known(folder)
    for region, why in package.unfit.items():
        if region not in known:
            say(f"{region} cannot be put back: {why}")
            files.append(folder, RegionTried(region, Verdict.UNFIT, why))
    if package.count:
        say(f"writing the package of {package.count} {'kernel' if package.count == 1 else 'kernels'}")
        write(folder.package(started.number), package.texts)


def _known(folder: NetworkFolder) -> Collection[str]:
    proof = standing(folder).proof
    return proof.tried.keys() if proof else ()


def texts(
    network: Network, taken: Sequence[tuple[Region, PackagedKernel]], asked: Asked, proof: Proof | None
) -> dict[str, str]:
    """The files of a network's package by path.

    Raises:
        EngineError: the package's name is none.
    """
    written = packages.packaged(network, taken, asked, proof)
    if proof is not None:
        entry = network.entry
        if entry.partition(":")[0].endswith(".py"):
            entry = Path(entry).name  # where it lies on this machine is nobody's business
        regions = tuple(_without_values(region) for region in network.regions if region.name in proof.tried)
        lean = replace(
            network, entry=entry, folder="", weights="", modules=(), times=(), kernels=(), notes=(), regions=regions
        )  # fmt: skip
        written[SHIPPED] = json.dumps(
            codec.to_plain(Shipped(lean, replace(proof, parts=()))), ensure_ascii=False, indent=1
        )
    return written


def write(target: Path, texts: Mapping[str, str]) -> None:
    """Write a package into a folder of its own.

    Raises:
        OSError: the disk is full or may not be written.
    """
    for path, text in texts.items():
        stored.make_folder((target / path).parent)
        stored.replace(target / path, text)


def _without_values(region: Region) -> Region:
    """Without the ranges of what was met: what the network was given and holds stays in its folder."""

    def bare(tensors: Iterable[TensorFacts]) -> tuple[TensorFacts, ...]:
        return tuple(replace(tensor, low=None, high=None) for tensor in tensors)

    return replace(
        region, inputs=bare(region.inputs), outputs=bare(region.outputs), parameters=bare(region.parameters)
    )  # fmt: skip


def _run_process(
    folder: NetworkFolder, network: Network, number: int, package: str, say: Say, times: Times
) -> tuple[int, str]:  # fmt: skip
    """One life of the process that measures; its exit code, and what it said of why it ended."""
    scratch = folder.path.resolve() / SCRATCH
    stored.make_folder(scratch)
    for earlier in scratch.glob(f"{COMPILER_CACHE}*"):
        if earlier.name != f"{COMPILER_CACHE}{number}":
            shutil.rmtree(earlier, ignore_errors=True)
    question = {
        "folder": str(folder.path.resolve()), "package": package, "scratch": str(scratch),
        "times": codec.to_plain(times),
    }  # fmt: skip
    variables = {
        "TMPDIR": str(scratch), "TORCH_EXTENSIONS_DIR": str(scratch / "extensions"),
        # what a compiler keeps of an operator is true of one package alone
        "TORCHINDUCTOR_CACHE_DIR": str(scratch / f"{COMPILER_CACHE}{number}"),
        "TRITON_CACHE_DIR": str(scratch / "triton"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH", "")])]),
        "PYTHONDONTWRITEBYTECODE": "1", **_compiles(network), **_threads(network),
    }  # fmt: skip
    where = network.folder if Path(network.folder or "/nowhere").is_dir() else str(ROOT)
    command = [*connecting.without_keys(), sys.executable, "-m", "engine.networks.proof.process"]
    with subprocess.Popen(
        command, cwd=where, env={**os.environ, **variables}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        over = threading.Event()
        watch = threading.Thread(target=_end_when_asked, args=(folder, process, over), daemon=True)
        watch.start()
        try:
            reason = _listened(folder, process, json.dumps(question), say)
            code = process.wait()
        finally:
            process.kill()
            is_asked = over.is_set()
            over.set()
    return (STOP if is_asked else code), reason


def _end_when_asked(folder: NetworkFolder, process: subprocess.Popen[bytes], over: threading.Event) -> None:
    """Look into the journal whether the proof is to stop, and end the process then; until it is over."""
    seen = folder.journal_file.stat().st_size
    while not over.wait(LOOKS_EVERY_S):
        with open(folder.journal_file, "rb") as journal:
            journal.seek(seen)
            fresh = journal.read()
        whole = fresh[: fresh.rfind(b"\n") + 1]
        seen += len(whole)
        if any(isinstance(line.event, ProofStopAsked) for line in files.lines_of(whole)):
            over.set()
            process.kill()


def _listened(folder: NetworkFolder, process: subprocess.Popen[bytes], question: str, say: Say) -> str:
    """Ask the process and journal what it says, until it ends; why it gave up, where it said so."""
    assert process.stdin is not None
    assert process.stdout is not None
    reason = ""
    with contextlib.suppress(BrokenPipeError), process.stdin as asked:
        asked.write(question.encode() + b"\n")
    for line in process.stdout:
        try:
            event = files.decoded(line)
        except codec.DecodeError:  # its last line, if it was killed while it wrote
            continue
        if not isinstance(event, TOLD):  # kernels run in that process: it is believed about the proof alone
            continue
        files.append(folder, event)
        _tell(event, say)
        if isinstance(event, ProofEnded):
            reason = event.reason
    return reason


def _compiles(network: Network) -> dict[str, str]:
    """How many compilers of Inductor's are at work: their processes end with the one that started them, within a
    minute. They may not open the driver behind the sandbox, so they ask NVML whether there is a GPU; on a processor,
    where they would be in a timing's way, it compiles in the process itself."""
    if network.device == "cpu":
        return {"TORCHINDUCTOR_COMPILE_THREADS": "1"}
    return {
        "TORCHINDUCTOR_COMPILE_THREADS": str(min(COMPILERS, os.cpu_count() or 1)),
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
    }


def _threads(network: Network) -> dict[str, str]:
    """On a processor as many threads as in the capture, which wait for each other as in the evaluator's processes: they
    give a processor up that others want."""
    if network.device != "cpu":
        return {}
    return {"OMP_NUM_THREADS": network.versions.get("threads", "1"), "GOMP_SPINCOUNT": GOMP_SPINCOUNT}


def _tell(event: Event, say: Say) -> None:
    match event:
        case ProofProgressed(words):
            say(words)
        case OriginalTimed(workload, what, note=note) | PartMeasured(what, workload, note) if note:
            say(f"{what}, {workload}: {note}".replace(", :", ":"))
        case RegionTried(region, verdict, why):
            say(f"{region}: {verdict}: {why}")


def kept_kernels(network: Network, proof: Proof) -> list[tuple[Region, PackagedKernel]]:
    """What a package for use holds: the kernels that pay in the network.

    Raises:
        EngineError: none does.
    """
    by_name = {region.name: region for region in network.regions}
    return [
        (by_name[name], packages.taken(by_name[name], proof.kernels[name], number))
        for number, name in enumerate(proofs.shipped(proof), 1)
    ]
