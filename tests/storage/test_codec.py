"""Records survive the way to JSON and back."""

from __future__ import annotations

import importlib
import json
import math
import pkgutil
import subprocess
import sys
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import codec
from storage.results.evaluation_results import CheckResult, TimingResult
from storage.results.profile_results import ProfileResult
from storage.results.vocabulary import Verdict
from storage.run import events, journal
from storage.run.journal import Entry
from storage.run.settings import Budget, RunSettings
from storage.run.steering.verbs import Command
from tests.samples import sample_settings
from tests.storage.event_strategies import KINDS, any_event


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_every_kind_of_event_comes_back_as_it_went(kind: type, data: st.DataObject) -> None:
    entry = Entry(7, 1.5, data.draw(any_event(kind)))
    line = journal.encode(entry)
    assert "\n" not in line
    assert journal.decode(line.encode("utf-8", "surrogatepass").decode("utf-8", "surrogatepass")) == entry


def test_settings_come_back_as_they_went() -> None:
    settings = sample_settings("a")
    assert codec.from_plain(RunSettings, json.loads(codec.dumps(settings))) == settings


def test_numbers_that_are_not_finite_survive() -> None:
    result = CheckResult(Verdict.INCORRECT, 1.0, max_error=math.inf, max_abs_error=math.nan)
    back = codec.from_plain(CheckResult, json.loads(codec.dumps(result)))
    assert back.max_error == math.inf
    assert math.isnan(back.max_abs_error)


def test_a_newer_journal_with_more_fields_can_be_read() -> None:
    assert codec.from_plain(Budget, {"depths": 3, "invented_later": [1]}) == Budget(depths=3)


def test_an_older_journal_with_fewer_fields_takes_the_defaults() -> None:
    assert codec.from_plain(Budget, {}) == Budget()


def test_a_missing_field_without_default_is_an_error() -> None:
    with pytest.raises(codec.DecodeError, match="Command"):
        codec.from_plain(Command, {"command_id": "a"})


def test_a_value_outside_a_closed_set_is_an_error_that_names_it() -> None:
    with pytest.raises(codec.DecodeError, match="'eaten' is not a Verdict"):
        codec.from_plain(CheckResult, {"verdict": "eaten", "seconds": 1.0})


@pytest.mark.parametrize(
    ("kind", "plain", "sentence"),
    [
        (events.Checked, {"step": 1, "candidate_id": "c", "result": {"verdict": "passed", "seconds": "long"}},
         "Checked: CheckResult: expected float, got 'long'"),
        (events.Checked, {"step": 1, "candidate_id": "c", "result": 3},
         "Checked: expected an object for CheckResult, got 3"),
        (CheckResult, {"verdict": "passed", "seconds": 1.0, "mismatch": []},
         "CheckResult: expected an object for Mismatch, got []"),
        (CheckResult, {"verdict": "passed", "seconds": 1.0, "trials": ["a", 2]}, "CheckResult: expected str, got 2"),
        (CheckResult, {"verdict": "passed", "seconds": 1.0, "evidence": {"a": {"b": 1}}},
         "CheckResult: Expected `str`, got `object`"),
        (ProfileResult, {"kernel_hash": "", "bound": "", "summary": "", "metrics": [{"name": "a", "unit": "b"}]},
         "ProfileResult: Metric: Object missing required field `value`"),
        (events.BudgetChanged, {"budget": {"tokens": "all"}}, "BudgetChanged: Budget: expected int, got 'all'"),
        (TimingResult, {"candidate_ms": [1.0], "baseline_ms": [0.0]},
         "TimingResult: latencies must be finite and above zero"),
        (Budget, None, "expected an object for Budget, got None"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told_with_the_records_that_it_stands_in(kind: type, plain: object, sentence: str) -> None:
    with pytest.raises(codec.DecodeError) as told:
        codec.from_plain(kind, plain)
    assert str(told.value) == sentence


def test_any_mapping_and_any_tuple_is_written_and_nothing_that_json_has_no_word_for() -> None:
    result = CheckResult(Verdict.PASSED, 1.0, ("a",), evidence=MappingProxyType({"lone": "\ud800"}))
    assert codec.from_plain(CheckResult, json.loads(codec.dumps([result]))[0]) == result
    with pytest.raises(TypeError, match="no word for PosixPath"):
        codec.dumps({"file": Path("a")})


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=8,
    ),
    st.sampled_from([kind.__name__ for kind in KINDS]),
)
def test_any_other_json_is_a_decode_error_and_nothing_worse(value: object, kind: str) -> None:
    for line in (value, {"seq": value, "time": 1.0, "kind": kind, "event": value}, {"kind": kind, "event": value}):
        try:
            journal.decode(json.dumps(line))
        except codec.DecodeError:
            continue


def test_every_event_has_a_docstring_and_a_place_in_the_union() -> None:
    modules = [
        importlib.import_module(f"storage.run.events.{found.name}") for found in pkgutil.iter_modules(events.__path__)
    ]
    defined = {
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__
    }
    assert defined == set(KINDS)


FIRST_MET_BY_THREADS = """
import sys, threading
from dataclasses import field, make_dataclass
from storage import codec

sys.setswitchinterval(1e-6)
for _ in range(100):
    kind = int
    for depth in range(6):
        kind = make_dataclass(f"Layer{depth}", [(f"f{i}", kind | None, field(default=None)) for i in range(6)])
    start = threading.Barrier(4)
    work = lambda: (start.wait(), codec.from_plain(kind, {}))
    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in (threading.Thread.start, threading.Thread.join):
        for thread in threads:
            each(thread)
"""


def test_threads_that_meet_a_type_together_read_it() -> None:
    done = subprocess.run([sys.executable, "-c", FIRST_MET_BY_THREADS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
