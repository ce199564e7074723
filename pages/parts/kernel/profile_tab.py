"""A kernel's profile: its place under the machine's roofs, its launches, and exactly what a model may see of it. Where
there is none: why, when one is taken, and a button to have them taken."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from pages.parts import access, index, method, run_state, speed_of_light, texts, wording
from pages.parts.kernel import hot_lines, machine_use, metrics, roofline
from pages.parts.kernel.metrics import Weighed
from pages.parts.status import outcome
from pages.parts.steering import steer
from pages.parts.widgets import bars, code, plot, table
from storage.index import queries
from storage.index.queries import AttemptRow, CandidateRow, CutRow, MetricRow, ProfileRow, RunRow, SteeringMark
from storage.results import counters, kernel_names
from storage.results.profile_results import Advice, bound_by
from storage.results.vocabulary import Verdict
from storage.run.exposure import Exposure
from storage.run.method_words import MethodWords
from storage.run.saved_models import RECORDED
from storage.run.settings import Switch
from storage.run.steering.command_arguments import MANUAL
from storage.run.steering.verbs import CommandKind

ROOFLINE_HEIGHT = "clamp(340px, 620px - 40vw, 460px)"  # a phone's legend has a line for each name
MOST_CHARACTERS = 200_000
FACTS = [table.Column("name", "Conditions", "nowrap"), table.Column("value", "Value")]
ADVICE_COLUMNS = [
    table.Column("gain", "Could save", "right", "estimated share of that launch's time"),
    table.Column("launch", "Launch", "nowrap"),
    table.Column("text", "Advice", "wide"),
]
MOST_ADVICE = 12


def draw(run_id: str, candidate: CandidateRow) -> None:
    """What it is bound by and what changed; pictures left, the model's view right, tables below."""
    db = index.current()
    profile = queries.profile(db, run_id, candidate.candidate_id)
    if profile is None or profile.failure:
        _without(run_id, candidate, profile)
        return
    attempts = index.attempts(run_id)
    rows = queries.metrics(db, run_id, candidate.candidate_id)
    cut = queries.cut_profiles(db, run_id, [candidate.candidate_id])
    asked = None if profile.disturbance or cut else _compared_with(run_id, candidate, attempts)
    compared = None if asked and queries.cut_profiles(db, run_id, [asked]) else asked
    changes = queries.metric_changes(db, run_id, candidate.candidate_id, compared)
    seen = Seen(
        rows,
        queries.metrics(db, run_id, compared) if compared else [],
        next((a.number for a in attempts if a.candidate_id == compared), None),
        metrics.weighed(changes),
    )
    alone = metrics.not_compared(db, run_id, candidate.candidate_id, asked) if seen.number is None else ""
    _headline(profile, seen, alone, bool(cut))
    run = queries.run(db, run_id)
    if run and not run.is_on_gpu and (told := older_rates(profile.at, queries.limit_measured_at(db, run_id))):
        st.warning(told, icon=":material/update:")
    left, right = st.columns([1.25, 1], gap="medium")
    with left:
        _roofline(run_id, candidate, profile, attempts, compared, cut)
        _stalls(run_id, candidate, seen)
        metrics.draw_functions(changes)
    with right:
        _use(candidate, seen)
        _for_the_model(run_id, candidate, profile)
    if seen.number is not None and seen.changes:
        metrics.draw_changes(seen.changes, seen.number, key=f"deltas:{candidate.candidate_id}")
    hot_lines.draw(run_id, candidate, profile)
    _launches(rows)
    _advice(queries.advice(db, run_id, candidate.candidate_id))
    metrics.draw_all(changes)
    _how(run_id, candidate, profile)


def _compared_with(run_id: str, candidate: CandidateRow, attempts: Sequence[AttemptRow]) -> str | None:
    """Which kernel's profile stands beside this one: the nearest profiled ancestor, or another that a person chose."""
    ancestor = queries.profiled_ancestor(index.current(), run_id, candidate.candidate_id)
    profiled = [name for name in queries.profiled_kernels(index.current(), run_id) if name != candidate.candidate_id]
    if not profiled:
        return ancestor
    by_id = {attempt.candidate_id: attempt for attempt in attempts}
    names = {name: _named(by_id[name], name == ancestor) for name in profiled if name in by_id}
    chosen = st.selectbox(
        "Beside the profile of", list(names), list(names).index(ancestor) if ancestor in names else None,
        format_func=names.__getitem__, key=f"profile_beside:{candidate.candidate_id}", width=420,
        placeholder="another kernel of this run",
    )  # fmt: skip
    return chosen or ancestor


def _named(kernel: AttemptRow, is_ancestor: bool) -> str:
    speedup = f" · {wording.ratio(kernel)}" if kernel.speedup else ""
    return f"kernel {kernel.number}{speedup}" + (" · nearest profiled ancestor" if is_ancestor else "")


@dataclass(frozen=True, slots=True)
class Seen:
    """A profile's figures beside those of another kernel, `number`; without one None, empty."""

    current: Sequence[MetricRow]
    before: Sequence[MetricRow]
    number: int | None
    changes: Sequence[Weighed]


def older_rates(profiled_at: float, limit_at: float | None) -> str:
    """That shares of a processor's peak go by rates that were put right since; empty where they do not."""
    if limit_at is None or limit_at <= profiled_at:
        return ""
    return (
        "After this profile a kernel was faster than the machine's rates, which were measured too low, and they were "
        "raised. Shares of the peak here, and what the kernel is bound by, go by the rates of before: it is farther "
        "from the peak than they say, and they do not compare with those of later profiles."
    )


def _headline(profile: ProfileRow, seen: Seen, alone: str, is_cut: bool) -> None:
    """`alone`: why it is compared with none, where it is not."""
    bound, means = bound_by(profile.bound)
    told = " · ".join(filter(None, [wording.plain(means), wording.moment(profile.at)]))
    st.markdown(f"**Bound by** :violet-badge[{wording.plain(bound)}] :gray[{told}]")
    if profile.disturbance:
        st.warning(
            wording.plain(
                f"This profile was disturbed: {profile.disturbance}. Other work ran on the machine; "
                "do not compare its figures."
            ),
            icon=":material/warning:",
        )
    elif sentence := metrics.counted(seen.changes, seen.number):
        st.markdown(wording.plain(sentence))
    elif seen.number is None:
        of_these = " Times, bytes and operations of the call are sums over these alone." if is_cut else ""
        st.caption(wording.capital(alone.removeprefix("Profiled; ") + of_these))
    if profile.evidence.get("caches"):
        st.caption(
            "The profiler flushes all caches before each launch, so the device time here is not the latency above: "
            "that is timed with L2 overwritten once, before the call."
        )
    if because := profile.evidence.get("because"):
        remedy = profile.evidence.get("what to do", "")
        sentence = f"Profiled without hardware counters: {because}{f'; {remedy}' if remedy else ''}."
        st.info(wording.plain(sentence), icon=":material/visibility_off:")
    if profile.missing:
        names = dict.fromkeys(counters.label(name) for name in profile.missing)
        st.caption(f"Not available here: {wording.plain(', '.join(names))}")


def _roofline(
    run_id: str,
    candidate: CandidateRow,
    profile: ProfileRow,
    attempts: Sequence[AttemptRow],
    compared: str | None,
    cut: Sequence[CutRow],
) -> None:
    db = index.current()
    limit = queries.limit(db, run_id)
    axes = roofline.axes(profile.ceilings, limit, queries.arithmetic(db, run_id))
    points = roofline.points(run_id, candidate, attempts, axes.work, compared) if axes else []
    if axes and points:
        st.markdown("## Roofline")
        drawn = roofline.figure(axes, points, roofline.task_limit(limit))
        zoom = f"{run_id}:{candidate.candidate_id}:roofline"
        plot.draw(drawn, roofline.name(points), ROOFLINE_HEIGHT, zoom, key=f"roofline:{candidate.candidate_id}")
        whole = machine_use.whole(queries.metrics(db, run_id, candidate.candidate_id))
        st.caption(wording.plain(roofline.counted(axes, whole)))
    elif cut:
        st.caption(f"No roofline. {metrics.only_first(cut[0])}: how many bytes the whole call moves is not known.")
    else:
        st.caption("No roofline: operations or memory traffic were not counted.")
    if limit is not None and limit.limit_ms > 0:
        sentence = speed_of_light.sentence(limit, candidate.latency_ms, profile.ceilings.get(roofline.MEMORY))
        st.caption(wording.plain(f"{sentence} {outcome.limit_measured(db, run_id)}"))


def _stalls(run_id: str, candidate: CandidateRow, seen: Seen) -> None:
    waits = machine_use.waits(seen.current)
    shares, before = waits.shares, machine_use.waits(seen.before).shares
    if not shares:
        return
    st.markdown("## Warp stall reasons")
    first = next(iter(shares))
    name = (
        f"Warp stall reasons by share: {wording.significant(100 * shares[first], 2)} % {first.replace('_', ' ')} first"
    )
    zoom = f"{run_id}:{candidate.candidate_id}:stalls"
    drawn = machine_use.stall_figure(shares, before, f"kernel {seen.number}")
    plot.draw(drawn, name, machine_use.stall_height(shares, before), zoom, key=f"stalls:{candidate.candidate_id}")
    if waits.of:
        st.caption(waits.of)


def _use(candidate: CandidateRow, seen: Seen) -> None:
    """Shares of the machine's rates, occupancy, and what limits it, each beside the ancestor's mark."""
    legend = f"Marker: kernel {seen.number}." if seen.before else ""
    call, old_call = machine_use.whole(seen.current), machine_use.whole(seen.before)
    kinds = queries.main_kind(seen.current), queries.main_kind(seen.before)
    launch, old_launch = machine_use.longest(seen.current), machine_use.longest(seen.before)
    groups = (
        ("Share of the machine's peak", machine_use.rates(call, old_call, kinds)),
        ("Occupancy of the longest launch", machine_use.occupancy(launch, old_launch)),
        ("Blocks that fit on a multiprocessor", machine_use.blocks(launch, old_launch)),
    )
    shown = [(title, items) for title, items in groups if items]
    for number, (title, items) in enumerate(shown, 1):
        note = legend if number == len(shown) else ""
        bars.draw(title, items, note, key=f"bars:{number}:{candidate.candidate_id}")


def _launches(rows: Sequence[MetricRow]) -> None:
    launches = machine_use.launch_rows(rows)
    if launches:
        st.markdown("## Launches")
        table.draw(
            "Launches of the profiled call", machine_use.LAUNCH_COLUMNS, launches, key="launches", is_compact=True
        )


def _advice(advice: Sequence[Advice]) -> None:
    worth = [piece for piece in advice if piece.gain_percent]
    if worth:
        st.markdown("## Advice of the profiler")
        rows = _advice_rows(worth)
        table.draw("The profiler's advice", ADVICE_COLUMNS, rows, key="advice", is_compact=True, is_folding=True)


def _for_the_model(run_id: str, candidate: CandidateRow, profile: ProfileRow) -> None:
    """The text as it goes into a prompt, and whether it ever did."""
    db = index.current()
    calls = queries.model_calls(db, run_id, candidate.candidate_id)
    shown = [c for c in calls if c.is_profile_exposed and c.candidate_id == candidate.candidate_id]
    st.markdown("## As shown to the model")
    if shown:
        prompts = wording.counted(len(shown), "prompt")
        run = queries.run(db, run_id)
        sentence = shown_to(shown[-1].model, prompts, is_example=run is not None and run.is_example)
    elif profile.disturbance:
        sentence = "Not shown to a model, because the profile was disturbed. It would read:"
    else:
        sentence = "Not shown to a model yet. It would be shown exactly as below."
    st.caption(sentence)
    st.code(profile.summary or "(empty)", language=None, wrap_lines=True)


def shown_to(model: str, prompts: str, is_example: bool = False) -> str:
    """Who has seen the profile, and in how many prompts."""
    if model == RECORDED:
        return f"Part of {prompts}, exactly as below; recorded replies do not depend on it."
    writer = wording.model(model, is_example)
    reader = "the person who answers" if writer == MANUAL else wording.plain(writer)
    return f"Shown to {reader} in {prompts}, exactly as below."


def _how(run_id: str, candidate: CandidateRow, profile: ProfileRow) -> None:
    """How it was taken, and everything the profiler left."""
    if profile.evidence:
        rows = [table.Row(name, {"name": name, "value": value}) for name, value in profile.evidence.items()]
        table.draw("How the profile was taken", FACTS, rows, key="evidence", is_compact=True)
    if not profile.raw_blob:
        return
    raw = st.expander("Raw report", key=f"raw:{candidate.candidate_id}", on_change="rerun")
    if raw.open:
        with raw:
            _downloads(run_id, candidate.candidate_id, profile.raw_blob, profile.report_blob)


def _downloads(run_id: str, name: str, raw_blob: str, report_blob: str | None) -> None:
    raw = texts.read(run_id, raw_blob)
    if raw.is_gone:
        texts.say_gone(raw, "profiler's report")
        return
    text = raw.text
    icon = ":material/download:"
    with st.container(horizontal=True):
        st.download_button("Download", text, f"{name}-profile.txt", icon=icon, on_click="ignore", key="raw_text")
        if report_blob:
            report = _decoded(texts.source(run_id, report_blob))
            if report:
                file = f"{name}.ncu-rep"
                st.download_button("Nsight Compute file", report, file, icon=icon, on_click="ignore", key="report")
    if len(text) > MOST_CHARACTERS:
        st.caption(f"Showing {MOST_CHARACTERS:,} of {len(text):,} characters; download it to see all.")
    code.draw_plain("Raw report", text[:MOST_CHARACTERS], key=f"raw_report:{name}")


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):  # a blob that is gone reads as a sentence
        return b""


def _without(run_id: str, candidate: CandidateRow, failed: ProfileRow | None) -> None:
    """Say why, and offer what can be done now."""
    db = index.current()
    run = queries.run(db, run_id)
    if run is None:
        return
    if failed:
        st.warning(f"Profiling failed: {wording.plain(failed.failure)}", icon=":material/warning:")
    switch = queries.steering_state(db, run_id).collect
    planned = queries.planned_exposure(db, run_id, run.kernel_class) if method.has_schedule(run_id) else None
    words = method.words(run_id)
    why = why_none(candidate, switch, planned, bool(failed), words, queries.steering_marks(db, run_id))
    st.markdown(wording.plain(why))
    if candidate.verdict in (None, Verdict.PASSED):
        _offer_profiles(run, switch)


def why_none(
    candidate: CandidateRow,
    switch: Switch,
    planned: Exposure | None,
    has_failed: bool,
    words: MethodWords,
    marks: Sequence[SteeringMark] = (),
) -> str:
    """Why this kernel has no profile; `planned`: when a model is shown one on auto, None for a method without such a
    schedule; `marks`: what people have switched in the run."""
    if has_failed:
        return "Each kernel is profiled once; this one is not tried again."
    if candidate.verdict is None:
        return "Not judged yet: a kernel is profiled once it is correct and timed."
    if candidate.verdict is not Verdict.PASSED:
        verdict = wording.VERDICT_NAME[candidate.verdict]
        return f"Not profiled: only correct kernels are, and this one is not ({verdict})."
    match switch:
        case Switch.ON:
            return "Not profiled: this kernel was made before profiling was switched on."
        case Switch.OFF:
            switched = [mark for mark in marks if mark.kind is CommandKind.COLLECT]
            how = (
                f"a person switched it off during {words.step} {switched[-1].depth}"
                if switched
                else "it was started so"
            )
            return f"Not profiled: “Collect profiles” is off in this run; {how}."
        case Switch.AUTO:
            when = _collected(planned, words) or "when the search method asks for them"
            return (
                f"Not profiled. On “auto”, profiles are collected {when}; this kernel belongs to {words.step} "
                f"{candidate.depth}."
            )


def _collected(planned: Exposure | None, words: MethodWords) -> str:
    """When profiles are collected, with the switch on auto."""
    if planned is None:
        return words.collected
    waited = (planned.patience or 1) - 1
    after = f" after {words.counted(waited)} without a gain" if waited else ""
    since = f" from {words.step} {max(1, planned.first - 1)} on" if planned.first > 1 or waited else ""
    return f"for the first kernel and then{after}{since}" if since else "for every kernel"


def _offer_profiles(run: RunRow, switch: Switch) -> None:
    """The button, or why there is none."""
    if not access.may_steer():
        st.caption(":material/lock: This server is read-only and takes no commands.")
        return
    state = run_state.of(run)
    is_worked_on = not state.is_finished and run_state.has_engine(run.run_id)
    if run.is_example and not run.replay_of:
        st.caption(
            "The run is an example, made on another machine: no engine goes on with it, so this kernel gets no profile "
            "here. A fork of it (*Go back or fork from here*) is profiled as it is timed."
        )
        return
    if not is_worked_on:
        st.caption(
            f"No engine is running (the run is {wording.STATE_NAME[state]}), so nothing can be profiled here. To "
            "profile this kernel by itself, download its source and run "
            "`python -m engine evaluate TASK FILE --profile`."
        )
        return
    if switch is Switch.ON:
        return
    steer.button(
        "Profile every correct kernel from now on", run.run_id, CommandKind.COLLECT, Switch.ON.value,
        icon=":material/query_stats:", help="sets “Collect profiles” to on, from the next step",
    )  # fmt: skip
    st.caption("From the next step on. Takes some seconds per kernel and costs nothing.")


def _advice_rows(advice: Sequence[Advice]) -> list[table.Row]:
    """Pieces of advice as rows, at most a dozen."""
    return [table.Row(f"{i}", _advice_cells(piece)) for i, piece in enumerate(advice[:MOST_ADVICE])]


def _advice_cells(piece: Advice) -> dict[str, table.Cell]:
    """One piece of advice as cells."""
    gain = wording.NONE if piece.gain_percent is None else f"{wording.significant(piece.gain_percent, 2)} %"
    return {
        "gain": table.text(gain, "strong"),
        "launch": table.text(f"{piece.launch}: {kernel_names.short(piece.kernel)}", title=piece.kernel[:1000]),
        "text": table.text(piece.text, title=piece.rule),
    }
