"""Programs as models that answer well, slowly, badly and not at all; and what may be read of what they print."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.errors import CallError
from engine.evaluator.sandbox import hiding
from engine.search.llm import Completion, Message, Purpose
from engine.search.llm.command import CommandModel, as_prompt
from engine.search.llm.output import PlainText, read_output
from engine.search.llm.prices import Price
from storage.run import saved_models
from storage.run.models import CallFailure
from storage.run.saved_models import Program, SavedModel

MESSAGES = [Message("system", "Be short."), Message("user", "Häm?"), Message("assistant", "No."), Message("user", "?")]
PROMPT = "# Instructions\n\nBe short.\n\n# Request\n\nHäm?\n\n# Your earlier reply\n\nNo.\n\n# Request\n\n?\n"
PURPOSE = Purpose("synthesise", None, 0)
KEY = "sk-planted-0123456789abcdef"
Ask = Callable[..., Completion]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    (tmp_path / "home/runs").mkdir(parents=True)
    (tmp_path / "home/runs/journal").write_text("whole")

    def asking(script: str, price: Price | None = None, command: tuple[str, ...] = (), **fields: Any) -> Completion:
        def around(failed: int, scratch: Path) -> list[str]:
            return hiding.guarded(os.getpid(), failed, scratch, [tmp_path / "home"])

        program = Program(command or ("sh", "-c", script), **fields)
        model = CommandModel(SavedModel("mine", program=program), around, {"OPENAI_API_KEY"}, price)
        heard: list[str] = []
        done = model.complete(MESSAGES, PURPOSE, heard.append)
        assert "".join(heard) == done.text
        return done

    return asking


def failed(ask: Ask, script: str, **fields: Any) -> CallError:
    with pytest.raises(CallError) as caught:
        ask(script, **fields)
    return caught.value


def test_the_prompt_is_on_standard_input_and_in_files_and_the_reply_is_what_is_printed(ask: Ask) -> None:
    assert ask("cat").text == as_prompt(MESSAGES) == PROMPT
    assert ask("", command=("cat", "{prompt_file}")).text == PROMPT
    assert '{"role": "user", "text": "?"}]' in ask("", command=("cat", "{messages_file}")).text
    done = ask("echo fine")
    assert (done.text, done.model, done.finish_reason) == ("fine\n", "mine", "stop")
    assert (done.input_tokens, done.output_tokens, done.cost_usd) == (None, None, None), "unknown is told so"


def test_a_program_that_reads_nothing_and_says_much_is_heard_whole(ask: Ask) -> None:
    assert len(ask('python3 -c \'print(200 * 1024 * "x", end="")\'').text) == 200 * 1024
    assert ask("exec 0<&-; echo deaf").text == "deaf\n"
    assert ask("head -c 300000 /dev/zero >&2; echo fine").text == "fine\n"


def test_colours_titles_and_links_are_taken_out_also_where_a_piece_ends_within_one(ask: Ask) -> None:
    script = r"printf '\033[1;32mgreen\033'; sleep 0.2; printf '[0m \033]0;title\007and \033]8;;http'; sleep 0.2;"
    assert ask(script + r" printf '://x\033\\link\033]8;;\033\\ \033(Bplain'").text == "green and link plain"
    text = "\x1b[31mred\x1b[0m \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ end\x1b"
    plain = PlainText()
    assert "".join([*map(plain.feed, text), plain.rest()]) == "red link end\x1b"


def test_what_is_no_text_is_replaced(ask: Ask) -> None:
    text = ask(r"printf 'a\377\000b\303'").text
    assert text == "a�\x00b�"


@pytest.mark.parametrize(
    ("script", "failure", "said", "is_charged"),
    [
        ("echo broken >&2; echo half; exit 3", CallFailure.SERVER_ERROR, "exit code 3: broken", True),
        ("kill -SEGV $$", CallFailure.SERVER_ERROR, "the signal SIGSEGV", True),
        ("exit 0", CallFailure.EMPTY, "an empty reply", True),
        ("echo '   '; echo 'not logged in' >&2", CallFailure.EMPTY, "an empty reply: not logged in", True),
        ("exec yes 'a line without end'", CallFailure.ENDLESS, "more than 2,000,000 characters", True),
    ],
)
def test_what_is_no_reply_is_said_with_the_last_words(
    ask: Ask, script: str, failure: CallFailure, said: str, is_charged: bool
) -> None:
    error = failed(ask, script)
    assert (error.failure, error.is_charged) == (failure, is_charged)
    assert said in str(error)


def test_a_program_that_takes_too_long_is_ended_with_all_that_it_started(ask: Ask, tmp_path: Path) -> None:
    error = failed(
        ask, f"trap '' TERM; setsid sleep 600 & echo $! > {tmp_path}/left; echo part; sleep 600", timeout_s=1.5
    )
    assert (error.failure, error.text) == (CallFailure.TIMED_OUT, "part\n")
    assert "did not end within 1.5 seconds" in str(error)
    assert not Path(f"/proc/{(tmp_path / 'left').read_text().strip()}").exists()


def test_one_that_leaves_a_child_behind_is_not_waited_for(ask: Ask, tmp_path: Path) -> None:
    assert ask(f"setsid sleep 600 & echo $! > {tmp_path}/left; echo fine").text == "fine\n"
    assert not Path(f"/proc/{(tmp_path / 'left').read_text().strip()}").exists()


def test_one_that_is_not_there_is_told_at_once_and_not_tried_again(ask: Ask, tmp_path: Path) -> None:
    error = failed(ask, "", command=("no-such-program-anywhere", "-p"))
    assert (error.failure, error.is_charged, error.is_lasting) == (CallFailure.REJECTED, False, True)
    assert str(error) == (
        "no-such-program-anywhere could not be started: No such file or directory. Correct its command"
    )
    (tmp_path / "plain").write_text("no program")
    assert "Permission denied" in str(failed(ask, "", command=(str(tmp_path / "plain"),)))


def test_runs_are_neither_seen_nor_written_and_no_key_of_ours_is_inherited(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("TILEWRIGHT_API_TOKEN", KEY)
    home = tmp_path / "home"
    script = (
        f"echo broken > {home}/runs/journal; rm -rf {home}/runs; cat {home}/runs/journal; env | grep planted; echo :"
    )
    assert ask(script).text == ":\n"
    assert (home / "runs/journal").read_text() == "whole"
    assert ask("echo made > here; cat here; pwd").text.startswith("made\n/")


def test_what_looks_like_a_key_is_not_repeated(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE_API_KEY", "abcdefgh-of-mine")
    assert ask("echo reply with abcdefgh-of-mine").text == "reply with [key removed]\n"
    error = failed(ask, f"echo 'bad key {KEY} abcdefgh-of-mine' >&2; exit 1")
    assert str(error) == "mine ended with exit code 1: bad key [secret] [key removed]"


def test_figures_are_read_by_path_or_by_pattern_and_told_as_unknown_otherwise(ask: Ask) -> None:
    whole = """echo '{"result": "hello", "usage": {"in": 10, "cached": 5, "out": 3}, "usd": 0.25, "n": "1,000"}'"""
    paths = {"reply": "$.result", "input_tokens": "$.usage.in + $.usage.cached", "output_tokens": "$.usage.out"}
    done = ask(whole, **paths, cost_usd="$.usd")
    assert (done.text, done.input_tokens, done.output_tokens, done.cost_usd) == ("hello", 15, 3, 0.25)
    done = ask(whole, Price(input=1.0, output=1e6), **paths)
    assert done.cost_usd == pytest.approx(3 + 15e-6)
    done = ask(whole, Price(input=1.0, output=1e6), **paths, cost_usd="$.gone")
    assert done.cost_usd is None, "what a program did not tell is not made up"
    lines = ("noise", '{"part": {"text": "a"}}', '{"part": {"text": "b", "n": 2}}', '{"part": {"n": 3}}')
    done = ask("; ".join(f"echo '{line}'" for line in lines), reply="$.part.text", input_tokens="$.part.n")
    assert (done.text, done.input_tokens) == ("b", 5)
    done = ask(r"echo 'so: the reply'; echo 'used 1,200 and 30 tokens' >&2", reply="^so: (.*)$",
               input_tokens=r"used ([\d,]+)", output_tokens=r"(\d+) tokens")  # fmt: skip
    assert (done.text, done.input_tokens, done.output_tokens) == ("the reply", 1200, 30)
    error = failed(ask, whole, reply="$.elsewhere")
    assert (error.failure, error.is_charged) == (CallFailure.MALFORMED, True)


@pytest.mark.parametrize("told", ['{"n": -1}', '{"n": "many"}', '{"n": 1e30}', '{"n": true}', "[" * 200, "{", ""])
def test_a_figure_that_cannot_be_is_unknown(told: str) -> None:
    found = read_output(Program(("x",), input_tokens="$.n"), told, "")
    assert found.input_tokens is None


def test_a_price_and_a_window_count_as_they_do_for_an_endpoint() -> None:
    model = CommandModel(
        SavedModel("mine", program=Program(("x",), window=1000)), lambda failed, scratch: [], (), Price(2.0, None, 4.0)
    )
    terms = model.terms(PURPOSE)
    assert (terms.window, terms.reply_room, terms.cost(1_000_000, 1_000_000)) == (1000, 500, 6.0)


def test_every_profile_that_is_shipped_can_be_read() -> None:
    from engine import connecting

    assert {entry.name for entry in connecting.profiles()} >= {"claude", "codex", "gemini", "qwen", "opencode", "llm"}
    assert all(entry.program for entry in saved_models.read(connecting.PROFILES))
    assert "none was tried against the real program" in connecting.PROFILES.read_text()
