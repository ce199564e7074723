"""The verbs that tell a run once more and time two kernels again. Knows run folders, no concrete toolchain."""

from __future__ import annotations

from argparse import Namespace

from rich.console import Console

from engine import remeasuring, replaying, supervisor
from engine.cli.live import LiveView, interval
from engine.cli.subcommands import FAILED, OK
from engine.cli.terminal import printable
from engine.errors import EngineError
from engine.evaluator.request import Evaluator
from engine.remeasuring import Measuring
from engine.replaying import Replay
from engine.search.methods import catalogue
from storage import codec
from storage.run import liveness, remeasurements
from storage.run.folder import RunFolder, find_run
from storage.run.journal import Entry, Journal
from storage.run.record import Record
from storage.run.remeasurements import Ratio, RemeasureProgress, RemeasureRequest, RemeasureState


def prepare_replay(options: Namespace) -> RunFolder | None:
    """The folder of a replay to be played here; None when it was started detached, or deleted."""
    if options.delete:
        supervisor.delete_replay(options.run_id)
        print(f"Deleted replay {options.run_id}.")
        return None
    if options.background:
        print(supervisor.start_replay(options.run_id, options.speed, options.seconds).run_id)
        return None
    original = find_run(options.run_id)
    if liveness.is_held(original):
        raise EngineError(f"run {options.run_id} is still running: replay it when it has ended")
    folder = replaying.prepare(replaying.settings_of(original, options.speed, options.seconds), original)
    print(f"{folder.run_id}: replay of {options.run_id} at {folder.read_settings().replay_speed:g}x speed", flush=True)
    return folder


def tell_again(folder: RunFolder, journal: Journal, record: Record, console: Console) -> int:
    """Be the engine of a replay until it ends. The caller holds its lock."""
    with LiveView(console, record, catalogue.words(record.settings.strategy)) as view:

        def listen(entry: Entry) -> None:
            record.take(entry)
            view(entry)

        Replay(folder, journal, listen).play()
    journal.close()
    return OK


def prepare_remeasurement(options: Namespace) -> tuple[RunFolder, RemeasureRequest] | None:
    """The folder and the request of a re-measurement to be made here; None when it was started detached.

    Raises:
        EngineError: not two kernels are named, or they cannot be measured against one baseline.
    """
    if options.go_on:
        return remeasurements.folder_of(options.go_on), remeasurements.read(options.go_on).request
    if len(options.kernels) != 4:
        raise EngineError("name two kernels: python -m engine remeasure RUN KERNEL RUN KERNEL")
    first, second = (options.kernels[0], options.kernels[1]), (options.kernels[2], options.kernels[3])
    if options.background:
        print(supervisor.remeasure(first, second, options.rounds))
        return None
    request = remeasuring.request_of(first, second, options.rounds)
    return remeasurements.create(request), request


def remeasure(folder: RunFolder, request: RemeasureRequest, toolchain: Evaluator, *, as_json: bool) -> int:
    """Measure until the end, writing down and printing how far it is. The caller holds the folder's lock."""

    def listen(progress: RemeasureProgress) -> None:
        remeasurements.tell(folder, progress)
        if not as_json:
            about = f": {printable(progress.message)}" if progress.message else ""
            print(f"{progress.state}{about}", flush=True)

    ended = Measuring(request, toolchain, listen).run()
    if as_json:
        ratio = ended.ratio
        interval = [ratio.value, ratio.low, ratio.high] if ratio else None
        print(codec.dumps({"request": request, "progress": ended, "ratio": interval}))
    elif ended.ratio and ended.state is RemeasureState.DONE:
        print(_verdict(request, ended.ratio))
    return OK if ended.state is RemeasureState.DONE else FAILED


def _verdict(request: RemeasureRequest, ratio: Ratio) -> str:
    first, second = request.first, request.second
    measured = first.speedup / second.speedup
    compared = f"{ratio.value:.3g}x as fast as kernel {second.number} ({interval(ratio.low, ratio.high)})"
    doubt = "" if ratio.is_difference else "; no difference beyond the noise"
    doubt = doubt if ratio.is_sound else "; too few rounds to tell this from noise (use 6 or more)"
    return f"kernel {first.number} is {compared}{doubt}; the runs measured {measured:.3g}x"
