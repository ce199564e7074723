"""What is not ours is read within limits, and what cannot be is told in a sentence."""

from __future__ import annotations

import io
import json
import lzma
import os
import re
import socket
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import untrusted
from storage.untrusted import Limits, UntrustedError

SMALL = Limits(most_bytes=200, most_depth=4, most_digits=12, most_s=0.2, most_members=3)
anything_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def error_of(read: Callable[[], object]) -> str | None:
    """What is said where it cannot be read; any other error is none of ours."""
    try:
        read()
    except UntrustedError as error:
        return f"{error}"
    return None


def test_a_file_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"\xef\xbb\xbf\xc3\xa4")
    assert untrusted.read_bytes(path) == b"\xef\xbb\xbf\xc3\xa4"
    assert untrusted.read_text(path) == "ä"


def test_a_file_that_is_not_there_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        untrusted.read_bytes(tmp_path / "a")


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(os.path.relpath(path))


def _no_rights(path: Path) -> None:
    path.write_text("{}")
    path.chmod(0)


def _sparse(path: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(20 << 30)


NO_FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a folder": (lambda path: path.mkdir(), "is a folder, not a file"),
    "a pipe": (_pipe, "is a pipe, not a file"),
    "a socket": (_socket, "is a socket, not a file"),
    "a device": (lambda path: path.symlink_to("/dev/zero"), "is a device, not a file"),
    "a link to itself": (lambda path: path.symlink_to(path), "cannot be read: Too many levels"),
    "20 GB": (_sparse, "has 20,480 MB: at most 1 MB are read"),
}


@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_no_ordinary_file_is_refused_at_once(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make, said = NO_FILES[kind]
    path = tmp_path / "it"
    make(path)
    began = time.monotonic()
    for read in (untrusted.read_bytes, untrusted.read_text, untrusted.read_json, untrusted.read_toml):
        with pytest.raises(UntrustedError, match=said):
            read(path)
    assert time.monotonic() - began < 30  # one that is read waits for ever


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_rights_is_refused(tmp_path: Path) -> None:
    _no_rights(tmp_path / "a")
    with pytest.raises(UntrustedError, match="cannot be read: Permission denied"):
        untrusted.read_bytes(tmp_path / "a")


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "x" * 300, "file/inside"])
def test_a_path_that_no_file_can_have_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises((UntrustedError, FileNotFoundError)):
        untrusted.read_bytes(tmp_path / name)


def test_a_file_whose_size_is_not_told_is_read_up_to_the_limit() -> None:
    assert untrusted.read_bytes(Path("/proc/self/stat"))
    with pytest.raises(UntrustedError, match="more than 4 bytes"):
        untrusted.read_bytes(Path("/proc/self/stat"), Limits(most_bytes=4))


@given(anything_json)
def test_json_of_ours_is_read_as_json_reads_it(value: object) -> None:
    text = json.dumps(value)
    assert repr(untrusted.json_value(text, "it")) == repr(json.loads(text))


@given(st.binary() | st.text(st.characters()).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_json_or_an_error_with_a_sentence(content: bytes) -> None:
    said = error_of(lambda: untrusted.json_value(content, "the reply"))
    assert said is None or said.startswith("the reply ")


@given(st.text("[]{}\"\\,:1. ='a\n#_", max_size=60))
def test_any_text_is_toml_or_an_error_with_a_sentence(text: str) -> None:
    said = error_of(lambda: untrusted.toml_table(text, "the suite", SMALL))
    assert said is None or said.startswith("the suite ")


@given(st.integers(0, 8), st.sampled_from(["[", '{"a":']), st.text('[{"\\', max_size=6))
def test_depth_counts_brackets_outside_of_strings(depth: int, bracket: str, text: str) -> None:
    content = bracket * depth + json.dumps(text) + {"[": "]"}.get(bracket, "}") * depth
    if depth <= SMALL.most_depth:
        untrusted.json_value(content, "it", SMALL)
    else:
        with pytest.raises(UntrustedError, match="nested more than 4 deep"):
            untrusted.json_value(content, "it", SMALL)


@pytest.mark.parametrize("content", ["[" * 100_000, '{"a":' * 100_000, "[" * 100_000 + "]" * 100_000])
def test_json_nested_deeply_is_refused_and_not_recursed_into(content: str) -> None:
    with pytest.raises(UntrustedError, match="nested more than 60 deep"):
        untrusted.json_value(content, "it")


@pytest.mark.parametrize("number", ["1" * 13, "-" + "2" * 13, "0." + "3" * 13, "1e" + "0" * 13])
def test_a_number_of_too_many_digits_is_refused_and_the_same_in_a_string_is_not(number: str) -> None:
    with pytest.raises(UntrustedError, match="more than 12 digits"):
        untrusted.json_value(f'{{"a": {number}}}', "it", SMALL)
    assert untrusted.json_value(f'{{"a": "{number}"}}', "it", SMALL) == {"a": number}


TOML = {
    "a" + ".a" * 100 + " = 1": "a name of more than 60 parts",
    "[a" + ' . "b"' * 100 + "]": "a name of more than 60 parts",
    "a = " + "[" * 100 + "]" * 100: "nested more than 60 deep",
    "a = " + "[" * 5000 + "]" * 5000: "nested more than 60 deep",
    "a = " + "1" * 500: "more than 400 digits",
    "a = " + "1" * 5000: "is no TOML: Exceeds the limit",
    "a = 0x" + "f" * 9000: "more than 400 digits",
    "a = ": "is no TOML: Invalid value",
    "\ud800": "is no TOML",
}


@pytest.mark.parametrize("text", TOML, ids=range(len(TOML)))
def test_toml_that_cannot_be_read_says_why(text: str) -> None:
    with pytest.raises(UntrustedError, match=TOML[text]):
        untrusted.toml_table(text, "it")


def test_toml_of_people_is_read() -> None:
    numbers = [n + 0.5 for n in range(2000)]
    text = f"numbers = {numbers}\n[a.b.'c d'.\"e.f\"]\nn = 0xff\nmany = '{'a.' * 80}'\n"
    assert untrusted.toml_table(text, "it") == {
        "numbers": numbers, "a": {"b": {"c d": {"e.f": {"n": 255, "many": "a." * 80}}}},
    }  # fmt: skip


HOSTILE = {
    "quotes that are not closed": '"\\' * 500_000,
    "a word": "a" * 1_000_000,
    "spaces": " " * 1_000_000,
    "spaces and dots": " ." * 500_000,
    "words and dots": "a." * 500_000,
    "quoted words": '"a".' * 250_000,
    "one quote each": "'" * 1_000_000,
    "escaped quotes on lines": '"\\\n' * 300_000,
    "three quotes": '"""\\' * 250_000,
    "names in quotes": '"' + '".""\\' * 160_000,
    "backslashes": "\\" * 1_000_000,
    "digits": "1" * 400 + "," + ("1" * 400 + ",") * 2_400,
    "brackets in turn": "[]" * 500_000,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_megabyte_of_anything_is_read_or_refused_within_seconds(kind: str) -> None:
    began = time.process_time()
    error_of(lambda: untrusted.json_value(HOSTILE[kind], "it"))
    error_of(lambda: untrusted.toml_table(HOSTILE[kind], "it"))
    assert time.process_time() - began < 10  # quadratic time would be many minutes


def test_lines_leave_a_torn_one_out_and_cut_a_long_one_into_pieces(tmp_path: Path) -> None:
    path = tmp_path / "a"
    assert list(untrusted.lines(path)) == []
    path.write_bytes(b"one\n\n" + b"x" * 25 + b"\ntorn")
    assert list(untrusted.lines(path, 10)) == [b"one", b"", b"x" * 10, b"x" * 10, b"x" * 5]
    with pytest.raises(UntrustedError, match="is a folder"):
        list(untrusted.lines(tmp_path))


def test_a_stream_is_read_to_its_end() -> None:
    ours, theirs = os.pipe()
    os.write(theirs, b"whole")
    os.close(theirs)
    with os.fdopen(ours, "rb") as file:
        assert untrusted.read_stream(file, "the answer") == b"whole"


def test_a_stream_without_end_is_left_in_time() -> None:
    ours, theirs = os.pipe()
    os.write(theirs, b"half")
    with pytest.raises(UntrustedError, match="the answer has not ended within 0.2 seconds"):
        untrusted.read_stream(ours, "the answer", SMALL)
    os.close(theirs)
    os.close(ours)
    with open("/dev/zero", "rb") as file, pytest.raises(UntrustedError, match="the answer gives more than 200 bytes"):
        untrusted.read_stream(file, "the answer", SMALL)


@given(st.integers() | st.text("0123456789-+ .e_١", max_size=40))
def test_a_number_is_in_range_or_refused(given_number: object) -> None:
    text = str(given_number)
    said = error_of(lambda: untrusted.whole_number(text, "since"))
    is_number = re.fullmatch(r"[+-]?[0-9]+", text.strip()) is not None
    assert (said is None) == (is_number and 0 <= int(text) <= 2**53)
    assert said is None or said.startswith("since has to be a whole number from 0 to ")


def test_a_number_of_five_thousand_digits_is_refused() -> None:
    with pytest.raises(UntrustedError, match="since has to be a whole number .*, not '9{57}...'"):
        untrusted.whole_number("9" * 5000, "since")


def _archive(path: Path, *members: tarfile.TarInfo, sizes: int = 10) -> Path:
    with tarfile.open(path, "w:xz") as archive:
        for member in members:
            member.size = sizes if member.isreg() else 0
            archive.addfile(member, io.BytesIO(b"x" * member.size))
    return path


def test_an_archive_gives_its_files(tmp_path: Path) -> None:
    path = _archive(tmp_path / "a", tarfile.TarInfo("one"), tarfile.TarInfo("blobs/two"))
    assert dict(untrusted.archive_members(path)) == {"one": b"x" * 10, "blobs/two": b"x" * 10}


def test_an_archive_that_unpacks_without_end_is_left_at_the_limit(tmp_path: Path) -> None:
    path = _archive(tmp_path / "a", tarfile.TarInfo("one"), sizes=4 << 20)
    assert path.stat().st_size < 1 << 20
    with pytest.raises(UntrustedError, match="more than 1 MB come out of"):
        list(untrusted.archive_members(path))


def test_an_archive_that_holds_no_files_or_is_damaged_is_refused(tmp_path: Path) -> None:
    link = tarfile.TarInfo("link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    many = [tarfile.TarInfo(f"{number}") for number in range(5)]
    for members, limits in (([link], untrusted.USUAL), (many, Limits(most_members=3))):
        with pytest.raises(UntrustedError, match="which is no file, or too many"):
            list(untrusted.archive_members(_archive(tmp_path / "a", *members), limits))
    whole = _archive(tmp_path / "a", *many).read_bytes()
    for content in (b"", b"no archive", whole[:-40], whole[:60] + b"!" * 60 + whole[120:], lzma.compress(b"no tar")):
        (tmp_path / "b").write_bytes(content)
        with pytest.raises(UntrustedError, match="is no archive that can be read"):
            list(untrusted.archive_members(tmp_path / "b"))
