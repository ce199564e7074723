"""Whatever is not ours, read within limits: files, lines, streams, archives, and what they say as JSON or TOML.

Everything that is wrong with it raises `UntrustedError`, whose message is a sentence for people; only a file that is
not there stays `FileNotFoundError`. Reading takes time and memory in proportion to bytes, because depth and digits are
bounded too; a stream, which may keep its reader waiting, has a deadline. Knows no record.
"""

from __future__ import annotations

import io
import itertools
import json
import lzma
import os
import re
import select
import stat
import tarfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

PIECE = 1 << 16
MOST_LINE_BYTES = 16 << 20
MOST_LINES_BYTES = 2 << 30  # of a file of lines; a run of 100,000 events has 94 MB
MOST_DICTIONARY_BYTES = 128 << 20  # of an xz archive: `xz -9` needs 65 MB


class UntrustedError(ValueError):
    """Something that is not ours and cannot be read; the message says what it is and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What is read at most.

    Attributes:
        most_bytes: of a file, a stream, a text, or of all files of an archive together.
        most_depth: of lists and tables within each other.
        most_digits: of one number. A number with more has no meaning here, and Python takes quadratic time to read it.
        most_s: seconds that a stream may take to end; None waits for ever, as for a person who types.
        most_members: of an archive.
    """

    most_bytes: int = 1 << 20
    most_depth: int = 60
    most_digits: int = 400
    most_s: float | None = 10.0
    most_members: int = 100_000


USUAL = Limits()


def open_file(path: Path) -> io.BufferedReader:
    """A regular file, opened for reading: never a device, a pipe or a socket, which may have no end.

    Raises:
        FileNotFoundError: there is none.
        UntrustedError: it is something else, or may not be read.
    """
    try:
        _see_that_it_is_regular(path, path.stat().st_mode)  # opening alone sets some devices going
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            _see_that_it_is_regular(path, os.fstat(file).st_mode)
        except UntrustedError:
            os.close(file)
            raise
        return os.fdopen(file, "rb")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UntrustedError(f"{path} cannot be read: {error.strerror or error}") from error
    except UntrustedError:
        raise
    except ValueError as error:  # a NUL, or a lone surrogate, in the path
        raise UntrustedError(f"{str(path)!r} is no path of a file: {error}") from error


def read_bytes(path: Path, limits: Limits = USUAL) -> bytes:
    """The content of a regular file.

    Raises:
        FileNotFoundError: there is none.
        UntrustedError: it is something else, too large, or may not be read.
    """
    with open_file(path) as file:
        if (size := os.fstat(file.fileno()).st_size) > limits.most_bytes:
            raise UntrustedError(f"{path} has {_size(size)}: at most {_size(limits.most_bytes)} are read")
        try:
            content = file.read(limits.most_bytes + 1) or b""  # of /proc: without a size, or with nothing to give now
        except OSError as error:
            raise UntrustedError(f"{path} cannot be read: {error.strerror or error}") from error
    _see_that_it_is_short(content, f"{path}", limits)
    return content


def read_text(path: Path, limits: Limits = USUAL) -> str:
    """What a file says as UTF-8, with or without a byte order mark.

    Raises:
        FileNotFoundError: there is none.
        UntrustedError: as for `read_bytes`, or it is no UTF-8.
    """
    return text_of(read_bytes(path, limits), f"{path}")


def read_json(path: Path, limits: Limits = USUAL) -> Any:
    """What a file says as JSON; raises as `read_bytes` and `json_value` do."""
    return json_value(read_bytes(path, limits), f"{path}", limits)


def read_toml(path: Path, limits: Limits = USUAL) -> dict[str, Any]:
    """What a file says as TOML; raises as `read_text` and `toml_table` do."""
    return toml_table(read_text(path, limits), f"{path}", limits)


def lines(path: Path, most_bytes: int = MOST_LINE_BYTES) -> Iterator[bytes]:
    """The whole lines of a regular file without their newlines; raises as `raw_lines` does."""
    return (line.removesuffix(b"\n") for line in raw_lines(path, 0, most_bytes))


def raw_lines(path: Path, start: int = 0, most_bytes: int = MOST_LINE_BYTES) -> Iterator[bytes]:
    """The whole lines of a regular file from a byte on, none where there is no file.

    A torn last line is left out. A line longer than `most_bytes` comes in pieces of that length, each by itself.

    Raises:
        UntrustedError: it is no regular file, too large, or may not be read.
    """
    try:
        with open_file(path) as file:
            if (size := os.fstat(file.fileno()).st_size) > MOST_LINES_BYTES:
                raise UntrustedError(f"{path} has {_size(size)}: at most {_size(MOST_LINES_BYTES)} of lines are read")
            file.seek(start)
            while piece := file.readline(most_bytes):
                if not piece.endswith(b"\n") and len(piece) < most_bytes:
                    return  # what a writer adds meanwhile is no line of its own
                yield piece
    except FileNotFoundError:
        return
    except OSError as error:
        raise UntrustedError(f"{path} cannot be read: {error.strerror or error}") from error


def read_stream(file: BinaryIO | int, what: str, limits: Limits = USUAL) -> bytes:
    """Everything that a pipe, a terminal or a socket gives until its end.

    Raises:
        UntrustedError: it gives too much, or has not ended in time.
    """
    number = file if isinstance(file, int) else file.fileno()
    until = None if limits.most_s is None else time.monotonic() + limits.most_s
    content = bytearray()
    while len(content) <= limits.most_bytes:
        left = None if until is None else max(0.0, until - time.monotonic())
        if not select.select([number], [], [], left)[0]:
            raise UntrustedError(f"{what} has not ended within {limits.most_s:g} seconds")
        try:
            piece = os.read(number, PIECE)
        except OSError as error:
            raise UntrustedError(f"{what} cannot be read: {error.strerror or error}") from error
        if not piece:
            return bytes(content)
        content += piece
    raise UntrustedError(f"{what} gives more than {_size(limits.most_bytes)}")


def text_of(content: bytes, what: str) -> str:
    """Bytes as UTF-8, with or without a byte order mark.

    Raises:
        UntrustedError: they are something else.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UntrustedError(f"{what} is no text in UTF-8: byte {error.start + 1} does not fit") from error


def json_value(text: bytes | str, what: str, limits: Limits = USUAL) -> Any:
    """What a text says as JSON; NaN, Infinity and lone surrogates are read as Python writes them.

    Raises:
        UntrustedError: it says nothing as JSON, or is too long, too deep, or has a number of too many digits.
    """
    content = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    _see_that_it_is_short(content, what, limits)
    check_json(content, what, limits)
    try:
        return json.loads(content.decode("utf-8", "surrogatepass").removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise UntrustedError(f"{what} is no JSON: {error}") from error


def check_json(content: bytes, what: str, limits: Limits = USUAL) -> None:
    """See that no reader of JSON, ours or another, meets too much depth or too many digits in this text.

    Raises:
        UntrustedError: it would.
    """
    # Both first questions are answered at once, and by nearly every text; strings may hold what looks like the rest.
    has_depth = content.count(b"[") + content.count(b"{") > limits.most_depth
    if not has_depth and not _has_digits(content, limits.most_digits):
        return
    bare = _JSON_STRING.sub(b'""', content)
    depth = max(itertools.accumulate(map(_STEP.__getitem__, bare.translate(None, _NO_BRACKETS))), default=0)
    if depth > limits.most_depth:
        raise UntrustedError(f"{what} is nested more than {limits.most_depth} deep")
    if _has_digits(bare, limits.most_digits):
        raise UntrustedError(f"{what} has a number of more than {limits.most_digits} digits")


def toml_table(text: str, what: str, limits: Limits = USUAL) -> dict[str, Any]:
    """What a text says as TOML.

    Raises:
        UntrustedError: it says nothing as TOML, or is too long, too deep, or has a number of too many digits.
    """
    _see_that_it_is_short(text.encode("utf-8", "surrogatepass"), what, limits)
    if _dotted(limits.most_depth).search(
        _TOML_STRING.sub("s", text)
    ):  # `tomllib` takes quadratic time for a name of many parts
        raise UntrustedError(f"{what} has a name of more than {limits.most_depth} parts")
    try:
        table = tomllib.loads(text)
    except RecursionError as error:
        raise UntrustedError(f"{what} is nested more than {limits.most_depth} deep") from error
    except ValueError as error:  # also of Python itself, for an integer of more than 4,300 digits
        raise UntrustedError(f"{what} is no TOML: {error}") from error
    _see_that_it_is_flat(table, what, limits)
    return table


def whole_number(text: str, what: str, least: int = 0, most: int = 2**53) -> int:
    """A whole number that somebody has written.

    Raises:
        UntrustedError: it is none, or out of range.
    """
    if re.fullmatch(r"[+-]?[0-9]{1,30}", text.strip()) and least <= (number := int(text)) <= most:
        return number
    raise UntrustedError(f"{what} has to be a whole number from {least:,} to {most:,}, not {_short(text)!r}")


def archive_members(path: Path, limits: Limits = USUAL) -> Iterator[tuple[str, bytes]]:
    """The files of a tar archive compressed by xz, one after the other: each name, as it stands there, and content.

    Raises:
        FileNotFoundError: there is none.
        UntrustedError: it is damaged, too much comes out of it, or it holds something else than files.
    """
    with open_file(path) as file:
        if os.fstat(file.fileno()).st_size > limits.most_bytes:
            raise UntrustedError(f"{path} has more than {_size(limits.most_bytes)}")
        unpacked = _Unpacked(file, f"{path}", limits)
        try:
            with tarfile.open(fileobj=unpacked, mode="r|") as archive:
                for count, member in enumerate(archive):
                    content = archive.extractfile(member) if member.isreg() else None
                    if content is None or member.issparse() or count >= limits.most_members:
                        raise UntrustedError(f"{path} holds {_short(member.name)!r}, which is no file, or too many")
                    yield member.name, content.read()
            while unpacked.read(PIECE):  # what damage there is shows at the end, where the check sums are
                pass
        except UntrustedError:
            raise
        except (OSError, EOFError, lzma.LZMAError, tarfile.TarError, ValueError, RecursionError) as error:
            raise UntrustedError(f"{path} is no archive that can be read: {error}") from error


class _Unpacked(io.RawIOBase):
    """What comes out of an xz file, piece by piece, until it is too much."""

    def __init__(self, file: BinaryIO, what: str, limits: Limits) -> None:
        self._file, self._what, self._limits = file, what, limits
        self._decompressor = lzma.LZMADecompressor(memlimit=MOST_DICTIONARY_BYTES)
        self._count = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer, in part."""
        piece = b""
        while not piece and not self._decompressor.eof:
            packed = self._file.read(PIECE) if self._decompressor.needs_input else b""
            if self._decompressor.needs_input and not packed:
                raise EOFError("it ends too early")
            piece = self._decompressor.decompress(packed, len(buffer))
        self._count += len(piece)
        if self._count > self._limits.most_bytes:
            raise UntrustedError(f"more than {_size(self._limits.most_bytes)} come out of {self._what}")
        buffer[: len(piece)] = piece
        return len(piece)


# Each alternative ends at the end of the text too, so that a string that is not closed is looked at once.
_JSON_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_TOML_STRING = re.compile(
    r'''"""(?:[^"\\]++|\\.|"(?!""))*+(?:"""|\\?\Z)|"(?:[^"\\\n]++|\\.)*+(?:"|\\?\Z|(?=\n))'''
    r"""|'''(?:[^']++|'(?!''))*+(?:'''|\Z)|'[^'\n]*+(?:'|\Z|(?=\n))|#[^\n]*+""",
    re.DOTALL,
)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_KINDS = {
    stat.S_IFDIR: "a folder", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}  # fmt: skip


def _see_that_it_is_regular(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise UntrustedError(f"{path} is {_KINDS.get(stat.S_IFMT(mode), 'something else')}, not a file")


def _see_that_it_is_short(content: bytes, what: str, limits: Limits) -> None:
    if len(content) > limits.most_bytes:
        raise UntrustedError(f"{what} has more than {_size(limits.most_bytes)}")


def _has_digits(content: bytes, most: int) -> bool:
    return len(content) > most and b"0" * (most + 1) in content.translate(_ZEROS)


def _dotted(most: int) -> re.Pattern[str]:
    """A name of more parts in a TOML text without strings; it begins where no part could have begun before."""
    return re.compile(rf"(?<![\w\-. \t])(?:[ \t]*+[\w-]*+[ \t]*+\.){{{most},}}")


def _see_that_it_is_flat(value: Any, what: str, limits: Limits) -> None:
    """By levels and not by recursion."""
    level = [value]
    for _ in range(limits.most_depth + 1):
        level = [item for outer in level for item in (outer.values() if isinstance(outer, dict) else outer)]
        if any(isinstance(item, int) and item.bit_length() > 3.33 * limits.most_digits for item in level):
            raise UntrustedError(f"{what} has a number of more than {limits.most_digits} digits")
        level = [item for item in level if isinstance(item, dict | list)]
        if not level:
            return
    raise UntrustedError(f"{what} is nested more than {limits.most_depth} deep")


def _size(count: int) -> str:
    return f"{count:,} bytes" if count < 1 << 20 else f"{count / (1 << 20):,.0f} MB"


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
