"""The table of verbs: each has a row, and all that reads the table finds there what it needs."""

from __future__ import annotations

import pytest

from engine.cli.arguments import parse
from engine.cli.arguments.one_run import steering_help
from pages.parts.steering.verb_words import VERB_WORDS
from storage.run.method_words import PLAIN
from storage.run.settings import RunState
from storage.run.steering import commands
from storage.run.steering.commands import CommandError
from storage.run.steering.verbs import VERBS, CommandKind, Offered, Takes, Verb

# For each kind of argument one that is taken, and one that is not (None where everything is).
ARGUMENTS: dict[Takes, tuple[str, str | None]] = {
    Takes.NOTHING: ("", None),
    Takes.KERNEL: ("c001", " "),
    Takes.TEXT: ("use swizzles", ""),
    Takes.SENTENCE: ("atomics", "x" * 301),
    Takes.RULE: ("atomics", ""),
    Takes.SWITCH: ("auto", "maybe"),
    Takes.KERNEL_CLASS: ("matmul", "sorting"),
    Takes.LIMITS: ("calls=80", "calls"),
    Takes.MODEL: ("gpt reasoning_effort=high", "reasoning_effort=high"),
    Takes.MODEL_AND_STEP: ("gpt step=3", "gpt step=x"),
    Takes.CALLS: ("next", "some"),
    Takes.APPROVAL_RULE: ("all no 60", "sometimes"),
    Takes.WAITING_STEP: ("3", "third"),
    Takes.SUBMISSION: (f"c001 {'0' * 64}", "c001"),
    Takes.ANSWER: (f"3.0 {'0' * 64}", "3.0"),
}


def test_every_verb_has_one_row() -> None:
    assert sorted(VERBS) == sorted(CommandKind)
    assert all(kind is verb.kind for kind, verb in VERBS.items())
    assert set(ARGUMENTS) == set(Takes)


@pytest.mark.parametrize("verb", VERBS.values(), ids=str)
def test_a_row_says_what_every_reader_of_it_needs(verb: Verb) -> None:
    taken, not_taken = ARGUMENTS[verb.takes]
    commands.check(verb.kind, taken)
    if not_taken is not None:
        with pytest.raises(CommandError, match=r"\w{3}"):
            commands.check(verb.kind, not_taken)
    assert verb.name
    words = VERB_WORDS[verb.kind]
    assert words.sent_words("kernel 3", PLAIN)
    assert "{" not in (words.tip_words(PLAIN) or "")
    assert parse(["command", "RUN", verb.kind, taken]).kind == verb.kind
    assert f"{verb.kind} {verb.usage}".strip() in steering_help()
    assert words.label or not words.icon


def test_what_is_offered_follows_the_state_of_the_run() -> None:
    at_work = {kind for kind in VERBS if commands.is_offered(kind, RunState.RUNNING)}
    held = {kind for kind in VERBS if commands.is_offered(kind, RunState.PAUSED)}
    over = {kind for kind in VERBS if commands.is_offered(kind, RunState.LOST)}
    assert at_work - held == {CommandKind.PAUSE}
    assert held - at_work == {CommandKind.RESUME, CommandKind.APPROVE, CommandKind.SKIP}
    assert over == {kind for kind, verb in VERBS.items() if verb.offered is Offered.ALWAYS}
    replay = {kind for kind in VERBS if commands.is_offered(kind, RunState.RUNNING, is_replay=True)}
    assert replay == {CommandKind.PAUSE, CommandKind.STOP}
