"""Saved models: tried, kept with their keys, removed. Starts children; asks no model itself."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from engine.errors import EngineError
from engine.evaluator.sandbox import hiding
from engine.evaluator.sandbox.hiding import Way
from engine.evaluator.sandbox.isolation import FILES, Isolation
from engine.search.llm.trial import Given, Trial
from storage import codec, files, keys, read_only
from storage.home import home
from storage.keys import KeyStoreError
from storage.run import saved_models as models_file
from storage.run.saved_models import KeyPlace, Saved, SavedModel, SavedModelError

ROOT = Path(__file__).resolve().parent.parent
PROFILES = ROOT / "engine" / "search" / "llm" / "command_profiles.toml"
TRIAL_S, PROBE_S = 90.0, 60.0


def saved_models() -> tuple[Saved, str]:
    """The saved models, and why they cannot be read; empty where they can."""
    try:
        return models_file.read(), ""
    except SavedModelError as error:
        return (), str(error)


def profiles() -> Saved:
    """How well-known programs are called as a model, from their documentation; none was tried against the real one."""
    return models_file.read(PROFILES)


def try_model(entry: SavedModel, key: str | None = None) -> Trial:
    """Have a child ask a model, saved or not, for one word; a key reaches it through its standard input alone.

    Raises:
        EngineError: the child itself did not come to an end.
    """
    read_only.guard(EngineError, "try models")
    command = [sys.executable, "-m", "engine", "try-model", "--json", "--given"]
    given = codec.dumps(Given(entry, key))
    try:
        done = subprocess.run(
            command, cwd=ROOT, input=given, capture_output=True, text=True, timeout=TRIAL_S, check=False
        )
        return Trial(**json.loads(done.stdout))
    except subprocess.TimeoutExpired:
        raise EngineError(f"no answer within {TRIAL_S:.0f} s") from None
    except (ValueError, TypeError, OSError) as error:
        reason = done.stderr.strip().splitlines()[-1:] if isinstance(error, ValueError) else [str(error)]
        raise EngineError(" ".join(reason).removeprefix("tilewright: ") or "the call ended without a word") from None


def without_keys() -> list[str]:
    """What comes before a command that runs a user's own code as this user, so that it sees no key; nothing where none
    is saved."""
    has_keys = keys.folder().is_dir() or any(entry.key for entry in models_file.readable())
    return hiding.prefix([keys.folder()]) if has_keys else []


def key_place() -> KeyPlace:
    """Where a key would be kept here: in the system's keyring, or in a file where that is not to be had or not hidden.

    Raises:
        EngineError: neither kernels nor programs could be kept from it.
    """
    way, why = _hidden_by()
    if not way:
        raise EngineError(f"no key is saved here, since kernels and programs could read it ({why})")
    return KeyPlace.KEYRING if way is Way.MOUNTS and keys.has_keyring() else KeyPlace.FILE


def save_model(entry: SavedModel, key: str = "") -> SavedModel:
    """Keep a model, and a key in its place. Without a key the entry of that name keeps its own while the address stays.

    Raises:
        EngineError: this server only shows runs, no key can be kept here, or the entry makes no sense.
    """
    read_only.guard(EngineError, "save models")
    before = next((each for each in saved_models()[0] if each.name == entry.name), None)
    try:
        models_file.check_name(entry.name)
        if key:
            entry = replace(entry, key=key_place())
            assert entry.key is not None
            keys.keep(entry.name, key, entry.key)
        elif before is not None and before.key is not None and _is_alike(before, entry):
            entry = replace(entry, key=before.key)
        elif before is not None and before.key is not None:
            keys.forget(entry.name, before.key)
        models_file.keep(entry)
    except (SavedModelError, KeyStoreError) as error:
        raise EngineError(f"{error}") from error
    except OSError as error:
        raise EngineError(files.explained(error)) from error
    return entry


def remove_model(name: str) -> None:
    """Remove a saved model and its key. Runs that began with it cannot ask it any more where it had one.

    Raises:
        EngineError: this server only shows runs, or the file or the key cannot be changed.
    """
    read_only.guard(EngineError, "remove models")
    try:
        entry = next((each for each in models_file.read() if each.name == name), None)
        if entry is not None and entry.key is not None:
            keys.forget(name, entry.key)
        models_file.remove(name)
    except (SavedModelError, KeyStoreError) as error:
        raise EngineError(f"{error}") from error
    except OSError as error:
        raise EngineError(files.explained(error)) from error


def _is_alike(before: SavedModel, entry: SavedModel) -> bool:
    """Whether a key of the one may be sent to the other, which names no variable."""
    if before.endpoint is None or entry.endpoint is None or entry.endpoint.key_variable:
        return False
    return before.endpoint.base_url == entry.endpoint.base_url


@functools.cache
def _hidden_by() -> tuple[Way | None, str]:
    """By what keys are hidden from programs, with kernels kept from files at all; or why they are not. Tried once."""
    try:
        isolation = codec.from_plain(Isolation, json.loads(_said("engine.evaluator.sandbox.probe")))
        if not (isolation.has_namespaces or isolation.landlock):
            return None, isolation.missing.get(FILES, "this system has neither namespaces nor Landlock")
        files.make_folder(home())
        with tempfile.TemporaryDirectory(prefix=".tried.", dir=home()) as folder:
            (Path(folder) / "key").write_text("none")
            said = _said("engine.evaluator.sandbox.hiding", "--try", folder).strip()
    except (OSError, ValueError, subprocess.SubprocessError, codec.DecodeError) as error:
        return None, f"it could not be tried: {error}"
    return (Way[said], "") if said in Way.__members__ else (None, said)


def _said(module: str, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", module, *words], cwd=ROOT, capture_output=True, text=True, timeout=PROBE_S, check=True
    )
    return done.stdout
