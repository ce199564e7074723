"""The comparison as one file to send on. Made when somebody asks for it, not before."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.parts.compare.compare_rows import Compared
from pages.parts.report.report_comparison import comparison_report


def offer(runs: Sequence[Compared]) -> None:
    """A button that makes and downloads the file."""
    st.download_button(
        "Download report", lambda: comparison_report(runs), file_name="comparison.html", mime="text/html",
        icon=":material/description:", key="comparison_report", on_click="ignore",
        help="this comparison as one HTML file that opens without a server",
    )  # fmt: skip
