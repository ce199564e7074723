"""Texts are kept once, whole, under the hash of their bytes."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.run.blobs import Blobs, text_hash


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_comes_back_as_it_went(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        blobs = Blobs(Path(folder))
        assert blobs.get(blobs.put(text)) == text


def test_line_ends_are_kept(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path)
    assert blobs.get(blobs.put("a\r\nb\rc\n")) == "a\r\nb\rc\n"


def test_a_blob_is_named_by_the_hash_of_its_bytes(tmp_path: Path) -> None:
    assert Blobs(tmp_path).put("ä") == hashlib.sha256("ä".encode()).hexdigest() == text_hash("ä")


def test_the_same_text_is_kept_once_and_no_draft_is_left(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path / "blobs")
    assert blobs.put("same") == blobs.put("same")
    assert [path.name for path in (tmp_path / "blobs").iterdir()] == [text_hash("same")]


@pytest.mark.parametrize("name", ["", "../run.json", "/etc/passwd", "0" * 63, "G" * 64, "0" * 64 + "\n"])
def test_a_name_that_is_no_hash_opens_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(FileNotFoundError):
        Blobs(tmp_path / "blobs").get(name)


def test_a_blob_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Blobs(tmp_path).get("0" * 64)
