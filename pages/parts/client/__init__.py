"""What runs in the browser: one script and one style sheet per component, in folders as the modules that draw them,
handed to Streamlit as texts."""

from pathlib import Path

FOLDER = Path(__file__).parent
# A part that has its contents says so to the page: what stands below is shown from then on (page.css).
_DRAWN = """export default component => {
  const ending = fill(component)
  component.parentElement.getRootNode().host?.setAttribute("data-drawn", "")
  return ending
}
function fill"""


def key(text: str) -> str:
    """A component's key from a text that may hold a name: Streamlit refuses one with two underscores together."""
    return text.replace("__", "_.")


def read(name: str) -> str:
    """The text of one file here, by folder and name."""
    return (FOLDER / name).read_text(encoding="utf-8").replace("export default function", _DRAWN)
