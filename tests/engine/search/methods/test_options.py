"""Settings of a strategy: what a record says of them, and which values they take."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from engine.errors import EngineError
from engine.search.methods.cutegen.settings import CuteGenSettings
from engine.search.methods.options import Choice, Value, complete, described, labelled, option, parse, read
from storage import codec


@dataclass(frozen=True, slots=True)
class Every:
    """One option of each sort."""

    rounds: int = option(10, "rounds of the method", label="Rounds", least=1)
    share: float = option(0.5, "share of the best", least=0)
    width: int | None = option(None, "kernels side by side", automatic="as many as fit")
    is_greedy: bool = option(False, "whether only the best goes on")
    order: str = option("best", "order", choices=(Choice("best", "best first"), Choice("random", "draw", "Seed")))
    note: str = "x"


OPTIONS = described(Every)


def test_what_a_record_says_of_its_fields_travels_as_json() -> None:
    assert [one.label for one in OPTIONS] == ["Rounds", "Share", "Width", "Is greedy", "Order", "Note"]
    assert [one.types for one in OPTIONS[:3]] == [("int",), ("float",), ("int", "None")]
    assert tuple(codec.from_plain(type(one), codec.to_plain(one)) for one in OPTIONS) == OPTIONS


def test_help_says_what_it_is_what_it_can_be_and_its_default() -> None:
    assert [one.help() for one in OPTIONS] == [
        "rounds of the method, at least 1 (default 10)",
        "share of the best, at least 0 (default 0.5)",
        "kernels side by side (default as many as fit)",
        "whether only the best goes on (default no)",
        "order: best (best first), random=K (draw) (default best)",
        "note (default x)",
    ]


def test_values_are_words_of_a_command_line_and_the_rest_has_its_default() -> None:
    words = ["rounds=3", "share=2", "width=none", "is_greedy=yes", "order=random=7"]
    found = parse(OPTIONS, words)
    assert found == {"rounds": 3, "share": 2.0, "width": None, "is_greedy": True, "order": "random=7"}
    assert read(Every, found) == Every(3, 2.0, None, True, "random=7", "x")
    assert complete(OPTIONS, {})["rounds"] == 10


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"runds": 1}, "unknown strategy option 'runds': use rounds, share"),
        ({"rounds": 0}, "rounds must be at least 1, not 0"),
        ({"rounds": True}, "rounds does not take True: use a whole number"),
        ({"rounds": None}, "rounds does not take None"),
        ({"share": float("nan")}, "share must be at least 0, not nan"),
        ({"order": "worst"}, "unknown order 'worst': use best (best first), random=K (draw)"),
        ({"order": "best=1"}, "unknown order"),
        ({"order": "random=0"}, "unknown order"),
        ({"order": "random"}, "unknown order"),
    ],
)
def test_a_value_that_an_option_cannot_have_is_refused_with_what_would_do(values: dict[str, Value], said: str) -> None:
    with pytest.raises(EngineError) as refused:
        complete(OPTIONS, values)
    assert said in str(refused.value)


@pytest.mark.parametrize("word", ["rounds", "runds=1", "rounds=x", "rounds=0", "is_greedy=1"])
def test_a_word_that_is_no_value_is_refused(word: str) -> None:
    with pytest.raises(EngineError):
        parse(OPTIONS, [word])


def test_what_can_be_no_option_is_said_to_be_none() -> None:
    for text in ("int", "tuple = ()", "int = 'one'"):
        space: dict[str, object] = {"dataclass": dataclass}
        exec(f"@dataclass\nclass Odd:\n    field: {text}", space)
        with pytest.raises(EngineError, match="field"):
            described(space["Odd"])  # type: ignore[arg-type]


def test_options_of_a_run_are_told_by_their_labels_and_by_name_where_nobody_describes_them() -> None:
    own = described(CuteGenSettings)
    assert labelled(own, {"base_policy": "patience=3", "older": 1}) == [
        (
            "Each depth starts from",
            "latest kernel; back to the best after some depths without progress (depths without progress: 3)",
        ),
        ("Maximum repairs per kernel", "5"),
        ("Maximum restarts per depth", "2"),
        ("Show profiles to the model", "auto, by kernel class"),
        ("Profile schedule", "at every depth from that one on"),
        ("Older", "1"),
    ]
    values: dict[str, Value] = {"base_policy": "best", "expose_from_depth": 4, "profile_schedule": "adaptive=3"}
    assert dict(labelled(own, values, "depth")) == {
        "Each depth starts from": "always the best kernel",
        "Maximum repairs per kernel": "5",
        "Maximum restarts per depth": "2",
        "Show profiles to the model": "from depth 4",
        "Profile schedule": "only after some depths in a row without a gain; on auto from depth 1 on "
        "(depths without a gain: 3)",
    }
    assert dict(labelled(OPTIONS, {"is_greedy": True}))["Is greedy"] == "yes"


def test_recorded_replies_have_a_default_of_their_own_where_the_record_says_so() -> None:
    policy = described(CuteGenSettings)[0]
    assert (policy.default_for("recorded"), policy.default_for("gpt-5")) == ("latest", "patience=2")
    assert OPTIONS[0].default_for("recorded") == 10
