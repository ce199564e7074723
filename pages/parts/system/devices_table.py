"""The devices of this host: what each does, who waits, how busy it was; and results by model of device. Reads what
engines have written; asks no driver."""

from __future__ import annotations

import time
from collections.abc import Iterator

import streamlit as st

from pages.parts import index, wording
from pages.parts.status import waiting_strip
from pages.parts.widgets import table
from storage import device_use
from storage.device_use import Claimed, DeviceStanding, Place, PoolStanding
from storage.index.queries import device_results
from storage.index.queries.device_results import DeviceModelRow
from storage.index.queries.waiting import at_work

HOURS = 3
COLUMNS = [
    table.Column("device", "Device", "nowrap"),
    table.Column("state", "State", "nowrap"),
    table.Column("now", "Now"),
    table.Column("busy", "Busy, last hour", "nowrap", "share of the last hour in which an evaluation held it"),
    table.Column("acts", "Held", "right", "how often in the last hour"),
    table.Column("wait", "Mean wait", "right", "for this device, of evaluations of the last hour"),
    table.Column("queue", "Waiting", "right", "evaluations that wait for this device"),
    table.Column(
        "runs", "Runs at work", "right", "runs whose timings are taken on it, and those that hold it or wait for it"
    ),
]
LINE = [
    table.Column("device", "Device", "nowrap"),
    table.Column("number", "Turn", "right", "1 has the device next"),
    table.Column("what", "Waiting"),
    table.Column("why", "First", "nowrap", "what a person waits for goes before everything else"),
    table.Column("weight", "Weight", "right", "share of the device, of its run or suite"),
    table.Column(
        "used",
        "Had so far",
        "right",
        "seconds of the device that its run or suite has had: by weight, the fewer the sooner. Of runs of one suite "
        "first the one that is furthest from its end, then the one that has had devices for less of its time",
    ),
]
MODELS = [
    table.Column("model", "Model of device", "nowrap"),
    table.Column("runs", "Runs", "right", "all that were measured on it, ended ones too"),
    table.Column("passed", "Correct", "right", "correct kernels of all that were judged"),
    table.Column("timed", "Timed", "right", "kernels"),
    table.Column("best", "Best speed-up", "right", "over the eager baseline, of any run"),
    table.Column("last", "Last timing", "right"),
]


def draw() -> None:
    """A heading, the tables, who waited for what in the last hours; a sentence where no engine has used a device."""
    st.markdown("## Devices")
    standing = device_use.standing()
    if not standing.devices:
        st.caption("No run has used a device yet. Devices appear here with the first evaluation.")
    else:
        rows = [table.Row(device.known.device, cells(device)) for device in standing.devices]
        table.draw("Devices of this host", COLUMNS, rows, key="devices", is_compact=True, is_cards=True)
        waiting = [*line_rows(standing)]
        if waiting:
            table.draw("Waiting for a device", LINE, waiting, key="device_line", is_compact=True, is_cards=True)
        sentence = _beside(len(standing.queue), len(standing.beside)) or ("" if waiting else "No evaluation waits. ")
        st.caption(f"{sentence}At {wording.clock(standing.at)}.")
    since = 60.0 * ((standing.at - HOURS * device_use.HOUR_S) // 60)  # a round one: what was read is used again
    if run_ids := at_work(index.current(), since):
        st.markdown(f"## {waiting_strip.TITLE} in the last {HOURS} hours", help=waiting_strip.ABOUT)
        waiting_strip.draw_runs(run_ids, standing.at, since, f"these {HOURS} hours")
    models = device_results.device_results(index.current())
    if models:
        shown = [table.Row(model.model, model_cells(model)) for model in models]
        table.draw("Results by model of device", MODELS, shown, key="device_models", is_compact=True, is_cards=True)
        st.caption("All runs but replays and examples. Times of two models of device are never compared.")


def _beside(waiting: int, beside: int) -> str:
    builds = f"{wording.counted(beside, 'evaluation')} at work on what needs no device, such as builds"
    waits = f"{wording.counted(waiting, 'evaluation')} waiting for any device"
    phrases = [words for words, count in ((waits, waiting), (builds, beside)) if count]
    return f"{'; '.join(phrases)}. " if phrases else ""


def cells(device: DeviceStanding) -> dict[str, table.Cell]:
    """One device as cells."""
    facts = device.known
    state = ("out of use", "red", "broken") if facts.out else ("busy", "blue", "running") if device.now else (
        "free", "green", "held"
    )  # fmt: skip
    doing = "; ".join(_doing(claimed) for claimed in device.now)
    words = f"{facts.out} ({wording.moment(facts.out_since)})" if facts.out else doing
    return {
        "device": table.text(facts.device, "strong", facts.model),
        "state": table.pill(*state),
        "now": table.text(
            words or wording.NONE, "red" if facts.out else "", *([_since(device.now[0])] if device.now else [])
        ),
        "busy": table.bar(wording.percent(device.busy), device.busy),
        "acts": wording.count(device.acts),
        "wait": wording.seconds(device.waited_s) if device.acts else wording.NONE,
        "queue": wording.count(len(device.queue)),
        "runs": wording.count(device.runs),
    }


def line_rows(standing: PoolStanding) -> Iterator[table.Row]:
    """Who waits, device by device, the next one first, and why in that order."""
    lines = [(device.known.device, device.queue) for device in standing.devices]
    for device, queue in (*lines, ("any", standing.queue)):
        for number, claim in enumerate(queue, 1):
            place = claim.place or Place()
            why = table.pill("a person waits", "blue", "running") if place.is_now else wording.NONE
            yield table.Row(
                f"{device} {number}",
                {
                    "device": table.text(device, "strong"), "number": wording.count(number),
                    "what": table.text(_doing(claim), "", _since(claim)), "why": why,
                    "weight": f"{place.weight:g}", "used": table.text(wording.seconds(place.used_s), "", _part(place)),
                },
            )  # fmt: skip


def _doing(claimed: Claimed) -> str:
    return f"{claimed.words}: {claimed.run_id}, step {claimed.step}" if claimed.run_id else claimed.words


def _part(place: Place) -> str:
    if not (place.done or place.held_s):
        return ""
    part = wording.percent(place.part(time.time()))
    return f"{wording.percent(place.done)} of its search done, a device for {part} of its time"


def _since(claimed: Claimed) -> str:
    return f"since {wording.clock(claimed.since)}"


def model_cells(row: DeviceModelRow) -> dict[str, table.Cell]:
    """One model of device as cells."""
    return {
        "model": table.text(row.model, "strong"),
        "runs": wording.count(row.runs),
        "passed": wording.share(row.passed, row.judged),
        "timed": wording.count(row.timed),
        "best": table.text(
            wording.best(row), wording.gain_tone(row.best_low, row.best_high),
            wording.task(row.best_task or ""),
        ),
        "last": table.age(row.last_at),
    }  # fmt: skip
