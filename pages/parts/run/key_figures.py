"""One line of figures under a run's name, readable from across the room: its state, the best speed-up, latency, the
share of the hardware limit, and what it has taken. The same while it runs and when it has ended."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import streamlit as st

from pages.parts import client, index, method, run_state, speed_of_light, timed_anew, wording
from pages.parts.kernel import story
from pages.parts.status import alternatives, outcome, pinned_snapshot
from pages.parts.steering import steer
from storage.index import queries
from storage.index.queries import RunRow
from storage.results import relative
from storage.run.settings import RunState
from storage.run.steering.verbs import CommandKind

ABOVE = 1.02  # a kernel this far beyond the limit shows that the limit was measured too low
ENGINE_TIME = (
    "Time spent in steps: finished ones, those that were cut off, as far as the journal tells, and the current one. "
    "Pauses and time without an engine are not counted."
)

_figures = st.components.v2.component(
    "tilewright_key_figures",
    html='<dl class="figures"\n aria-label="Key figures"></dl>',
    css=client.read("run/key_figures.css"),
    js=client.read("run/key_figures.js"),
)


def draw(run: RunRow, state: RunState) -> None:
    """State and best speed-up first and large, then latency and headroom, then the rest."""
    judged = run.passed + run.failed
    failed = wording.cut(run.last_error, 200) if run.last_error else ""
    kernels = "of those judged" + (f"; last failure: {failed}" if failed else "")
    others = [
        ("Correct", f"{run.passed:,} of {judged:,}", wording.counted(run.attempts, "kernel"), kernels),
        ("Tokens", wording.tokens(run.tokens, run.model), wording.counted(run.model_calls, "call"),
         wording.why_none(run.tokens, run.model) or "of all model calls"),
        ("Cost", wording.cost(run.cost_usd, run.model), "",
         wording.why_none(run.cost_usd, run.model) or "of the model calls"),
    ]  # fmt: skip
    items = [{"label": label, "value": value, "note": note, "title": title} for label, value, note, title in others]
    started = f"Started {wording.moment(run.started_at or run.created_at)}. "
    clock = {"label": "Engine time", "title": started + ENGINE_TIME, "spent_s": run.engine_s} | _current(run, state)
    shown = {"state": _state(run, state), "best": _best(run, state), "headroom": headroom(run), "clock": clock}
    _figures(data=shown | {"items": [_latency(run), *items], "server_now": time.time()}, key="figures",
             on_opened_change=lambda: None)  # fmt: skip


def _state(run: RunRow, state: RunState) -> dict[str, str]:
    """The state, and where the run is or why it has ended. A pinned page shows no state of now: it says what it is."""
    shown = run_state.shown_state(run) if state is RunState.STOPPED else state
    place = method.words(run.run_id).progress(run.completed, run.depths)
    pinned = pinned_snapshot.of(run.run_id)
    if pinned and not state.is_over:
        value = "frozen" if pinned.step is None else f"step {pinned.step}"
        note = f"{wording.STATE_NAME[shown]} then, {place}"
        return {"label": "State", "value": value, "tone": "gray", "note": note, "title": ""}
    if not state.is_over and steer.pending(run.run_id) is CommandKind.STOP:
        return {"label": "State", "value": "stopping", "tone": "orange", "note": place, "title": ""}
    reason = outcome.ended(index.current(), run, shown) if state.is_finished and state is not RunState.FAILED else ""
    note = wording.cut(reason, 30) or place
    return {
        "label": "State", "value": wording.STATE_NAME[shown], "tone": wording.STATE_TONE[shown], "note": note,
        "title": reason,
    }  # fmt: skip


def _best(run: RunRow, state: RunState) -> dict[str, str]:
    nothing = "no correct kernel timed yet" if run.passed else "no correct kernel yet"
    best = run.best_candidate_id
    count, advice = outcome.to_look_at(index.current(), run.run_id, best) if best else (0, "")
    avoidable = outcome.avoidable(index.current(), run.run_id, best) if best else ""
    shown = {
        "label": "Over eager PyTorch",
        "flag": f"⚑ {count} to look at" if count else "",
        "opens": f"{best}#Trust",
        "href": f"candidate?run={wording.in_address(run.run_id)}&candidate={best}&tab=Trust",
        "title": " ".join(filter(None, [wording.BEST, advice, avoidable])) if run.best_speedup else "",
        **_over_best_alternative(run),
    }
    if run.best_speedup is None:
        return shown | {"value": wording.NONE, "note": nothing, "tone": ""}
    measured = wording.measured(run.best_speedup, run.best_noise, run.best_low, run.best_high)
    doubt = outcome.doubt_best(index.current(), run)
    if doubt:
        shown["title"] = f"{doubt.sentence} {shown['title']}".strip()
    uncertain = f" · {doubt.short}" if doubt else ""
    if beyond := outcome.not_faster(run.best_low, run.best_high):
        first, made_of = gain_over_first(run)
        said = f"{first} faster than its first kernel, {_not_yet(beyond, state)}" if first else _not_yet(beyond, state)
        shown["title"] = f"{made_of} {shown['title']}".strip()
        return shown | {"said": wording.capital(said), "note": f"{measured} over eager PyTorch{uncertain}", "tone": ""}
    form = "value" if relative.is_known(run.best_noise or 0.0) else "said"  # a range is too long for the large figure
    return shown | {form: wording.best(run), "note": outcome.beside_best(run, doubt), "tone": "good"}


def _not_yet(beyond: str, state: RunState) -> str:
    """What is said of a best kernel that is no gain over eager."""
    yet = "" if state.is_finished else " yet"
    return f"not{yet} as fast as PyTorch" if beyond.startswith("slower") else f"not{yet} faster than PyTorch"


def gain_over_first(run: RunRow) -> tuple[str, str]:
    """How many times as fast as the run's first timed kernel the best one is, and what that is made of; both empty
    where it is not faster for sure."""
    attempts = index.attempts(run.run_id)
    timed = [kernel for kernel in attempts if kernel.speedup and kernel.noise is not None]
    if not timed or not run.best_speedup or run.best_noise is None:
        return "", ""
    first = timed[0]
    best = next((kernel for kernel in attempts if kernel.candidate_id == run.best_candidate_id), first)
    told = replace(best, speedup=run.best_speedup, noise=run.best_noise, latency_ms=run.best_latency_ms)
    gain = relative.gain(told, first, is_on_gpu=run.is_on_gpu)
    if gain is None or not (gain.is_faster and relative.is_known(gain.noise)):
        return "", ""
    made_of = (
        f"{wording.ratio(gain)} is the best kernel's speed-up over eager PyTorch, {wording.best(run)}, divided by that "
        f"of kernel {first.number}, {wording.ratio(first)}."
    )
    if timed_anew.is_by_latency(gain, run.best_latency_ms, first.latency_ms):
        made_of = (
            f"{wording.ratio(gain)} is the latency of kernel {first.number}, {wording.latency(first.latency_ms)}, "
            f"divided by the best kernel's, {wording.latency(run.best_latency_ms)}."
        )
    return wording.ratio(gain), f"{made_of} {story.moved(best, first, gain)}".strip()


def _latency(run: RunRow) -> dict[str, str]:
    """PyTorch's and the best kernel's."""
    eager_ms = relative.baseline_ms(run.best_speedup, run.best_latency_ms)
    anew = outcome.timed_anew_words(index.current(), run)
    return {
        "label": "Latency", "value": wording.latency(run.best_latency_ms),
        "note": wording.of_kept(run.best_noise) or (f"PyTorch {wording.latency(eager_ms)}" if eager_ms else ""),
        "title": f"{wording.LATENCIES} {anew}".strip(),
    }  # fmt: skip


def headroom(run: RunRow) -> dict[str, Any]:
    """How much of the hardware's limit the best kernel has reached, and what is left."""
    limit = queries.limit(index.current(), run.run_id)
    share = speed_of_light.share(limit, run.best_latency_ms)
    label = "Of the hardware limit"
    if limit is None:
        return {"label": label, "value": wording.NONE, "note": "not measured yet", "share": None}
    how = outcome.limit_measured(index.current(), run.run_id)
    sentence = f"{speed_of_light.sentence(limit, run.best_latency_ms)} {how}"
    if not limit.is_known:
        note = speed_of_light.why_unknown(limit, run.best_latency_ms)
        return {"label": label, "value": speed_of_light.UNKNOWN, "note": note, "share": None, "title": sentence}
    if share is None:
        return {"label": label, "value": wording.NONE, "note": f"limit {wording.latency(limit.limit_ms)}",
                "share": None, "title": sentence}  # fmt: skip
    left = f"{wording.significant(1 / share, 2)}× headroom" if share < 0.995 else "no headroom"
    if not limit.min_flop and share < 0.995:  # what is not counted can only bring the limit nearer
        left = f"at most {left}"
    if share > ABOVE:
        left = "faster than the measured limit"
    left = wording.of_kept(run.best_noise) or left
    value = speed_of_light.percent(limit, run.best_latency_ms)
    return {"label": label, "value": value, "note": left, "share": min(1.0, share), "title": sentence}


def _over_best_alternative(run: RunRow) -> dict[str, str]:
    """The best kernel over the best alternative, and whether it loses to it beyond the noise; in one short line, since
    the bar keeps its height."""
    fastest = queries.baseline(index.current(), run.run_id)
    if fastest is None:
        other = outcome.elsewhere(index.current(), run)
        short = alternatives.elsewhere_in_short(other, run.best_measured)
        return {"second": short} if short else {}
    over = alternatives.over(fastest, run.best_measured, is_short=True)
    if alternatives.loses(fastest, run.best_measured):
        return {"second": f"{over}, which is faster", "second_tone": "poor"}
    return {"second": over}


def _current(run: RunRow, state: RunState) -> dict[str, float | None]:
    """Since when the time of the step in flight is not counted yet, and the moment that the page is pinned to."""
    pinned = pinned_snapshot.of(run.run_id)
    step = queries.current_step(index.current(), run.run_id) if state is RunState.RUNNING else None
    since = max(step.started_at, queries.counted_until(index.current(), run.run_id) or 0.0) if step else None
    return {"since": since, "until": pinned.at if pinned else None}
