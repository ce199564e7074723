"""Answering a call in the place of the model: the prompt to copy, a box for the reply, the kernel to edit in place."""

from __future__ import annotations

import json
from collections.abc import Callable

import streamlit as st

from pages.parts import access, index, method, run_state, texts, wording
from pages.parts.steering import drafts, steer
from pages.parts.steering.verb_words import VERB_WORDS
from pages.parts.widgets import code
from storage.index import queries
from storage.index.queries import CommandRow, QuestionRow, RunRow
from storage.run import folder
from storage.run.blobs import Blobs
from storage.run.settings import RunState
from storage.run.steering.command_arguments import REPLY_TAKES, Answer, as_file_reply
from storage.run.steering.verbs import CommandKind

NO_KERNEL = ("text", "json")  # expected of a reply that brings no kernel


def draw(run: RunRow, state: RunState, draw_new: Callable[[str], bool]) -> None:
    """The form while a call waits for a person; nothing at all otherwise. `draw_new` draws what the run's last prompt
    has that the one before had not, and returns False where all of it is new."""
    question = queries.open_question(index.current(), run.run_id)
    if question is None or not is_due(run, state):
        return
    with st.container(border=True, key="answer_box"):
        words = method.words(run.run_id)
        task = words.task(question.role)
        step = f"{wording.plain(words.distinct)} {question.depth}"
        st.markdown(f"## {_lead(run, state)}: {task[:1].lower()}{task[1:]} :gray[{step}]")
        takes = REPLY_TAKES.get(question.expects, "a reply in the form that it asks for")
        st.caption(wording.plain(f"The prompt takes {takes}. Your reply is checked like a model's."))
        _what_failed(run.run_id, question)
        refused = _last_refused(run.run_id, question)
        # What comes and goes has a place of its own: the next question's form must stand where the last one's stood, or
        # both are there until the whole page is drawn, and what is typed into the old one is lost.
        with st.container():
            if state.is_over:
                st.caption(_goes_on(run.run_id))
        has_new = draw_new(run.run_id)
        with st.expander("Whole prompt, to copy" if has_new else "Prompt", expanded=not has_new):
            code.draw_plain("Prompt", prompt(run.run_id, question), key="asked_prompt", is_wrapped=True)
        _boxes(run.run_id, question, refused)


def _what_failed(run_id: str, question: QuestionRow) -> None:
    """Which kernel the call is about and how it failed, with the way to the rest; nothing where it did not fail."""
    about = next((a for a in index.attempts(run_id) if a.candidate_id == question.candidate_id), None)
    if about is not None and about.verdict is not None and about.message:
        came = f"Kernel {about.number}: {wording.VERDICT_NAME[about.verdict]}. {about.message}"
        st.markdown(wording.plain(wording.cut(came, 300)))
        st.page_link(
            "candidate.py", label="All that is known of the failure", icon=":material/bug_report:", width="content",
            query_params={"run": run_id, "candidate": about.candidate_id, "tab": "Errors"},
        )  # fmt: skip


def _lead(run: RunRow, state: RunState) -> str:
    """Whether the run waits, or has been stopped at a prompt, as Markdown."""
    if state is RunState.STOPPED and run_state.shown_state(run) is not RunState.WAITING:
        return ":material/stop: Stopped at this prompt"
    return ":material/schedule: Your reply is needed"


def _goes_on(run_id: str) -> str:
    """What makes a run that no engine works on go on, as Markdown."""
    if has_reply(run_id):
        return "Your reply is saved. **Resume run** makes the run go on with it."
    return f"To let the run go on, press **{VERB_WORDS[CommandKind.ANSWER].label}**, then **Resume run**."


def is_due(run: RunRow, state: RunState) -> bool:
    """Whether a call waits for a reply that a person can write here."""
    is_closed = state in (RunState.FINISHED, RunState.FAILED) or run.is_example  # no engine will work on an example
    return not is_closed and access.may_steer() and queries.open_question(index.current(), run.run_id) is not None


def needs_answer(run: RunRow, state: RunState) -> bool:
    """Whether a run waits for what only a person can give: a reply, or a yes. To resume it would change nothing."""
    if state is not RunState.WAITING:
        return False
    return is_due(run, state) or queries.open_approval(index.current(), run.run_id) is not None


def has_reply(run_id: str) -> bool:
    """Whether a reply was sent that no engine has taken yet."""
    asked = queries.commands(index.current(), run_id)
    return any(c.kind is CommandKind.ANSWER and c.effective_at is None and c.refused_at is None for c in asked)


def prompt(run_id: str, question: QuestionRow) -> str:
    """All messages of the prompt in one text, to be copied at once."""
    stored = texts.source(run_id, question.prompt_blob)
    try:
        return "\n\n".join(str(message["text"]) for message in json.loads(stored))
    except (json.JSONDecodeError, TypeError, KeyError):
        return stored


def _boxes(run_id: str, question: QuestionRow, refused: CommandRow | None) -> None:
    name = f"{run_id}:{question.step}.{question.call}"
    source = texts.source(run_id, question.source_blob) if question.source_blob else ""
    can_edit = bool(source) and question.expects not in NO_KERNEL
    ways = ["Paste a reply", "Edit the kernel"]
    way = ways[0]
    with st.container():
        if can_edit:
            drafts.begin(chosen := f"way:{name}", way)
            way = str(
                st.segmented_control("How", ways, key=chosen, required=True, on_change=drafts.keep, args=(chosen,))
            )
    is_file = way == ways[1]
    key = f"draft:{'file' if is_file else 'reply'}:{name}"
    drafts.begin(key, source if is_file else _refused_text(run_id, refused))
    st.html("<style>.st-key-answer_box textarea { font-family: var(--st-code-font, monospace) }</style>")
    words = VERB_WORDS[CommandKind.ANSWER]
    # No form: it would tell what was typed only when it is sent, and a draft would be lost with the page.
    st.text_area(
        "Kernel source" if is_file else "Reply", key=key, height=420 if is_file else 220,
        placeholder="" if is_file else "Paste or write the reply here", on_change=drafts.keep, args=(key,),
    )  # fmt: skip
    with st.container():  # where the button was that the person has pressed, and still looks at
        if refused is not None:
            steer.take_back(words.sent, refused.refused_at or 0.0)
            st.error("**Reply rejected.** Fix it and resend.", icon=":material/error:")
            st.code(refused.note, language=None, wrap_lines=True)
    st.button(
        words.label, type="primary", icon=words.icon, key=f"answer:{key}", on_click=_send,
        args=(run_id, question, key, is_file),
    )  # fmt: skip


def _send(run_id: str, question: QuestionRow, key: str, is_file: bool) -> None:
    text = str(st.session_state[key])
    if not text.strip():
        steer.say("Reply not sent: it is empty.", is_error=True)
        return
    try:
        blobs = Blobs(folder.find_run(run_id).blobs)
    except FileNotFoundError as error:
        steer.say(str(error), is_error=True)
        return
    blob = blobs.put(as_file_reply(text) if is_file else text)
    drafts.keep(key)  # it may be rejected; the next question has a key of its own
    steer.send(run_id, CommandKind.ANSWER, str(Answer(question.step, question.call, blob)))


def _last_refused(run_id: str, question: QuestionRow) -> CommandRow | None:
    """The last answer to this question, if it was refused."""
    prefix = f"{question.step}.{question.call} "
    asked = [
        c for c in queries.commands(index.current(), run_id)
        if c.kind is CommandKind.ANSWER and c.argument.startswith(prefix)
    ]  # fmt: skip
    return asked[-1] if asked and asked[-1].refused_at is not None else None


def _refused_text(run_id: str, refused: CommandRow | None) -> str:
    return texts.source(run_id, refused.argument.partition(" ")[2]) if refused else ""
