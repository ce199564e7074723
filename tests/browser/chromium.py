"""Which Chromium the tests drive: the one that is named, else one that is installed, else Playwright's download.

System packages are never installed. `python -m tests.browser.chromium` prints its path, or says why there is none.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

NAMED = "CHROMIUM"
# Debian's Chromium without a screen takes a tenth less processor time for the same pages.
PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
SHELL = "chromium-headless-shell"
START_S, DOWNLOAD_S = 30.0, 300.0
NOT_RUN = "no Chromium to drive"
INSTALL = f"install one (apt install chromium, or {sys.executable} -m playwright install --with-deps {SHELL})"


class NoChromium(Exception):
    """There is none that runs; the text says why and what to do."""


def is_demanded() -> bool:
    """Whether a person named one: then tests do not go without it."""
    return bool(os.environ.get(NAMED))


def find(shared: Path) -> str:
    """The path of a Chromium that runs. `shared` is a folder of all processes that test: only one of them downloads.

    Raises:
        NoChromium: there is none, and none could be downloaded.
    """
    if named := os.environ.get(NAMED):
        if why := _complaint(named):
            raise NoChromium(f"{NAMED} names {named}, which does not run: {why}")
        return named
    for program in PROGRAMS:
        if (path := shutil.which(program)) and not _complaint(path):
            return path
    with open(shared / "chromium.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _downloaded(shared / "chromium.tried")


def _complaint(path: str) -> str:
    """Why a program does not start; empty where it does."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=START_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if done.returncode == 0 else (done.stderr.strip() or f"exit code {done.returncode}")[:300]


def _downloaded(tried: Path) -> str:
    """Playwright's own, from its cache or its server. `tried` holds what another process of this run was told."""
    place = re.search(r"Install location: +(\S.*)", _playwright("install", "--dry-run", SHELL))
    folder = Path(place[1]) if place else tried / "nowhere"
    if not _kept(folder) and not tried.exists():
        tried.write_text(_playwright("install", "--no-remove", SHELL))
    if path := _kept(folder):
        if why := _complaint(path):
            raise NoChromium(f"{NOT_RUN}: the one that Playwright downloaded does not run ({why}); {INSTALL}")
        return path
    told = re.search(r"^(Error|Failed|no answer).*", tried.read_text(), re.MULTILINE)
    why = told[0] if told else "it says nothing"
    raise NoChromium(f"{NOT_RUN}: none is installed, and Playwright could not download its own ({why}); {INSTALL}")


def _kept(folder: Path) -> str:
    """The program in a folder of Playwright's cache; empty where there is none."""
    found = (path for path in folder.rglob("*headless*shell") if path.is_file() and os.access(path, os.X_OK))
    return str(next(found, ""))


def _playwright(*words: str) -> str:
    """What its command line says, whether or not it succeeds."""
    command = [sys.executable, "-m", "playwright", *words]
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    with child:
        try:
            return child.communicate(timeout=DOWNLOAD_S)[0]
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            return f"no answer within {DOWNLOAD_S:.0f} s"


def of_program() -> str:
    """For a program that opens pages: the path, or its end in one sentence."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return find(Path(folder))
        except NoChromium as error:
            sys.exit(f"tilewright: {error}")


if __name__ == "__main__":
    print(of_program())
