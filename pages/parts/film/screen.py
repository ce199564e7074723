"""The film of a finished run, played by the browser alone, and the way from it to the demo that runs meanwhile."""

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass

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
DEMO, RUNS, EXAMPLE = "demo", "runs", "example"

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
        files = supervisor.example_files(RUN)
        return run_film.of(supervisor.record_of(files), files)
    except (EngineError, codec.DecodeError, KeyError):
        return None


def draw(shown: Film) -> str:
    """The film; returns where the person wants to go: the demo, the list of runs or the run of the film."""
    db = index.current()
    demo = queries.run(db, queries.demo_run(db) or "")
    content = {
        "what": WHAT,
        "film": asdict(shown),
        "next": asdict(second_act(demo)),
        "may_open": access.may_steer() or is_open(shown.run_id),
        "cookie": welcome.SEEN_COOKIE,
    }
    told = _screen(data=content, key="film", on_leave_change=lambda: None, on_ended_change=lambda: None)
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


@dataclass(frozen=True, slots=True)
class SecondAct:
    """What the end of the film says, and where it leads."""

    leave: str
    title: str
    text: str
    steer: str
    go: str
    skip: str


def second_act(demo: RunRow | None) -> SecondAct:
    """The demo, live where it is at work; the list of runs where there is none."""
    if demo is None:
        text = "There is no demo here. The list has the runs of this server."
        return SecondAct(RUNS, "Now your own", text, "", "All runs", "Skip to the runs")
    what = "a matrix product with recorded replies; each kernel is really built and measured."
    made = wording.counted(demo.attempts, "kernel")
    if not run_state.of(demo).is_over:
        so_far = f"It has made {made} so far." if demo.attempts else "It is writing its first kernel."
        steer = "You can pause it, stop it, send a hint, or go back to an earlier kernel." if access.may_steer() else ""
        text = f"The same search is at work on this machine: {what} {so_far}"
        return SecondAct(DEMO, "Now live, on your processor", text, steer, "Watch it live", "Skip to the live demo")
    best = f"; the best is {wording.best(demo)} over PyTorch" if demo.best_speedup else ""
    text = f"The same search was made on this machine: {what} It has made {made}{best}."
    return SecondAct(DEMO, "Now on your processor", text, "", "Open the demo", "Skip to the demo")
