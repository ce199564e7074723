"""One run against a live endpoint as a person starts it: its budget, its resume, and where its key is not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from engine import supervisor
from engine.errors import ModelError
from engine.machine.processes import descendants
from storage import events as ev
from storage import journal
from storage.folder import RunFolder
from storage.models import read_options
from storage.records import Budget
from tests.chat_server import ChatServer, fails, says, serving
from tests.engine.swish_story import WRONG
from tests.engine.test_cli import SET
from tests.storage.index_dump import rebuilt

KEY = "sk-planted-8f3a61c2d97b"
OTHER = "sk-of-the-judge-55d1c0"
REPLY = f"Kernel class: activation\nApproach: one pass, with key {KEY}\n```python\n{WRONG}```\n"


@pytest.fixture
def environment(home: Path) -> dict[str, str]:
    return os.environ | {"OPENAI_API_KEY": KEY, "OTHER_KEY": OTHER}


def work(environment: dict[str, str], *words: str) -> tuple[str, Counter[int]]:
    """Run the engine to its end; its output, and how often a child of it was seen with a key in its environment."""
    command = [sys.executable, "-m", "engine", *words]
    seen: Counter[int] = Counter()
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as engine:
        while engine.poll() is None:
            for pid in descendants(engine.pid):
                seen[pid] += has_key(pid)
            try:
                engine.wait(timeout=0.05)
            except subprocess.TimeoutExpired:
                pass
        assert engine.stdout is not None
        return engine.stdout.read(), seen


def has_key(pid: int) -> bool:
    try:
        environ = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return any(key.encode() in environ for key in (KEY, OTHER))


def start(environment: dict[str, str], server: ChatServer) -> tuple[str, Counter[int]]:
    options = ("model=tester", f"base_url={server.address}", "repairer.key_variable=OTHER_KEY", "temperature=0.5")
    words = [word for option in options for word in ("--option", option)]
    return work(environment, "run", "swish", "--model", "tester", "--depths", "3", "--max-calls", "1", *words, *SET)


def test_a_budget_holds_over_a_resume_and_a_key_is_found_nowhere(home: Path, environment: dict[str, str]) -> None:
    with serving(
        fails(429, f"too fast, {KEY}", retry_after="0"), says(REPLY), says("The last element is left out.")
    ) as server:
        said, seen = start(environment, server)
        assert "1 of 1 model calls" in said
        (path,) = (home / "runs").iterdir()
        again, seen_again = work(environment, "resume", path.name, "--set-budget", "calls=2")
        assert "2 of 2 model calls" in again
        requests = len(server.requests)
        assert set(server.keys) == {KEY}
    kept = [entry.event for entry in journal.read(RunFolder(path).journal_file)]
    assert requests == sum(isinstance(event, ev.CallSent) for event in kept) == 3
    assert sum(isinstance(event, ev.ModelCalled) for event in kept) == 2
    assert any(isinstance(event, ev.Checked) for event in kept)
    assert len(seen) > 3
    # A child has its parent's environment for an instant, between being forked and being told what to run.
    assert [pid for pid, count in (seen + seen_again).items() if count > 1] == []
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
