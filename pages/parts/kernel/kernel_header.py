"""Who a kernel is: number, place in the run, verdict, speed, the ways to its neighbours; and what a person can do on
its page: go on from the kernel, make it the base, edit it by hand; and the keys, where numbers open tabs, j and k go to
the next and previous kernel."""

from __future__ import annotations

import streamlit as st

from pages.parts import access, client, index, method, run_state, speed_of_light, timed_anew, wording
from pages.parts.kernel import mark, story
from pages.parts.status import alternatives, beside_base, outcome, provenance
from pages.parts.steering import dialogs
from pages.parts.steering.dialogs import Dialog
from pages.parts.widgets import figures
from pages.parts.widgets.figures import Figure
from storage.index import queries
from storage.index.queries import AttemptRow, BaselineRow, CandidateRow, EvaluationRow, PredictionRow, RunRow
from storage.results import relative
from storage.results.hardware_limit import HardwareLimit
from storage.results.vocabulary import Verdict
from storage.run.events import Imported
from storage.run.settings import RunState

INTERVAL = "over eager PyTorch, and the range in which it truly lies with 95 % probability"
OF_TRUST = "An engine that resumes a run measures the limit anew for its own checks: Trust names that one."
EXACT = "as exact as which number format: by its error against float64, not by what its source says"
ICON = {Verdict.PASSED: ":material/check:", Verdict.REFUSED: ":material/block:"}


def draw(run: RunRow, candidate: CandidateRow) -> None:
    """Header with the measured numbers under it."""
    found = mark.of(run.run_id, candidate.candidate_id)
    with st.container(
        horizontal=True, vertical_alignment="center", horizontal_alignment="distribute", gap="small", key="kernel_head"
    ):
        with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", key="kernel_name"):
            with st.container(width="content", key="kernel_run"):
                st.page_link(
                    "run.py", label=run.title, icon=":material/arrow_back:", query_params={"run": run.run_id},
                    help=run.title,
                )  # fmt: skip
            st.title(f"Kernel {candidate.number}", anchor=False, width="content")
            provenance.replay_badge(run)
            badges(candidate)
            mark.badge(found)
            _flags(run, candidate)
            step = wording.plain(method.words(run.run_id).step)
            same = index.same_source(run.run_id).get(candidate.candidate_id)
            st.caption(
                f"{step} {candidate.depth} · {wording.ORIGIN_NAME[candidate.origin]}"
                + (f" · same source as kernel {same}" if same else ""),
                width="content",
            )
            _family(run, candidate)
        with st.container(horizontal=True, gap="small", width="content", key="kernel_neighbours"):
            _neighbours(run, candidate)
    with st.container(key="kernel_story"):
        story.draw(run.run_id, candidate)
    mark.caption(found)
    _imported(run, candidate)
    _numbers(run, candidate)


def _imported(run: RunRow, candidate: CandidateRow) -> None:
    """What another system says about it, marked as such."""
    imported = queries.imported(index.current(), run.run_id, candidate.candidate_id)
    if imported is None:
        return
    parts = [f"status {imported.status}" if imported.status else "", _elsewhere(imported)]
    taken = "Taken over" if run.forked_run else "Imported"
    st.caption(
        f":material/move_to_inbox: {taken} from {wording.plain(imported.file)}. Recorded there, not measured here: "
        + (wording.plain(", ".join(part for part in parts if part)) or "nothing")
    )


def _elsewhere(imported: Imported) -> str:
    if imported.latency_ms is None:
        return ""
    against = f" against {wording.latency(imported.baseline_latency_ms)}" if imported.baseline_latency_ms else ""
    return f"{wording.latency(imported.latency_ms)}{against}"


def badges(candidate: CandidateRow) -> None:
    """Verdict, rank and what its step index made of it, each with its icon."""
    if candidate.verdict is None:
        st.badge("not judged yet", color="gray", icon=":material/hourglass_top:")
    else:
        icon = ICON.get(candidate.verdict, ":material/close:")
        st.badge(wording.VERDICT_NAME[candidate.verdict], color=wording.VERDICT_TONE[candidate.verdict], icon=icon)
    attempts, run = index.attempts(candidate.run_id), queries.run(index.current(), candidate.run_id)
    is_on_gpu = run is not None and run.is_on_gpu
    if candidate.is_best:
        st.badge("★ best", color="green", help=wording.BEST)
    elif candidate.is_tied:
        tied = beside_base.tie(candidate, next((k for k in attempts if k.is_best), None), is_on_gpu=is_on_gpu)
        st.badge("☆ tied with the best", color="green", help=tied)
    if candidate.verdict is Verdict.PASSED and not candidate.is_best:
        base = next((k for k in attempts if k.candidate_id == candidate.base_id), None)
        is_slower = beside_base.is_slower(candidate, base, is_on_gpu=is_on_gpu)
        made = wording.outcome(candidate, is_slower, run is not None and run.state is RunState.STOPPED)
        st.badge(
            made.removeprefix("correct, "), color="blue" if candidate.is_accepted and not is_slower else "gray",
            help=wording.OUTCOME_ABOUT.get(made),
        )  # fmt: skip


def _flags(run: RunRow, candidate: CandidateRow) -> None:
    """What could change the verdict, and the way there. What is only noted stands on *Trust*."""
    count, advice = outcome.to_look_at(index.current(), run.run_id, candidate.candidate_id)
    if count:
        st.button(
            f":orange-badge[:material/flag: {count} to look at]", key="flagged", type="tertiary", help=advice,
            on_click=_open_trust, width="content",
        )  # fmt: skip


def _open_trust() -> None:
    st.query_params["tab"] = "Trust"


def _neighbours(run: RunRow, candidate: CandidateRow) -> None:
    names = [a.candidate_id for a in index.attempts(run.run_id)]
    at = names.index(candidate.candidate_id)
    for label, icon, side, other in (
        ("Previous", ":material/chevron_left:", "left", at - 1),
        ("Next", ":material/chevron_right:", "right", at + 1),
    ):
        is_there = 0 <= other < len(names)
        target = {"run": run.run_id, "candidate": names[other] if is_there else candidate.candidate_id}
        target |= {"tab": str(tab)} if (tab := st.query_params.get("tab")) else {}
        st.page_link(
            "candidate.py", label=label, icon=icon, icon_position="left" if side == "left" else "right",
            disabled=not is_there, query_params=target, width="content",
        )  # fmt: skip


def _family(run: RunRow, candidate: CandidateRow) -> None:
    numbers = {a.candidate_id: a.number for a in index.attempts(run.run_id)}
    relations = [("made from", candidate.parent_id), ("and from", candidate.second_parent_id)]
    relations += [("parent of", child) for child in candidate.children[:6]]
    known = [(relation, other) for relation, other in relations if other in numbers]
    if not known:
        return
    with st.container(horizontal=True, gap="xsmall", width="content", key="kernel_family"):
        for relation, other in known:
            label, target = f"{relation} kernel {numbers[other]}", {"run": run.run_id, "candidate": other}
            st.page_link("candidate.py", label=label, query_params=target, width="content")


def _numbers(run: RunRow, candidate: CandidateRow) -> None:
    if candidate.speedup is None:
        return
    db = index.current()
    evaluation = queries.evaluation(db, run.run_id, candidate.candidate_id)
    how = outcome.limit_measured(db, run.run_id)
    fastest = queries.baseline_beside(db, run.run_id, relative.baseline_ms(candidate.speedup, candidate.latency_ms))
    items = numbers(candidate, evaluation, fastest, queries.limit(db, run.run_id), how)
    items += gain(queries.prediction(db, run.run_id, candidate.candidate_id), candidate.candidate_id)
    figures.draw("Figures of this kernel", items, key="kernel_figures", is_strip=True)
    if lost := alternatives.loses(fastest, candidate.measured):
        st.warning(wording.plain(f"This kernel {lost}."), icon=":material/warning:")
    if avoidable := outcome.avoidable(db, run.run_id, candidate.candidate_id):
        st.caption(wording.plain(avoidable))
    what = f"kernel {candidate.number}"
    if doubt := outcome.doubt(
        evaluation, candidate.noise, what, outcome.by_itself(db, run.run_id, fastest), outcome.on_a_gpu(db, run)
    ):
        st.caption(f":material/hourglass_top: {wording.plain(doubt.sentence)}")
    if test := outcome.decided(db, run.run_id, candidate.candidate_id):
        st.caption(wording.plain(test))
    if anew := _anew(run, candidate):
        st.caption(wording.plain(anew))


def _anew(run: RunRow, candidate: CandidateRow) -> str:
    """Why the kernel and one that its page compares it with, the best first, differ in latency another way than in
    speed-up; empty where none does."""
    attempts = index.attempts(run.run_id)
    timed = {
        attempt.candidate_id: timed_anew.kernel(attempt.number, attempt.speedup, attempt.latency_ms)
        for attempt in attempts
    }
    this = timed.get(candidate.candidate_id, [])
    others = (run.best_candidate_id, candidate.parent_id, candidate.base_id)
    sentences = (timed_anew.sentence([*this, *timed.get(other or "", [])]) for other in others)
    return next(filter(None, sentences), "") or _moved(run, candidate, story.ancestor(candidate, attempts))


def _moved(run: RunRow, candidate: CandidateRow, ancestor: AttemptRow | None) -> str:
    ratio = relative.gain(candidate, ancestor, is_on_gpu=run.is_on_gpu) if ancestor else None
    return story.moved(candidate, ancestor, ratio) if ancestor and ratio else ""


def numbers(
    candidate: CandidateRow,
    evaluation: EvaluationRow | None,
    baseline: BaselineRow | None,
    limit: HardwareLimit | None,
    how_limited: str = "",
) -> list[Figure]:
    """What was measured of a timed kernel, the speed-up first; `how_limited` says how the limit was measured."""
    speed = wording.ratio(candidate)
    items = [Figure("Speed-up", speed, wording.beside(candidate.noise, candidate.low, candidate.high), INTERVAL)]
    if baseline and baseline.speedup is not None:
        items += alternatives.figures(baseline, candidate.measured)
    eager, kept = evaluation.baseline if evaluation else "", wording.of_kept(candidate.noise)
    before_ms = relative.baseline_ms(candidate.speedup, candidate.latency_ms)
    items += [
        Figure("Latency", wording.latency(candidate.latency_ms), kept, wording.LATENCIES),
        Figure("PyTorch", wording.latency(before_ms), f"{eager} beside it".strip(), wording.LATENCIES),
        Figure("Precision", evaluation.precision if evaluation and evaluation.precision else wording.NONE, about=EXACT),
    ]
    share = speed_of_light.share(limit, candidate.latency_ms)
    if limit is not None and not limit.is_known:
        about = f"{speed_of_light.sentence(limit, candidate.latency_ms)} {OF_TRUST}"
        why = speed_of_light.why_unknown(limit, candidate.latency_ms)
        items.append(Figure("Of the hardware limit", speed_of_light.UNKNOWN, why, about))
    elif limit is not None and share is not None and share <= 1:
        about = f"{wording.latency(limit.limit_ms)}. {how_limited} {OF_TRUST}"
        items.append(Figure("Of the hardware limit", speed_of_light.percent(limit, candidate.latency_ms), kept, about))
    return items


def gain(prediction: PredictionRow | None, candidate_id: str) -> list[Figure]:
    """The gain over the base beside the predicted one; nothing where none was predicted of this kernel."""
    if (
        prediction is None
        or prediction.predicted is None
        or prediction.candidate_id != candidate_id
        or prediction.measured is None
    ):
        return []
    ratio = prediction.measured
    value, note = wording.ratio(ratio), f"predicted {wording.speedup(prediction.predicted)}"
    return [Figure(f"Over kernel {prediction.base_number}", value, note, prediction.technique)]


KEYS_CAPTION = (
    "Keys: j and k for the next and previous kernel, 1 to {tabs} for the tabs, n and p for the next and previous hunk"
)

_PAGE = "candidate"  # of the address

_keys = st.components.v2.component("tilewright_keys", html="<span hidden></span>", js=client.read("kernel/keys.js"))


def draw_actions(run: RunRow, candidate: CandidateRow) -> None:
    """A row of buttons; nothing on a read-only server, nor for a replay."""
    if run.replay_of or not access.may_steer():
        return
    state = run_state.of(run)
    with st.container(horizontal=True, key="kernel_actions"):
        _opens(Dialog.TRY_AGAIN, "Go back or fork from here", ":material/undo:", run, candidate)
        is_live = not state.is_over
        if is_live and candidate.verdict is Verdict.PASSED:
            _opens(Dialog.BASE, "Use as base kernel", ":material/keep:", run, candidate)
        _opens(Dialog.MARK, "Mark", ":material/person_check:", run, candidate)
        if st.button("Edit by hand", icon=":material/edit:", key=f"kernel_edit:{run.run_id}"):
            target = {"run": run.run_id, "candidate": candidate.candidate_id}
            st.switch_page("edit.py", query_params=target)


def _opens(dialog: Dialog, label: str, icon: str, run: RunRow, candidate: CandidateRow) -> None:
    st.button(
        label, icon=icon, key=f"kernel_{dialog}:{run.run_id}:{candidate.candidate_id}", on_click=dialogs.ask,
        args=(dialog, run.run_id, candidate.candidate_id),
    )  # fmt: skip


def listen_to_keys(links: dict[str, str]) -> None:
    """Keep what is pressed until the page is drawn. Draw it first. Each key of `links` stands for the link of that
    name."""
    _keys(data={"links": links, "shown": "", "page": _PAGE}, key="kernel_keys_first")


def act_on_keys(links: dict[str, str], shown: str) -> None:
    """Act on what was pressed. `shown` changes with what the keys lead to. Draw it last: what it says is shown must be
    there by then."""
    _keys(data={"links": links, "shown": shown, "page": _PAGE}, key="kernel_keys")
