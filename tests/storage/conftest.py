"""A home folder and an index per test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.database import Database, index_file, open_database
from storage.ingest import Ingest
from tests.samples import write_run


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


@pytest.fixture
def sample(db: Database, root: Path) -> Database:
    write_run(root, depths=8)
    Ingest(db, root).catch_up()
    return db
