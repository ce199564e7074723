"""What a run is doing and has done: the reply streaming in while the model writes, and what happened, newest first, one
sentence each."""

from __future__ import annotations

import streamlit as st

from pages.parts import client, index, method, wording
from pages.parts.kernel import prompt_sections
from pages.parts.run import feed_sentences
from pages.parts.run.feed_sentences import FeedItem
from pages.parts.status import step_sentences
from pages.parts.widgets import table
from storage.index import queries
from storage.index.queries import RunRow, StepRow
from storage.run.settings import RunState
from storage.run.steering.command_arguments import MANUAL, is_call

SHORT = 16
LONG = 400
COLUMNS = [table.Column("at", "Time", "nowrap"), table.Column("text", "What happened")]
TONE = {
    "passed": "green", "best": "green", "compile_error": "orange", "incorrect": "red", "runtime_error": "red",
    "timeout": "violet", "given_up": "orange", "patch_failed": "orange", "refused": "orange", "failed": "red",
}  # fmt: skip

_stream = st.components.v2.component(
    "tilewright_stream",
    html='<div class="stream idle"><span class="title"></span>\n'
    '<pre tabindex="0" aria-label="Reply being written"></pre><button aria-expanded="false">whole reply</button></div>',
    css=client.read("run/stream.css"),
    js=client.read("run/stream.js"),
)


def draw_feed(run: RunRow) -> None:
    """The feed; older items on demand."""
    is_open = st.session_state.get("older_events", False)
    words, most = method.words(run.run_id), (LONG if is_open else SHORT) + 1
    items = feed_sentences.items(index.current(), run.run_id, most, words)
    st.markdown("## What happened")
    if not items:
        st.caption("No events yet.")
        return
    limit = LONG if is_open else SHORT
    rows = [table.Row(f"{item.kind}:{item.seq}", cells(item)) for item in items[:limit]]
    table.draw("Events of this run, newest first", COLUMNS, rows, key="feed", is_compact=True)
    if len(items) > SHORT:
        which = "newest" if len(items) > limit else "all"
        st.toggle(f"Show older events ({which} {len(rows)} shown)", key="older_events")


def cells(item: FeedItem) -> dict[str, table.Cell]:
    """One event as cells."""
    tone = TONE.get(item.outcome or "", "strong" if item.kind == "command" else "")
    return {
        "at": table.text(wording.clock(item.at), "muted"),
        "text": table.text(wording.as_written_here(item.text), tone),
    }


def draw_reply(run: RunRow, state: RunState, step: StepRow | None) -> None:
    """A line that follows the reply and unfolds; between replies it tells what the last step came to, so that the curve
    below keeps its place. Gone once the run is over."""
    if state.is_over:
        return
    is_writing = state is RunState.RUNNING and step is not None and is_call(step.kind)
    texts = {
        "run": run.run_id,
        "step": step.step if step and is_writing else 0,
        "is_writing": is_writing,
        "is_first": not run.attempts,
        "idle": _last(run),
    }
    _stream(data=texts, key="stream")


def _last(run: RunRow) -> str:
    """What the newest finished step came to."""
    done = next((step for step in queries.steps(index.current(), run.run_id) if not step.is_in_flight), None)
    if done is None:
        return f"Next: {'you write' if run.model == MANUAL else 'the model writes'} the first kernel."
    return f"Last step: {step_sentences.sentence(done, method.words(run.run_id))}"


def draw_new_in_prompt(run_id: str) -> bool:
    """What the run's last prompt has that the one before had not; False where all of it is new."""
    asked = queries.last_prompt(index.current(), run_id)
    return asked is not None and prompt_sections.draw_new(run_id, asked)


def draw_prompt(run: RunRow, state: RunState) -> None:
    """The prompt that is being answered, or the last that was; gone once the run is over."""
    prompt = None if state.is_over else queries.last_prompt(index.current(), run.run_id)
    if prompt is None:
        return
    name = "Prompt that is being answered" if prompt.is_open else "Last prompt"
    where = wording.plain(f"{prompt.role}, {method.words(run.run_id).step} {prompt.depth}")
    fold = st.expander(f"{name} :gray[{where}]", key="last_prompt", on_change="rerun")
    if fold.open:
        with fold:
            prompt_sections.draw(run.run_id, prompt)
