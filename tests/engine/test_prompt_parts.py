import itertools
import json
from pathlib import Path

import pytest

from engine.errors import ModelError, PromptError
from engine.search import limits
from engine.search.llm import Message, Terms
from engine.search.prompting import (  # fmt: skip
    PROMPTS,
    as_json,
    compose,
    fit_conversation,
    keep_ends,
    keep_newest,
    keep_start,
    message,
    section_name,
    slots,
)
from storage.run.record import Record
from tests.engine.story import SETTINGS, Story

SLOTS = {
    "task": "",
    "repairs": "",
    "failure": "\n".join(f"error line {n}" for n in range(400)),
    "diagnosis": "The cause.\n" * 40,
    "listing": "\n".join(f"{n:4d} | code" for n in range(200)),
    "guide": "How to look.\n" * 12,
    "rules": "",
    "hint": "",
    "patch_format": "the format",
}


def cut(told: Message) -> list[tuple[str, str]]:
    """The sections of a message with their texts."""
    ends = list(itertools.accumulate(one.length for one in told.sections))
    return [(one.name, told.text[end - one.length : end]) for one, end in zip(told.sections, ends, strict=True)]


def test_a_prompt_that_fits_is_not_touched_and_its_sections_are_cut_where_they_stand() -> None:
    whole = compose("cutegen/repair.md", None, **SLOTS)
    assert compose("cutegen/repair.md", len(whole.text), **SLOTS) == whole
    found = cut(whole)
    assert "".join(text for _, text in found) == whole.text
    texts = dict(found)
    assert texts["Kernel"] == f"The kernel, with line numbers:\n```\n{SLOTS['listing']}\n```\n\n"
    assert texts["What failed"] == f"What failed:\n{SLOTS['failure']}\n\n"
    assert texts["Diagnosis"].startswith("The diagnosis:\nThe cause.")
    assert "Person's hint" not in texts
    assert found[-1] == ("Reply format", "Start with `Fix:` and one sentence. Then the edits.\n")


@pytest.mark.parametrize("name", sorted(path.relative_to(PROMPTS) for path in PROMPTS.rglob("*.md")), ids=str)
@pytest.mark.parametrize("value", ["", " \n", "one line", "\n\nwith\n\n{{ task }}\n\n\n", "🙂\ud800 \r\n\x0b"])
def test_the_sections_of_any_prompt_make_up_the_whole_of_it(name: Path, value: str) -> None:
    told = message("user", str(name), **dict.fromkeys(slots(str(name)), value))
    assert "".join(text for _, text in cut(told)) == told.text
    assert all(text.strip() for _, text in cut(told))
    assert [one for one, _ in itertools.groupby(name for name, _ in cut(told))] == [name for name, _ in cut(told)]


def test_a_slot_that_has_no_name_of_its_own_is_read_as_it_is_written() -> None:
    assert section_name("listing") == "Kernel"
    assert section_name("cache_lines") == "Cache lines"


def test_a_prompt_is_kept_with_its_sections_and_a_reply_in_it_has_none() -> None:
    told = message("user", "hint.md", hints="x")
    kept = json.loads(as_json([told, Message("assistant", "yes")]))
    assert kept == [
        {"role": "user", "text": told.text, "sections": [["Hints", len(told.text)]]},
        {"role": "assistant", "text": "yes"},
    ]


@pytest.mark.parametrize("room", [6000, 5000, 3600, 3100])
def test_the_log_is_cut_first_and_the_source_never(room: int) -> None:
    cut = compose("cutegen/repair.md", room, **SLOTS)
    assert len(cut.text) <= room
    assert SLOTS["listing"] in cut.text
    assert "lines left out here to fit the model's window]" in cut.text
    assert "error line 0\n" in cut.text or room < 3600
    assert (SLOTS["diagnosis"].strip() in cut.text) is (room >= 3600)


def test_a_source_that_does_not_fit_is_not_sent_in_part() -> None:
    with pytest.raises(ModelError, match="larger window") as refusal:
        compose("cutegen/repair.md", 2500, **SLOTS)
    assert str(refusal.value).count("choose a model") == 1


def test_slots_stay_strict() -> None:
    with pytest.raises(PromptError):
        compose("cutegen/repair.md", 100, listing="x")


@pytest.mark.parametrize("cut", [keep_newest, keep_start, keep_ends])
@pytest.mark.parametrize("allowed", [0, 60, 100, 777, 3000])
def test_a_cut_keeps_whole_lines_within_what_is_allowed_and_counts_the_rest(cut: object, allowed: int) -> None:
    text = SLOTS["failure"]
    lines = cut(text, allowed).split("\n")  # type: ignore[operator]
    (note,) = [line for line in lines if line.startswith("[")]
    kept = [line for line in lines if line != note]
    assert sum(len(line) + 1 for line in kept) <= max(0, allowed)
    assert note.startswith(f"[{400 - len(kept)} lines left out")
    assert [line for line in text.split("\n") if line in set(kept)] == kept


def test_an_old_exchange_is_left_out_before_the_prompt_and_the_last_report() -> None:
    talk = [Message("system", "s" * 50), Message("user", "u" * 300)]
    talk += [Message("assistant", "first reply " * 30), Message("user", "report"), Message("assistant", "second " * 30)]
    talk += [Message("user", "last report")]
    fitted = fit_conversation(talk, 700)
    assert sum(len(m.text) for m in fitted) <= 700
    assert [m.text for m in fitted if m.text.startswith("[")] == [fitted[2].text]
    assert (fitted[0], fitted[1], fitted[3:]) == (talk[0], talk[1], talk[3:])
    assert fit_conversation(talk, None) == talk


def test_the_room_is_what_the_window_leaves_beside_the_reply() -> None:
    record = Record.of(SETTINGS, [])
    assert limits.room(record, Terms("m", window=1000, reply_room=400)) == 1800
    assert limits.estimate(record, "m", 1000) == 334


def test_every_history_starts_with_the_budget_of_its_settings(tmp_path: Path) -> None:
    story = Story()
    assert story.record.budget == story.settings.budget
