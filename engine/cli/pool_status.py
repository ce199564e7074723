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
    for one in standing.devices:
        table.add_row(*map(escape, _words(one)))
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
    for number, one in enumerate(queue, 1):
        if number == 1:
            console.print(f"Waiting for {escape(device)}, the next first:", highlight=False, soft_wrap=True)
        what, place = f"{one.words} {one.run_id}".rstrip(), one.place or Place()
        console.print(f"  {number}. {escape(what)}: {place.words}", highlight=False, soft_wrap=True)


def _words(one: DeviceStanding) -> tuple[str, ...]:
    known = one.known
    doing = [f"{claimed.words} {claimed.run_id}".rstrip() for claimed in one.now]
    state = f"out of use: {known.out}" if known.out else "; ".join(doing) or "free"
    wait = f"{one.waited_s:.1f} s" if one.acts else "-"
    return (
        known.device, known.model, state, f"{100 * one.busy:.0f} %", str(one.acts), wait, str(len(one.queue)),
        str(one.runs),
    )  # fmt: skip
