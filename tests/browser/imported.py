"""What a dashboard imports until its first page stands. Not pages: what they show registers where a server runs."""

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from engine.search.methods import catalogue

BELOW = re.compile(r"^from ((?:engine|storage)[\w.]*) import \(?([\w, ]*)", re.MULTILINE)
SERVER = (
    "streamlit.web.bootstrap",
    "streamlit.web.cli",
    "streamlit.web.server.starlette",
    "streamlit.components.v2.manifest_scanner",
    "uvicorn.lifespan.on",
    "uvicorn.loops.asyncio",
    "uvicorn.protocols.http.h11_impl",
    "uvicorn.protocols.websockets.websockets_sansio_impl",
    "anyio._backends._asyncio",
    "jinja2",
    "numpy",
    "pygments.lexers.c_cpp",
    "engine.evaluator.checks.screening.screening",
)

for name in (*SERVER, *(f"engine.search.methods.{one}.strategy" for one in catalogue.names())):
    import_module(name)
for file in (Path(__file__).parent.parent.parent / "pages").rglob("*.py"):
    for package, names in BELOW.findall(file.read_text()):
        if hasattr(import_module(package), "__path__"):
            for name in re.findall(r"\w+", names):
                if find_spec(f"{package}.{name}"):
                    import_module(f"{package}.{name}")
