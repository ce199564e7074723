"""The dashboard's style as part of the document that a browser loads first, and a document for addresses of several
parts, which no page has."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pages.parts import client

# Trap: at the end, after the style sheets of Streamlit, which would win else where both name one class.
END = b"</body>"
# Compressed or only confirmed, the document could not be completed.
# Under such an address Streamlit's document finds none of its files, and would stay white.
SHELL = b'id="root"'
NOWHERE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>No such page · Tilewright</title></head>
<body style="font-family: sans-serif; margin: 3rem; color-scheme: light dark"><h1>No such page</h1>
<p>There is no page at this address. It may be mistyped or old.</p><p><a href="{home}">All runs</a></p></body></html>"""
# Until the page has named its tab, and where a visitor has yet to log in.
TITLE, OWN_TITLE = b"<title>Streamlit</title>", b"<title>Tilewright</title>"
# Trap: Streamlit's client looks for its server under the whole address first, as /run/_stcore/health: two errors in the
# console of whoever opens a page by its address. Its server is where its files are, beside the page.
SERVER = b"<script>window.__streamlit = { BACKEND_BASE_URL: new URL('.', document.baseURI).href }</script>"
LEFT_OUT = (b"accept-encoding", b"if-none-match", b"if-modified-since", b"range")


class PageStyle:
    """Middleware: puts page.css into the document. Drawn by the page itself it would come after the page's first parts,
    which would all move then."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._style = f"<style>{client.read('page.css')}</style>".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Complete what is HTML, and pass on the rest."""
        headers = scope.get("headers", []) if scope["type"] == "http" else []
        if not any(name == b"accept" and b"text/html" in value for name, value in headers):
            return await self._app(scope, receive, send)
        started: list[Message] = []
        body = bytearray()

        async def complete(message: Message) -> None:
            if message["type"] == "http.response.start" and _is_html(message):
                started.append(message)
            elif not started or message["type"] != "http.response.body":
                await send(message)
            else:
                body.extend(message.get("body", b""))
                if not message.get("more_body"):
                    begun, whole = started[0], self._completed(bytes(body))
                    if SHELL in whole and "/" in client.page_in(scope["path"]):
                        begun, whole = {**begun, "status": 404}, NOWHERE.format(home=f"/{client.base_path()}").encode()
                    await send(_sized(begun, whole))
                    await send({"type": "http.response.body", "body": whole})

        asked = {**scope, "headers": [header for header in headers if header[0] not in LEFT_OUT]}
        return await self._app(asked, receive, complete)

    def _completed(self, body: bytes) -> bytes:
        before, end, after = body.replace(TITLE, OWN_TITLE).rpartition(END)
        server = SERVER if SHELL in body else b""
        return before + server + self._style + end + after if end else body


def _is_html(message: Message) -> bool:
    """A page, and no report that is downloaded."""
    headers = dict(message["headers"])
    return bytes(headers.get(b"content-type", b"")).startswith(b"text/html") and b"content-disposition" not in headers


def _sized(message: Message, body: bytes) -> Message:
    """Without what the document was before."""
    kept = [header for header in message["headers"] if header[0] not in (b"content-length", b"etag", b"last-modified")]
    return {**message, "headers": [*kept, (b"content-length", b"%d" % len(body))]}
