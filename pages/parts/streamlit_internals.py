"""What Tilewright uses of Streamlit beyond its documented interface: the login cookie, its web server, its components.
The only module that knows such names. `tests/test_private_names.py` says what it needs, and of which version.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import uvicorn

WRITTEN_FOR = "1.67.0"

try:
    from streamlit.auth_util import (
        get_cookie_with_chunks,
        get_origin_from_redirect_uri,
        get_secrets_auth_section,
        get_signing_secret,
    )
    from streamlit.components.v2.bidi_component import serialization
    from streamlit.elements.widgets import text_widgets
    from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
    from streamlit.runtime.scriptrunner_utils.script_requests import RerunData, ScriptRequests, ScriptRequestType
    from streamlit.time_util import time_to_seconds
    from streamlit.web.server.starlette.starlette_app_utils import decode_signed_value
    from streamlit.web.server.starlette.starlette_server_config import USER_COOKIE_NAME
except ImportError as error:
    raise ImportError(
        f"streamlit {version('streamlit')} lacks what {__name__} needs of streamlit {WRITTEN_FOR} ({error}): install "
        f"the version in requirements.txt"
    ) from error


def is_login_configured() -> bool:
    """True when secrets.toml has a section [auth]."""
    return bool(get_secrets_auth_section())


def user_of(cookies: Mapping[str, str]) -> dict[str, Any]:
    """What the login cookie says; empty when it is missing, forged, too old or of another site."""
    raw = get_cookie_with_chunks(lambda name: _signed(cookies.get(name), name), USER_COOKIE_NAME)
    try:
        user = json.loads(raw.decode()) if raw else {}
    except ValueError:
        return {}
    is_ours = isinstance(user, dict) and user.get("origin") == get_origin_from_redirect_uri()
    return user if is_ours else {}


def _signed(value: str | None, name: str) -> bytes | None:
    return decode_signed_value(get_signing_secret(), name, value.encode("latin-1")) if value else None


def bound_shutdown(seconds: int) -> None:
    """Let the web server end this long after it was asked to; nothing where another server runs the app.

    Trap: it waits without end for a connection whose browser went away while a page was coming. It is found by its
    handler of SIGTERM.
    """
    server = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    if isinstance(server, uvicorn.Server):
        server.config.timeout_graceful_shutdown = seconds


def give_components_plain_values() -> None:
    """Take nothing that a component is given for a table, which ours never are.

    Trap: to see that a list is none, Streamlit imports pandas and pyarrow while the first page is drawn: 0.3 s of
    processor time and more memory than all of ours.
    """
    setattr(serialization, "is_dataframe_like", _is_no_table)  # noqa: B010 - it is none of its exported names


AT_ONCE = "0s"


def read_no_pause_without_a_library() -> None:
    """Let a text field be `live` AT_ONCE without more.

    Trap: to read that text Streamlit imports pandas, in the middle of the first page with such a field: what stands
    below the field came a second later, on a busy machine several.
    """
    setattr(text_widgets, "time_to_seconds", _seconds)  # noqa: B010 - it is none of its exported names


def _seconds(text: str) -> float:
    return 0.0 if text == AT_ONCE else time_to_seconds(text)


def _is_no_table(obj: object) -> bool:
    return False


def draw_no_part_of_a_page_that_was_left() -> None:
    """Leave out a request for parts (fragments) none of which is on the page that is shown.

    Trap: a page that is being left may still ask for a part of itself, for news. Streamlit drops such a request only
    when the new page is drawn already: one that came in while it was drawn ran after it, drew nothing, and made the
    browser take away all that it did not draw. The new page stayed blank.
    """
    run_script = vars(ScriptRunner)["_run_script"]

    def run(self: ScriptRunner, rerun_data: RerunData) -> None:
        asked, storage = rerun_data.fragment_id_queue, vars(self)["_fragment_storage"]
        if not asked or any(storage.contains(fragment) for fragment in asked):
            run_script(self, rerun_data)

    setattr(ScriptRunner, "_run_script", run)  # noqa: B010 - it is none of its exported names
    request_rerun = vars(ScriptRequests)["request_rerun"]

    def request(self: ScriptRequests, new_data: RerunData) -> bool:
        """Trap: of a page that waits to be drawn and a part of the one that is left, Streamlit would make one request,
        for the page that is left."""
        waiting = vars(self)["_rerun_data"] if vars(self)["_state"] is ScriptRequestType.RERUN else None
        is_left = waiting and not waiting.fragment_id_queue and waiting.page_script_hash != new_data.page_script_hash
        return True if new_data.fragment_id and is_left else bool(request_rerun(self, new_data))

    setattr(ScriptRequests, "request_rerun", request)  # noqa: B010
