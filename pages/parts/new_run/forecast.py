"""What a run will take, before it starts: from a recording, from the task itself, and from the runs so far."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from engine import supervisor
from pages.parts import index, run_state, wording
from storage.index import queries
from storage.index.queries import PaceRow, TokensRow
from storage.run.saved_models import RECORDED
from storage.run.settings import Budget, RunState
from storage.run.steering.command_arguments import MANUAL

# Why a module cannot be followed that may well run: what it does next depends on the contents of a tensor.
_WANT_OF_VALUES = ("DataDependentOutputException", "DynamicOutputShapeException", "GuardOnDataDependentSymNode")


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is expected of a whole run; None where nothing so far tells. `basis` says in a sentence what it rests on.
    `is_manual`: a person writes the replies, in a time of their own that `engine_s` leaves out."""

    engine_s: float | None
    calls: float | None
    tokens: float | None
    cost_usd: float | None
    basis: str
    why_no_cost: str = ""
    is_manual: bool = False
    elsewhere: str = ""
    """Where the runs that tell were at other sizes: at which, and what that means for this one."""


def of_run(
    task: str, toolchain: str, strategy: str, model: str, budget: Budget, sizes: Mapping[str, float],
    recorded: int | None = None,
) -> Forecast:  # fmt: skip
    """The forecast from the runs most like it: of the same task at the same sizes, else at others, else of the same
    toolchain; within its limits.

    Replies of no live model come at once and as often as they were recorded: such runs say nothing about a live one.
    `recorded` is how many calls its recording holds for it, None where it has none.
    `task` is empty where earlier runs of that name are of another task.
    """
    db = index.current()
    is_free = model in supervisor.FREE_MODELS
    without = () if is_free else supervisor.FREE_MODELS
    of_task = [(task, strategy, model), (task, strategy, ""), (task, "", "")] if task else []
    others = [*of_task, ("", strategy, ""), ("", "", "")]
    levels = [*((level, sizes) for level in of_task), *((level, None) for level in others)]
    paces = ((level, queries.pace(db, toolchain, *level, without, at)) for level, at in levels)
    level, pace = next(((level, row) for level, row in paces if row), (others[-1], None))
    same = [word for word, value in zip(("task", "strategy", "model"), level, strict=True) if value]
    tokens = None
    if not is_free:
        tokens = queries.tokens_per_call(db, model, without) or queries.tokens_per_call(db, "", without)
    return put_together(pace, tokens, budget, model, same, sizes, recorded)


def put_together(
    pace: PaceRow | None, tokens: TokensRow | None, budget: Budget, model: str, same: Sequence[str] = (),
    sizes: Mapping[str, float] | None = None, recorded: int | None = None,
) -> Forecast:  # fmt: skip
    """Step indexes times what one took, cut where a limit would end the run. `same` is what the runs before have in
    common with it beside the toolchain. Where calls of the model were counted, they tell how long one takes."""
    steps, is_free = budget.depths + 1, model in supervisor.FREE_MODELS
    calls = engine_s = None
    if pace:
        calls = steps * pace.calls
        calls_s = 0.0 if is_free else calls * tokens.seconds if tokens else steps * pace.calls_s
        engine_s = steps * pace.engine_s + calls_s
    if recorded:  # a run in its first minutes has made more calls for each step index than it will
        engine_s = engine_s * recorded / calls if engine_s and calls else engine_s
        calls = float(recorded)
    share = 1.0
    if calls and budget.model_calls:
        share = min(share, budget.model_calls / calls)
    if engine_s and budget.wall_s:
        share = min(share, budget.wall_s / engine_s)
    per_call = tokens.input + tokens.output if tokens else 0.0
    if calls and per_call and budget.tokens:
        share = min(share, budget.tokens / (calls * per_call))
    call_cost = supervisor.cost_of(model, tokens.input, tokens.output) if tokens else supervisor.cost_of(model, 0, 0)
    cost = 0.0 if is_free else calls * call_cost if calls and call_cost is not None and tokens else None
    if cost and budget.cost_usd:
        share = min(share, budget.cost_usd / cost)
    why = supervisor.price_note(model) if cost is None else ""
    if cost is None and not why:
        why = "How many calls a run makes" if tokens else "How many tokens a call takes"
        why += " is not known yet, so tokens and cost cannot be estimated."
    return Forecast(
        engine_s * share if engine_s else None,
        calls * share if calls else None,
        None if is_free or not calls or not tokens else calls * share * per_call,
        None if cost is None else cost * share,
        _basis(pace, is_free, same) + (f" {COUNTED}" if recorded else ""),
        why,
        model == MANUAL,
        at_other_sizes(pace.sizes, sizes) if pace and sizes and "task" in same else "",
    )


def at_other_sizes(told: Sequence[str], sizes: Mapping[str, float]) -> str:
    """At which sizes (JSON texts) runs of a task were, and what that means for one at `sizes`; empty where one of them
    was at the same."""
    others: list[dict[str, float]] = [json.loads(text) for text in told]
    if dict(sizes) in others:
        return ""
    which = "other sizes"
    if len(others) == 1:
        named = ", ".join(f"{name} = {value}" for name, value in others[0].items() if sizes.get(name) != value)
        which = named or which
    is_larger = {
        sizes[name] > value for other in others for name, value in other.items() if sizes.get(name, value) != value
    }
    means = "may take more or less" if len(is_larger) != 1 else "takes longer" if True in is_larger else "takes less"
    return f"at {which}: here it {means}"


def _basis(pace: PaceRow | None, is_free: bool, same: Sequence[str]) -> str:
    if pace is None:
        which = "run" if is_free else "run with a live model"
        tells = "the first that does will tell how long one takes"
        return f"No {which} on this toolchain has finished a step so far: {tells}."
    alike = "".join(f", the same {word}" for word in same)
    part = f"{pace.unfinished} of them unfinished" if pace.runs > 1 else "unfinished"
    which = f"{wording.counted(pace.runs, 'run')}{f' ({part})' if pace.unfinished else ''}"
    rest = "A busy machine takes longer; the run stops at its limits even where this is wrong."
    return f"Estimated from {which}: this toolchain{alike}. {rest}"


def beside_demo(toolchain: str) -> str:
    """That the demo is at work on the same device, as a sentence; empty where it is not."""
    demo = queries.demo_run(index.current())
    run = queries.run(index.current(), demo) if demo else None
    if run is None or run.toolchain != toolchain or run_state.of(run) is not RunState.RUNNING:
        return ""
    return "The demo is running too: both take turns on the device, so both take longer until it ends."


def draw_badges(
    has_recording: bool, source: str, sizes: Mapping[str, float], is_on_gpu: bool, backward: bool, model: str
) -> str:  # fmt: skip
    """What is known of the task: whether a recording is used, and how much memory judging it takes. Returns why
    that is too much for this host, as a sentence; empty where it is not, or not known."""
    with st.container(horizontal=True, gap="small"):
        if has_recording and model == RECORDED:
            st.badge("recorded replies", icon=":material/check:", color="green", help="runs without a key")
        elif has_recording:
            st.badge("recording not used", icon=":material/history:", color="gray", help="another model is chosen")
        else:
            st.badge(
                "no recording", icon=":material/forum:", color="gray", help="needs a live model, or you as the model"
            )
        return _memory(source, sizes, is_on_gpu, backward)


def may_fail(source: str, backward: bool) -> bool:
    """Whether following the module has ended in what is likely to end a call of it too."""
    why = supervisor.why_unknown(source, backward)
    return bool(why) and not why.startswith(_WANT_OF_VALUES)


COUNTED = "The calls are those of the recording."
NO_TOKENS = {True: f"{wording.UNRECORDED}: you write the replies", False: "none: the replies are recorded"}


def draw(forecast: Forecast) -> None:
    """A forecast's time and money."""
    time = "not known yet"
    if forecast.engine_s:
        time = f"{wording.about_seconds(forecast.engine_s)} {forecast.elsewhere}".rstrip()
    calls = f"about {forecast.calls:.0f}" if forecast.calls else "not known yet"
    rows = [
        ("Time", f"{time}, plus the time in which you write" if forecast.is_manual else time),
        ("Replies, which you write", calls) if forecast.is_manual else ("Model calls", calls),
        ("Tokens", NO_TOKENS[forecast.is_manual] if forecast.cost_usd == 0 and not forecast.tokens
         else f"about {wording.tokens(round(forecast.tokens))}" if forecast.tokens else "not known yet"),
        ("Cost", wording.UNKNOWN if forecast.cost_usd is None else wording.UNRECORDED if forecast.is_manual
         else "nothing" if not forecast.cost_usd else f"about {wording.cost(forecast.cost_usd)}"),
    ]  # fmt: skip
    st.markdown("\n".join(f"- **{name}** {wording.plain(value)}" for name, value in rows))
    st.caption(forecast.basis)
    if forecast.why_no_cost:
        st.caption(f":material/payments: {wording.plain(forecast.why_no_cost)}")


def _memory(source: str, sizes: Mapping[str, float], is_on_gpu: bool, backward: bool) -> str:
    """How much judging takes, beside what is free; a child works it out, and the badge follows."""
    is_made, needed = supervisor.estimated(source, backward)
    if not is_made:
        st.badge("memory …", icon=":material/hourglass_top:", color="gray", help="being estimated; Start waits for it")
    elif needed is not None:
        is_countable = needed < supervisor.OVERFLOWS
        size = wording.quantity(float(needed), "B") if is_countable else "too large"
        # A GPU's own memory counts there; what no tensor can hold, it cannot either.
        asks_nobody = is_on_gpu and is_countable
        why = "" if asks_nobody else supervisor.refusal(needed, supervisor.free_bytes(), sizes)
        st.badge(
            f"memory {size}", icon=":material/memory:", color="red" if why else "green",
            help="more than may be used here: choose smaller sizes" if why else "to judge a kernel",
        )  # fmt: skip
        return f"{wording.capital(why)}." if why else ""
    elif why := supervisor.unusable(source, backward):
        st.badge(
            "cannot be run", icon=":material/error:", color="red", help="the module, before any kernel is asked for"
        )
        return f"{wording.capital(why)}."
    else:
        st.badge("memory unknown", color="gray", help="the module cannot be followed without being run")
    return ""


def draw_doubt(source: str, backward: bool, is_being_tried: bool = False) -> None:
    """Why the module could not be followed without data, while nobody has tried it with real data."""
    if not (why := supervisor.why_unknown(source, backward)):
        return
    sentence = wording.plain(f"The module could not be followed without data: {wording.cut(why, 300)}")
    if may_fail(source, backward):
        left_open = "Whether it works with real data is tried before a run starts."
        left_open = "It is being tried with real data now." if is_being_tried else left_open
        st.warning(f"{sentence}\n\n{left_open}", icon=":material/warning:")
    else:
        st.caption(sentence)
