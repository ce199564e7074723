"""One run against a live endpoint as a person starts it: its budget, its resume, and where its key is not."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from engine import supervisor
from engine.errors import ModelError
from engine.evaluator.machine.processes import descendants
from storage.run import events as ev
from storage.run import journal
from storage.run.folder import RunFolder
from storage.run.models import read_options
from storage.run.settings import Budget
from tests.chat_server import ChatServer, fails, says, serving
from tests.engine.swish_story import WRONG
from tests.engine.test_cli import SET
from tests.storage.index_dump import rebuilt

KEY = "sk-planted-8f3a61c2d97b"
FORKED_S = 10.0
OTHER = "sk-of-the-judge-55d1c0"
REPLY = f"Kernel class: activation\nApproach: one pass, with key {KEY}\n```python\n{WRONG}```\n"


@pytest.fixture
def environment(home: Path) -> dict[str, str]:
    return os.environ | {"OPENAI_API_KEY": KEY, "OTHER_KEY": OTHER}


class Watch:
    """The children of an engine, and those of them that had a key in their environment."""

    def __init__(self, engine: int) -> None:
        self._engine = engine
        # Popen returns a moment before the kernel knows the words of the program that was started.
        while not (own := program(engine)):
            time.sleep(0.001)
        self._own = own
        self._forked: dict[int, float] = {}
        self.seen: set[int] = set()
        self.with_key: set[int] = set()

    def look(self) -> None:
        """A child has its parent's environment until it runs a program of its own; under load that can take long."""
        for pid in descendants(self._engine):
            self.seen.add(pid)
            # Asked first: what it starts in between has an environment of its own.
            is_forked = program(pid) == self._own
            if not has_key(pid):
                self._forked.pop(pid, None)
            elif not is_forked or time.monotonic() - self._forked.setdefault(pid, time.monotonic()) > FORKED_S:
                self.with_key.add(pid)


def program(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def work(environment: dict[str, str], *words: str) -> tuple[str, Watch]:
    """Run the engine to its end; its output and what was seen of its children."""
    command = [sys.executable, "-m", "engine", *words]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as engine:
        watch = Watch(engine.pid)
        while engine.poll() is None:
            watch.look()
            try:
                engine.wait(timeout=0.05)
            except subprocess.TimeoutExpired:
                pass
        assert engine.stdout is not None
        return engine.stdout.read(), watch


def has_key(pid: int) -> bool:
    try:
        environ = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return any(key.encode() in environ for key in (KEY, OTHER))


def start(environment: dict[str, str], server: ChatServer) -> tuple[str, Watch]:
    options = ("model=tester", f"base_url={server.address}", "repairer.key_variable=OTHER_KEY", "temperature=0.5")
    words = [word for option in options for word in ("--option", option)]
    return work(environment, "run", "swish", "--model", "tester", "--depths", "3", "--max-calls", "1", *words, *SET)


def test_a_budget_holds_over_a_resume_and_a_key_is_found_nowhere(home: Path, environment: dict[str, str]) -> None:
    with serving(
        fails(429, f"too fast, {KEY}", retry_after="0"), says(REPLY), says("The last element is left out.")
    ) as server:
        said, watch = start(environment, server)
        assert "1 of 1 model calls" in said
        (path,) = (home / "runs").iterdir()
        again, watch_again = work(environment, "resume", path.name, "--set-budget", "calls=2")
        assert "2 of 2 model calls" in again
        requests = len(server.requests)
        assert set(server.keys) == {KEY}
    kept = [entry.event for entry in journal.read(RunFolder(path).journal_file)]
    assert requests == sum(isinstance(event, ev.CallSent) for event in kept) == 3
    assert sum(isinstance(event, ev.ModelCalled) for event in kept) == 2
    assert any(isinstance(event, ev.Checked) for event in kept)
    assert len(watch.seen) > 3
    assert watch.with_key | watch_again.with_key == set()
    dumped = repr(rebuilt(home / "index", home / "runs"))
    files = [file for file in home.rglob("*") if file.is_file()]
    assert len(files) > 8
    for key in (KEY, OTHER):
        assert key not in said + again + dumped
        assert [str(file) for file in files if key.encode() in file.read_bytes()] == []


def test_a_resume_names_what_a_limit_can_be(home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "engine", "resume", "any", "--set-budget", "calls=many"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert "calls takes a whole number above 0" in done.stderr


def test_a_money_budget_needs_the_price_of_every_model_that_is_asked(home: Path) -> None:
    (home / "prices.toml").write_text('["dear"]\ninput = 1\noutput = 4\n')
    settings = supervisor.new_settings("swish", model="dear")
    limited = replace(settings, budget=Budget(cost_usd=5.0))
    supervisor.see_that_money_can_be_kept(limited)
    with pytest.raises(ModelError, match="price of cheap is not in"):
        supervisor.see_that_money_can_be_kept(replace(limited, model_options=read_options("repairer.model=cheap")))
    supervisor.see_that_money_can_be_kept(replace(limited, model="recorded"))
