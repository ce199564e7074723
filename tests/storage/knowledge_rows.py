"""Rows of a knowledge base, made by hand and by hypothesis."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from storage.knowledge.failures import rule_id, worded_name
from storage.knowledge.records import (
    Bottleneck,
    Category,
    Evidence,
    FailureCase,
    Outcome,
    Prior,
    Revision,
    RuleWords,
    State,
    Technique,
    Transition,
)

STATES = ("bandwidth bound", "latency bound", "found in a run", "found later")
TECHNIQUES = ("vectorise", "tile", "fuse")
DEVICES = ("NVIDIA H200", "Xeon")


def attempt(number: int = 1, outcome: Outcome = Outcome.FASTER, **fields: Any) -> Evidence:
    """One attempt of a technique; further fields in place of plain ones."""
    gain = {Outcome.FASTER: 1.5, Outcome.SAME: 1.0, Outcome.SLOWER: 0.5}.get(outcome)
    plain: dict[str, Any] = {"technique": "tile", "state": "bandwidth bound", "device": "Xeon", "gain": gain}
    plain |= {"run_id": "run", "candidate_id": f"c{number:03}", "outcome": outcome, "at": 1.0}
    return Evidence(**(plain | fields))


def change(revision_id: str, **fields: Any) -> Revision:
    """A change of what is known."""
    plain: dict[str, Any] = {"revision_id": revision_id, "at": 1.0, "by": "someone", "why": "because"}
    return Revision(**(plain | fields))


def state(name: str = "bandwidth bound", **fields: Any) -> State:
    """A state."""
    return State(**({"name": name, "bottleneck": Bottleneck.MEMORY, "about": f"about {name}"} | fields))


def technique(name: str = "tile", **fields: Any) -> Technique:
    """A technique."""
    return Technique(**({"name": name, "category": Category.MEMORY, "about": f"about {name}"} | fields))


_factors = st.floats(1e-9, 1e9) | st.sampled_from([1.0, 1.5, 0.5, 2.0])
_words = st.text(st.characters(codec="utf-8"), max_size=8)
_metrics = st.dictionaries(_words, st.floats(allow_nan=False), max_size=2)

attempts = st.lists(
    st.builds(
        Evidence,
        run_id=st.sampled_from(["a", "b"]),
        candidate_id=st.integers(1, 9).map(lambda n: f"c{n:03}"),
        technique=st.sampled_from([*TECHNIQUES, "never defined"]),
        outcome=st.sampled_from(Outcome),
        at=st.floats(0, 1e10),
        state=st.sampled_from([*STATES, ""]),
        task=_words,
        kernel_class=st.sampled_from(["matmul", "loss"]),
        language=st.sampled_from(["cute", "cuda"]),
        device=st.sampled_from(DEVICES),
        predicted_gain=st.none() | _factors,
        gain=st.none() | _factors,
        gain_low=st.none() | _factors,
        over_eager=st.none() | _factors,
        over_best=st.none() | _factors,
        limit_share=st.none() | st.floats(0, 1),
        parent_hash=st.sampled_from("xyz"),
        child_hash=st.sampled_from([*"xyz", ""]),
        before=_metrics,
        after=_metrics,
        tokens=st.integers(0, 10**6),
        error=_words,
    ),
    max_size=40,
)

_failures = ("no function `gemm`", "wrong output in the last rows")
_told = st.sampled_from(
    [worded_name(rule_id("cute", "cpu", _failures[0]), words) for words in ("as (N, K)", "another", "")]
)

cases = st.lists(
    st.builds(
        FailureCase,
        run_id=st.sampled_from(["a", "b"]),
        candidate_id=st.integers(1, 9).map(lambda n: f"c{n:03}"),
        at=st.floats(0, 1e10),
        language=st.sampled_from(["cute", "cuda"]),
        toolchain=st.just("cpu"),
        signature=st.sampled_from(["", *_failures]),
        is_repeat=st.booleans(),
        mends=st.sampled_from(["", *_failures]),
        words=st.sampled_from(["", "as (N, K)", "another"]),
        told=st.lists(_told, max_size=2, unique=True).map(tuple),
        message=_words,
    ),
    max_size=30,
)

_states = st.builds(
    State,
    name=st.sampled_from(STATES),
    bottleneck=st.sampled_from(Bottleneck),
    about=_words,
    secondary=st.lists(_words, max_size=2).map(tuple),
    is_discovered=st.booleans(),
    inherits=st.sampled_from(["", *STATES]),
    is_disabled=st.booleans(),
)
_techniques = st.builds(
    Technique,
    name=st.sampled_from(TECHNIQUES),
    category=st.sampled_from(Category),
    about=_words,
    helps=_words,
    parts=st.lists(st.sampled_from(TECHNIQUES), max_size=3).map(tuple),
    is_disabled=st.booleans(),
)
_priors = st.builds(
    Prior,
    state=st.sampled_from(STATES),
    technique=st.sampled_from(TECHNIQUES),
    gain=_factors,
    confidence=st.floats(0, 1),
)
_rule_words = st.builds(
    RuleWords,
    rule=st.sampled_from([rule_id("cute", "cpu", one) for one in _failures]),
    words=st.sampled_from(["", "another"]),
    is_disabled=st.booleans(),
)
_nodes = st.sampled_from([*TECHNIQUES, "start"])
_transitions = st.builds(Transition, source=_nodes, target=_nodes, think=_words, before=_words, after=_words)
_ids = st.integers(1, 6).map(lambda n: f"change {n}")

changes = st.lists(
    st.builds(
        Revision,
        revision_id=_ids,
        at=st.floats(0, 1e10),
        by=st.sampled_from(["someone", "run a"]),
        why=_words,
        states=st.lists(_states, max_size=2).map(tuple),
        techniques=st.lists(_techniques, max_size=2).map(tuple),
        priors=st.lists(_priors, max_size=3).map(tuple),
        transitions=st.lists(_transitions, max_size=2).map(tuple),
        rules=st.lists(_rule_words, max_size=1).map(tuple),
        reverts=st.just("") | _ids | st.just("seed"),
    ),
    max_size=8,
)
