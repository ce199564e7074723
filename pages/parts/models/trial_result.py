"""One small call to a model, and what came of it."""

from __future__ import annotations

import streamlit as st

from engine import supervisor
from engine.errors import EngineError
from pages.parts import wording
from storage.run.saved_models import SavedModel


def draw(entry: SavedModel, key: str = "") -> None:
    """Ask it for one word, with a key that is not saved yet where one is given."""
    try:
        with st.spinner("Asking for one word"):
            reply = supervisor.try_model(entry, key or None)
    except EngineError as error:
        st.error(wording.sentence(str(error)), icon=":material/error:")
        return
    if reply.failure:
        st.error(f"**No reply.** {wording.plain(wording.capital(reply.failure))}", icon=":material/error:")
        return
    counted = f"{wording.tokens(reply.input_tokens)} tokens in, {wording.tokens(reply.output_tokens)} out"
    counted = counted if reply.input_tokens is not None else f"tokens {wording.UNTOLD}"
    sentence = f"It replied “{wording.cut(reply.reply, 60)}” in {wording.seconds(reply.seconds)}; {counted}; cost "
    sentence += f"{wording.cost(reply.cost_usd)}."
    if doubt := reply.doubt:
        sentence += f" {wording.capital(doubt)}. Runs can use it all the same."
        st.warning(wording.plain(sentence), icon=":material/rule:")
        return
    st.success(wording.plain(sentence), icon=":material/check:")
