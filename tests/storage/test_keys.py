"""Keys of saved models: in a keyring, or in files that nobody else may open."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends.fail import Keyring as NoKeyring

from storage import keys
from storage.keys import KeyStoreError
from storage.run.saved_models import KeyPlace

KEY = "sk-planted-71c0de"


class Drawer(KeyringBackend):
    """A keyring that keeps what it is given as long as a test runs."""

    priority = 5.0

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kept: dict[tuple[str, str], str] = {}
        self.is_locked = False

    def get_password(self, service: str, username: str) -> str | None:
        if self.is_locked:
            raise RuntimeError(f"locked, with {KEY}")
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def drawer() -> Iterator[Drawer]:
    before = keyring.get_keyring()
    keyring.set_keyring(made := Drawer())
    yield made
    keyring.set_keyring(before)


def test_a_file_has_mode_600_in_a_folder_of_mode_700_whatever_the_umask(home: Path) -> None:
    before = os.umask(0)
    try:
        keys.keep("work", KEY, KeyPlace.FILE)
        keys.keep("work", KEY + "2", KeyPlace.FILE)
    finally:
        os.umask(before)
    (file,) = (home / "keys").iterdir()
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert keys.find("work", KeyPlace.FILE) == KEY + "2"
    keys.forget("work", KeyPlace.FILE)
    keys.forget("work", KeyPlace.FILE)
    assert keys.find("work", KeyPlace.FILE) is None


def test_a_keyring_keeps_it_and_no_file_does(home: Path, drawer: Drawer) -> None:
    keys.keep("work", KEY, KeyPlace.FILE)
    keys.keep("work", KEY, KeyPlace.KEYRING)
    assert keys.has_keyring()
    assert list((home / "keys").iterdir()) == []
    assert keys.find("work", KeyPlace.KEYRING) == KEY
    drawer.is_locked = True
    with pytest.raises(KeyStoreError, match="unlock it") as caught:
        keys.find("work", KeyPlace.KEYRING)
    assert KEY not in f"{caught.value}{caught.value.__cause__}"
    drawer.is_locked = False
    keys.forget("work", KeyPlace.KEYRING)
    assert drawer.kept == {}


def test_without_a_keyring_one_is_neither_found_nor_used() -> None:
    before = keyring.get_keyring()
    keyring.set_keyring(NoKeyring())  # type: ignore[no-untyped-call]
    try:
        assert not keys.has_keyring()
        with pytest.raises(KeyStoreError, match="keyring cannot be used"):
            keys.find("work", KeyPlace.KEYRING)
    finally:
        keyring.set_keyring(before)


@pytest.mark.parametrize("key", ["", "two words", "ümlaut", "line\nbreak"])
def test_what_is_no_key_is_not_kept(home: Path, key: str) -> None:
    with pytest.raises(KeyStoreError, match="paste it again"):
        keys.keep("work", key, KeyPlace.FILE)
    assert not (home / "keys").exists()
