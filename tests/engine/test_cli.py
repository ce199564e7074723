"""The command line as a person meets it: texts, exit codes, files."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

import engine.__main__
from engine import supervisor
from engine.cli import arguments, live, report
from engine.evaluator import fitting
from engine.search.llm.recording import read_recording
from storage.results.evaluation_results import CheckResult
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run import liveness
from storage.run.folder import RunFolder
from storage.run.method_words import PLAIN
from storage.run.record import Record
from storage.run.settings import Budget, Switch
from storage.run.steering.command_arguments import Submission
from storage.run.steering.commands import read_from
from tests.engine.contexts import write_recording
from tests.engine.story import settings_with
from tests.engine.swish_story import FIRST, REPLIES, edits
from tests.engine.test_loop import SIZES
from tests.engine.test_supervisor import events_of, until
from tests.real_pair import real_pair

SET = [word for name, value in SIZES.items() for word in ("--set", f"{name}={value}")]

RESTARTS = "tests.engine.search.methods.random_restarts:RandomRestarts"


def tilewright(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """The command line, in this process: to start one for each command takes most of a second."""
    out, err = io.TextIOWrapper(io.BytesIO(), write_through=True), io.StringIO()
    asked_to_stop = signal.getsignal(signal.SIGINT)
    with redirect_stdout(out), redirect_stderr(err), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        try:
            code = engine.__main__.main(list(words))
        except SystemExit as ended:
            code = int(ended.code or 0)
    signal.signal(signal.SIGINT, asked_to_stop)
    return subprocess.CompletedProcess(words, code, out.buffer.getvalue().decode(), err.getvalue())


def process(*words: str) -> subprocess.CompletedProcess[str]:
    """The command line as a person starts it."""
    command = [sys.executable, "-m", "engine", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture
def run_id(home: Path) -> str:
    recording = write_recording(home / "replies.jsonl", REPLIES)
    words = ["--model", "recorded", "--recording", str(recording), "--reply-seconds", "0", "--depths", "1", *SET]
    words += ["--collect", "off"]  # profiles are seen in test_loop.py
    done = process("run", "swish", *words)
    assert done.returncode == 0, done.stderr
    assert "kernel 3: incorrect" in done.stdout
    assert "finished: its one depth is done" in done.stdout
    (folder,) = (home / "runs").iterdir()
    last = done.stdout.splitlines()[-1]
    assert last.startswith("best: kernel ")
    assert f"python -m engine package {folder.name} --output fast" in last
    return folder.name


def test_a_run_in_the_foreground_is_listed_shown_steered_exported_and_judged(home: Path, run_id: str) -> None:
    listed = json.loads(tilewright("list", "--json").stdout)
    assert [(row["run"], row["state"], row["depth"]) for row in listed] == [(run_id, "finished", 1)]
    shown = json.loads(tilewright("show", run_id, "--json").stdout)
    assert [row["verdict"] for row in shown["attempts"]][:3] == ["compile_error", "passed", "incorrect"]
    told = tilewright("show", run_id).stdout
    assert run_id in told
    assert "strategy cutegen: each depth starts from: always the latest correct kernel" in told

    assert "has no kernel 99" in tilewright("command", run_id, "pin", "99").stderr
    assert "has finished (its one depth is done)" in tilewright("command", run_id, "hint", "try again").stderr
    assert not RunFolder(home / "runs" / run_id).commands_file.exists()
    assert tilewright("command", run_id, "set_budget", "depths=2").returncode == 0
    asked = tilewright("command", run_id, "hint", "try again")
    assert asked.returncode == 0
    assert "takes effect when it is resumed" in asked.stdout
    assert '"kind":"hint"' in RunFolder(home / "runs" / run_id).commands_file.read_text()

    saved = home / "saved.jsonl"
    assert tilewright("record", run_id, "--output", str(saved)).returncode == 0
    assert [(line.role, line.reply) for line in read_recording(saved).lines] == [
        (r, reply) for r, _, reply in REPLIES[:-1]
    ]
    again = supervisor.new_settings("swish", model="recorded", recording=str(saved))
    assert (dict(again.sizes), again.budget.depths) == (SIZES, 1)

    exported = home / "best.py"
    assert tilewright("export", run_id, "--output", str(exported)).returncode == 0
    assert "class ModelNew" in exported.read_text()
    assert "_tilewright(load_inline" in exported.read_text()
    assert "# Measured once at export in one process" in exported.read_text()
    assert "# Measured" not in tilewright("export", run_id, "--no-measure").stdout

    judged = tilewright("evaluate", "swish", str(exported), "--json", *SET)
    assert judged.returncode == 0, judged.stderr
    result = json.loads(judged.stdout)
    assert result["verdict"] == "passed"
    low, high = result["speedup_interval"]
    assert low <= result["speedup"] <= high
    assert result["latency_ms"] > 0
    assert result["baseline_latency_ms"] > 0
    assert result["max_error"] < 8e-6
    assert isinstance(result["proofs"], list)
    assert tilewright("evaluate", "swish", str(exported), *SET).stdout.startswith("passed, ")


def test_a_finished_run_says_so_without_a_model_and_takes_only_what_lets_it_go_on(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = real_pair(home)
    settings = replace(run.read_settings(), model="tester", budget=Budget(depths=1))
    run.settings_file.unlink()
    run.write_settings(settings)
    assert engine.__main__.main(["resume", run.run_id]) == 0
    assert capsys.readouterr().out == "finished: its one depth is done\n"
    for words in (["pause"], ["stop"], ["collect", "on"]):
        assert engine.__main__.main(["command", run.run_id, *words]) == 2
        told = capsys.readouterr().err
        assert f"has finished (its one depth is done), so {words[0]} has no effect: set_budget" in told
    assert not run.commands_file.exists()
    for words in (["set_budget", "depths=3"], ["collect", "on"]):
        assert engine.__main__.main(["command", run.run_id, *words]) == 0
    assert "takes effect when it is resumed" in capsys.readouterr().out


def test_a_reply_that_could_not_be_used_has_its_line() -> None:
    for kind, outcome in (("synthesise", "patch_failed"), ("judge", "unreadable")):
        assert live.sentence(ev.StepFinished(1, kind, 1.0, outcome)) == f"{kind}: the reply could not be used"
    assert live.sentence(ev.StepFinished(1, "synthesise", 1.0, "created")) == ""


def test_a_kernel_timed_once_more_before_the_run_ends_is_told_at_the_last_depth() -> None:
    record = Record.at_start(settings_with(budget=Budget(depths=2)))
    record.apply(ev.StepStarted(9, "time", 3, "c002"))
    shown = io.StringIO()
    with live.LiveView(Console(file=shown, force_terminal=True, width=100), record, PLAIN):
        pass
    assert "time kernel 2 at search step 2," in shown.getvalue()


def test_a_failed_check_tells_its_first_sentence_with_every_digit() -> None:
    first = (
        "314196180 of 1610612736 elements (19.51%) are wrong in trial 'own 1': first at index (0, 5): "
        "expected 0.79742027, got 0.79728115"
    )
    told = ev.Checked(1, "c001", CheckResult(Verdict.INCORRECT, 1.0, message=f"{first}. Largest error 0.000118."))
    assert live.sentence(told) == f"kernel 1: incorrect ({first})"


def test_a_run_is_forked_by_a_real_engine_and_given_a_kernel_by_hand(home: Path) -> None:
    (home / "runs").mkdir()
    run = real_pair(home, collect=Switch.OFF)  # what a profile is made of is seen in test_loop.py
    run_id = run.run_id
    words = ["--model", "manual", "--no-profiles", "--set-budget", "depths=1", "--hint", "mind the tail"]
    assert "no kernel 99; it has 2" in tilewright("fork", run_id, "99").stderr
    done = tilewright("fork", run_id, "2", *words)
    assert done.returncode == 0, done.stderr
    made = RunFolder(home / "runs" / done.stdout.strip())
    settings = made.read_settings()
    assert settings.forked_from is not None
    assert (settings.forked_from.run_id, settings.forked_from.candidate_id) == (run_id, "c002")
    assert (settings.model, settings.budget.depths, settings.strategy_options["expose_from_depth"]) == ("manual", 1, 2)
    assert [c.argument for c in read_from(made.commands_file)[0]] == ["mind the tail"]
    until(lambda: report.details(made)["state"] == "waiting", "a question")
    (taken,) = events_of(made, ev.Imported)
    assert isinstance(taken, ev.Imported)
    assert taken.file == f"c002 of run {run_id}"
    shown = json.loads(tilewright("show", made.run_id, "--json").stdout)
    assert (shown["state"], [row["verdict"] for row in shown["attempts"]]) == ("waiting", ["passed"])
    assert [done.base_id for done in events_of(made, ev.DepthFinished) if isinstance(done, ev.DepthFinished)] == [None]
    tilewright("command", made.run_id, "stop")
    until(lambda: not liveness.is_held(made), "the engine to be gone")

    mine = home / "mine.py"
    mine.write_text(FIRST + "# by hand\n")
    assert "cannot read" in tilewright("submit", run_id, str(home / "none.py")).stderr
    assert (
        "uses the kernel when it is resumed"
        in tilewright("submit", run_id, str(mine), "--parent", "2", "--note", "two lanes").stdout
    )
    (asked,) = read_from(run.commands_file)[0]
    submission = Submission.parse(asked.argument)
    assert (submission.parent_id, submission.note) == ("c002", "two lanes")
    assert (run.blobs / submission.blob).read_text() == mine.read_text()


def test_a_wrong_kernel_is_a_verdict_not_a_failure(home: Path) -> None:
    wrong = home / "wrong.py"
    wrong.write_text(FIRST.replace("1.f +", "2.f +"))
    judged = tilewright("evaluate", "swish", str(wrong), "--json", *SET)
    assert judged.returncode == 0, judged.stderr
    result = json.loads(judged.stdout)
    assert result["verdict"] == "incorrect"
    assert result["speedup"] is None
    assert result["max_error"] > result["tolerance"]


def test_a_text_is_screened_without_a_build(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = home / "kernel.py"
    file.write_text(FIRST)
    assert engine.__main__.main(["screen", "swish", str(file)]) == 0
    assert "Nothing found in the text" in capsys.readouterr().out
    file.write_text(
        FIRST.replace("class ModelNew", "import time\nfast = torch.compile(torch.relu)\n\n\nclass ModelNew")
    )
    assert engine.__main__.main(["screen", "swish", str(file), "--json"]) == 1
    refused, flagged = json.loads(capsys.readouterr().out)
    assert (refused["rule"], refused["is_refusal"], "torch.compile" in refused["message"]) == (
        "no library fall-back", True, True,
    )  # fmt: skip
    assert (flagged["rule"], flagged["is_refusal"], flagged["line"]) == ("allowed imports", False, refused["line"] - 1)


def test_a_fall_back_passes_where_the_person_leaves_it_to_pytorch(home: Path) -> None:
    file = home / "kernel.py"
    model = "class ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x * x.sigmoid()\n"
    file.write_text(f"import torch\n\n\n{model}")
    judged = tilewright("evaluate", "swish", str(file), "--json", "--library", "mul, sigmoid", *SET)
    assert judged.returncode == 0, judged.stderr
    result = json.loads(judged.stdout)
    assert result["verdict"] == "passed", result["message"]
    assert "aten::sigmoid" in result["evidence"]["operators"]


def test_another_systems_result_becomes_a_run_that_ended(home: Path) -> None:
    (home / "nodes").mkdir()
    for depth in range(2):
        node = {"depth": depth, "src": f"class ModelNew: {depth}", "error_type": "PASS", "time": {"mean": 1.0}}
        (home / "nodes" / f"{depth}.json").write_text(json.dumps(node))
    done = tilewright("import", str(home / "nodes"), "--task", "swish", *SET)
    assert done.returncode == 0, done.stderr
    assert "2 kernels were imported and not measured here" in done.stdout
    (row,) = json.loads(tilewright("list", "--json").stdout)
    assert (row["state"], row["model"], row["speedup"], row["depths"]) == ("stopped", "manual", None, 11)
    assert tilewright("record", row["run"]).returncode == 2
    assert "not waiting for a reply" in tilewright("answer", row["run"]).stderr


def test_a_patch_keeps_every_byte_that_it_is_not_about(tmp_path: Path) -> None:
    source = tmp_path / "kernel.py"
    source.write_bytes("é = 'ß'\r\ntwo\r\nthree\u2028x".encode())
    reply = edits("\ntwo\n", "\nTWO → 2\n").replace("\n", "\r\n")
    command = [sys.executable, "-m", "engine", "patch", str(source), "-"]
    done = subprocess.run(command, capture_output=True, input=reply.encode(), check=True)
    assert done.stdout == "é = 'ß'\r\nTWO → 2\r\nthree\u2028x".encode()


def test_a_reply_is_patched_in_as_a_run_would_or_reported(tmp_path: Path) -> None:
    source = tmp_path / "kernel.py"
    source.write_text("one\ntwo\n")
    patched = tilewright("patch", str(source), "-", stdin=edits("one\ntwo\n", "one\nTWO\n"))
    assert (patched.returncode, patched.stdout) == (0, "one\nTWO\n")
    refused = tilewright("patch", str(source), "-", stdin="no edits here")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "json" in refused.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--pool", "rays"), "unknown pool 'rays': use local, ray, or ray://HOST:PORT"),
        (("--toolchain", "cuda", "--device", "H9"), "no NVIDIA GPU can be used here"),
    ],
)
def test_a_run_whose_kernels_nobody_could_judge_is_not_begun(
    home: Path, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_POOL", "")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert engine.__main__.main(["run", "swish", "--model", "manual", *words]) == 4
    assert said in capsys.readouterr().err
    assert not (home / "runs").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "no_such_task"), "Shipped tasks"),
        (("run", "swish", "--set", "Q=1"), "no module-level number Q"),
        (("run", "swish", "--base", "worst"), "unknown base policy"),
        (("run", "swish", "--recording", "/nowhere.jsonl"), "cannot read recording"),
        (("run", "swish", "--device", "0"), "a device is a GPU: choose the toolchain cuda"),
        (("run", "swish", "--strategy", "coder_judge"), "No recorded replies for task swish on cpu with the strategy"),
        (("run", "swish", "--strategy", RESTARTS, "--collect", "on"), "no --collect: no kernel is profiled here"),
        (("show", "../etc"), "no run"),
        (("resume", "nothing"), "no run"),
        (("command", "nothing", "pause"), "no run"),
        (("evaluate", "swish", "/nowhere.py"), "there is no such file"),
        (("tune", "swish", __file__), "the file declares nothing to tune: write `constexpr int kTile"),
        (("tune", "swish", __file__, "--variants", "0"), "at least one variant is tried"),
        (("run", "swish", "--tune", "-1"), "the number of variants to tune is 0 for none"),
        (("run", "swish", "--set", "N"), "expected NAME=NUMBER"),
        (
            ("run", "swish", "--set", "dim=2.7"),
            "dim=2.7 is not valid: dim is a whole number from 1 (393216 in the task)",
        ),
    ],
)
def test_bad_input_says_what_is_wrong_and_exits_with_two(
    home: Path, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status: object = engine.__main__.main(list(words))
    except SystemExit as ended:
        status = ended.code
    errors = capsys.readouterr().err
    assert status == 2, errors
    assert said in errors
    assert "Traceback" not in errors


def test_sizes_that_do_not_fit_into_memory_make_no_run_folder(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fitting.CostMeter, "cost", lambda meter, source, *, backward=False: fitting.Cost(1 << 50, 1))
    for where in ([], ["--background"]):
        assert engine.__main__.main(["run", "swish", "--model", "manual", "--set", "dim=99999999", *where]) == 2
        assert "checking this task needs about 1.13 PB of memory" in capsys.readouterr().err
    assert not (home / "runs").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "tilewright: missing COMMAND. See: python -m engine --help\n"),
        (["run"], "tilewright: missing TASK. See: python -m engine run --help\n"),
        (
            ["run", "swish", "--dephts", "3"],
            "tilewright: unrecognized arguments: --dephts 3. See: python -m engine --help\n",
        ),
        (["run", "swish", "--collect", "yes"], "'yes' is not a valid --collect: use 'auto', 'on', 'off'. See:"),
        (["run", "swish", "--weight", "0"], "--weight: '0' is no weight: give a number above 0, such as 2"),
        (["rnu"], "'rnu' is not a valid COMMAND: use 'run', 'resume'"),
    ],
)
def test_a_word_out_of_place_is_one_sentence_with_the_way_to_help(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        arguments.parse(words)
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert said in told
    assert told.count("\n") == 1


def test_every_option_of_a_strategy_has_a_flag_and_the_former_short_ones_go_on_working() -> None:
    words = ["--base", "best", "--max-repairs", "3", "--expose-from", "4", "--strategy-option", "max_repairs=2"]
    given = ["base_policy=best", "max_repairs=3", "expose_from_depth=4", "max_repairs=2"]
    assert arguments.parse(["run", "swish", *words]).strategy_options == given
    assert arguments.parse(["fork", "a-run", "3", *words]).strategy_options == given
    assert arguments.parse(["run", "swish", "--base-policy", "latest"]).strategy_options == ["base_policy=latest"]


@pytest.mark.parametrize("words", [["strategies", "--json"], ["strategies", "--json", "cutegen"]])
def test_what_nobody_reads_any_longer_ends_quietly(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as unread:
        monkeypatch.setattr(sys, "stdout", unread)
        assert engine.__main__.main(words) == 0


def test_help_teaches_each_verb(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        arguments.parse(["--help"])
    general = capsys.readouterr().out
    assert "TILEWRIGHT_HOME" in general
    verbs = re.findall(r"^    ([a-z]+)  ", general, re.MULTILINE)
    assert {"run", "resume", "list", "show", "command", "answer", "record", "import", "export", "doctor"} <= set(verbs)
    for verb in verbs:
        with pytest.raises(SystemExit) as ended:
            arguments.parse([verb, "--help"])
        assert ended.value.code == 0
        assert "usage: python -m engine" in capsys.readouterr().out


def test_help_tells_which_strategies_ask_the_knowledge_base(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        arguments.parse(["run", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert "on for kernelblaster and graph_search, off for the others" in told


def test_a_strategy_of_ones_own_works_in_an_engine_of_its_own(home: Path) -> None:
    first = "Kernel class: activation\nApproach: %s\n```python\n" + FIRST + "```\n"
    replies = [("write", None, first % "one"), ("write", None, first % "two")]
    recording = write_recording(home / "replies.jsonl", replies)
    words = ["--model", "recorded", "--recording", str(recording), "--reply-seconds", "0", "--depths", "1", *SET]
    done = tilewright("run", "swish", "--strategy", RESTARTS, *words)
    assert done.returncode == 0, done.stderr
    assert "finished: its one step is done" in done.stdout
    (run,) = (home / "runs").iterdir()
    shown = json.loads(tilewright("show", run.name, "--json").stdout)
    assert [row["verdict"] for row in shown["attempts"]] == ["passed", "passed"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nothing", "unknown strategy 'nothing': use cutegen"),
        ("no.such.module:Name", "cannot be imported"),
        ("engine.search.loop:Nothing", "engine.search.loop has no Nothing"),
        ("storage.run.record:Record", "lacks next, again, abandon"),
    ],
)
def test_what_is_no_strategy_is_told_before_a_run_is_made(home: Path, name: str, said: str) -> None:
    done = tilewright("run", "swish", "--strategy", name)
    assert done.returncode == 2
    assert said in done.stderr
    assert not list((home / "runs").iterdir() if (home / "runs").exists() else ())
