"""What in a run may need a person, each with what one can do about it: decided over the facts of the index, shown
behind a badge. A person can dismiss an alert for as long as nothing newer of its kind comes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import streamlit as st

from pages.parts import index, method, wording
from pages.parts.run_state import IDLE_S, SILENT_S
from pages.parts.status import damaged
from pages.parts.widgets import table
from storage import device_use
from storage.index import queries
from storage.index.queries import RunRow, TroubleRow
from storage.run.method_words import PLAIN, MethodWords
from storage.run.settings import RunState
from storage.run.steering.verbs import CommandKind

PATIENCE = 3  # step indexes without gain, where the run sets no limit of its own
OFTEN = 0.6  # share of the last kernels that failed
ENOUGH = 5  # kernels judged before their share says anything


class AlertKind(StrEnum):
    """What an alert is about."""

    HEARTBEAT = "engine problem"
    REPEATED = "same error twice"
    FAILING = "many failures"
    REGRESSION = "slower"
    STAGNATION = "no progress"
    BUDGET = "budget"
    IDLE = "device idle"


@dataclass(frozen=True, slots=True)
class Act:
    """What a person most likely does about an alert: the command, and the words on its button."""

    label: str
    command: CommandKind
    argument: str = ""


@dataclass(frozen=True, slots=True)
class Alert:
    """`text` says what was seen, `advice` what one can do. `seq` is the event it rests on: a later one is new."""

    kind: AlertKind
    seq: int
    text: str
    advice: str
    act: Act | None = None

    @property
    def alert_id(self) -> str:
        """Names this alert for as long as what it rests on stays the newest of its kind."""
        return f"{self.kind}:{self.seq}"


HINT = Act("Send a hint", CommandKind.HINT)
PROFILES = Act("Show profiles to the model", CommandKind.EXPOSE, "on")
LIMITS = Act("Change limits", CommandKind.SET_BUDGET)


def find(facts: TroubleRow, state: RunState, now: float, words: MethodWords = PLAIN) -> list[Alert]:
    """Alerts of a run that is not over, the most pressing first. `now` in seconds since the epoch."""
    if state in (RunState.FINISHED, RunState.STOPPED):
        return []
    looked_for = (_heartbeat(facts, state, now), _repeated(facts), _failing(facts), _regression(facts, words),
                  _stagnation(facts, words), _budget(facts), _idle(facts, state, now))  # fmt: skip
    return [alert for alert in looked_for if alert]


def _heartbeat(f: TroubleRow, state: RunState, now: float) -> Alert | None:
    seq = int(f.last_event_at or 0)
    if state is RunState.LOST:
        return Alert(
            AlertKind.HEARTBEAT,
            seq,
            "The run was interrupted: its engine ended.",
            "Completed steps are saved; resume to continue.",
        )
    silent_s = now - f.last_event_at if f.last_event_at else 0.0
    if state is not RunState.RUNNING or silent_s < SILENT_S:
        return None
    text = f"The engine is running, but has reported nothing for {wording.seconds(silent_s)}."
    return Alert(AlertKind.HEARTBEAT, seq, text, "Check engine.log in the run's folder, then stop and resume the run.")


def _repeated(f: TroubleRow) -> Alert | None:
    if not f.is_repeated or f.last_verdict is None:
        return None
    verdict = wording.VERDICT_NAME[f.last_verdict]
    text = f"The last two kernels failed in the same way: {verdict}. {_cut(f.last_message)}"
    advice = "Send a hint that names the cause, write the next reply yourself, or go back to an earlier kernel."
    return Alert(AlertKind.REPEATED, f.last_seq or 0, text, advice, HINT)


def _failing(f: TroubleRow) -> Alert | None:
    if f.recent_judged < ENOUGH or f.recent_failed < OFTEN * f.recent_judged:
        return None
    last = f" Last: {_cut(f.last_message)}" if f.last_message else ""
    text = f"{f.recent_failed} of the last {f.recent_judged} kernels failed.{last}"
    advice = "See the errors grouped by message, or send a hint that asks for smaller changes."
    return Alert(AlertKind.FAILING, f.last_seq or 0, text, advice, HINT)


def _regression(f: TroubleRow, words: MethodWords) -> Alert | None:
    ratio = f.newest
    if f.newest_seq is None or ratio is None or not ratio.is_slower:
        return None
    text = (
        f"{words.title} {f.newest_depth} got slower: kernel {f.newest_number} is "
        f"{wording.told(ratio, f'as fast as its base, kernel {f.base_number}')}."
    )
    advice = f"Go back to kernel {f.base_number}, or let the run continue."
    act = Act(f"Go back to kernel {f.base_number}", CommandKind.ROLL_BACK, f.base_id) if f.base_id else None
    return Alert(AlertKind.REGRESSION, f.newest_seq, text, advice, act)


def _stagnation(f: TroubleRow, words: MethodWords) -> Alert | None:
    if f.since_gain < (f.patience or PATIENCE) or f.newest_seq is None:
        return None
    text = f"{f.since_gain} {words.steps} in a row with no improvement beyond noise."
    advice = "Show profiles to the model, send a hint, go back to an earlier kernel, or stop."
    return Alert(AlertKind.STAGNATION, f.newest_seq, text, advice, PROFILES)


def _budget(f: TroubleRow) -> Alert | None:
    if not f.budgets or f.budget_seq is None:
        return None
    names = " and ".join(name.replace("_", " ") for name in f.budgets)
    return Alert(AlertKind.BUDGET, f.budget_seq, f"More than 80 % of the budget is used: {names}.",
                 "Raise the limit, or let the run end at it.", LIMITS)  # fmt: skip


def _idle(f: TroubleRow, state: RunState, now: float) -> Alert | None:
    """Of a GPU alone, which is what is paid for by the hour."""
    if state is not RunState.RUNNING or f.idle_since is None or now - f.idle_since < IDLE_S:
        return None
    text = f"The device has been idle since {wording.clock(f.idle_since)}: the model is writing."
    advice = "Start other runs that use it meanwhile, such as a suite with --at-once 4, or choose a faster model."
    return Alert(AlertKind.IDLE, int(f.idle_since), text, advice)


def _cut(text: str) -> str:
    return wording.cut(text, 140)


def of_runs(states: Mapping[str, RunState]) -> dict[str, list[Alert]]:
    """Alerts by run; only runs that are not over are asked about."""
    open_runs = [run_id for run_id, state in states.items() if not state.is_finished]
    facts, now = queries.troubles(index.current(), open_runs), time.time()
    return {
        run_id: find(_of_host(row, now), states[run_id], now, method.words(run_id))
        for run_id, row in facts.items()
        if not (states[run_id] is RunState.LOST and damaged.of(run_id).is_damaged)  # its banner says more
    }


def _of_host(f: TroubleRow, now: float) -> TroubleRow:
    """A device that others of this host have used meanwhile was not idle."""
    if f.idle_since is None or now - f.idle_since < IDLE_S:
        return f
    return replace(f, idle_since=max(f.idle_since, device_use.last_held(now)))


def badge(alerts: Sequence[Alert]) -> list[table.Cell]:
    """The badge for a row of the overview; nothing where all is well."""
    return [table.pill(_count(alerts), "orange", "lost", title="\n".join(a.text for a in alerts))] if alerts else []


def draw(run: RunRow, state: RunState, may_act: Callable[[Act], bool], do: Callable[[str, Act], None]) -> None:
    """A button with the number of alerts that opens the list, each with its act; nothing where there are none, nor in a
    replay: what it shows is long past.

    `do` carries out an act on the run of that id; `may_act` tells whether the run takes it now.
    """
    dismissed: set[str] = st.session_state.setdefault(f"dismissed:{run.run_id}", set())
    known = {} if run.replay_of else of_runs({run.run_id: state})
    alerts = [a for a in known.get(run.run_id, []) if a.alert_id not in dismissed]
    if not alerts:
        return
    with st.popover(_count(alerts), icon=":material/warning:", key="alerts", help="Needs attention"):
        for alert in alerts:
            st.markdown(f"**{str(alert.kind).capitalize()}.** {wording.plain(alert.text)}")
            st.caption(f":material/build: {wording.plain(alert.advice)}")
            with st.container(horizontal=True, gap="small"):
                if alert.act and may_act(alert.act):
                    key = f"act:{run.run_id}:{alert.alert_id}"
                    st.button(alert.act.label, key=key, type="primary", on_click=do, args=(run.run_id, alert.act))
                st.button("Dismiss", key=f"dismiss:{alert.kind}", on_click=dismissed.add, args=(alert.alert_id,))


def _count(alerts: Sequence[Alert]) -> str:
    return f"{len(alerts)} {'alert' if len(alerts) == 1 else 'alerts'}"
