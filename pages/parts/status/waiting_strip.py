"""Who waited for what, as lanes over time and in one sentence: of a run, of a suite's runs, of the last hours."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import streamlit as st

from pages.parts import index, run_state, wording
from pages.parts.widgets import lanes
from pages.parts.widgets.lanes import LaneRow
from storage.index import queries
from storage.index.database import Database
from storage.index.queries import waiting
from storage.index.queries.waiting import Bar
from storage.run.waiting import Lane

TITLE = "Who waited for what"
ABOUT = (
    "One row for each who can have the work. The parts of an evaluation are known by their lengths; they stand in the "
    "order in which an evaluation goes. The evaluator's row is what evaluations do beside the device, and what they "
    "did not tell apart. A replay is drawn at its own pace."
)
OF_RUN = (
    "Shares are of the time in which the run had an engine. Pauses, waits for a person and what was done before the "
    "first step are part of it; of engine time they are none."
)
NAMES = {
    Lane.PERSON: "Person", Lane.PAUSED: "Paused", Lane.MODEL: "Model", Lane.COMPILER: "Compiler",
    Lane.EVALUATOR: "Evaluator", Lane.LEASE: "Waits for device", Lane.DEVICE: "Device",
}  # fmt: skip
_SAID = {
    Lane.MODEL: "the model was writing", Lane.COMPILER: "the compiler worked",
    Lane.EVALUATOR: "the evaluator worked on the host", Lane.LEASE: "the run waited for the device",
    Lane.PERSON: "the run waited for a person", Lane.PAUSED: "the run was paused",
}  # fmt: skip
HANDED_IN_NAME, _HANDED_IN = "Waits for replies", "the run waited for the model's replies"
_TONES = {lane: lane.name.lower() for lane in Lane}
_LEAST = 0.005  # what would be said as 0 %
TICKS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 86400)
MOST_TICKS = 4
MOST_SHARES = 3  # devices of a suite beyond which shares of its whole time say little: each was lent for a part of it
GPU_ID = re.compile("(GPU-[0-9a-f]{8})-[0-9a-f-]+")  # as a driver names it; the first characters tell GPUs apart


@dataclass(frozen=True, slots=True)
class Strip:
    """What is drawn: `bars` of lanes between two moments in epoch seconds, those that go on up to the second.

    `off` is when no engine was at work. `is_handed_in`: a language model's replies were handed in as a person's are.
    """

    began: float
    ended: float
    bars: tuple[Bar, ...]
    off: tuple[tuple[float, float], ...] = ()
    is_handed_in: bool = False

    def name(self, lane: Lane) -> str:
        """A lane as it is called here."""
        return HANDED_IN_NAME if lane is Lane.PERSON and self.is_handed_in else NAMES[lane]

    @property
    def whole_s(self) -> float:
        """The time that shares are of: without that in which no engine was at work."""
        return max(self.ended - self.began - sum(ended - began for began, ended in self.off), 1e-9)

    @property
    def rows(self) -> list[tuple[Lane, str]]:
        """The lanes that had work, with the device of each that is one, in the order in which they are shown."""
        rows = {(bar.lane, bar.device) for bar in self.bars}
        return sorted(rows, key=lambda row: (list(NAMES).index(row[0]), row[1]))

    @property
    def devices(self) -> list[str]:
        """The devices that were held, by id; one without an id has an empty name."""
        return [device for lane, device in self.rows if lane is Lane.DEVICE]

    def share(self, lane: Lane, device: str = "") -> float:
        """Of the time that in which a lane had work, once or several times over."""
        return min(1.0, self.taken_s(lane, device) / self.whole_s)

    def taken_s(self, lane: Lane | None = None, device: str = "") -> float:
        """The seconds in which a lane had work, or any but those of people; what several do at once counts once."""
        seconds, until = 0.0, self.began
        for bar in sorted(self.bars, key=lambda bar: bar.began):
            is_any = lane is None and bar.lane not in (Lane.PERSON, Lane.PAUSED)
            if is_any or (bar.lane, bar.device) == (lane, device):
                seconds += max(0.0, bar.ended - max(bar.began, until))
                until = max(until, bar.ended)
        return seconds

    def idle(self, device: str) -> list[tuple[float, float]]:
        """When nobody held a device though an engine was at work, or a host is looked at. While a run alone waits for
        it, somebody else does."""
        held = [(Lane.DEVICE, device), *([(Lane.LEASE, "")] if not device else [])]
        taken = [(bar.began, bar.ended) for bar in self.bars if (bar.lane, bar.device) in held]
        edges = [(self.began, self.began), *sorted([*taken, *self.off]), (self.ended, self.ended)]
        gaps, until = [], self.began
        for (_, before), (after, _) in pairwise(edges):
            until = max(until, before)
            gaps += [(until, after)] if after > until else []
        return gaps


def of_run(db: Database, run_id: str, until: float) -> Strip | None:
    """A run up to a moment; None before anything of it has taken time."""
    strip, run = _strip(db, [run_id], 0.0, until, is_apart=False), queries.run(db, run_id)
    if strip is None or not queries.is_by_hand(db, run_id):
        is_handed_in = run is not None and wording.is_handed_in(run.model, run.is_example)
        return replace(strip, is_handed_in=is_handed_in) if strip else None
    bars = (replace(bar, lane=Lane.PERSON) if bar.lane is Lane.MODEL else bar for bar in strip.bars)
    return replace(strip, bars=tuple(bars))  # a person is its model


def of_runs(db: Database, run_ids: Sequence[str], until: float, since: float = 0.0) -> Strip | None:
    """Several runs beside each other, each device in a lane of its own; from `since` on, or from their first span."""
    return _strip(db, run_ids, since, until, is_apart=True)


def _strip(db: Database, run_ids: Sequence[str], since: float, until: float, is_apart: bool) -> Strip | None:
    ended = waiting.bars(db, run_ids, since, is_apart)
    going = [bar for bar in _going_on(db, run_ids, until) if bar.ended > since]
    if not ended and not going:
        return None
    off = () if is_apart else tuple((bar.began, bar.ended) for bar in ended if bar.lane is Lane.OFF)
    shown = tuple(replace(bar, began=max(bar.began, since)) for bar in (*ended, *going) if bar.lane is not Lane.OFF)
    began = since or min(bar.began for bar in shown or ended)
    last = until if since or going else max(bar.ended for bar in ended)
    return Strip(began, last, shown, off)


def _going_on(db: Database, run_ids: Sequence[str], until: float) -> list[Bar]:
    """An engine that was killed has left its last step open."""
    return [
        Bar(run_id, span.lane, "", span.began, span.ended, 1, span.what, None, "in progress")
        for run_id, spans in waiting.going_on(db, run_ids, until).items()
        for span in spans
        if span.ended > span.began and run_state.has_engine(run_id)
    ]


def sentence(strip: Strip) -> str:
    """How the time of a run went, for people who cannot see the strip, and for its report."""
    shares = {lane: strip.share(lane) for lane in NAMES}
    said = [
        f"for {wording.percent(shares[lane])} "
        + (_HANDED_IN if lane is Lane.PERSON and strip.is_handed_in else _SAID[lane])
        for lane in sorted(_SAID, key=lambda lane: -shares[lane])
        if shares[lane] >= _LEAST
    ]
    worked = f"worked {wording.percent(shares[Lane.DEVICE])} of the time"
    first = f"the device {worked}" if strip.devices else "how long the device worked was not noted"
    first = f"In the {wording.seconds(strip.whole_s)} that the run had an engine, {first}"
    return f"{'; '.join([first, ', '.join(said)] if said else [first])}."


def sentence_of_devices(strip: Strip, span: str = "the time") -> str:
    """How long each device worked, for several runs beside each other, of a `span` of time."""

    def percent(lane: Lane, device: str = "") -> str:
        share = strip.share(lane, device)
        return "less than 1 %" if 0 < share < _LEAST else wording.percent(share)

    said = [f"{device_name(device)} worked {percent(Lane.DEVICE, device)}" for device in strip.devices]
    said += [f"models were writing {percent(Lane.MODEL)}"] if (Lane.MODEL, "") in strip.rows else []
    said += [f"a run waited for a device {percent(Lane.LEASE)}"] if (Lane.LEASE, "") in strip.rows else []
    if not said:
        return "No device was held."
    first, *others = said
    return wording.capital("; ".join([f"{first} of {span}", *others])) + "."


def sentence_of_suite(strip: Strip) -> str:
    """How long devices, models and waits took, for runs of many devices, none of which was there all the time."""
    worked = [strip.taken_s(Lane.DEVICE, device) for device in strip.devices]
    said = [
        f"{len(worked)} devices worked {wording.seconds(sum(worked))} together, the busiest of them "
        f"{wording.seconds(max(worked))}"
    ]
    said += [f"models were writing for {wording.seconds(s)}"] if (s := strip.taken_s(Lane.MODEL)) else []
    said += [f"a run waited for a device for {wording.seconds(s)}"] if (s := strip.taken_s(Lane.LEASE)) else []
    return (
        f"From the first run's start to the last one's end {wording.seconds(strip.ended - strip.began)} passed. For "
        f"{wording.seconds(strip.taken_s())} of it some run was at work. {'; '.join(said)}."
    )


def device_name(device: str) -> str:
    """A device's id as it is shown."""
    return GPU_ID.sub(r"\1", device) or NAMES[Lane.DEVICE]


def draw(strip: Strip, said: str, key: str, is_clock: bool = False, titles: Mapping[str, str] | None = None) -> None:
    """Draw it; `is_clock` writes times of day on the axis, else time since it began. `titles` names the run of each
    bar."""
    rows = [_row(strip, lane, device, titles or {}) for lane, device in strip.rows]
    lanes.draw(f"{TITLE}. {said}", rows, _ticks(strip, is_clock), bool(strip.devices), key)


def draw_runs(
    run_ids: Sequence[str],
    now: float,
    since: float = 0.0,
    span: str = "the time from the first run's start to the last one's end",
) -> None:
    """Several runs beside each other, with its sentence; from `since` on, or from their first span to their last, which
    `span` names."""
    db = index.current()
    strip = of_runs(db, run_ids, now, since)
    if strip is None:
        st.caption("Nothing has taken time yet.")
        return
    is_of_many = not since and len(strip.devices) > MOST_SHARES
    said = sentence_of_suite(strip) if is_of_many else sentence_of_devices(strip, span)
    st.caption(wording.plain(said))
    draw(strip, said, "who_waited", is_clock=bool(since), titles=queries.titles(db, run_ids))


def _row(strip: Strip, lane: Lane, device: str, titles: Mapping[str, str]) -> LaneRow:
    idle = [(*_placed(strip, *gap), "idle", _idle_words(strip, gap)) for gap in strip.idle(device)]
    bars = [
        (*_placed(strip, bar.began, bar.ended), _TONES[lane], _words(strip, bar, titles))
        for bar in strip.bars
        if (bar.lane, bar.device) == (lane, device)
    ]
    is_device = lane is Lane.DEVICE
    return LaneRow(device_name(device) if is_device else strip.name(lane), (*(idle if is_device else ()), *bars))


def _placed(strip: Strip, began: float, ended: float) -> tuple[float, float]:
    whole_s = max(strip.ended - strip.began, 1e-9)
    return round((began - strip.began) / whole_s, 5), round((ended - began) / whole_s, 5)


def _words(strip: Strip, bar: Bar, titles: Mapping[str, str]) -> str:
    took = wording.seconds(bar.ended - bar.began)
    what = bar.what if bar.number is None else f"{bar.what}, kernel {bar.number}"
    if bar.count > 1:
        what, took = f"{bar.count} short ones, the longest {what}", f"{took} in all"
    ended = bar.outcome.replace("_", " ")
    run = titles.get(bar.run_id, "")
    at = f"{wording.seconds(bar.began - strip.began)} after the beginning"
    return " · ".join(part for part in (strip.name(bar.lane), what, took, ended, run, at) if part)


def _idle_words(strip: Strip, gap: tuple[float, float]) -> str:
    return f"Device idle · {wording.seconds(gap[1] - gap[0])}"


def _ticks(strip: Strip, is_clock: bool) -> list[tuple[float, str]]:
    whole_s = strip.ended - strip.began
    step = next((step for step in TICKS if whole_s / step <= MOST_TICKS), 86400 * math.ceil(whole_s / 86400 / 4))
    offset = -strip.began % step if is_clock else 0
    places = [offset + k * step for k in range(int((whole_s - offset) // step) + 1)]
    return [(at / max(whole_s, 1e-9), _tick(strip, at, is_clock)) for at in places]


def _tick(strip: Strip, at: float, is_clock: bool) -> str:
    if is_clock:
        return wording.clock(strip.began + at)[:5]
    return "0" if not at else f"{at:g} s" if at < 60 else f"{at / 60:g} min" if at < 7200 else f"{at / 3600:g} h"
