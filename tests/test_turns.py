"""Long tests take turns: each has one, and none is lost."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import turns

pytest_plugins = ["pytester"]
ROOT = Path(__file__).resolve().parent.parent


def test_every_long_test_that_is_listed_exists() -> None:
    for line in turns.LIST.read_text(encoding="utf-8").splitlines():
        name, _, turn = line.partition(" ")
        assert turn in ("", *map(str, range(turns.TURNS))), line
        file, _, function = name.partition("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"^def {re.escape(function)}\(", text, re.MULTILINE), name


def test_each_case_of_a_long_test_has_its_turn_and_short_ones_have_every(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytester.makepyfile(
        test_some="import pytest\n"
        "@pytest.mark.parametrize('case', range(20))\ndef test_long(case): pass\n"
        "def test_short(): pass\n"
    )
    pytester.makepyfile(
        test_shared="import pytest\n@pytest.fixture(scope='module')\ndef made(): return 1\n"
        "@pytest.fixture\ndef over(made): return made\n"
        "def test_one(made): pass\ndef test_another(over): pass\ndef test_without(): pass\n",
        test_heavy="def test_heavy(): pass\n",
    )
    pytester.makeconftest(
        "from tests import turns\nfrom tests.turns import pytest_addoption\n"
        "def pytest_collection_modifyitems(config, items): turns.take(config, items)\n"
        "def pytest_report_header(config): return turns.heading(config)\n"
    )
    listed = tmp_path / "long_tests.txt"
    listed.write_text("test_heavy.py::test_heavy 4\ntest_shared.py::made\ntest_some.py::test_long\n")
    monkeypatch.setattr(turns, "LIST", listed)
    run, shared = 0, []
    for turn in range(turns.TURNS):
        result = pytester.runpytest_inprocess("--turn", str(turn), "-v")
        text = result.stdout.str()
        assert "test_some.py::test_short PASSED" in text
        assert f"turn {turn} of {turns.TURNS}" in text
        assert ("test_heavy.py::test_heavy PASSED" in text) is (turn == 4)
        shared.append(text.count("test_shared.py::"))
        run += result.parseoutcomes()["passed"] - 2
    assert sorted(shared) == [*[1] * (turns.TURNS - 1), 3]
    assert run == 23
    assert pytester.runpytest_inprocess().parseoutcomes() == {"passed": 25}
    today = pytester.runpytest_inprocess("--turn", "today").parseoutcomes()
    assert today["passed"] + today["deselected"] == 25


def test_the_list_is_made_of_what_functions_took_keeps_fixtures_and_spreads_those_that_take_longest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "long_tests.txt").write_text("tests/test_a.py::test_gone\ntests/test_a.py::made\n")
    monkeypatch.setattr(turns, "LIST", tmp_path / "long_tests.txt")
    took = {"test_b[1]": 2.0, "test_b[2]": 1.5, "test_c": 2.9, "test_d[1]": 50.0}
    took |= {f"test_heavy_{number}": 20.0 + number for number in range(turns.TURNS - 1)}
    cases = "".join(f'<testcase file="tests/test_a.py" name="{name}" time="{took[name]}"/>' for name in took)
    (tmp_path / "junit.xml").write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    found = turns.lines(tmp_path / "junit.xml")
    assert found[:3] == ["tests/test_a.py::made", "tests/test_a.py::test_b", "tests/test_a.py::test_d"]
    given = [int(line.rpartition(" ")[2]) for line in found[3:]]
    busy = turns.turn_of("tests/test_a.py::test_d[1]", {})
    assert sorted([*given, busy]) == list(range(turns.TURNS))
