"""What runs in the browser: one script and one style sheet per component, handed to Streamlit as texts."""

from pathlib import Path

FOLDER = Path(__file__).parent


def read(name: str) -> str:
    """The text of one file here."""
    return (FOLDER / name).read_text(encoding="utf-8")
