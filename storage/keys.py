"""Keys of saved models: in the system's keyring, or each in a file of mode 600 that lies in no run. Knows no model.

No key is ever part of a setting, a journal, a log, a command line or an environment.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from storage import files, untrusted
from storage.home import home
from storage.run.saved_models import KeyPlace
from storage.untrusted import UntrustedError

FOLDER = "keys"
SERVICE = "tilewright"
LEAST_PRIORITY = 1  # what the keyring package gives to a backend that encrypts and needs no question on a terminal


class KeyStoreError(Exception):
    """A key cannot be kept, found or removed; the message says what to do."""


def folder() -> Path:
    """Where the files lie."""
    return home() / FOLDER


def has_keyring() -> bool:
    """Whether this system has a keyring that can be used."""
    return _keyring() is not None


def keep(name: str, key: str, place: KeyPlace) -> None:
    """Put a key in its place, and out of the other one.

    Raises:
        KeyStoreError: the keyring or the disk refuses it, or it is none.
    """
    if not key.isascii() or not key.isprintable() or " " in key or not key:
        raise KeyStoreError("the key contains spaces or characters that no key has: paste it again")
    if place is KeyPlace.KEYRING:
        _in_keyring("set_password", name, key)
        _file(name).unlink(missing_ok=True)
        return
    try:
        _write(_file(name), key)
    except OSError as error:
        raise KeyStoreError(f"the key cannot be kept: {files.explained(error)}") from error


def find(name: str, place: KeyPlace) -> str | None:
    """A key; None where there is none any more.

    Raises:
        KeyStoreError: the keyring cannot be asked, or the file cannot be read.
    """
    if place is KeyPlace.KEYRING:
        found = _in_keyring("get_password", name)
        return None if found is None else str(found)
    try:
        return untrusted.read_text(_file(name)).strip() or None
    except FileNotFoundError:
        return None
    except UntrustedError as error:
        raise KeyStoreError(f"{error}") from error


def forget(name: str, place: KeyPlace) -> None:
    """Remove a key; one that is gone already is no failure, a keyring that cannot be asked is."""
    _file(name).unlink(missing_ok=True)
    if place is KeyPlace.KEYRING and find(name, place) is not None:
        _in_keyring("delete_password", name)


def _file(name: str) -> Path:
    return folder() / name


def _write(path: Path, key: str) -> None:
    """Through a draft that nobody else may open from the start, in a folder that nobody else may enter."""
    files.make_folder(home())
    with suppress(FileExistsError):
        path.parent.mkdir(mode=0o700)
    path.parent.chmod(0o700)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        files.write(file, f"{key}\n".encode())
        os.fsync(file)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    finally:
        os.close(file)
    draft.replace(path)
    files.sync(path.parent)


def _keyring() -> Any:
    """The system's keyring, None where there is none that keeps keys safely."""
    import keyring  # 0.2 s that only a saved key is worth

    backend = keyring.get_keyring()
    return backend if backend.priority >= LEAST_PRIORITY else None


def _in_keyring(act: str, name: str, *words: str) -> Any:
    backend = _keyring()
    if backend is None:
        raise KeyStoreError("this system's keyring cannot be used now: unlock it, or save the key again")
    try:
        return getattr(backend, act)(SERVICE, f"{home()}:{name}", *words)
    except Exception as error:  # noqa: BLE001 - each backend has failures of its own; none may quote a key
        raise KeyStoreError(
            f"this system's keyring refused ({type(error).__name__}): unlock it, or save the key again"
        ) from None
