"""The first screen: a real run as a film of 40 seconds, while the demo runs; then the demo, live."""

from __future__ import annotations

import streamlit as st

from engine.errors import EngineError
from pages.parts import index, wording
from pages.parts.film import screen
from pages.parts.film.run_film import Film
from pages.parts.status import presenting
from storage.index import queries


def leave(film: Film, wanted: str) -> None:
    """To the demo, the list of runs, or the run of the film."""
    demo = queries.demo_run(index.current())
    if wanted == screen.EXAMPLE:
        try:
            screen.open_run(film.run_id)
        except (EngineError, OSError) as error:
            st.error(wording.sentence(str(error)), icon=":material/error:")
            return
        st.switch_page("run.py", query_params={"run": film.run_id, **presenting.kept()})
    if wanted == screen.DEMO and demo:
        st.switch_page("run.py", query_params={"run": demo, **presenting.kept()})
    st.switch_page("overview.py")


if film := screen.film():
    with st.container(key="film_place"):
        wanted = screen.draw(film)
    if wanted:
        leave(film, wanted)
else:
    st.title("Tilewright", anchor=False)
    st.info("The run that is shown here does not come with this copy.", icon=":material/movie:")
    st.page_link("overview.py", label="All runs", icon=":material/arrow_back:")
