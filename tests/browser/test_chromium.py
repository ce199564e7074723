"""Which Chromium is driven: the one that is named, one that is installed, Playwright's own, or none with a sentence."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.browser import chromium
from tests.browser.chromium import NoChromium, find

ROOT = Path(__file__).resolve().parent.parent.parent
NOWHERE = "http://127.0.0.1:9"
RUNS, LACKS = "#!/bin/sh\necho Chromium 1\n", "#!/bin/sh\necho libnss3.so: cannot open >&2\nexit 127\n"


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without a browser and without a way to one; returns the folder of its programs."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.delenv(chromium.NAMED, raising=False)
    monkeypatch.setenv("PATH", f"{programs}")
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "browsers"))
    monkeypatch.setenv("PLAYWRIGHT_DOWNLOAD_HOST", NOWHERE)
    return programs


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """A download server of our own: what its archive of a browser holds, by path."""
    held: dict[str, str] = {}

    class Archive(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            packed = io.BytesIO()
            with zipfile.ZipFile(packed, "w") as archive:
                for path, text in held.items():
                    entry = zipfile.ZipInfo(path)
                    entry.external_attr = 0o755 << 16
                    archive.writestr(entry, text)
            self.send_response(200)
            self.send_header("Content-Length", str(len(packed.getvalue())))
            self.end_headers()
            self.wfile.write(packed.getvalue())

        def log_message(self, *words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Archive) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("PLAYWRIGHT_DOWNLOAD_HOST", f"http://127.0.0.1:{server.server_port}")
        yield held
        server.shutdown()


def program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_an_installed_one_that_starts_is_taken(bare: Path, tmp_path: Path) -> None:
    program(bare / "chromium", LACKS)
    other = program(bare / "google-chrome", RUNS)
    assert find(tmp_path) == str(other)


def test_the_one_that_is_named_must_start(bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(bare / "chromium", RUNS)
    monkeypatch.setenv(chromium.NAMED, str(program(tmp_path / "mine", LACKS)))
    with pytest.raises(NoChromium, match=re.escape(f"CHROMIUM names {tmp_path}/mine, which does not run: libnss3.so")):
        find(tmp_path)
    program(tmp_path / "mine", RUNS)
    assert find(tmp_path) == str(tmp_path / "mine")


@pytest.mark.usefixtures("bare")
def test_playwrights_own_is_downloaded_once_and_told_where_it_lacks_libraries(
    tmp_path: Path, served: dict[str, str]
) -> None:
    served["chrome-headless-shell-linux64/chrome-headless-shell"] = LACKS
    with pytest.raises(NoChromium, match=r"does not run \(libnss3.so: cannot open\); install one .*--with-deps"):
        find(tmp_path)
    served.clear()
    (downloaded,) = (tmp_path / "browsers").rglob("chrome-headless-shell")
    program(downloaded, RUNS)
    assert find(tmp_path) == str(downloaded)


@pytest.mark.usefixtures("bare")
def test_without_any_tests_are_skipped_in_one_line_and_a_named_one_is_insisted_on(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "pytest", "-q", f"--basetemp={tmp_path}/base", "-o", f"cache_dir={tmp_path}/cache"]
    command = [*words, "tests/browser/test_programs.py"]

    def run(**variables: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | variables
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    done = run()
    assert done.returncode == 0, done.stdout
    assert re.search(r"^(\d+) browser tests were not run: no Chromium to drive: none is installed", done.stdout, re.M)
    assert "apt install chromium" in done.stdout
    assert run(CHROMIUM="/nowhere").returncode == 1
