"""Saved models as runs use them: kept settings, keys that are found again, and who cannot read one."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from engine import connecting, supervisor
from engine.errors import EngineError, ModelError
from engine.evaluator.machine.worker_limits import Limits
from engine.evaluator.sandbox import ChildSpec, Isolation, SandboxFilesystem, start
from engine.search.llm import LanguageModel, environment
from engine.search.llm.opening import Models
from engine.search.llm.prices import Price
from storage import keys
from storage.run import saved_models
from storage.run.models import ModelOptions, ModelRole, read_options
from storage.run.saved_models import KeyPlace, Program, SavedModel
from storage.run.settings import RunSettings
from storage.run.steering.command_arguments import ModelChoice
from tests.chat_server import says, serving
from tests.engine.evaluator.sandbox.test_isolation import HERE, finish, outcome
from tests.engine.test_lint import FORWARD, HEAD, TAIL

KEY = "sk-planted-55aa01bc"
ADDRESS = "http://localhost:9/v1"
WORK = SavedModel("work", ModelOptions(model="gpt-x", base_url=ADDRESS, window=5000))
Asked = list[tuple[ModelOptions, str, str]]


def opened(settings: RunSettings, model: str | None = None) -> Asked:
    """What a run's models are connected with."""
    asked: Asked = []

    def connect(options: ModelOptions, address: str, key: str, price: Price | None) -> LanguageModel:
        asked.append((options, address, key))
        return no_model()

    Models(settings, no_replay, connect, lambda entry, price, limit: no_model()).open(
        ModelChoice(model or settings.model)
    )
    return asked


class _Nothing:
    name = "nothing"


def no_model() -> LanguageModel:
    return _Nothing()  # type: ignore[return-value]


def no_replay(*words: object) -> LanguageModel:
    raise AssertionError(words)


def test_a_run_keeps_what_its_model_was_and_finds_the_key_again_when_it_is_resumed(home: Path) -> None:
    connecting.save_model(WORK, KEY)
    settings = supervisor.new_settings("swish", model="work", model_options=read_options("judge.temperature=0.5"))
    connecting.save_model(replace(WORK, endpoint=ModelOptions(model="another", base_url="http://elsewhere:1/v1")))
    (entry,) = saved_models.read()
    assert entry.key is None, "a key is not sent to an address that it was not given for"
    with pytest.raises(ModelError, match="the key of model work is gone: save the model again"):
        opened(settings)
    keys.keep("work", KEY, KeyPlace.FILE)
    asked = opened(settings)
    assert {(options.model, options.window, address, key) for options, address, key in asked} == {
        ("gpt-x", 5000, ADDRESS, KEY)
    }
    assert {options.temperature for options, _, _ in asked} == {None, 0.5}
    assert KEY not in repr(settings)


def test_a_key_goes_to_the_address_that_it_was_saved_for_alone(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    monkeypatch.setenv("OTHER", "sk-of-another-variable")
    connecting.save_model(WORK, KEY)
    for lines, key in (
        ("base_url=http://elsewhere:1/v1", environment.NO_KEY),
        ("base_url=http://elsewhere:1/v1\nkey_variable=OTHER", "sk-of-another-variable"),
        ("key_variable=OTHER", "sk-of-another-variable"),
        ("temperature=1", KEY),
    ):
        monkeypatch.setenv("OTHER", "sk-of-another-variable")
        settings = supervisor.new_settings("swish", model="work", model_options=read_options(lines))
        assert {asked[2] for asked in opened(settings)} == {key}


def test_roles_and_steering_name_saved_models_too(home: Path) -> None:
    connecting.save_model(WORK, KEY)
    connecting.save_model(SavedModel("mine", program=Program(("cat",))))
    lines = ("key_variable=none", "judge.model=work", "diagnoser.model=mine", f"base_url={ADDRESS}")
    settings = supervisor.new_settings("swish", model="plain", model_options=read_options("\n".join(lines)))
    assert [entry.name for entry in settings.saved_models] == ["mine", "work"]
    assert sorted(options.model or "" for options, _, _ in opened(settings)) == ["gpt-x", "plain", "plain"]
    assert opened(settings, "mine") == []
    assert supervisor.available_models() == ["work", "mine", "recorded", "manual"]


def test_a_fork_keeps_the_models_of_its_run_or_takes_what_is_saved_now(home: Path) -> None:
    from engine.run_settings import saved_for

    connecting.save_model(WORK)
    before = saved_for("work", ())
    connecting.remove_model("work")
    assert saved_for("work", (), before) == before
    assert saved_for("other", (), before) == ()
    changed = connecting.save_model(replace(WORK, endpoint=ModelOptions(ModelRole.ALL, "gpt-y", ADDRESS)))
    assert saved_for("work", (), before) == (changed,)


def test_a_broken_file_stops_the_run_that_uses_it_with_its_line_and_no_other(home: Path) -> None:
    (home / "models.toml").write_text('[work]\nkind = "nothing"\n')
    assert supervisor.new_settings("swish", model="gpt-5").saved_models == ()
    with pytest.raises(ModelError, match=r"models.toml, line 1, \[work\]: kind must be one of"):
        supervisor.new_settings("swish", model="work")


def test_a_read_only_server_saves_removes_and_tries_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_READ_ONLY", "1")
    for act in (
        lambda: connecting.save_model(WORK, KEY), lambda: connecting.remove_model("work"),
        lambda: connecting.try_model(WORK, KEY),
    ):  # fmt: skip
        with pytest.raises(EngineError, match="this server is read-only"):
            act()
    assert not (home / "keys").exists()


@pytest.fixture
def key_file(home: Path) -> Path:
    connecting.save_model(WORK, KEY)
    return keys.folder() / "work"


@pytest.mark.parametrize("isolation", HERE.values(), ids=[*HERE])
def test_no_kernel_reads_the_file_or_reaches_a_keyring(key_file: Path, isolation: Isolation, tmp_path: Path) -> None:
    """A worker's sandbox, where what it keeps out is not kept out by modes."""
    key_file.chmod(0o666)
    for folder in (key_file.parent, *key_file.parent.parents):
        if folder.is_relative_to(tempfile.gettempdir()) and folder != Path(tempfile.gettempdir()):
            folder.chmod(0o755)
    bus = tmp_path / "bus"
    with socket.socket(socket.AF_UNIX) as listener, tempfile.TemporaryFile() as output:
        listener.bind(str(bus))
        listener.listen()
        bus.chmod(0o777)

        def reach() -> None:
            with socket.socket(socket.AF_UNIX) as line:
                line.connect(str(bus))

        def body() -> None:
            found = [outcome(key_file.read_bytes), outcome(reach), outcome(lambda: [*key_file.parent.iterdir()])]
            os.write(1, json.dumps(found).encode())

        spec = ChildSpec(isolation, SandboxFilesystem(tmp_path / "room"), Limits(), tmp_path / "scratch",
                         output.fileno())  # fmt: skip
        child = start(spec, body)
        finish(child)
        output.seek(0)
        assert "done" not in json.loads(output.read())


def test_no_module_of_a_persons_own_reads_it_where_it_is_judged_or_captured(key_file: Path, tmp_path: Path) -> None:
    tries = f"try:\n    STOLEN = open({str(key_file)!r}).read()\nexcept OSError:\n    STOLEN = ''\n\n\n"
    task = tmp_path / "task.py"
    task.write_text(HEAD + tries + "assert not STOLEN\n\n\n" + FORWARD.format("torch.relu(x) * 2") + TAIL)
    judged = tilewright("tasks", str(task), "--lint", "--json")
    assert '"decided"' in judged, judged
    network = tmp_path / "network.py"
    network.write_text(
        "import torch\n" + tries + f"open({str(tmp_path / 'seen')!r}, 'w').write(STOLEN or 'nothing')\n\n\n"
        "def make():\n    return torch.nn.Linear(8, 8), {'one': (torch.randn(4, 8),)}\n"
    )
    tilewright("network", "capture", f"{network}:make", "--name", "small", "--no-compile", "--no-limits")
    assert (tmp_path / "seen").read_text() == "nothing"


def tilewright(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "engine", *words], capture_output=True, text=True, check=False, timeout=300
    )
    return done.stdout + done.stderr


def test_no_program_that_is_a_model_reads_it(key_file: Path) -> None:
    script = f"cat {key_file}; cat /proc/$PPID/root{key_file}; ls {key_file.parent}; echo ready"
    said = connecting.try_model(SavedModel("mine", program=Program(("sh", "-c", script))))
    assert (said.failure, said.reply) == ("", "ready")


def test_a_key_reaches_a_trial_by_no_command_line_and_no_environment(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    begin: Callable[..., subprocess.CompletedProcess[str]] = subprocess.run

    def watched(*words: object, **options: object) -> subprocess.CompletedProcess[str]:
        seen.append(f"{words} {options.get('env')} {dict(os.environ)}")
        return begin(*words, **options)

    monkeypatch.setattr(subprocess, "run", watched)
    with serving(says("ready")) as server:
        at_server = ModelOptions(model="m", base_url=server.address)
        said = connecting.try_model(SavedModel("work", at_server), KEY)
    assert (said.reply, server.keys) == ("ready", [KEY])
    assert KEY not in "".join(seen) + repr(said)
