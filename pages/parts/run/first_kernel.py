"""In place of an empty curve: how far the first correct kernel is, stage by stage, and its code once it is there."""

from __future__ import annotations

import time
from collections.abc import Sequence

import streamlit as st

from pages.parts import client, index, preparing, run_state, texts, wording
from pages.parts.status import step_sentences
from pages.parts.widgets import code
from storage.device_use import Claimed, Stage
from storage.index import queries
from storage.index.queries import AttemptRow, EvaluationRow, RunRow, StepRow
from storage.results.vocabulary import FAILED, Verdict
from storage.run.settings import EVALUATIONS, StepKind
from storage.run.steering.command_arguments import is_call

_stages = st.components.v2.component(
    "tilewright_first_kernel",
    html='<ol class="stages"\n aria-label="Up to the first measured kernel"></ol>',
    css=client.read("run/first_kernel.css"),
    js=client.read("run/first_kernel.js"),
)
SHOWN_LINES = 400
LOAD, LIMIT, WRITE = "load", "limit", "write"
Shown = dict[str, str]
# What is done in each stage, while it is not done yet.
ABOUT = {
    LOAD: ("Load PyTorch", "and run the reference once, to count what it moves and calculates"),
    LIMIT: ("Measure the machine", "how fast it moves data and calculates: the task's hardware limit"),
    WRITE: ("Write the kernel", "the reply, as it arrives"),
    StepKind.COMPILE: ("Compile", "a real compiler, in a sandbox"),
    StepKind.CHECK: ("Prove correct", "against float64, on inputs that the kernel cannot predict"),
    StepKind.TIME: ("Time", "kernel and PyTorch in turn, until the noise is known"),
}


def is_due(run: RunRow) -> bool:
    """Whether no kernel of this run is on its curve yet, and an engine works on it."""
    return not run.curve and not run_state.of(run).is_over


def draw(run: RunRow) -> None:
    """Stages on the left, code on the right; below them why the last kernel failed, if one has."""
    db = index.current()
    attempts = index.attempts(run.run_id)
    failed = [attempt for attempt in attempts if attempt.verdict not in (None, Verdict.PASSED)]
    newest = attempts[-1] if attempts else None
    steps = queries.steps(db, run.run_id)
    judged = queries.evaluation(db, run.run_id, newest.candidate_id) if newest else None
    spoiled = spoiled_timing(steps)
    st.markdown(f"## {headline(attempts, spoiled, queries.is_by_hand(db, run.run_id))}")
    left, right = st.columns([1.25, 1], gap="medium")
    with left, st.container(border=True):
        current = next((step for step in steps if step.is_in_flight), None)
        since = current.started_at if current else run.started_at
        tried = steps_after(steps, failed[-1].candidate_id) if failed else steps
        tried = [step for step in tried if spoiled is None or step.seq > spoiled.seq]
        is_measured = queries.limit(db, run.run_id) is not None
        claim = None if is_measured or run.replay_of else preparing.claim_of(run.run_id)
        shown = stages(tried, is_measured, judged, claim, failed[-1].number if failed else None)
        _stages(data={"stages": shown, "since": since, "server_now": time.time()}, key="first_kernel")
    with right:
        _code(run, newest)
    with st.container():  # always there: what comes and goes in it must not move what follows to another place
        if failed:
            st.caption(f":material/build: {why_again(failed)}")
        if spoiled:
            st.caption(f":material/hourglass_top: {why_untimed(spoiled)}")


def headline(attempts: Sequence[AttemptRow], spoiled: StepRow | None, is_by_hand: bool = False) -> str:
    """Which kernel it is about; `attempts` are the oldest first. What is done with it now, the line below says."""
    failed = [attempt.number for attempt in attempts if attempt.verdict not in (None, Verdict.PASSED)]
    if spoiled or not failed:
        return f"The first {'timed ' if spoiled else ''}kernel"
    newest = attempts[-1].number
    if newest == failed[-1]:
        return f"Kernel {newest} failed; {'you mend' if is_by_hand else 'the model mends'} it"
    return f"Kernel {newest}, in place of kernel {failed[-1]}, which failed"


def why_again(failed: Sequence[AttemptRow]) -> str:
    """Why the last kernel failed, as Markdown; `failed` are the oldest first."""
    last = failed[-1]
    reason = f": {wording.cut(last.message, 120)}" if last.message else ""
    fails = FAILED.get(last.verdict or Verdict.PASSED, "failed")
    before = f"{len(failed)} kernels have failed. " if len(failed) > 1 else ""
    return before + wording.ended(f"Kernel {last.number} {fails}{wording.plain(reason)}")


def spoiled_timing(steps: Sequence[StepRow]) -> StepRow | None:
    """The newest timing of a correct kernel that decides nothing; `steps` are the newest first."""
    return next((step for step in steps if step.kind == StepKind.TIME and step.result.untrusted), None)


def why_untimed(spoiled: StepRow) -> str:
    """Why a correct kernel is not on the curve, as Markdown."""
    return (
        f"{wording.plain(step_sentences.sentence(spoiled))}, so nothing is decided by what was measured. It is timed "
        "again when the machine is quiet, or before the run ends."
    )


def steps_after(steps: Sequence[StepRow], candidate_id: str) -> list[StepRow]:
    """The steps begun once this kernel had been judged; the newest first, as `steps` are."""
    judged = [s.seq for s in steps if s.candidate_id == candidate_id and s.kind in EVALUATIONS]
    return [step for step in steps if step.seq > max(judged, default=0)]


def _code(run: RunRow, newest: AttemptRow | None) -> None:
    with st.container(height=300, border=True):  # before the code is there too: what stands below keeps its place
        if newest is None:
            st.caption(":material/code: The code of the first kernel appears here as soon as it is written.")
            return
        lines = code.lines(texts.source(run.run_id, newest.source_blob))
        st.caption(f"Kernel {newest.number} · {wording.counted(len(lines), 'line')}")
        code.draw(f"Source of kernel {newest.number}", lines[:SHOWN_LINES], key="first_code")


def stages(
    steps: Sequence[StepRow],
    is_measured: bool,
    judged: EvaluationRow | None,
    claim: Claimed | None = None,
    mended: int | None = None,
) -> list[Shown]:
    """Each with its state: done, active or waiting; `steps` are the newest first. `claim` tells what is done before the
    first, `mended` is the number of the kernel that failed last."""
    is_begun = is_measured or steps or judged is not None
    is_loaded = is_begun or (claim is not None and claim.stage is not Stage.BESIDE)
    by_kind = {_stage(step): step for step in reversed(steps)}  # the newest of each kind stays
    shown = []
    for kind, (name, about) in ABOUT.items():
        step = by_kind.get(kind)
        if kind == LOAD:
            state = "done" if is_loaded else "active"
        elif kind == LIMIT:
            state = "done" if is_measured else "active" if is_loaded and not is_begun else "waiting"
            if claim is not None and claim.stage is Stage.WAITING:
                about = preparing.wait(claim)
        else:
            state = "waiting" if step is None else "active" if step.is_in_flight else "done"
        if kind == WRITE and mended is not None:
            name = f"Mend kernel {mended}"
        about_now = _result(kind, judged) or about if state == "done" else about
        took = wording.seconds(step.seconds) if step and step.seconds is not None else ""
        shown.append({"name": name, "about": about_now, "state": state, "time": took})
    return shown


def _stage(step: StepRow) -> str:
    return WRITE if is_call(step.kind) else step.kind


def _result(kind: str, judged: EvaluationRow | None) -> str:
    """What came of a stage, where that can be said."""
    if judged is None:
        return ""
    if kind == StepKind.CHECK and judged.trials:
        error = f", {wording.NEAREST} {judged.max_error:.1e}" if judged.max_error else ""
        left_out = f", {len(judged.left_out)} left out" if judged.left_out else ""
        return f"{wording.counted(len(judged.made_trials), 'trial')} passed{left_out}{error}"
    if kind == StepKind.COMPILE and judged.compile_is_cached:
        return "taken from the cache of builds"
    return ""
