"""Kernels for a network on the command line: search them, put them back and measure them there, ship what pays. The
process that measures imports torch and the user's code; nothing here does."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from engine.cli import suites as suite_verbs
from engine.cli.subcommands import OK
from engine.cli.terminal import Console, printable, widen
from engine.errors import EngineError
from engine.networks import applying, limiting, optimising, reporting
from engine.packaging.packing import Asked
from engine.suites import definition
from storage import read_only
from storage.files import replace as replace_file
from storage.networks import files, in_network, proofs
from storage.networks.files import NetworkFolder
from storage.networks.proofs import Proof
from storage.networks.records import Network, NetworkState, SearchStarted, Verdict
from storage.networks.standing import standing
from storage.suites import files as suite_files
from storage.suites.records import CellState, SuiteLimits
from storage.suites.standing import fold

TONES = {Verdict.KEPT: "green", Verdict.NO_GAIN: "yellow", Verdict.LEFT_OUT: "dim"}


def optimise(options: Namespace) -> int:
    """Search kernels for the regions that are worth it, then put them back. What was begun is gone on with."""
    read_only.guard(EngineError, "search kernels")
    folder, network = _captured(options.network)
    code = _search(folder, network, options)
    if code != OK or options.search_only or _waits(network):
        return code
    return _apply(folder, applying.Times.of_trial(options.seconds, options.way_seconds))


def _search(folder: NetworkFolder, network: Network, options: Namespace) -> int:
    asked = optimising.Asked(
        options.top, tuple(name for name in options.regions.split(",") if name), options.settings,
        options.recordings, suite_verbs.limits_of(SuiteLimits(), options.limits),
    )  # fmt: skip
    if asked.recordings and not Path(asked.recordings).is_dir():
        raise EngineError(f"there is no folder {asked.recordings} with recordings")
    suite_folder = suite_files.folder_of(optimising.suite_name(network.name))
    before = fold(suite_files.read(suite_folder))
    rows, said = optimising.chosen(network, limiting.ranked(folder), asked)
    for sentence in said:
        _say(sentence)
    defined = optimising.defined(folder, network, rows, asked)
    if before is not None:
        defined = definition.joined(before.defined, defined)
    if standing(folder).suite != defined.name:
        files.append(folder, SearchStarted(defined.name))
    words = Namespace(limits=[], at_once=options.at_once, background=False)
    return suite_verbs.define(suite_folder, before, defined, words)


def _waits(network: Network) -> bool:
    """Whether runs wait for a person, who goes on with them first."""
    suite = fold(suite_files.read(suite_files.folder_of(optimising.suite_name(network.name))))
    if suite is None or not suite.counts[CellState.WAITING]:
        return False
    _say(f"Kernels are put back once these runs have ended: `network optimise {network.name}` goes on")
    return True


def apply(options: Namespace) -> int:
    """Put kernels back and measure them in the network."""
    read_only.guard(EngineError, "measure kernels in networks")
    folder, _ = _captured(options.network)
    without = [name for name in options.without.split(",") if name]
    ways = [way for way in options.ways.split(",") if way]
    times = applying.Times.of_trial(options.seconds, options.way_seconds)
    return _apply(folder, times, dict(options.use), without, ways, is_anew=options.again)


def _apply(
    folder: NetworkFolder, times: applying.Times, used: dict[str, str] | None = None, without: list[str] | None = None,
    ways: list[str] | None = None, *, is_anew: bool = False,
) -> int:  # fmt: skip
    proof = applying.apply(
        folder, _say, used=used, without=without or (), ways=ways or (), times=times, is_anew=is_anew
    )  # fmt: skip
    network = standing(folder).network
    assert network is not None
    print_proof(Console(), network, proof)
    return OK


def stop(options: Namespace) -> int:
    """Stop the measurement that is at work."""
    read_only.guard(EngineError, "stop measurements")
    if not applying.stop(files.find(options.network)):
        raise EngineError(f"no kernels are being measured in network {options.network}")
    print(f"It stops within a second. {applying.GOES_ON}.")
    return OK


def ship(options: Namespace) -> int:
    """Write the package of the kernels that pay."""
    folder, network = _captured(options.network)
    proof = standing(folder).proof
    if proof is None or not proof.is_over:
        raise EngineError(
            f"no kernel was measured in network {folder.name} yet: `network apply {folder.name}` does that"
        )
    target = Path(options.output)
    if target.exists() and any(target.iterdir()):
        raise EngineError(f"{target} is not empty: give another folder")
    asked = Asked(
        options.name, architectures=tuple(arch for arch in options.arch.split(",") if arch), layout=options.layout,
        licence=options.licence,
    )  # fmt: skip
    kernels = applying.kept_kernels(network, proof)
    applying.write(target, applying.texts(network, kernels, asked, proof))
    print(f"Wrote the package of {len(kernels)} {'kernel' if len(kernels) == 1 else 'kernels'} to {target}.")
    return OK


def reproduce(options: Namespace) -> int:
    """Measure a shipped package once more in its network."""
    times = applying.Times.of_trial(options.seconds, options.way_seconds)
    found = applying.reproduced(Path(options.folder).absolute(), options.entry, _say, times)
    console = Console()
    print_proof(console, found.network, found.now)
    console.print(f"When it was shipped: {in_network.headline(found.network, found.then)}", soft_wrap=True)
    return OK


def report(options: Namespace) -> int:
    """One file for a browser: what kernels bring in the network, and why others were left out."""
    folder, network = _captured(options.network)
    proof = standing(folder).proof
    if proof is None:
        raise EngineError(f"no kernel was put back into network {folder.name} yet: `network apply {folder.name}`")
    text = reporting.page(network, proof)
    if options.output:
        replace_file(Path(options.output), text)
        print(f"Wrote {options.output}.")
    else:
        print(text)
    return OK


def _captured(name: str) -> tuple[NetworkFolder, Network]:
    folder = files.find(name)
    stands = standing(folder)
    if stands.network is None or stands.state is not NetworkState.CAPTURED:
        raise EngineError(f"network {name} is {stands.state}: {stands.words}")
    return folder, stands.network


def _say(words: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {words}", file=sys.stderr, flush=True)


def print_proof(console: Console, network: Network, proof: Proof) -> None:
    """What came of the kernels in the network."""
    for line in (in_network.headline(network, proof), in_network.prediction(network, proof)):
        if line:
            console.print(line, highlight=False, soft_wrap=True)
    if proof.stack and proof.stack.speeds:
        speeds = Table(box=None, pad_edge=False, header_style="bold")
        for heading in ("workload", "way", "without", "with", "faster", "95 % interval"):
            speeds.add_column(heading, no_wrap=True)
        for speed in proof.stack.speeds:
            speeds.add_row(
                escape(printable(speed.workload)), speed.before, in_network.ms(speed.before_ms),
                in_network.ms(speed.paired_ms), f"{speed.speedup:.3f}x", f"{speed.low:.3f} to {speed.high:.3f}",
            )  # fmt: skip
        console.print(speeds)
        for line in in_network.not_measured(proof):
            console.print(escape(printable(line)), highlight=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("region", "alone", "in the network", "verdict", "why"):
        table.add_column(heading, overflow="fold", no_wrap=heading != "why")
    for row in in_network.rows(network, proof):
        alone = f"{row.kernel.speedup:.3g}x" if row.kernel and row.kernel.speedup else ""
        table.add_row(
            row.region, alone, in_network.factor(row.in_place) if row.in_place else "", str(row.trial.verdict),
            escape(printable(row.trial.why)), style=TONES.get(row.trial.verdict, "red"),
        )  # fmt: skip
    widen(console, table)
    console.print(table)
    for timed in proof.originals:
        if timed.note:
            console.print(f"{timed.workload}, {timed.way}: {escape(printable(timed.note))}", highlight=False)
    if proofs.shipped(proof):
        console.print(f"`network ship {network.name} --output FOLDER` writes the package of what pays.")
