"""Long tests take turns: each has one, and none is lost."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import turns

pytest_plugins = ["pytester"]
ROOT = Path(__file__).resolve().parent.parent


def test_every_long_test_that_is_listed_exists() -> None:
    for name in turns.LIST.read_text(encoding="utf-8").split():
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
        "def test_one(made): pass\ndef test_another(over): pass\ndef test_without(): pass\n"
    )
    pytester.makeconftest(
        "from tests import turns\nfrom tests.turns import pytest_addoption\n"
        "def pytest_collection_modifyitems(config, items): turns.take(config, items)\n"
        "def pytest_report_header(config): return turns.heading(config)\n"
    )
    listed = tmp_path / "long_tests.txt"
    listed.write_text("test_shared.py::made\ntest_some.py::test_long\n")
    monkeypatch.setattr(turns, "LIST", listed)
    run, shared = 0, []
    for turn in range(turns.TURNS):
        result = pytester.runpytest_inprocess("--turn", str(turn), "-v")
        text = result.stdout.str()
        assert "test_some.py::test_short PASSED" in text
        assert f"turn {turn} of {turns.TURNS}" in text
        shared.append(text.count("test_shared.py::"))
        run += result.parseoutcomes()["passed"] - 2
    assert sorted(shared) == [*[1] * (turns.TURNS - 1), 3]
    assert run == 22
    assert pytester.runpytest_inprocess().parseoutcomes() == {"passed": 24}
    today = pytester.runpytest_inprocess("--turn", "today").parseoutcomes()
    assert today["passed"] + today["deselected"] == 24


def test_the_list_is_made_of_what_all_cases_of_a_function_took_and_keeps_fixtures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "long_tests.txt").write_text("tests/test_a.py::test_gone\ntests/test_a.py::made\n")
    monkeypatch.setattr(turns, "LIST", tmp_path / "long_tests.txt")
    cases = "".join(
        f'<testcase file="tests/test_a.py" name="{name}" time="{seconds}"/>'
        for name, seconds in (("test_b[1]", 2.0), ("test_b[2]", 1.5), ("test_c", 2.9))
    )
    (tmp_path / "junit.xml").write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    assert turns.long_functions(tmp_path / "junit.xml") == ["tests/test_a.py::made", "tests/test_a.py::test_b"]
