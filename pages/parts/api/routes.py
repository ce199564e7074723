"""What components ask the server for between reruns: is anything new, and the reply being written right now."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from pages.parts import change_token, index
from pages.parts.api import machine_routes
from pages.parts.status import notices
from storage import untrusted
from storage.index import queries
from storage.run import folder
from storage.untrusted import UntrustedError

# Found, not imported: only the script for the browser is wanted, and importing the package takes long.
_plotly = find_spec("plotly")
PLOTLY_FILE = Path(_plotly.origin if _plotly and _plotly.origin else "plotly").parent / "package_data" / "plotly.min.js"
CHUNK = 64_000


def get_change_token(request: Request) -> Response:
    """The change token of what a page shows, and since when this server has run; `runs` are ids separated by commas,
    empty for the overview.

    With `measured`, also of how far their re-measurements are.
    With `since`, the number of an event, also how many of the first run's events came after it.
    """
    runs = [name for name in request.query_params.get("runs", "").split(",") if name]
    asked = request.query_params
    token = change_token.of(runs, is_overview="overview" in asked, has_measurements="measured" in asked)
    answer: dict[str, object] = {"version": token, "server": index.opened_at()}
    since = asked.get("since", "")
    if runs and since.isascii() and since.isdecimal() and len(since) < 19:
        answer["fresh"] = queries.count_events(index.current(), runs[0], int(since))
    return JSONResponse(answer)


def get_notices(request: Request) -> Response:
    """What is to be told since the notice of that number; without a number only how many there have been."""
    since = request.query_params.get("since", "")
    try:
        return JSONResponse(notices.since(untrusted.whole_number(since, "since") if since else None))
    except UntrustedError as error:
        return JSONResponse({"error": f"{error}"}, status_code=400)


def get_stream(request: Request) -> Response:
    """The text of the reply from byte `from` on; `start` 0 again means that another reply has begun.

    Nothing, and no error, of a run that is gone: a replay may be deleted while a page asks.
    """
    start, end, text = 0, 0, ""
    try:
        offset = untrusted.whole_number(request.query_params.get("from", "0"), "from")
        run = folder.find_run(request.query_params.get("run", ""))
        start, end, text = read_piece(run.newest_stream, offset)
    except UntrustedError as error:
        return JSONResponse({"error": f"{error}"}, status_code=400)
    except ValueError as error:  # no path of a file
        return JSONResponse({"error": str(error)}, status_code=404)
    except FileNotFoundError:
        pass
    return JSONResponse({"start": start, "end": end, "text": text})


def read_piece(path: Path, offset: int) -> tuple[int, int, str]:
    """Whole characters from a byte offset on, with the offsets before and after them."""
    try:
        with untrusted.open_file(path) as file:
            start = offset if offset <= file.seek(0, 2) else 0
            file.seek(start)
            data = file.read(CHUNK)
    except FileNotFoundError:
        return 0, 0, ""
    for cut in range(4):
        try:
            return start, start + len(data) - cut, data[: len(data) - cut].decode("utf-8")
        except UnicodeDecodeError:
            continue
    return start, start + len(data), data.decode("utf-8", "replace")


def get_plotly(_request: Request) -> Response:
    """The chart library, from the installed package: nothing is fetched from the network or copied."""
    return FileResponse(PLOTLY_FILE, media_type="text/javascript", headers={"Cache-Control": "max-age=86400"})


ROUTES = [
    Route("/api/pulse", get_change_token),
    Route("/api/stream", get_stream),
    Route("/api/notices", get_notices),
    Route("/assets/plotly.min.js", get_plotly),
    *machine_routes.ROUTES,
]
