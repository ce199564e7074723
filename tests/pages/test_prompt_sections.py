"""What a model was told, by section: names, tokens, what changed since the prompt before; prompts of earlier runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from pages.parts.kernel import prompt_sections
from pages.parts.kernel.prompt_sections import Change, State, told_apart
from storage.index.queries import PromptRow
from storage.run import events as ev
from storage.run import journal, liveness
from storage.run.blobs import Blobs
from storage.run.folder import RunFolder
from storage.run.settings import StepKind
from tests import samples
from tests.pages.conftest import Open, listings, words

TAB = "Prompts and replies"
SYSTEM = ("system", {"Instructions": "You write kernels.\n"})
FIRST = ("user", {"Reference module": "The reference\n", "Kernel": "int a;\n", "Profile": "Bound: memory.\n"})
SECOND = ("user", {"Reference module": "The reference\n", "Kernel": "int b;\n", "Person's hint": "- tiles\n"})


def stored(*told: tuple[str, Mapping[str, str]]) -> str:
    """A prompt as the engine keeps it."""
    return json.dumps([
        {"role": role, "text": "".join(parts.values()), "sections": [[name, len(text)] for name, text in parts.items()]}
        for role, parts in told
    ])  # fmt: skip


def row(**changes: Any) -> PromptRow:
    plain = {"seq": 9, "step": 3, "call": 0, "role": "optimise", "depth": 2, "prompt_blob": "p"}
    counted = {"input_tokens": 100, "cached_tokens": 64, "is_estimated": False, "is_open": False}
    return PromptRow(**{**plain, **counted, **changes})


def test_a_prompt_is_cut_where_its_sections_end() -> None:
    system, user = prompt_sections.read(stored(SYSTEM, FIRST))
    assert [(one.name, one.text) for one in user.sections] == list(FIRST[1].items())
    assert prompt_sections.shares([system, user]) == {
        "Instructions": 19, "Profile": 15, "Reference module": 14, "Kernel": 7,
    }  # fmt: skip


@pytest.mark.parametrize(
    "sections",
    [None, [], [["Kernel", 7]], [["Kernel", 31], ["Profile", 6]], [["Kernel"]], [["a", 0], ["b", 36]], 7, "x"],
)
def test_a_message_whose_sections_do_not_fit_its_text_is_shown_whole(sections: object) -> None:
    kept = json.loads(stored(FIRST))
    kept[0]["sections"] = sections
    (told,) = prompt_sections.read(json.dumps(kept))
    assert [(one.name, one.text) for one in told.sections] == [("Prompt", told.text)]
    assert prompt_sections.shares([told]) == {}


@pytest.mark.parametrize("text", ["", "no json", "{}", "[1]", '[{"role": 1}]', "null", "7"])
def test_a_text_that_is_no_list_of_messages_is_one_message(text: str) -> None:
    told = prompt_sections.read(text)
    assert [one.text for one in told if one.text] == [text] * bool(told and text)
    assert prompt_sections.shares(told) == {}


def test_a_prompt_of_before_sections_has_the_shares_that_it_was_kept_with() -> None:
    plain = [{"role": "system", "text": "x" * 100, "parts": {"instructions": 100}}]
    plain += [{"role": "user", "text": "y" * 300, "parts": {"source": 280, "instructions": 20}}]
    told = prompt_sections.read(json.dumps([*plain, {"role": "assistant", "text": "z" * 99}]))
    assert prompt_sections.shares(told) == {"source": 280, "instructions": 120, "Earlier reply of the model": 99}
    assert [len(one.sections) for one in told] == [1, 1, 1]


def states(before: str, now: str) -> list[tuple[str, State]]:
    found = prompt_sections.changes(prompt_sections.read(before), prompt_sections.read(now))
    return [(one.name, one.state) for one in found]


def test_each_section_is_compared_with_the_one_of_its_name() -> None:
    assert states(stored(SYSTEM, FIRST), stored(SYSTEM, SECOND)) == [
        ("Instructions", State.SAME), ("Reference module", State.SAME), ("Kernel", State.CHANGED),
        ("Person's hint", State.NEW), ("Profile", State.GONE),
    ]  # fmt: skip
    asked_again = stored(SYSTEM, FIRST, ("user", {"Kernel": "int a;\n"}))
    assert states(stored(SYSTEM, FIRST), asked_again)[-1] == ("Kernel", State.NEW)
    assert states("[]", stored(SECOND))[0] == ("Reference module", State.NEW)


def test_sections_of_one_name_that_changed_are_told_apart_by_how_they_begin() -> None:
    compared = [
        Change("Instructions", State.CHANGED, "Write one.", "Write two kernels."),
        Change("Instructions", State.GONE, "Answer with JSON.", ""),
        Change("Task", State.NEW, "", "Swish"),
    ]
    assert told_apart(compared) == ["Instructions: “Write two kernels.”", "Instructions: “Answer with JSON.”", "Task"]
    assert told_apart(compared[1:]) == ["Instructions", "Task"]


def test_with_a_prompt_of_before_sections_whole_messages_are_compared() -> None:
    old = json.dumps([{"role": "system", "text": "You write kernels.\n"}, {"role": "user", "text": "int a;"}])
    assert states(old, stored(SYSTEM, SECOND)) == [("System message", State.SAME), ("Prompt", State.CHANGED)]


def test_the_start_that_two_prompts_share_ends_where_they_differ() -> None:
    first, second = (prompt_sections.read(stored(SYSTEM, one)) for one in (FIRST, SECOND))
    assert prompt_sections.common_start(first, second) == len("You write kernels.\nThe reference\nint ")
    assert prompt_sections.common_start(first, first) == sum(len(one.text) for one in first)
    assert prompt_sections.common_start(first[1:], second) == prompt_sections.common_start([], first) == 0


def test_tokens_are_those_that_the_endpoint_counted_and_by_section_about_their_share() -> None:
    told = prompt_sections.read(stored(SYSTEM, FIRST))
    assert prompt_sections.size_line(row(), told, told) == (
        "100 tokens counted by the endpoint, 64 of them from its cache · 4 sections · "
        "starts like the prompt before for about 100 tokens"
    )
    assert "does not say how many came from its cache" in prompt_sections.size_line(row(cached_tokens=None), told, None)
    for uncounted in (row(input_tokens=None), row(input_tokens=0), row(is_estimated=True)):
        assert prompt_sections.size_line(uncounted, told, None) == "about 18 tokens in 4 sections"
    assert prompt_sections.about(11, prompt_sections.characters_per_token(row(), told)) == "about 20 tokens"


def folds(app: AppTest, start: str) -> dict[str, str]:
    """What each fold is called, by its key, of those that belong to a prompt."""
    found = {
        str(one.proto.id).rpartition("-")[2]: str(one.proto.label).replace("\\", "") for one in app.get("expander")
    }
    return {key: label for key, label in found.items() if key.startswith(start)}


def opened(app: AppTest, labels: Sequence[tuple[str, str]], name: str) -> AppTest:
    key = next(key for key, label in labels if label.startswith(name))
    app.session_state[key] = True
    return app.run()


def test_the_sections_of_a_prompt_fold_with_their_tokens(home: Path, open_page: Open) -> None:
    samples.write_run(home / "runs", "r1", depths=5)
    app = open_page("candidate", run="r1", candidate="c006", tab=TAB)
    found = folds(app, "section:")
    names = [label.partition(" :gray")[0] for label in found.values()]
    assert names == ["Instructions", "Reference module", "Kernel", "Measured so far", "Instructions"]
    assert all("about " in label and " tokens" in label for label in found.values())
    assert [" · :orange[changed]" in label for label in found.values()] == [False, False, True, True, True]
    assert "5,200 tokens counted by the endpoint, 4,000 of them from its cache" in words(app).replace("\\", "")
    assert not any("class Model(nn.Module)" in text for text in listings(app)), "folded: not even read"
    app = opened(app, list(found.items()), "Reference module")
    assert not app.exception
    assert listings(app)[0] == "The reference:\nclass Model(nn.Module): ..."


def test_only_what_differs_from_the_last_prompt_of_the_role_can_be_shown(home: Path, open_page: Open) -> None:
    samples.write_run(home / "runs", "r1", depths=5)
    app = open_page("candidate", run="r1", candidate="c006", tab=TAB)
    assert "Changes are marked against the optimise prompt of step" in words(app)
    (toggle,) = [one for one in app.toggle if one.label == "Show only what changed"]
    app = toggle.set_value(True).run()
    assert not app.exception
    shown = [label.partition(" :gray")[0] for label in folds(app, "change:").values()]
    assert shown == ["Kernel", "Measured so far", "Instructions"]
    assert folds(app, "section:") == {}
    assert "Unchanged: Instructions, Reference module" in words(app).replace("\\", "")


def test_the_first_prompt_of_a_run_has_nothing_to_differ_from(home: Path, open_page: Open) -> None:
    samples.write_run(home / "runs", "r1", depths=5)
    app = open_page("candidate", run="r1", candidate="c001", tab=TAB)
    first = next(key for key, label in folds(app, "call:").items() if label.startswith("1."))
    app.session_state[first] = True
    app.run()
    assert not app.exception
    sections = [label for key, label in folds(app, "section:").items()]
    assert sections
    assert not any("orange" in label for label in sections[:5])


def test_a_kernel_without_calls_and_a_run_without_prompts_show_none(home: Path, open_page: Open) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=3)
    lines = [json.loads(line) for line in folder.journal_file.read_text().splitlines()]
    kept = [line for line in lines if line["kind"] not in ("ModelCalled", "CallSent", "CallFailed", "QuestionAsked")]
    folder.journal_file.write_text("".join(json.dumps(line) + "\n" for line in kept))
    assert "No model calls for this kernel" in words(open_page("candidate", run="r1", candidate="c001", tab=TAB))
    samples.write_run(home / "runs", "r2", ending="new")
    app = open_page("run", run="r2")
    assert not app.exception
    assert folds(app, "last_prompt") == {}


def test_a_journal_of_before_sections_shows_each_message_whole(home: Path, open_page: Open) -> None:
    def undivided(text: str) -> str:
        if not text.startswith("[") or '"role"' not in text:
            return text
        return json.dumps([{"role": one["role"], "text": one["text"]} for one in json.loads(text)])

    samples.rewrite_texts(samples.write_run(home / "runs", "r1", depths=5), undivided)
    app = open_page("candidate", run="r1", candidate="c006", tab=TAB)
    assert not app.exception
    names = [label.partition(" :gray")[0] for label in folds(app, "section:").values()]
    assert names == ["System message", "Prompt"]
    assert "You write kernels." in listings(app)


def tell(folder: RunFolder, *events: ev.Event) -> None:
    entries = list(journal.read(folder.journal_file))
    with folder.journal_file.open("ab") as file:
        for seq, event in enumerate(events, len(entries) + 1):
            file.write(samples.as_line(journal.Entry(seq, 1.75e9 + seq, event)))


def test_the_prompt_of_a_call_under_way_is_shown_with_what_changed_and_stays_when_it_is_answered(
    home: Path, open_page: Open
) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=4, ending="running")
    liveness.hold(folder)
    head = (90, 0, 0, StepKind.OPTIMISE, 3, "c001", "m", Blobs(folder.blobs).put(stored(SYSTEM, SECOND)))
    tell(
        folder,
        ev.StepStarted(90, StepKind.OPTIMISE, 3, "c001"),
        ev.CallSent(*head, expected_tokens=20, expected_cost_usd=None, output_limit=None),
    )
    app = open_page("run", run="r1")
    assert list(folds(app, "last_prompt").values()) == ["Prompt that is being answered :gray[optimise, depth 3]"]
    app.session_state["last_prompt"] = True
    app.run()
    assert not app.exception
    assert [label.partition(" :gray")[0] for label in folds(app, "section:").values()][-2:] == [
        "Kernel",
        "Person's hint",
    ]
    assert "about 16 tokens in 4 sections" in words(app).replace("\\", "")
    told = ev.ModelCalled(90, 0, *head[3:8], "r", 90, 9, 60, 0, 0.1, 1.0, "stop")
    tell(folder, told)
    app = open_page("run", run="r1")
    assert list(folds(app, "last_prompt").values()) == ["Last prompt :gray[optimise, depth 3]"]
