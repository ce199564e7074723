"""Which of the long tests run today: they take turns, so that the tests of a day take ten minutes, and a week has all.

`long_tests.txt` names the test functions that took `LONG_S` or more in all on two cores. Each of their cases has one of
`TURNS` turns, by its name; `--turn today` runs the cases of today's turn and every short test. Without the option, and
with `make test-all`, everything runs. A person may name a fixture there that takes long and that a file's tests
share: the first of them makes it, however short it is, so they have one turn together. `python -m tests.turns
JUNIT.xml` writes the list anew from a whole run, and keeps the fixtures.
"""

from __future__ import annotations

import sys
import time
import xml.etree.ElementTree as ElementTree
import zlib
from collections import defaultdict
from pathlib import Path

import pytest

TURNS = 7
LONG_S = 3.0
LIST = Path(__file__).with_name("long_tests.txt")
ALL, TODAY = "all", "today"


def pytest_addoption(parser: pytest.Parser) -> None:
    told = f"which of {TURNS} turns of the long tests runs beside the short ones: a number from 0, {TODAY} or {ALL}"
    parser.addoption("--turn", default=ALL, type=_number, help=told)


def _number(turn: str) -> str:
    """Today's turn as a number: workers are told that one, and for them it does not become tomorrow."""
    return str(int(time.time() // 86400) % TURNS) if turn == TODAY else turn


def heading(config: pytest.Config) -> str | None:
    """What the first lines of a run say of it."""
    if config.option.turn == ALL:
        return None
    return f"long tests: turn {config.option.turn} of {TURNS}, another one each day; `make test-all` runs them all"


def take(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave in the short tests and those long ones whose turn it is."""
    if config.option.turn == ALL:
        return
    long = _listed()
    waiting = [
        item for item in items if (name := _taking_turns(item, long)) and turn_of(name) != int(config.option.turn)
    ]
    if waiting:
        config.hook.pytest_deselected(items=waiting)
        gone = set(waiting)
        items[:] = [item for item in items if item not in gone]


def turn_of(name: str) -> int:
    """The turn of one case of a test, by the name that pytest gives it, or of a fixture, by its name in the list."""
    return zlib.crc32(name.encode("utf-8", "surrogateescape")) % TURNS


def _taking_turns(item: pytest.Item, long: set[str]) -> str:
    """What a test takes turns as: a fixture, itself, or nothing where it is short."""
    file, function = item.nodeid.partition("::")[0], item.nodeid.partition("[")[0]
    fixtures = (f"{file}::{name}" for name in getattr(item, "fixturenames", ()))
    return next((name for name in fixtures if name in long), item.nodeid if function in long else "")


def _listed() -> set[str]:
    return set(LIST.read_text(encoding="utf-8").split())


def _is_fixture(name: str) -> bool:
    return not name.partition("::")[2].startswith("test_")


def long_functions(junit: Path) -> list[str]:
    """The functions that took long in a run, from its report in the form `xunit1`, all their cases together, and the
    fixtures that are listed."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for case in ElementTree.parse(junit).iter("testcase"):
        seconds[f"{case.get('file')}::{case.get('name', '').partition('[')[0]}"] += float(case.get("time", 0))
    long = {name for name, taken in seconds.items() if taken >= LONG_S}
    return sorted(long | set(filter(_is_fixture, _listed())))


if __name__ == "__main__":
    LIST.write_text("".join(f"{name}\n" for name in long_functions(Path(sys.argv[1]))), encoding="utf-8")
