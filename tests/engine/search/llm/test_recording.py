"""Recordings: saved from runs, free of secrets, replayed, and left when a machine judges otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.cli.arguments import parse
from engine.cli.subcommands import settings_of
from engine.errors import OffRecordingError
from engine.evaluator import tasks
from engine.evaluator.checks.screening import screen
from engine.recording_runs import recording_of, without_secrets
from engine.search.llm import Completion, Purpose
from engine.search.llm.recorded import RecordedModel, open_recorded
from engine.search.llm.recording import Line, read_recording, shipped_recording, write_recording
from engine.search.methods.coder_judge.strategy import BOTTLENECK, FAULT
from engine.search.patching.reply import find_python, read_fields
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.blobs import text_hash
from storage.run.settings import StepKind
from storage.run.steering.command_arguments import as_file_reply
from tests.engine.contexts import SOURCE, add_candidate
from tests.engine.contexts import context_with_tools as context_at
from tests.engine.story import Step, take
from tests.engine.test_steering import events_of

KEY = "sk-planted-0123456789abcdefghij"
ADDRESS = "http://models.internal.example:8000/v1"
LINES = [
    Line(StepKind.SYNTHESISE, None, "first", 0),
    Line(StepKind.OPTIMISE, "a" * 64, "one", 1),
    Line(StepKind.OPTIMISE, "b" * 64, "two", 2, "length", "passed"),
    Line(StepKind.OPTIMISE, "c" * 64, "three", 2),
]


def model(folder: Path, lines: list[Line] = LINES) -> tuple[RecordedModel, list[tuple[bool, str]]]:
    path = folder / "replies.jsonl"
    path.write_text(write_recording({"task": "swish"}, lines))
    made, told = RecordedModel(read_recording(path)), list[tuple[bool, str]]()
    made.on_divergence = lambda purpose, is_bridged, reason: told.append((is_bridged, reason))
    return made, told


def complete(recorded: RecordedModel, purpose: Purpose) -> Completion:
    return recorded.complete([], purpose, lambda piece: None)


def test_a_recording_is_read_as_it_was_written(tmp_path: Path) -> None:
    recorded, told = model(tmp_path)
    assert read_recording(tmp_path / "replies.jsonl").lines == tuple(LINES)
    assert complete(recorded, Purpose(StepKind.OPTIMISE, "b" * 64, 0, 2)).finish_reason == "length"
    assert told == []


def test_off_its_path_a_replay_uses_the_next_reply_of_the_role_at_the_depth_and_says_so(tmp_path: Path) -> None:
    recorded, told = model(tmp_path)
    strange = Purpose(StepKind.OPTIMISE, "d" * 64, 0, 2, frozenset({text_hash("two")}))
    assert complete(recorded, strange).text == "three"
    ((is_bridged, reason),) = told
    assert is_bridged
    assert "no longer follows the recording" in reason


def test_with_no_reply_left_for_the_role_at_the_depth_the_call_fails_with_a_reason(tmp_path: Path) -> None:
    recorded, told = model(tmp_path)
    with pytest.raises(OffRecordingError, match="no longer follows the recording") as failure:
        complete(recorded, Purpose(StepKind.REPAIR, "b" * 64, 0, 2))
    assert "judged: passed" in str(failure.value)
    assert [is_bridged for is_bridged, _ in told] == [False]


def test_a_recording_that_is_gone_is_told_when_a_reply_is_needed_of_it(tmp_path: Path) -> None:
    gone = open_recorded(tmp_path / "gone.jsonl")
    with pytest.raises(OffRecordingError, match=r"cannot read recording .*gone\.jsonl.* Write the reply yourself"):
        complete(gone, Purpose(StepKind.SYNTHESISE, None, 0, 0))


def test_a_run_is_saved_and_replays_to_the_same_kernel(tmp_path: Path) -> None:
    context = context_at(tmp_path, [("synthesise", None, as_file_reply(SOURCE))])
    take(context, Step(StepKind.SYNTHESISE, 0))
    saved = tmp_path / "saved.jsonl"
    saved.write_text(recording_of(context.folder))
    (line,) = read_recording(saved).lines
    assert (line.role, line.source, line.depth) == (StepKind.SYNTHESISE, None, 0)
    again = context_at(tmp_path / "again")
    again.model = RecordedModel(read_recording(saved))
    take(again, Step(StepKind.SYNTHESISE, 0))
    assert again.source(again.record.candidates["c001"]) == SOURCE


def test_a_run_from_a_recording_uses_the_method_and_the_settings_it_was_made_with() -> None:
    shipped = shipped_recording("softmax", "cpu", "coder_judge")
    words = ["run", "softmax", "--model", "recorded", "--recording", str(shipped)]
    settings = settings_of(parse(words))
    assert (settings.strategy, settings.budget.depths) == ("coder_judge", 6)
    assert settings.strategy_options == {"max_mends": 2}


@pytest.mark.parametrize(("toolchain", "rounds"), [("cpu", 6), ("cuda", 1)])
def test_the_shipped_recording_of_coder_judge_holds_usable_replies(toolchain: str, rounds: int) -> None:
    recording = read_recording(shipped_recording("softmax", toolchain, "coder_judge") or Path())
    task = tasks.find("softmax")
    for line in recording.lines:
        if line.role == "judge":
            assert read_fields(line.reply, FAULT if line.verdict != Verdict.PASSED else BOTTLENECK)
        else:
            source = find_python(line.reply)
            assert source
            assert not [one for one in screen(source, task.policy) if one.is_refusal]
    assert [line.role for line in recording.lines] == ["synthesise", *["judge", "rewrite"] * rounds]


def test_a_divergence_is_journaled_once_per_call(tmp_path: Path) -> None:
    context = context_at(tmp_path)
    context.model.on_divergence = context.tell_divergence  # type: ignore[attr-defined]
    name = add_candidate(context, speedup=0.5)
    for _ in range(2):
        with pytest.raises(OffRecordingError):
            take(context, Step(StepKind.OPTIMISE, 1, name))
    (told,) = events_of(context, ev.Diverged)
    assert isinstance(told, ev.Diverged)
    assert (told.role, told.candidate_id, told.is_bridged) == (StepKind.OPTIMISE, name, False)


def test_neither_keys_nor_addresses_are_in_a_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "planted-without-a-prefix-77")
    monkeypatch.setenv("MY_GATEWAY_TOKEN", "another-planted-secret")
    monkeypatch.setenv("OPENAI_BASE_URL", ADDRESS)
    planted = f"{KEY} planted-without-a-prefix-77 another-planted-secret {ADDRESS}/chat models.internal.example:8000"
    context = context_at(tmp_path, [("synthesise", None, planted + "\n" + as_file_reply(SOURCE))], model=ADDRESS)
    take(context, Step(StepKind.SYNTHESISE, 0))
    text = recording_of(context.folder)
    for secret in (KEY, "planted-without", "another-planted", "internal.example", ":8000"):
        assert secret not in text
    (tmp_path / "saved.jsonl").write_text(text)
    assert SOURCE in read_recording(tmp_path / "saved.jsonl").lines[0].reply


@pytest.mark.parametrize(
    "secret", ["Bearer abcdefghijklmnop1234", "http://user:pass@host/v1", "http://127.0.0.1:8000/v1"]
)
def test_what_looks_like_a_secret_is_taken_out_wherever_it_stands(secret: str) -> None:
    assert secret.split()[-1] not in without_secrets(f'a "{secret}" b', {})
    assert without_secrets("see https://docs.nvidia.com/cutlass for skills", {}).startswith("see https://docs.nvidia")
