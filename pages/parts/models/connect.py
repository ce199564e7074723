"""How to connect a model, with one small call to see whether it replies. No key is typed here or kept: the server reads
it from its environment."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from engine import supervisor
from engine.errors import EngineError
from pages.parts import access, wording
from storage.run.models import read_options

KEY, NO_KEY = "OPENAI_API_KEY", "none"


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
    """What to fill in, the test, and what to set so that runs use it."""
    is_there = supervisor.is_model_configured()
    name = "Connect another model" if is_there else "Connect a model"
    with st.expander(name, icon=":material/power:", expanded=not is_there, key="connect"):
        kind = KINDS[
            str(st.segmented_control("Where it is", list(KINDS), default="OpenAI", required=True, key="where"))
        ]
        st.caption(kind.about)
        left, middle, right = st.columns([1.4, 1, 1])
        address = left.text_input("Address", kind.address, key=f"address:{kind.address}").strip()
        model = middle.text_input("Model", kind.model, key=f"model_at:{kind.address}", placeholder="its name there")
        variable = right.text_input(
            "Variable that holds the key", KEY if kind.needs_key else "", key=f"variable:{kind.address}",
            placeholder="none", help="the name of an environment variable of this server, never the key itself",
        ).strip()  # fmt: skip
        _test(address, model.strip(), variable)
        st.caption("To use it in runs, set this before `make run`:")
        st.code(settings(address, model.strip(), variable), language=None)
        st.caption("Prices for costs and cost limits: `prices.toml` in TILEWRIGHT_HOME. All options: docs/models.md.")


def settings(address: str, model: str, variable: str) -> str:
    """Lines for a shell."""
    lines = [f"export {KEY}=..."] if variable == KEY else []
    lines += [f"export OPENAI_BASE_URL={shlex.quote(address)}"] if address != KINDS["OpenAI"].address else []
    lines.append(f"export TILEWRIGHT_MODEL={shlex.quote(model) if model else '...'}")
    if variable not in ("", KEY):
        lines.append(f"# in New run, further options: key_variable={variable}")
    return "\n".join(lines)


def _test(address: str, model: str, variable: str) -> None:
    why = "" if access.may_steer() else "this server is read-only and calls no model"
    why = why or ("" if model else "name the model first")
    if why:
        st.caption(f":material/info: *Test* is off: {why}.")
    if not st.button("Test", icon=":material/network_check:", key="try_model", disabled=bool(why),
                     help=None if why else "one call that asks for one word"):  # fmt: skip
        return
    lines = [f"base_url={address}", f"key_variable={variable or NO_KEY}"]
    try:
        read_options("\n".join(lines))
        with st.spinner("Asking for one word"):
            reply = supervisor.try_model(model, lines)
    except (EngineError, ValueError) as error:
        st.error(f"{wording.sentence(str(error))}.", icon=":material/error:")
        return
    if reply.failure:
        st.error(f"**No reply.** {wording.plain(wording.capital(reply.failure))}", icon=":material/error:")
        return
    counted = f"{wording.tokens(reply.input_tokens)} tokens in, {wording.tokens(reply.output_tokens)} out"
    sentence = f"It replied “{wording.cut(reply.reply, 60)}” in {wording.seconds(reply.seconds)}; {counted}; cost "
    st.success(wording.plain(sentence + f"{wording.cost(reply.cost_usd)}."), icon=":material/check:")
