"""What runs in the browser: one script and one style sheet per component, in folders as the modules that draw them,
handed to Streamlit as texts."""

from pathlib import Path

FOLDER = Path(__file__).parent


def read(name: str) -> str:
    """The text of one file here, by folder and name."""
    return (FOLDER / name).read_text(encoding="utf-8")
