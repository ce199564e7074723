"""What the engine does this second, and the watcher that draws a page again when something is new."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import streamlit as st

from pages.parts import client, index, method, preparing, wording
from pages.parts.status import step_sentences
from pages.parts.status.pinned_snapshot import PinnedSnapshot
from storage.index import queries
from storage.index.queries import RunRow, StepRow
from storage.run.settings import RunState, StepKind
from storage.run.steering.command_arguments import is_call
from storage.run.steering.verbs import CommandKind

EVERY_MS = 500

_now = st.components.v2.component(
    "tilewright_now",
    html="""<div class="room"><div class="now" role="group" aria-label="What the engine is doing">
    <span class="text" role="status"></span><span class="clock"></span><span class="usual"></span>
    <span class="detail"></span>
    <ol class="pipeline" aria-label="Stages of this kernel"></ol>
    <span class="tools"><button class="fresh" hidden></button>
    <label>refresh <select class="pace" aria-label="Refresh every">
    <option value="500">0.5 s</option><option value="2000">2 s</option><option value="10000">10 s</option>
    </select></label></span></div></div>""",
    css=client.read("status/now.css"),
    js=client.read("status/now.js"),
)


def watch(run_ids: Sequence[str], is_overview: bool, token: str, has_measurements: bool = False) -> None:
    """Draw the enclosing fragment again when the change token of these runs is no longer `token`; shows nothing."""
    _mount(run_ids, is_overview, token, {"measured": has_measurements})


def draw(
    run: RunRow,
    state: RunState,
    step: StepRow | None,
    token: str,
    usual_s: float | None = None,
    pinned: PinnedSnapshot | None = None,
    go_live: Callable[[], None] = lambda: None,
    asked: CommandKind | None = None,
) -> None:
    """The bar under the curve; also watches. Of a run that has ended it shows nothing: its state stands in the figures.

    `asked` is a pause or a stop that the engine has not carried out yet. `usual_s` is how long such a step has taken in
    this run. A pinned page is not drawn again: its clock stands, and the bar counts what is new since and offers to go
    live.
    """
    is_running = step is not None and state is RunState.RUNNING
    texts: dict[str, object] = {
        "text": ending(asked, step) if asked and state is RunState.RUNNING else _text(run, state, step, pinned),
        "is_ending": asked is CommandKind.PAUSE,
        "detail": detail(run, state, step),
        "tone": wording.STATE_TONE[state],
        "active": str(step.kind) if step and is_running else "",
        "since": step.started_at if step and is_running else None,
        "usual_s": usual_s if is_running else None,
        "usual": usual(usual_s or 0.0),
    }
    texts |= {
        "held_seq": pinned.last_seq if pinned else None,
        "held_at": pinned.at if pinned else None,
        "frozen": _held(pinned) if pinned else "",
        "is_sought": pinned is not None and pinned.step is not None,
    }
    _mount([run.run_id], False, token, texts, go_live)


def _held(pinned: PinnedSnapshot) -> str:
    """What a page shows that is not drawn again."""
    return f"frozen at {wording.clock(pinned.at)}" if pinned.step is None else f"as it stood after step {pinned.step}"


def _mount(
    run_ids: Sequence[str],
    is_overview: bool,
    token: str,
    texts: dict[str, object],
    go_live: Callable[[], None] = lambda: None,
) -> None:
    shown: dict[str, object] = {"text": "", "detail": "", "tone": "gray", "active": "", "since": None, "usual_s": None}
    shown |= {"held_seq": None, "held_at": None, "frozen": "", "measured": False, "is_ending": False}
    shown |= {"is_sought": False}
    watched = {"runs": ",".join(run_ids), "overview": is_overview, "version": token, "every_ms": EVERY_MS}
    _now(
        data=shown | texts | watched | {"server_now": time.time()}, key="now",
        on_pulse_change=lambda: None, on_live_change=go_live,
    )  # fmt: skip


def usual(seconds: float) -> list[str]:
    """How long such a step takes: what is said in time, and what is said once it has taken much longer."""
    span = "under 1 s" if seconds < 1 else wording.seconds(seconds)
    return [f"usually {span}", f"longer than usual ({span})"]


ENDS_AFTER = {
    StepKind.COMPILE: "compiling", StepKind.CHECK: "checking", StepKind.TIME: "timing", StepKind.PROFILE: "profiling",
}  # fmt: skip


def ending(asked: CommandKind, step: StepRow | None) -> str:
    """What the engine still does before it pauses or stops."""
    if asked is CommandKind.STOP:
        return "Stopping: the step in progress is cancelled"
    if step is None or step.kind not in ENDS_AFTER:
        return "Pausing: the model's reply is cancelled" if step and is_call(step.kind) else "Pausing after this step"
    return f"Pausing after {ENDS_AFTER[StepKind(step.kind)]}"


def _text(run: RunRow, state: RunState, step: StepRow | None, pinned: PinnedSnapshot | None) -> str:
    match state:
        case RunState.RUNNING:
            return step_sentences.sentence(step, method.words(run.run_id)) if step else _between(run)
        case RunState.STARTING:
            return preparing.sentence(run.run_id)
        case RunState.LOST:
            return "Interrupted"
        case RunState.PAUSED:
            return "Paused"
        case RunState.WAITING:
            return "Waiting"
        case _:
            return wording.capital(wording.STATE_NAME[state]) if pinned else ""


def _between(run: RunRow) -> str:
    is_measured = queries.limit(index.current(), run.run_id) is not None
    if is_measured:
        return "Between steps"
    return preparing.MEASURING if run.replay_of else preparing.sentence(run.run_id)


def detail(run: RunRow, state: RunState, step: StepRow | None) -> str:
    """Where in the run the step stands and how many others are at work, or why the run is not at work."""
    match state:
        case RunState.RUNNING if step:
            others = sum(other.is_in_flight for other in queries.steps(index.current(), run.run_id)) - 1
            beside = f", {wording.counted(others, 'other')} at work" if others > 0 else ""
            return f"{method.words(run.run_id).place(step.depth, run.depths)}{beside}"
        case RunState.RUNNING:
            return ""
        case RunState.LOST:
            return ""
        case RunState.STARTING:
            return ""
        case _:
            return run.state_reason
