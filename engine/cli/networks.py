"""Networks on the command line: capture, list, show, rank, delete; `network_kernels` has what comes after.

A capture's own work is done in this process, which imports what the user's program imports; nothing else here imports
torch."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from engine import connecting
from engine.cli import network_kernels
from engine.cli.subcommands import OK
from engine.cli.terminal import Console, printable, widen
from engine.errors import EngineError, NetworkCaptureError
from engine.evaluator.request import Evaluator
from engine.networks import applying, elsewhere, examples, limiting, small
from engine.shown import networks as shown
from engine.suites.formats import percent, times
from storage import codec, read_only
from storage.files import make_folder
from storage.networks import files, in_network, ranking
from storage.networks.files import NetworkFolder
from storage.networks.ranking import Ranked
from storage.networks.records import CaptureEnded, CaptureStarted, Network, NetworkState
from storage.networks.standing import standing

WIDTHS = {"remark": 40}
Open = Callable[[Namespace], Evaluator]

HIDDEN = "TILEWRIGHT_KEYS_HIDDEN"  # set for the process that begins anew


def run_verb(options: Namespace, open_toolchain: Open) -> int:
    """Run one of the verbs of `network`."""
    match options.what:
        case "capture":
            return capture_network(options, open_toolchain)
        case "rank":
            return rank_network(options, open_toolchain)
        case "optimise":
            return optimise_network(options, open_toolchain)
        case "try":
            return try_small(options, open_toolchain)
    verbs: dict[str, Callable[[Namespace], int]] = {
        "list": list_networks, "show": show_network, "delete": delete_network, "export": export_network,
        "import": import_network,
        "apply": network_kernels.apply, "stop": network_kernels.stop, "ship": network_kernels.ship,
        "report": network_kernels.report, "reproduce": network_kernels.reproduce,
    }  # fmt: skip
    return verbs[options.what](options)


def capture_network(options: Namespace, open_toolchain: Open) -> int:
    """Capture a network and measure what the hardware allows for its regions."""
    read_only.guard(EngineError, "capture networks")
    _leave_keys()
    folder = files.folder_of(options.name or files.name_for(options.entry))
    _place(folder, options.output)
    lock = files.hold(folder)
    try:
        _clear(folder, is_again=options.again)
        network = _captured(folder, options, open_toolchain)
    finally:
        os.close(lock)
    console = Console()
    _print_network(console, folder, network, limiting.ranked(folder))
    return OK


def try_small(options: Namespace, open_toolchain: Open) -> int:
    """The shipped small network: capture it, replay the recorded search, put back, measure. It goes on where it was."""
    options.network, options.search_only = options.name, False
    if standing(files.folder_of(options.name)).network is None:
        options.entry, options.again, options.output = small.ENTRY, True, None
        capture_network(options, open_toolchain)
    return optimise_network(options, open_toolchain)


def optimise_network(options: Namespace, open_toolchain: Open) -> int:
    """Search kernels and put them back; limits that a capture was too short for are measured first, since they say
    where most is to be saved."""
    read_only.guard(EngineError, "search kernels")
    folder = files.find(options.network)
    network = _whole(folder)
    elsewhere.refuse(network, elsewhere.NO_SEARCH)
    if any(row.is_worth_it and row.limit_ms is None for row in limiting.ranked(folder)):
        options.device = "cpu" if network.device == "cpu" else "cuda"
        _measure(folder, options, open_toolchain)
    return network_kernels.optimise(options)


def _place(folder: NetworkFolder, output: str | None) -> None:
    """Make the folder; with `output` there, and under the home a link to it."""
    if not output:
        return
    target = Path(output).absolute()
    if folder.path.is_symlink() and folder.path.resolve() == target.resolve():
        return
    if folder.path.exists() or folder.path.is_symlink():
        raise EngineError(f"network {folder.name} lies in {folder.path.resolve()}: delete it, or give another --name")
    make_folder(target)
    make_folder(folder.path.parent)
    folder.path.symlink_to(target)


def _clear(folder: NetworkFolder, *, is_again: bool) -> None:
    """Leave nothing of an earlier capture; what happened to the network since stays in its journal."""
    if folder.network_file.exists() and not is_again:
        raise EngineError(
            f"network {folder.name} was captured already: --again captures it anew, --name gives another name"
        )
    folder.network_file.unlink(missing_ok=True)
    shutil.rmtree(folder.path / files.REGIONS, ignore_errors=True)


def _leave_keys() -> None:
    """Begin anew where this process cannot see the saved keys: from here on it runs the user's code."""
    words = connecting.without_keys()
    if words and not os.environ.get(HIDDEN):
        os.environ[HIDDEN] = "1"
        sys.stdout.flush()
        os.execv(words[0], [*words, sys.executable, *sys.orig_argv[1:]])


def _captured(folder: NetworkFolder, options: Namespace, open_toolchain: Open) -> Network:
    # Threads of PyTorch's that wait for each other give a processor up that others want; it reads this when it loads.
    os.environ.setdefault("GOMP_SPINCOUNT", applying.GOMP_SPINCOUNT)
    from engine.networks import capture, entries  # torch, which the other verbs do not need

    asked = capture.Asked(
        options.entry, options.device, options.mode, options.seed, options.keep, options.most_mb,
        entries.Sizes(options.batch, options.tokens), not options.no_compile, options.max_autotune,
        options.least_share / 100,
    )  # fmt: skip
    files.append(folder, CaptureStarted(options.entry, options.mode, options.device, os.getpid()))
    reason = "it was stopped: capture it again"
    try:
        network = capture.captured(folder, asked, _say)
        files.write_network(folder, network)
        limiting.tell_places(folder)
        reason = "its limits are not all measured: `network rank --limits` goes on"
        if not options.no_limits:
            _measure(folder, options, open_toolchain)
        reason = ""
    except NetworkCaptureError as error:
        reason = str(error)
        raise
    except OSError as error:
        reason = _full(error) if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) else str(error)
        raise EngineError(reason) from error
    finally:
        _end(folder, reason)
    return network


def _full(error: OSError) -> str:
    return f"the disk is full ({error}): free some space, or keep fewer calls with --keep 1, then capture it again"


def _end(folder: NetworkFolder, reason: str) -> None:
    try:
        files.append(folder, CaptureEnded(reason))
    except OSError as error:  # what stands in the folder says as much: no network.json, and no lock
        _say(f"the end of the capture could not be written down: {error}")


def _say(words: str) -> None:
    """Tell a person who waits."""
    print(f"{time.strftime('%H:%M:%S')} {words}", file=sys.stderr, flush=True)


def _measure(folder: NetworkFolder, options: Namespace, open_toolchain: Open) -> None:
    options.toolchain = "cpu" if options.device == "cpu" else "cuda"
    options.device = "" if options.device in ("cpu", "cuda") else options.device
    evaluator = open_toolchain(options)
    try:
        for failure in limiting.measure(folder, evaluator, options.toolchain, _say):
            _say(failure)
    finally:
        evaluator.close()


def rank_network(options: Namespace, open_toolchain: Open) -> int:
    """Print the regions by what a kernel would save; measure limits that are missing where asked."""
    folder = files.find(options.network)
    network = _whole(folder)
    if options.limits:
        read_only.guard(EngineError, "measure limits")
        elsewhere.refuse(network, elsewhere.NO_LIMITS)
        options.device = "cpu" if network.device == "cpu" else "cuda"
        _measure(folder, options, open_toolchain)
    rows = limiting.ranked(folder)
    if options.json:
        print(json.dumps(codec.to_plain(shown.form(standing(folder), rows))))
    else:
        _print_rows(Console(), network, rows)
    return OK


def list_networks(options: Namespace) -> int:
    """All networks."""
    rows = [(folder, standing(folder)) for folder in files.all_networks()]
    if options.json:
        print(json.dumps([
            {"name": folder.name, "state": str(seen.state), "words": seen.words, "entry": seen.entry,
             "regions": len(seen.network.regions) if seen.network else 0, "bytes": files.size_of(folder)}
            for folder, seen in rows
        ]))  # fmt: skip
        return OK
    console = Console()
    if not rows:
        console.print("No network was captured yet: `python -m engine network capture app.py:make` captures one.")
        return OK
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("network", "state", "from", "device", "regions", "MB"):
        table.add_column(heading, overflow="fold", justify="right" if heading in ("regions", "MB") else "left")
    for folder, seen in rows:
        network = seen.network
        table.add_row(
            folder.name, str(seen.state), escape(printable(seen.entry)), network.device if network else "",
            str(len(network.regions)) if network else "", f"{files.size_of(folder) / 1e6:.1f}",
        )  # fmt: skip
    console.print(table)
    for folder, seen in rows:
        if seen.state in (NetworkState.FAILED, NetworkState.BROKEN_OFF):
            console.print(f"{folder.name}: {escape(printable(seen.words))}", highlight=False)
    return OK


def show_network(options: Namespace) -> int:
    """One network."""
    folder = files.find(options.network)
    if options.json:
        print(json.dumps(codec.to_plain(_whole(folder))))
        return OK
    _print_network(Console(), folder, _whole(folder), limiting.ranked(folder))
    if proof := standing(folder).proof:
        network_kernels.print_proof(Console(), _whole(folder), proof)
    return OK


def export_network(options: Namespace) -> int:
    """Write a network with its search and its runs as an archive."""
    folder, target = files.find(options.network), Path(options.output)
    size = examples.export(folder, target, _say)
    print(f"Wrote {target}: {size:,} bytes, without recorded tensors and weights. `network import {target}` opens it.")
    return OK


def import_network(options: Namespace) -> int:
    """Open an archive of a network."""
    folder = examples.open_archive(Path(options.file), options.name)
    print(f"Network {folder.name} is open, {in_network.origin(_whole(folder))}: `network show {folder.name}`")
    return OK


def delete_network(options: Namespace) -> int:
    """Remove what was captured; runs stay."""
    read_only.guard(EngineError, "delete networks")
    folder = files.find(options.network)
    freed = files.delete(folder)
    print(f"Deleted network {folder.name}: {freed / 1e6:.1f} MB. Runs of its regions stay.")
    return OK


def _whole(folder: NetworkFolder) -> Network:
    seen = standing(folder)
    if seen.network is None:
        raise EngineError(f"network {folder.name} is {seen.state}: {seen.words}")
    return seen.network


def _print_network(console: Console, folder: NetworkFolder, network: Network, rows: list[Ranked]) -> None:
    parameters = sum(module.parameters for module in network.modules if not module.path)
    console.print(
        f"[bold]{folder.name}[/]: {len(network.modules)} modules, {parameters:,} parameters, {network.mode} mode, "
        f"{escape(network.device)}, captured in {network.seconds:.0f} s", highlight=False,
    )  # fmt: skip
    roots = {time.workload: time.inclusive_ms for time in network.times if not time.path}
    for workload in network.workloads:
        eager = ranking.median(workload.eager_ms)
        words = [f"eager {eager:.4g} ms"]
        if workload.compiled_ms:
            words.append(f"torch.compile {ranking.median(workload.compiled_ms):.4g} ms")
        if workload.replayed_ms:
            words.append(f"that as a CUDA graph {ranking.median(workload.replayed_ms):.4g} ms")
        words += [f"{way} {ranking.median(walls):.4g} ms" for way, walls in workload.other_ms.items()]
        if workload.device_ms is not None and eager:
            words.append(
                f"kernels {workload.device_ms:.4g} ms, so {percent(ranking.host_share(workload))} is the host's"
            )
        if workload.peak_bytes is not None:
            words.append(f"peak {workload.peak_bytes / 1e6:,.0f} MB")
        console.print(f"  {escape(workload.name)} (weight {workload.weight:g}): {', '.join(words)}", highlight=False)
        gap = ranking.gap_of(workload, roots.get(workload.name, 0.0))
        for note in (gap, workload.compiled_note, workload.replayed_note, *workload.other_notes.values()):
            if note:
                console.print(f"    {escape(printable(note))}", highlight=False, soft_wrap=True)
    for note in network.notes:
        console.print(f"  {escape(printable(note))}", highlight=False, soft_wrap=True)
    _print_rows(console, network, rows)
    said = f"A run for a region: python -m engine run {folder.path}/regions/NAME/task.py"
    if network.is_example:
        said = f"An example, {in_network.origin(network)}."
    console.print(said, highlight=False, soft_wrap=True)


def _print_rows(console: Console, network: Network, rows: list[Ranked]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("region", "places", "calls", "share", "limit", "would save", "whole", "class", "remark"):
        table.add_column(heading, overflow="fold", no_wrap=heading != "remark", min_width=WIDTHS.get(heading))
    for row in rows:
        most = "at most " if row.is_at_most and row.saving_ms else ""
        table.add_row(
            row.region.name, str(len(row.region.places)), f"{row.calls:g}", percent(row.share),
            "" if row.limit_ms is None else f"{row.limit_ms:.3g} of {row.in_place_ms:.3g} ms",
            "" if row.saving_ms is None else f"{most}{row.saving_ms:.3g} ms",
            "" if row.ceiling is None else times(row.ceiling), row.region.kernel_class,
            escape(printable(row.reason or row.cost)), style="" if row.is_worth_it else "dim",
        )  # fmt: skip
    widen(console, table)
    console.print(table)
    ceiling = ranking.ceiling_of(network, [row for row in rows if row.is_worth_it])
    if ceiling is not None:
        alternative = ranking.in_words(ranking.whole_of(network).alternative)
        console.print(
            f"If all of them reached {ranking.REACHED_SHARE:.0%} of their limits, the network would be "
            f"{times(ceiling)} as fast as with {alternative}. {in_network.OPTIMISTIC}", highlight=False, soft_wrap=True,
        )  # fmt: skip
