"""Many runs that a person answers, taken on together: each goes on until it waits for a person again. Knows run folders
and engine processes, not how a kernel is judged."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace

from rich.markup import escape
from rich.table import Table

from engine import supervisor
from engine.cli import report
from engine.cli.person import as_text
from engine.cli.subcommands import ALREADY_RUNNING, FAILED, INTERRUPTED, MACHINE_LACKS, OK, over
from engine.cli.terminal import Console, printable
from engine.errors import EngineError
from engine.search import prompt_pack
from storage import files
from storage.run import events as ev
from storage.run import liveness
from storage.run.blobs import Blobs
from storage.run.events import QuestionAsked
from storage.run.folder import RunFolder, find_run
from storage.run.record import Record
from storage.run.settings import LEFT, RunState
from storage.run.steering import commands
from storage.run.steering.verbs import CommandKind

RUNNING = "running"
WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class OpenPrompt:
    """A call that waits for a person. `file` has the messages as text, `answer` is the command that brings a reply."""

    role: str
    step: int
    call: int
    depth: int
    kernel: str | None
    file: str
    messages: tuple[dict[str, str], ...]
    answer: str


@dataclass(frozen=True, slots=True)
class RunStatus:
    """Where a run stands. `state` is that of the run, `waiting` where it was left because it waits for a person.

    `refused` says why replies to the open prompt could not be used, `notes` what has become of the run's prompt files.
    """

    run: str
    task: str
    state: str
    reason: str
    depth: int = 0
    depths: int = 0
    speedup: float | None = None
    refused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    prompt: OpenPrompt | None = None


def advance_runs(options: Namespace) -> int:
    """Take every run on, some at a time, and say where each stands then."""
    folders = [find_run(run_id) for run_id in dict.fromkeys(options.runs)]
    console = Console(stderr=True)
    with ThreadPoolExecutor(int(options.jobs)) as pool:
        ends = [pool.submit(_advance, folder, options.device, console) for folder in folders]
        try:
            results = [end.result() for end in ends]
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            _stop(folders)
            return INTERRUPTED
    tell([status for status, _ in results], as_json=options.json)
    codes = {code for _, code in results}
    return next((code for code in (FAILED, MACHINE_LACKS, ALREADY_RUNNING) if code in codes), OK)


def _advance(folder: RunFolder, device: str | None, console: Console) -> tuple[RunStatus, int]:
    """Where the run stands afterwards, and 0 where nothing is wrong with that."""
    try:
        before = seen(folder)
        if before.state == RUNNING:
            return before, ALREADY_RUNNING
        if over(folder) or waits_on(folder):
            return before, OK
        console.print(f"{folder.run_id}: at work", highlight=False, soft_wrap=True)
        code, reason = supervisor.advance(folder, device)
        after = seen(folder)
    except (EngineError, FileNotFoundError) as error:
        return RunStatus(folder.run_id, "", str(RunState.FAILED), str(error)), FAILED
    if code not in (OK, ALREADY_RUNNING):
        after = replace(after, state=str(RunState.FAILED), reason=reason)
    console.print(f"{folder.run_id}: {after.state}", highlight=False, soft_wrap=True)
    return after, code if code in (OK, ALREADY_RUNNING, MACHINE_LACKS) else FAILED


def waits_on(folder: RunFolder) -> bool:
    """Whether the run was left at a prompt and nothing has been sent to it since."""
    record = report.load(folder)
    question, sent = record.human.question, commands.read_from(folder.commands_file)[0]
    if question is None or not report.was_left(record):
        return False
    is_answered = record.human.answer_to(question.step, question.call) is not None
    return not is_answered and all(command.command_id in record.commands for command in sent)


def _stop(folders: Iterable[RunFolder]) -> None:
    print("\nStopping. The runs can be advanced again.", file=sys.stderr)
    for folder in folders:
        if liveness.is_held(folder):
            commands.send(folder.commands_file, CommandKind.STOP)


def seen(folder: RunFolder) -> RunStatus:
    """Where a run stands, with the prompt that waits in it; that is also written to its folder as text."""
    record = report.load(folder)
    folder.prompt_file.unlink(missing_ok=True)
    prompt = _open(folder, record.human.question) if record.human.question else None
    state, reason = str(record.state), record.ended.reason.removeprefix(LEFT) if record.ended else ""
    if liveness.is_held(folder):
        state, reason = RUNNING, "an engine is at work on it" + (" and waits for your reply" if prompt else "")
    elif report.was_left(record):
        state = WAITING
    return RunStatus(
        folder.run_id, record.settings.task_name, state, reason, max(record.step_index - 1, 0), record.budget.depths,
        record.best.timed.speedup if record.best and record.best.timed else None,
        tuple(_refused(record)), tuple(prompt_pack.changes(record.settings.prompts)), prompt,
    )  # fmt: skip


def _open(folder: RunFolder, question: QuestionAsked) -> OpenPrompt:
    stored = Blobs(folder.blobs).get(question.prompt_blob)
    files.replace(folder.prompt_file, as_text(stored))
    messages = tuple({"role": message["role"], "text": message["text"]} for message in json.loads(stored))
    return OpenPrompt(
        question.role, question.step, question.call, question.depth, question.candidate_id, str(folder.prompt_file),
        messages, f"python -m engine answer {folder.run_id} FILE",
    )  # fmt: skip


def _refused(record: Record) -> Iterable[str]:
    """Why answers to the open prompt were refused, oldest first."""
    question = record.human.question
    prefix = f"{question.step}.{question.call} " if question else "no open prompt"
    for event in record.events:
        if isinstance(event, ev.CommandRefused):
            command = record.commands[event.command_id].command
            if command.kind is CommandKind.ANSWER and command.argument.startswith(prefix):
                yield event.reason


def tell(statuses: Iterable[RunStatus], *, as_json: bool) -> None:
    """Print where runs stand: as a table with what to do for those that wait, or as JSON."""
    statuses = list(statuses)
    if as_json:
        print(json.dumps([asdict(status) for status in statuses]))
        return
    console, table = Console(), Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("run", "state", "step", "best", "why"):
        table.add_column(heading, no_wrap=heading == "run")
    for status in statuses:
        gain = f"{status.speedup:.3g}x" if status.speedup else "-"
        table.add_row(
            status.run, status.state, f"{status.depth}/{status.depths}", gain, escape(printable(status.reason))
        )
    console.print(table)
    for status in statuses:
        for why in status.refused[-1:]:
            _line(console, f"{status.run}: your last reply was refused: {why}")
    for status in statuses:
        for note in status.notes:
            _line(console, f"{status.run}: note: {note}")
        if status.prompt:
            _line(console, f"{status.run}: read {status.prompt.file}, then {status.prompt.answer}")
    if any(status.prompt and status.state == WAITING for status in statuses):
        _line(console, "Replies are used by the next `python -m engine advance RUN...`.")


def _line(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)
