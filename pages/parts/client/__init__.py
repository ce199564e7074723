"""What runs in the browser: one script and one style sheet per component, in folders as the modules that draw them,
handed to Streamlit as texts."""

from pathlib import Path

import streamlit as st

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


def base_path() -> str:
    """What stands before every page in an address, without slashes; empty unless the server is told one."""
    return str(st.get_option("server.baseUrlPath") or "").strip("/")


def page_in(path: str) -> str:
    """What an address's path asks for below that, without slashes; a page's name has none within."""
    asked, base = path.strip("/"), base_path()
    return asked[len(base) :].strip("/") if base and f"{asked}/".startswith(f"{base}/") else asked


def read(name: str) -> str:
    """The text of one file here, by folder and name."""
    return (FOLDER / name).read_text(encoding="utf-8").replace("export default function", _DRAWN)
