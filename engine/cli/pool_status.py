"""`pool` on the command line: what the devices of this host do, from what engines have written. Asks no driver."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from engine.cli.subcommands import OK
from engine.cli.terminal import Console
from storage import codec, device_use
from storage.device_use import Claimed, DeviceStanding, Place, PoolStanding

NONE_YET = "No engine has used a device yet under this TILEWRIGHT_HOME. `python -m engine doctor` lists what is here."
COLUMNS = ("device", "model", "now", "busy (last hour)", "held", "mean wait", "waiting", "runs")


def run_verb(options: Namespace) -> int:
    """Run one of the verbs of `pool`; there is one, `status`."""
    standing = device_use.standing()
    if options.json:
        print(codec.dumps(standing))
    else:
        _print(Console(), standing)
    return OK


def _print(console: Console, standing: PoolStanding) -> None:
    if not standing.devices:
        console.print(NONE_YET, highlight=False, soft_wrap=True)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in COLUMNS:
        table.add_column(heading, overflow="fold")
    for device in standing.devices:
        table.add_row(*map(escape, _words(device)))
    console.print(table, highlight=False)
    for device in standing.devices:
        _print_line(console, device.known.device, device.queue)
    _print_line(console, "whichever device is free first", standing.queue)
    queue, beside = len(standing.queue), len(standing.beside)
    console.print(
        f"{queue} waiting for any device; {beside} at work on what needs no device, such as builds.", highlight=False
    )


def _print_line(console: Console, device: str, queue: Sequence[Claimed]) -> None:
    """Who waits for a device and why in that order, the next one first."""
    for number, claimed in enumerate(queue, 1):
        if number == 1:
            console.print(f"Waiting for {escape(device)}, the next first:", highlight=False, soft_wrap=True)
        what, place = f"{claimed.words} {claimed.run_id}".rstrip(), claimed.place or Place()
        console.print(f"  {number}. {escape(what)}: {place.words}", highlight=False, soft_wrap=True)


def _words(standing: DeviceStanding) -> tuple[str, ...]:
    entry = standing.known
    doing = [f"{claimed.words} {claimed.run_id}".rstrip() for claimed in standing.now]
    state = f"out of use: {entry.out}" if entry.out else "; ".join(doing) or "free"
    wait = f"{standing.waited_s:.1f} s" if standing.acts else "-"
    return (
        entry.device, entry.model, state, f"{100 * standing.busy:.0f} %", str(standing.acts), wait,
        str(len(standing.queue)), str(standing.runs),
    )  # fmt: skip
