"""What a day has cost, from a file that many engines write: lines that cannot be read are told and left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.doctor import findings
from engine.search.daily import FOLDER, Ledger, Spent, write_limits
from storage import codec

DAY = 1_700_000_000.0
CALL = Spent(1, 100, 0.5)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    write_limits(tmp_path / "budget.toml", {"calls": 3})
    found = Ledger(tmp_path, lambda: DAY)
    assert found.reserve(CALL) is None
    return found


def file_of(home: Path) -> Path:
    (path,) = (home / FOLDER).iterdir()
    return path


UNREADABLE = {
    "half a line": b'{"calls": 1, "to\n',
    "another record": b'{"calls": "many"}\n',
    "no object": b"[1, 2, 3, 4]\n",
    "an empty line": b"\n",
    "bytes": b"\xff\xfe\0\n",
    "not a number": b'{"calls":1,"tokens":1,"cost":NaN,"unpriced":0}\n',
    "a number without end": b'{"calls":1' + b"0" * 5000 + b"}\n",
    "deeply nested": b"[" * 100_000 + b"\n",
}


@pytest.mark.parametrize("line", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_line_that_cannot_be_read_is_told_and_left_out_and_the_limits_hold(
    ledger: Ledger, tmp_path: Path, line: bytes
) -> None:
    with file_of(tmp_path).open("ab") as file:
        file.write(line)
    assert ledger.spent() == CALL
    assert "1 line of it cannot be read and is left out" in ledger.damage()
    assert ledger.reserve(CALL) is None
    assert ledger.reserve(CALL) is None
    assert "3 of 3 calls" in str(ledger.reserve(CALL))


def test_a_line_that_a_full_disk_cut_is_gone_with_the_next_call(ledger: Ledger, tmp_path: Path) -> None:
    with file_of(tmp_path).open("ab") as file:
        file.write(b'{"calls": 1, "to')
    assert (ledger.spent(), ledger.damage()) == (CALL, "")
    assert ledger.reserve(CALL) is None
    assert (ledger.spent().calls, ledger.damage()) == (2, "")


@given(st.lists(st.binary(max_size=60).map(lambda text: text.replace(b"\n", b""))))
def test_any_lines_between_leave_the_sum_of_those_that_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, between: list[bytes]
) -> None:
    home = tmp_path_factory.mktemp("home")
    ledger = Ledger(home, lambda: DAY)
    ledger.reserve(CALL)
    file_of(home).write_bytes(b"".join(line + b"\n" + codec.dumps(CALL).encode() + b"\n" for line in [b"{}", *between]))
    assert ledger.spent().calls == 1 + len(between)


def test_looking_at_a_day_on_which_nothing_was_spent_writes_nothing(tmp_path: Path) -> None:
    write_limits(tmp_path / "budget.toml", {"cost": 2.0})
    ledger = Ledger(tmp_path, lambda: DAY)
    assert (ledger.shares(), ledger.damage()) == ([("US dollars of a day", 0.0, 2.0)], "")
    assert [path.name for path in tmp_path.iterdir()] == ["budget.toml"]


def test_the_doctor_tells_of_lines_that_cannot_be_read(home: Path) -> None:
    ledger = Ledger(home)
    ledger.reserve(CALL)
    file_of(home).write_bytes(b"{\n[\n")
    (told,) = (one.detail for section in findings().values() for one in section if one.name == "spent today")
    assert told.endswith("2 lines of it cannot be read and are left out of the sums")
