"""How to connect a model: an endpoint or a program is described, tried with one small call, and saved by a name that
runs can use at once. A key that is typed here goes into its place alone."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine import supervisor
from engine.errors import EngineError
from pages.parts import access, streamlit_internals, wording
from pages.parts.models import trial_result
from storage.run.saved_models import EVALUATIONS, KeyPlace, ModelKind, Program, SavedModel, SavedModelError, checked

PROGRAM = "a program"
SCRIPTS = (".py", ".sh", ".js", ".mjs", ".ts", ".rb", ".pl")
UNNAMED = "unnamed"
OWN = "a program of your own"
_NAME_HELP = "what you call it: --model NAME, and in New run; a saved model of this name is replaced"
_KEY_HELP = (
    "Kept in the system's keyring or, where there is none, in a file that only this user may read; never in a setting, "
    "a journal or a log. Leave it empty to keep the one that is saved under this name."
)
_WHERE_HELP = (
    "OpenAI: that company's service on the internet. vLLM: a server for models on GPUs of your own. Ollama: models on "
    "a computer of your own. A gateway: one address for the models of many services. A program: anything that reads a "
    "prompt and prints a reply, such as a coding agent."
)
_READING_HELP = "a JSON path such as $.result, or a regular expression with one group"


@dataclass(frozen=True, slots=True)
class Kind:
    """Where a model is: its usual address, and what is to be known about it."""

    address: str
    about: str
    needs_key: bool = True
    model: str = ""


KINDS: Mapping[str, Kind] = {
    "OpenAI": Kind("https://api.openai.com/v1", "Needs a key from platform.openai.com.", model="gpt-5"),
    "vLLM": Kind("http://localhost:8000/v1", "`vllm serve MODEL` listens there; it needs no key.", needs_key=False),
    "Ollama": Kind(
        "http://localhost:11434/v1",
        "`ollama pull MODEL` first. Its default context is short: raise it, and set the option `window` to the same.",
        needs_key=False,
    ),
    "a gateway": Kind("http://localhost:4000/v1", "LiteLLM or any other that speaks OpenAI's protocol."),
}


def draw() -> None:
    """What to fill in, the test, and the way to save it."""
    is_there = supervisor.is_model_configured()
    name = "Connect another model" if is_there else "Connect a model"
    with st.expander(name, icon=":material/power:", expanded=not is_there, key="connect"):
        where = str(
            st.segmented_control(
                "Where it is", [*KINDS, PROGRAM], default="OpenAI", required=True, key="where", help=_WHERE_HELP
            )
        )
        draft = st.session_state.setdefault("connect_draft", 0)  # another one empties the fields once a model is saved
        entry, key, why = _program(draft) if where == PROGRAM else _endpoint(KINDS[where], draft)
        _buttons(entry, key, why)
        st.caption("Prices for costs and cost limits: `prices.toml` in TILEWRIGHT_HOME. All options: docs/models.md.")


def _endpoint(kind: Kind, draft: int) -> tuple[SavedModel | None, str, str]:
    """What the fields describe, the key, and why that cannot be saved; where they describe nothing yet, why."""
    st.caption(kind.about)
    suffix = f"{kind.address}:{draft}"
    left, middle, right = st.columns([1.4, 1, 1])
    address = left.text_input("Address", kind.address, key=f"address:{suffix}").strip()
    model = middle.text_input("Model", kind.model, key=f"model_at:{suffix}", placeholder="its name there").strip()
    usual = _usual_name(model)
    name = right.text_input("Name", key=f"name:{suffix}", placeholder=usual, help=_NAME_HELP).strip() or usual
    # Trap: Streamlit takes what was typed once the focus has left both the field and its eye icon, and does not see it
    # leave the icon, where Tab leads. So each letter is taken at once: a pause could be too late for a quick click.
    key = left.text_input(
        "Key", type="password", key=f"key:{suffix}", help=_KEY_HELP, live=streamlit_internals.AT_ONCE,
        placeholder="" if kind.needs_key else "none needed",
    ).strip()  # fmt: skip
    variable = middle.text_input(
        "Or the variable that holds it", key=f"variable:{suffix}", placeholder="none",
        help="the name of an environment variable of this server, never the key itself",
    ).strip()  # fmt: skip
    more = right.text_input(
        "Options", key=f"options:{suffix}", placeholder="window=64000 reasoning_effort=high"
    ).strip()
    if not model:
        return None, key, "name the model first"
    words = [word.partition("=") for word in more.split()]
    given = {"model": model, "base_url": address, "key_variable": variable, **{name: value for name, _, value in words}}
    try:
        entry, why = _named(ModelKind.ENDPOINT, name, given)
    except SavedModelError as error:
        return None, key, str(error)
    return entry, key, why


def _usual_name(text: str) -> str:
    """What a model or program is called that a person has given no name."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")


def _named(kind: ModelKind, name: str, given: Mapping[str, Any]) -> tuple[SavedModel, str]:
    """What the fields describe, and why it cannot be saved under this name: it can be tried under any.

    Raises:
        SavedModelError: something else than its name makes no sense.
    """
    try:
        return checked(kind, name, given), ""
    except SavedModelError as error:
        return checked(kind, UNNAMED, given), str(error) if name else "give it a name to save it"


def _program(draft: int) -> tuple[SavedModel | None, str, str]:
    """The same of a program; it has no key of ours."""
    st.caption(
        "The prompt goes to its standard input, its reply is what it prints. It runs as this server's user, with a "
        "folder of its own, and sees neither runs nor keys. Programs that are offered here are described from their "
        "documentation and were not tried against the real program. An agent works in that folder on the kernel, with "
        "tools that judge it."
    )
    shipped = {entry.name: entry.program for entry in supervisor.profiles() if entry.program is not None}
    left, right = st.columns([2.4, 1])
    profile = str(left.selectbox("Begin with", [OWN, *shipped], key=f"profile:{draft}"))
    allowed = _evaluations(right, shipped.get(profile, Program(())), f"{profile}:{draft}")
    start, suffix = shipped.get(profile, Program(())), f"{profile}:{draft}"
    left, right = st.columns([2.4, 1])
    line = left.text_input(
        "Command", shlex.join(start.command), key=f"command:{suffix}", placeholder="my-program --quiet",
        help="{prompt_file} stands for a file with the prompt, {messages_file} for one with its messages as JSON",
    )  # fmt: skip
    try:
        command = shlex.split(line)
    except ValueError:
        command = []  # it is split again below, where what is wrong is told
    script = next((word for word in command if word.endswith(SCRIPTS)), command[0] if command else "")
    usual = _usual_name(Path(script).stem) if profile == OWN else profile
    name = right.text_input("Name", key=f"program:{suffix}", placeholder=usual, help=_NAME_HELP).strip() or usual
    columns, read = st.columns(5), {}
    labels = {
        "reply": "Reply",
        "input_tokens": "Tokens in",
        "output_tokens": "Tokens out",
        "cost_usd": "Cost in US dollars",
    }
    for column, (field, label) in zip(columns, labels.items(), strict=False):
        empty = "all of it" if field == "reply" else "unknown"
        read[field] = column.text_input(
            label, getattr(start, field), key=f"{field}:{suffix}", placeholder=empty, help=_READING_HELP
        ).strip()  # fmt: skip
    limit = columns[4].text_input("Time limit in s", key=f"limit:{suffix}", placeholder="1800").strip()
    try:
        given = {"command": shlex.split(line), "timeout_s": float(limit) if limit else None, **read, **allowed}
        if not given["command"]:
            return None, "", "write its command first"
        entry, why = _named(ModelKind.AGENT if allowed else ModelKind.COMMAND, name, given)
    except (SavedModelError, ValueError) as error:
        return None, "", str(error)
    return entry, "", why


def _evaluations(column: DeltaGenerator, start: Program, suffix: str) -> dict[str, int]:
    """What makes the program an agent; nothing where it only replies."""
    names = {"replies": False, "works as an agent": True}
    usual = "replies" if start.evaluations is None else "works as an agent"
    how = column.segmented_control("What it does", [*names], default=usual, required=True, key=f"how:{suffix}")
    if not names[str(how)]:
        return {}
    number = column.number_input(
        "Evaluations a call", 1, 1000, start.evaluations or EVALUATIONS, key=f"evaluations:{suffix}",
        help="how often it may check, time or profile a kernel in one call; compiling is free",
    )  # fmt: skip
    return {"evaluations": int(number)}


def _buttons(entry: SavedModel | None, key: str, why: str) -> None:
    refusal = access.why_nothing_is_saved()
    row = st.container(horizontal=True, vertical_alignment="center")
    reason, may_try = refusal or why, entry is not None and not refusal
    if reason:
        off = "*Save* is" if may_try else "*Test* and *Save* are"
        st.caption(f":material/info: {off} off: {wording.plain(reason)}.")
    is_tried = row.button("Test", icon=":material/network_check:", key="try_model", disabled=not may_try)
    is_saved = row.button("Save", icon=":material/save:", key="save_model", type="primary", disabled=bool(reason))
    # Trap: a button's tip stays while the pointer does, after the click too, and lies over the fields around it.
    row.caption("*Test* is one call that asks for one word. *Save* lets runs use the model at once.", width="content")
    if entry is None or not may_try:
        return
    if is_tried:
        trial_result.draw(entry, key)
    if is_saved and not reason:
        _save(entry, key)


def _save(entry: SavedModel, key: str) -> None:
    try:
        with st.spinner("Saving"):
            saved = supervisor.save_model(entry, key)
    except EngineError as error:
        st.error(wording.sentence(str(error)), icon=":material/error:")
        return
    kept = {KeyPlace.KEYRING: "; its key is in this system's keyring", KeyPlace.FILE: "; its key is in a file"}
    where = kept.get(saved.key, "") if saved.key else ""
    st.toast(f"{wording.plain(saved.name)} is saved{where}. New run offers it.", icon=":material/check:")
    st.session_state["connect_draft"] += 1
    st.rerun()
