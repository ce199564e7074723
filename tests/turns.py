"""Which of the long tests run today: they take turns, so that a day's tests take ten minutes, and ten days have all.

`long_tests.txt` names the test functions that took `LONG_S` or more in all on two cores. Each of their cases has one of
`TURNS` turns: by its name, or the one that stands behind the name of a function that alone makes a day long. `--turn
today` runs the cases of today's turn and every short test. Without the option, and with `make test-all`, everything
runs. A person may name a fixture there that takes long and that a file's tests share: the first of them makes it,
however short it is, so they have one turn together. `python -m tests.turns JUNIT.xml` writes the list anew from a whole
run, gives those that take `HEAVY_S` or more to the shortest days, and keeps the fixtures.
"""

from __future__ import annotations

import sys
import time
import xml.etree.ElementTree as ElementTree
import zlib
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest

TURNS = 10
LONG_S, HEAVY_S = 3.0, 10.0
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
    long, turn = _listed(), int(config.option.turn)
    waiting = [item for item in items if (name := _taking_turns(item, long)) and turn_of(name, long) != turn]
    if waiting:
        config.hook.pytest_deselected(items=waiting)
        gone = set(waiting)
        items[:] = [item for item in items if item not in gone]


def turn_of(name: str, long: Mapping[str, str]) -> int:
    """The turn of one case of a test, by the name that pytest gives it, or of a fixture, by its name in the list."""
    return int(long.get(name) or zlib.crc32(name.encode("utf-8", "surrogateescape")) % TURNS)


def _taking_turns(item: pytest.Item, long: Mapping[str, str]) -> str:
    """What a test takes turns as: a fixture, itself, or nothing where it is short."""
    file, function = item.nodeid.partition("::")[0], item.nodeid.partition("[")[0]
    fixtures = (f"{file}::{name}" for name in getattr(item, "fixturenames", ()))
    return next((name for name in fixtures if name in long), item.nodeid if function in long else "")


def _listed() -> dict[str, str]:
    """By name the turn that stands behind it, if any."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return {name: turn for name, _, turn in (line.partition(" ") for line in lines)}


def _is_fixture(name: str) -> bool:
    return not name.partition("::")[2].startswith("test_")


def lines(junit: Path) -> list[str]:
    """The list, from a whole run's report in the form `xunit1`: functions by what all their cases took together."""
    cases = {
        f"{case.get('file')}::{case.get('name')}": float(case.get("time", 0))
        for case in ElementTree.parse(junit).iter("testcase")
    }
    seconds: defaultdict[str, float] = defaultdict(float)
    for case, taken in cases.items():
        seconds[case.partition("[")[0]] += taken
    long = {name: "" for name, taken in seconds.items() if taken >= LONG_S}
    heavy = [name for name in long if name in cases and cases[name] >= HEAVY_S]  # a function with cases is many days'
    days = [0.0] * TURNS
    for case, taken in cases.items():
        if case.partition("[")[0] in long and case not in heavy:
            days[turn_of(case, {})] += taken
    for name in sorted(heavy, key=cases.__getitem__, reverse=True):
        shortest = days.index(min(days))
        days[shortest] += cases[name]
        long[name] = str(shortest)
    long |= {name: turn for name, turn in _listed().items() if _is_fixture(name)}
    return sorted(f"{name} {turn}".rstrip() for name, turn in long.items())


if __name__ == "__main__":
    LIST.write_text("".join(f"{line}\n" for line in lines(Path(sys.argv[1]))), encoding="utf-8")
