"""What holds for every prompt that the shipped methods can send. Methods, classes, toolchains, architectures and steps
are found, not listed."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path, PurePath

import pytest

from engine.evaluator.toolchain_table import TABLE, device_of
from engine.search import prompting
from engine.search.methods import catalogue
from engine.search.prompting import PROMPTS, slots
from storage.results.vocabulary import KernelClass
from storage.run.models import CHARACTERS_PER_TOKEN
from tests.engine import every_prompt
from tests.engine.every_prompt import OF_THE_RUN, PAIRS, Asked, Kind, files_in

# Tokens: of what the prompt files say themselves, of a whole first prompt, and of one that is asked for the last time.
OWN_WORDS, FIRST, AGAIN = 8_000, 24_000, 50_000
LEAST_REPEATED = 700  # characters that may stand unchanged behind the first change: what closes a prompt
TEMPLATE = re.compile(r"\{\{ *[a-z_]+ *\}\}")
ARCHITECTURES = {path.stem for path in (PROMPTS / "architectures").glob("*.md")}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Asked]]:
    """No file changes meanwhile, and there are thousands of prompts: each file is looked for and read once."""
    patch = pytest.MonkeyPatch()
    for look_up in ("text", "for_toolchain", "for_language", "of_language"):
        patch.setattr(prompting, look_up, functools.cache(getattr(prompting, look_up)))
    yield list(every_prompt.every_one(tmp_path_factory.mktemp("prompts")))
    patch.undo()


def test_every_method_class_toolchain_and_language_is_asked_for(asked: list[Asked]) -> None:
    found = {(one.strategy, one.kernel_class, one.toolchain, one.language) for one in asked}
    assert found == {(name, kind, *pair) for name in catalogue.names() for kind in KernelClass for pair in PAIRS}
    assert {one.step for one in asked} >= {"synthesise", "optimise", "diagnose", "repair", "judge", "rewrite"}
    assert any(one.step.endswith(", again 3") for one in asked)


def test_a_method_says_of_its_calls_which_prompts_carry_rules_and_which_may_carry_a_profile(asked: list[Asked]) -> None:
    carried: dict[tuple[str, str], bool] = {}
    for one in asked:
        role, said = one.step.partition(",")[0], "\n".join(message.text for message in one.messages)
        call, shows = catalogue.words(one.strategy).calls[role], "memory pipe busy 41 %" in said
        assert ("inline assembly" in said) is call.has_rules, (one.strategy, role)
        carried[one.strategy, role] = carried.get((one.strategy, role), False) or shows
    for (name, role), has_shown in carried.items():
        if name != "evolve":  # whose profiles are taken where a person asks for one
            assert has_shown is catalogue.words(name).calls[role].can_show_profile, (name, role)


def test_every_prompt_is_filled_and_each_of_its_sections_says_something(asked: list[Asked]) -> None:
    for one in asked:
        assert [m.role for m in one.messages[:2]] == ["system", "user"]
        for message in one.messages:
            assert sum(length for _, length in message.sections) == (len(message.text) if message.sections else 0)
        for role, name, text in one.sections:
            assert text.strip(), (one.strategy, one.step, name)
            assert not text.rstrip().endswith(":"), (one.strategy, one.step, text)
            assert role == "assistant" or not TEMPLATE.search(text), (one.strategy, one.step, text)


def test_no_prompt_holds_the_text_of_another_method_class_toolchain_language_or_architecture(
    asked: list[Asked],
) -> None:
    for one in asked:
        files = set[str]().union(*(files_in(text) for _, name, text in one.sections if name not in OF_THE_RUN))
        here = architectures_in(files)
        assert len(here) <= 1, (one, here)
        for name in files:
            assert not foreign(PurePath(name), one, here), (one.strategy, one.step, one.toolchain, name)


def architectures_in(files: set[str]) -> set[str]:
    """The architectures that these files are about; a file with notes on one in it is about none itself."""
    found = {name for name in files if PurePath(name).parent.name == "architectures" and "notes" not in slots(name)}
    return {PurePath(name).stem for name in found}


def foreign(file: PurePath, one: Asked, here: set[str]) -> bool:
    """Whether a prompt file is about something else than this prompt is."""
    parts = set(file.with_suffix("").parts)
    if file.parts[0] == "languages":
        language, parts = file.parts[1], parts - {file.parts[1]}
        if language != one.language:
            return True
    tools = parts & set(TABLE) - {one.toolchain, device_of(one.toolchain)}
    methods = parts & set(catalogue.names()) - {one.strategy}
    classes = parts & set(KernelClass) - {one.kernel_class, KernelClass.OTHER} if file.suffix == ".md" else set()
    others = parts & ARCHITECTURES - here if here and "notes" not in slots_of(file) else set()
    return bool(tools | methods | classes | others)


def slots_of(file: PurePath) -> set[str]:
    return slots(str(file)) if file.suffix == ".md" else set()


AGENTS = "agent/"  # files of the folder in which an agent works; tests/engine/search/llm/test_agent.py reads them


def test_every_prompt_file_is_sent_by_somebody(asked: list[Asked]) -> None:
    found = {name for one in asked for message in one.messages for name in files_in(message.text)}
    texts = {message.text for one in asked for message in one.messages}
    unseen = {
        file: line
        for line, file in every_prompt.telling_lines().items()
        if file.endswith(".md")
        and not file.startswith(AGENTS)
        and file not in found
        and not any(line in text for text in texts)
    }
    assert unseen == {}


def test_the_longest_prompts_keep_to_their_budgets(asked: list[Asked]) -> None:
    for one in asked:
        own = sum(len(text) for _, name, text in one.sections if name not in OF_THE_RUN)
        most = AGAIN if ", again" in one.step else FIRST
        assert one.size <= most * CHARACTERS_PER_TOKEN, (one.strategy, one.step, one.size)
        assert own <= OWN_WORDS * CHARACTERS_PER_TOKEN, (one.strategy, one.step, own)


@pytest.mark.parametrize("strategy", catalogue.names())
def test_what_stays_the_same_from_call_to_call_stands_before_what_changes(strategy: str, tmp_path: Path) -> None:
    play, context = every_prompt.a_run(tmp_path, strategy, KernelClass.MATMUL, 0)
    last: dict[Kind, tuple[str | None, set[tuple[str, str, str]]]] = {}
    compared = 0
    for kind, ask, _, messages in every_prompt.questions(play, context):
        one = Asked(strategy, ask.label, KernelClass.MATMUL, "cpu", "cute", "", messages)
        (about, before), now = last.get(kind, (ask.about, set())), one.sections
        if about != ask.about:
            compared += 1
            first = next((place for place, section in enumerate(now) if section not in before), len(now))
            behind = [section for section in now[first:] if section in before]
            assert sum(len(text) for _, _, text in behind) <= LEAST_REPEATED, (kind, behind)
        last[kind] = ask.about, set(now)
    assert compared
