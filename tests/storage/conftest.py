"""A home folder and an index per test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.index.database import Database, index_file, open_database
from tests.storage.growth import index_of_run


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path))
    monkeypatch.delenv("TILEWRIGHT_READ_ONLY", raising=False)
    monkeypatch.delenv("TILEWRIGHT_WATCH", raising=False)
    return tmp_path


@pytest.fixture
def root(home: Path) -> Path:
    path = home / "runs"
    path.mkdir()
    return path


@pytest.fixture
def db(home: Path) -> Iterator[Database]:
    with open_database(index_file(home)) as opened:
        yield opened


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """One finished run, for all tests of a module: they only read it."""
    with index_of_run(tmp_path_factory.mktemp("sample"), depths=8) as opened:
        yield opened
