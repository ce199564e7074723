"""What the hardware allows for each region, asked of the evaluator as for any task and kept in the network's journal;
and what the prompt of each then says of the whole. Imports no torch."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

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
from storage.networks.standing import Standing, standing

MOST_REGIONS = 40
"""Of one network whose limits are measured unasked: each takes seconds."""


def ranked(folder: NetworkFolder) -> list[Ranked]:
    """The regions of a network that was captured, by what a kernel would save.

    Raises:
        NetworkError: it was not captured whole.
    """
    seen = standing(folder)
    return ranking.ranked(
        _network(seen, folder), seen.limits, ranking.experience(knowledge_files.load(seeded=False).rows)
    )


def _network(seen: Standing, folder: NetworkFolder) -> Network:
    if seen.network is None:
        raise files.NetworkError(f"network {folder.name} is {seen.state}: {seen.words}")
    return seen.network


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
        files.append(folder, RegionLimited(row.region.name, round(limit.limit_ms, 6), limit.bound_by, limit.device))
    tell_places(folder)
    return failures


def tell_places(folder: NetworkFolder) -> None:
    """Write into every task's file what is known of its place by now.

    Raises:
        OSError: the disk is full or may not be written.
    """
    network = _network(standing(folder), folder)
    for row in ranked(folder):
        if row.region.task:
            _set_place((folder.path / row.region.task).with_suffix(".toml"), placing.words_of(network, row))


def _set_place(path: Path, words: str) -> None:
    lines = path.read_text("utf-8").splitlines()
    changed = [f"place = {json.dumps(words)}" if line.startswith("place = ") else line for line in lines]
    stored.replace(path, "\n".join([*changed, ""]))
