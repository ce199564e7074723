"""The verbs for a person's part: answering a run's call, saving a run's replies. Knows run folders, not screens."""

from __future__ import annotations

import json
import sys
import time
from argparse import Namespace

from engine import exporting
from engine.cli import given, report
from engine.cli.subcommands import FAILED, OK, warn_of_damage
from engine.errors import EngineError
from engine.recording_runs import recording_of
from engine.search.human.replies import require_usable
from engine.search.methods.loading import open_strategy
from engine.search.patching.edits import EditError
from storage.run import events as ev
from storage.run import journal, liveness
from storage.run.blobs import Blobs
from storage.run.folder import RunFolder, find_run
from storage.run.steering import commands
from storage.run.steering.command_arguments import Answer, Submission, as_file_reply
from storage.run.steering.verbs import CommandKind


def as_text(stored: str) -> str:
    """The messages one below the other, each under its role."""
    return "\n\n".join(f"[{message['role']}]\n{message['text']}" for message in json.loads(stored))


PATIENCE_S = 20.0
POLL_S = 0.05


def answer_call(options: Namespace) -> int:
    """Show the call that waits for a person, or send the answer in a file and say what the engine made of it."""
    folder = find_run(options.run_id)
    record = report.load(folder)
    question = record.human.question
    if question is None:
        raise EngineError(f"run {folder.run_id} is not waiting for a reply")
    blobs = Blobs(folder.blobs)
    if options.file is None:
        print(as_text(blobs.get(question.prompt_blob)))
        return OK
    text, is_held = _text(options.file), liveness.is_held(folder)
    if not is_held:
        try:
            require_usable(record, blobs, open_strategy(record.settings.strategy), question, text)
        except EditError as why:
            print(why, file=sys.stderr)
            return FAILED
    answer = Answer(question.step, question.call, blobs.put(text))
    sent = commands.send(folder.commands_file, CommandKind.ANSWER, str(answer))
    if not is_held:
        print(f"Reply saved. `python -m engine advance {folder.run_id}` makes the run go on with it.")
        return OK
    return _report_on(folder, sent.command_id)


def submit_kernel(options: Namespace) -> int:
    """Hand in a kernel as the run's next candidate."""
    folder = find_run(options.run_id)
    history = report.load(folder)
    parent = report.kernel_of(folder, history, options.parent).candidate_id if options.parent else history.best_id
    blob = Blobs(folder.blobs).put(_raw(options.file))
    sent = commands.send(folder.commands_file, CommandKind.SUBMIT, str(Submission(parent, blob, options.note)))
    if not liveness.is_held(folder):
        print("Kernel saved. The run is not running; it uses the kernel when it is resumed.")
        return OK
    return _report_on(folder, sent.command_id)


def _text(file: str) -> str:
    text = _raw(file)
    return as_file_reply(text) if file.endswith(".py") else text


def _raw(file: str) -> str:
    return exporting.without_support(given.text(file))


def _report_on(folder: RunFolder, command_id: str) -> int:
    """Wait for the engine's word on a command and pass it on."""
    offset, deadline = 0, time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        entries, offset = journal.read_from(folder.journal_file, offset)
        for event in (entry.event for entry in entries):
            if isinstance(event, ev.CommandEffective) and event.command_id == command_id:
                print(f"Accepted: {event.note}.")
                return OK
            if isinstance(event, ev.CommandRefused) and event.command_id == command_id:
                print(event.reason, file=sys.stderr)
                return FAILED
        time.sleep(POLL_S)
    print("Sent. The engine has not confirmed it yet.")
    return OK


def record_run(options: Namespace) -> int:
    """Save a run's replies as a recording."""
    folder = find_run(options.run_id)
    warn_of_damage(folder)
    report.write(recording_of(folder), options.output)
    if options.output:
        task = folder.read_settings().task_name
        print(f"Replay it with: python -m engine run {task} --recording {options.output}")
    return OK
