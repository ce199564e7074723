"""That the index does not follow the run folders: on every page where it follows none, else on the page System."""

from __future__ import annotations

import streamlit as st

from pages.parts import index, wording


def banner() -> None:
    """On every page: what is shown is no longer what is in the run folders."""
    if why := index.ingest().failures.get(""):
        st.error(
            f"**What is shown here is not up to date.** Run folders cannot be read: {wording.plain(why)}."
            " Runs go on, and nothing of them is lost.",
            icon=":material/sync_problem:",
        )


def draw() -> None:
    """On the page about this machine: each run that cannot be read into the index, and why."""
    failures = {name: why for name, why in index.ingest().failures.items() if name}
    if failures:
        lines = "\n".join(
            f"- {wording.plain(name)}: {wording.plain(why)}" for name, why in sorted(failures.items())[:20]
        )
        runs = "1 run is" if len(failures) == 1 else f"{len(failures):,} runs are"
        st.warning(f"**{runs} not shown as it stands on disk.**\n{lines}", icon=":material/sync_problem:")
