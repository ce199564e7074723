"""What a process does to become the engine of a run: leave the terminal, say who it is, listen to Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

from engine import supervisor
from storage import files
from storage.run.folder import RunFolder
from storage.run.steering import commands
from storage.run.steering.verbs import CommandKind


def detach(log_file: Path) -> None:
    """Leave the launcher's session and terminal: the process leads a session of its own and writes to its log."""
    os.setsid()
    log = os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.close(log)
    os.close(nothing)


def leave_name(folder: RunFolder) -> None:
    """Tell who the engine is: pid and kernel start time together name one process for ever."""
    name = {"pid": os.getpid(), "started": supervisor.process_start(os.getpid()), "at": time.time()}
    files.replace(folder.engine_file, json.dumps(name))


def on_interrupt_ask_to_stop(folder: RunFolder) -> None:
    """The first Ctrl-C ends the run in order, the second one at once; either way it can be resumed."""

    def ask(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        commands.send(folder.commands_file, CommandKind.STOP)
        print("\nStopping. Press Ctrl-C again to end at once; the run can be resumed.", file=sys.stderr)

    signal.signal(signal.SIGINT, ask)
