"""What the hardware allows for each region, asked of the evaluator as for any task and kept in the network's journal;
and what the prompt of each then says of the whole. Imports no torch."""

from __future__ import annotations

import json
from collections.abc import Callable

from engine.errors import EngineError
from engine.evaluator import tasks
from engine.evaluator.request import Evaluator
from engine.networks import placing
from storage import files as stored
from storage.knowledge import files as knowledge_files
from storage.networks import files, ranking
from storage.networks.files import NetworkFolder
from storage.networks.ranking import Ranked
from storage.networks.records import CaptureProgressed, Network, RegionLimited
from storage.networks.standing import standing

MOST_REGIONS = 40
"""Of one network whose limits are measured unasked: each takes seconds."""


def ranked(folder: NetworkFolder) -> list[Ranked]:
    """The regions of a network that was captured, by what a kernel would save.

    Raises:
        NetworkError: it was not captured whole.
    """
    seen = standing(folder)
    if seen.network is None:
        raise files.NetworkError(f"network {folder.name} is {seen.state}: {seen.words}")
    return ranking.ranked(seen.network, seen.limits, ranking.experience(knowledge_files.load(seeded=False).rows))


def measure(folder: NetworkFolder, evaluator: Evaluator, toolchain: str, say: Callable[[str], None]) -> list[str]:
    """Measure the limit of every region that may be worth a kernel and has none yet; what failed, as sentences."""
    failures = []
    waiting = [row for row in ranked(folder) if row.is_worth_it and row.limit_ms is None][:MOST_REGIONS]
    for number, row in enumerate(waiting, 1):
        words = f"measuring the limit of {row.region.name} ({number} of {len(waiting)})"
        files.append(folder, CaptureProgressed(words))
        say(words)
        try:
            task = tasks.read(folder.path / row.region.task).task(toolchain)
            limit = evaluator.limit(task)
        except EngineError as error:
            failures.append(f"{row.region.name} has no limit: {error}")
            continue
        device = limit.device
        files.append(folder, RegionLimited(row.region.name, round(limit.limit_ms, 6), limit.bound_by, device))
    tell_places(folder)
    return failures


def tell_places(folder: NetworkFolder) -> None:
    """Write into every task's file what is known of its place by now."""
    network = standing(folder).network
    for row in ranked(folder) if network is not None else ():
        if network is not None and row.region.task:
            set_place(folder, network, row)


def set_place(folder: NetworkFolder, network: Network, row: Ranked) -> None:
    """Write down what a prompt says of one region's place.

    Raises:
        OSError: the disk is full or may not be written.
    """
    path = (folder.path / row.region.task).with_suffix(".toml")
    words = placing.words_of(network, row.region, row)
    lines = path.read_text("utf-8").splitlines()
    changed = [f"place = {json.dumps(words)}" if line.startswith("place = ") else line for line in lines]
    stored.replace(path, "\n".join([*changed, ""]))
