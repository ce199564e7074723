"""A login provider over real HTTP: OpenID Connect as far as a dashboard uses it. Everybody who comes is Ada."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CLIENT, SECRET = "dashboard", "a secret that the dashboard and this provider share"


class _Provider(BaseHTTPRequestHandler):
    nonces: dict[str, str]

    def do_GET(self) -> None:
        """The description of the provider, its keys, and the page that asks for consent (given at once)."""
        path, _, query = self.path.partition("?")
        if path == "/.well-known/openid-configuration":
            self._answer(self._description())
        elif path == "/keys":
            self._answer({"keys": [{"kty": "oct", "kid": "one", "alg": "HS256", "k": _plain(SECRET.encode())}]})
        elif path == "/authorize":
            asked = {name: values[0] for name, values in urllib.parse.parse_qs(query).items()}
            code = secrets.token_hex(8)
            self.nonces[code] = asked.get("nonce", "")
            back = urllib.parse.urlencode({"code": code, "state": asked["state"]})
            self.send_response(302)
            self.send_header("Location", f"{asked['redirect_uri']}?{back}")
            self.end_headers()

    def do_POST(self) -> None:
        """The code of a login against who it is."""
        form = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        now = int(time.time())
        claims = {
            "iss": self._address(),
            "aud": CLIENT,
            "sub": "ada",
            "email": "ada@example.org",
            "email_verified": True,
        }
        claims |= {"iat": now, "exp": now + 600, "nonce": self.nonces.pop(form["code"][0])}
        self._answer({"access_token": "x", "token_type": "Bearer", "expires_in": 600, "id_token": _signed(claims)})

    def _description(self) -> dict[str, object]:
        at = self._address()
        return {
            "issuer": at, "authorization_endpoint": f"{at}/authorize", "token_endpoint": f"{at}/token",
            "jwks_uri": f"{at}/keys", "response_types_supported": ["code"], "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["HS256"], "scopes_supported": ["openid", "email", "profile"],
        }  # fmt: skip

    def _address(self) -> str:
        return f"http://{self.headers['Host']}"

    def _answer(self, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _plain(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _signed(claims: dict[str, object]) -> str:
    head = _plain(json.dumps({"alg": "HS256", "typ": "JWT", "kid": "one"}).encode())
    said = f"{head}.{_plain(json.dumps(claims).encode())}"
    return f"{said}.{_plain(hmac.digest(SECRET.encode(), said.encode(), hashlib.sha256))}"


@contextmanager
def running() -> Iterator[str]:
    """The address of a provider that lives as long as the block."""
    handler = type("Provider", (_Provider,), {"nonces": {}})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()
