"""The verbs that tell a run once more. Knows run folders, not what a terminal or a page shows of them."""

from __future__ import annotations

from argparse import Namespace

from rich.console import Console

from engine import replaying, supervisor
from engine.cli.live import LiveView
from engine.cli.verbs import OK
from engine.errors import EngineError
from engine.history import History
from engine.replaying import Replay
from storage import liveness
from storage.folder import RunFolder, find_run
from storage.journal import Entry, Journal


def prepare_replay(options: Namespace) -> RunFolder | None:
    """The folder of a replay to be played here; None when it was started detached, or deleted."""
    if options.delete:
        supervisor.delete_replay(options.run_id)
        print(f"deleted {options.run_id}")
        return None
    if options.background:
        print(supervisor.start_replay(options.run_id, options.speed, options.seconds).run_id)
        return None
    original = find_run(options.run_id)
    if liveness.is_held(original):
        raise EngineError(f"an engine is still working on run {options.run_id}: there is no end to tell yet")
    folder = replaying.prepare(replaying.settings_of(original, options.speed, options.seconds), original)
    print(f"{folder.run_id}: {options.run_id} told {folder.read_settings().replay_speed:g} times as fast", flush=True)
    return folder


def tell_again(folder: RunFolder, journal: Journal, history: History, console: Console) -> int:
    """Be the engine of a replay until it ends. The caller holds its lock."""
    with LiveView(console, history) as view:

        def listen(entry: Entry) -> None:
            history.apply(entry.event)
            view(entry)

        Replay(folder, journal, listen).play()
    journal.close()
    return OK
