"""The film of a finished run, played by the browser alone, and the way from it to the demo that runs meanwhile."""

from __future__ import annotations

import functools
from dataclasses import asdict

import streamlit as st

from engine import supervisor
from engine.errors import EngineError
from pages.parts import access, client, index, run_state, wording
from pages.parts.film import run_film
from pages.parts.film.run_film import Film
from pages.parts.status import welcome
from storage import codec
from storage.index import queries
from storage.index.queries import RunRow

RUN = "softmax-20261125-072455-5580"
WHAT = (
    "Tilewright makes a PyTorch module faster: a language model writes GPU kernels for it, and each is compiled, "
    "checked against PyTorch and timed before it counts."
)
DEMO, EXAMPLE = "demo", "example"

_screen = st.components.v2.component(
    "tilewright_film",
    html=client.read("film/film.html"),
    css=client.read("widgets/code.css") + client.read("film/film.css"),
    js=client.read("film/film_curve.js") + client.read("film/film.js"),
)


@functools.cache
def film() -> Film | None:
    """The film that is shown; None where its run does not come with this copy."""
    try:
        return run_film.of(supervisor.example_files(RUN))
    except (EngineError, codec.DecodeError, KeyError):
        return None


def draw(shown: Film) -> str:
    """The film; returns where the person wants to go: the demo, the list of runs or the run of the film."""
    db = index.current()
    demo = queries.run(db, queries.demo_run(db) or "")
    content = {
        "what": WHAT,
        "film": asdict(shown),
        "demo": standing(demo) if demo else "",
        "may_open": access.may_steer() or is_open(shown.run_id),
        "steer": "You can pause it, stop it, send a hint, or go back to an earlier kernel."
        if access.may_steer()
        else "",
        "cookie": welcome.SEEN_COOKIE,
    }
    told = _screen(data=content, key="film", on_leave_change=_draw_again, on_ended_change=_draw_again)
    return str(told.leave or "")


def is_open(run_id: str) -> bool:
    """Whether the run stands among those that are here."""
    return bool(queries.titles(index.current(), [run_id]))


def open_run(run_id: str) -> None:
    """Put the run of the film among those that are here, unless it is there.

    Raises:
        EngineError: this server only shows runs.
        OSError: the disk is full or may not be written.
    """
    if not is_open(run_id):
        supervisor.open_examples([run_id])
        index.ingest().look_at([run_id])


def _draw_again() -> None:
    """Both are told by drawing the page once more."""


def standing(demo: RunRow) -> str:
    """How far the demo is, as a sentence."""
    kernels = wording.counted(demo.attempts, "kernel")
    if run_state.of(demo).is_over and demo.best_speedup is not None:
        return (
            f"It has made {kernels}; the best is {wording.speedup(demo.best_speedup)} over PyTorch on this processor."
        )
    return f"It has made {kernels} so far." if demo.attempts else "It is writing its first kernel."
