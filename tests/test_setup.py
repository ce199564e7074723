"""`make run` where something is in the way: one sentence with the remedy, and a second try that goes on from there."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ("make", "sh", "rm", "touch", "df", "awk", "tail", "dirname", "uname")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what sets up, with nothing to install, and a PATH that has little beside Python and a compiler."""
    for name in ("Makefile", "setup.sh"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("requirements.txt", "requirements-dev.txt", "requirements-ranking.txt"):
        (tmp_path / name).touch()
    (tmp_path / "bin").mkdir()
    for tool in TOOLS:
        if found := shutil.which(tool):
            (tmp_path / "bin" / tool).symlink_to(found)
    program(tmp_path, "g++", "exit 0")
    program(tmp_path, "python3", f'exec "{Path(sys.executable).resolve()}" "$@"')
    return tmp_path


def program(checkout: Path, name: str, text: str) -> None:
    file = checkout / "bin" / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


def sentence(checkout: Path, **environment: str) -> str:
    """What `make` says of an obstacle, without make's own line."""
    done = make(checkout, **environment)
    assert done.returncode != 0, done.stdout
    (told, *makes) = done.stderr.splitlines()
    assert all(line.startswith("make: ***") for line in makes), done.stderr
    return told


def make(checkout: Path, target: str = ".venv/ready", **environment: str) -> subprocess.CompletedProcess[str]:
    plain = {"PATH": str(checkout / "bin"), "HOME": str(checkout), "PIP_CONFIG_FILE": os.devnull, **environment}
    command = ["make", target]
    return subprocess.run(command, cwd=checkout, env=plain, capture_output=True, text=True, check=False)


def test_what_the_machine_lacks_is_told_in_one_sentence_and_leaves_nothing_behind(checkout: Path) -> None:
    (checkout / "bin/g++").unlink()
    assert sentence(checkout) == "tilewright: a C++ compiler is needed to build kernels: apt install g++"
    assert "not found" not in sentence(checkout, CXX="python3", PYTHONPATH=lacking(checkout, "venv"))
    program(checkout, "g++", "exit 0")
    for module in ("venv", "ensurepip"):
        told = sentence(checkout, PYTHONPATH=lacking(checkout, module))
        assert told == "tilewright: python3 has no venv module: apt install python3-venv"
    program(checkout, "python3", "exit 1")  # an older Python says so, and one that is not there ends in the same way
    assert sentence(checkout) == (
        "tilewright: Python 3.11 or later is needed and was not found: install it, or name it with "
        "make PYTHON=/path/to/python3.11"
    )
    assert not (checkout / ".venv").exists()


def lacking(checkout: Path, module: str) -> str:
    """A folder that makes a module of the standard library impossible to import."""
    folder = checkout / f"no_{module}"
    folder.mkdir(exist_ok=True)
    (folder / f"{module}.py").write_text("raise ImportError\n")
    return str(folder)


def test_a_second_try_goes_on_where_the_first_one_broke_off(checkout: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", checkout / ".venv"], check=True)
    (checkout / "requirements.txt").write_text("a-package-to-download==1.0\n")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        index = f"http://127.0.0.1:{closed.getsockname()[1]}/simple"
        told = sentence(checkout, PIP_INDEX_URL=index, PIP_RETRIES="1")
    assert told == (
        "tilewright: the packages could not be downloaded: check the network or set HTTPS_PROXY or PIP_INDEX_URL, "
        "then try again"
    )
    assert not (checkout / ".venv/ready").exists()
    (checkout / "requirements.txt").write_text("")
    program(checkout, "python3", "exit 1")  # not asked again: .venv has what it needs
    done = make(checkout)
    assert done.returncode == 0, done.stderr
    assert (checkout / ".venv/ready").exists()


def test_what_is_set_up_for_the_tests_is_set_up_for_the_dashboard_too(checkout: Path) -> None:
    assert make(checkout, ".venv/ready-dev").stdout.count("Installing the packages of requirements-dev.txt") == 1
    assert "up to date" in make(checkout).stdout
    (checkout / ".venv/ready").unlink()
    assert "requirements.txt" in make(checkout).stdout
    assert "up to date" in make(checkout, ".venv/ready-dev").stdout


def test_a_taken_port_gives_way_to_the_next_free_one_and_the_address_is_told(home: Path) -> None:
    environment = os.environ | {
        "TILEWRIGHT_HOME": str(home),
        "TILEWRIGHT_NO_DEMO": "1",
        "STREAMLIT_SERVER_HEADLESS": "1",
    }
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [sys.executable, str(ROOT / "serve.py"), str(port)]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                first, second = (server.stdout.readline() for _ in range(2))
            finally:
                server.terminate()
    chosen = int(first.rstrip(".\n").rpartition(" ")[2])
    assert first == f"Port {port} is taken; the dashboard takes {chosen}.\n"
    assert port < chosen
    assert second == f"Dashboard: http://127.0.0.1:{chosen}\n"
