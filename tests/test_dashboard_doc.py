"""The tables of docs/dashboard.md name tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROWS = [line for line in (ROOT / "docs/dashboard.md").read_text().splitlines() if line.startswith("| ")]


def named(row: str) -> list[tuple[str, str]]:
    """(file, test) of every test a row names; the test is empty where a whole file is meant."""
    found, file = [], ""
    for name in re.findall(r"`((?:test_\w+\.py)?(?:::test_\w+)?)`", row.rsplit("|", 2)[1]):
        own, _, test = name.partition("::")
        file = own or file
        found.append((file, test))
    return found


@pytest.mark.parametrize("row", [row for row in ROWS if not row.endswith("| shown by |")], ids=lambda row: row[2:40])
def test_a_row_names_tests_that_exist(row: str) -> None:
    tests = named(row)
    assert tests, "this row names no test"
    for file, test in tests:
        text = (ROOT / "tests/browser" / file).read_text()
        assert f"def {test or 'test_'}" in text, f"{file} has no {test}"
