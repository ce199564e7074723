"""A suite that searches kernels for the regions of a network: which ones, with which settings. Starts nothing.

A region with work in common with a chosen one is left out, the larger saving first. What the regions' own settings
leave of the suite's limits goes, a few steps at a time, where the largest part of the network's time is still to be
saved; a region near its limit, or whose steps could save no more than can be measured in the network, gets none.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from engine.errors import EngineError
from storage.networks import ranking
from storage.networks.files import NetworkFolder
from storage.networks.ranking import Ranked
from storage.networks.records import Network
from storage.suites.records import Arm, BudgetRule, Defined, SuiteLimits, SuiteTask

LEAST_SAVING = 0.003
"""Of the network's time, that steps are expected to save: less cannot be told from noise in the network."""
ARM = "search"
MOST_LETTERS = 70


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person wants searched, and how. `settings` are words of `engine run` for every region."""

    top: int | None = None
    regions: tuple[str, ...] = ()
    settings: str = ""
    recordings: str = ""
    """A folder with recorded replies, REGION.jsonl."""
    limits: SuiteLimits = field(default_factory=SuiteLimits)


def suite_name(network: str) -> str:
    """The suite that searches for a network; names of both have at most so many letters."""
    return f"{network[:MOST_LETTERS]}.regions"


def chosen(network: Network, rows: Sequence[Ranked], asked: Asked) -> tuple[list[Ranked], list[str]]:
    """The regions to search, the largest saving first, and sentences on those that are left out.

    Raises:
        EngineError: a region that is named has no task, or nothing is worth it.
    """
    by_name = {row.region.name: row for row in rows}
    if strangers := [name for name in asked.regions if name not in by_name or not by_name[name].region.task]:
        raise EngineError(f"network {network.name} has no task for {', '.join(strangers)}: see `network show`")
    wanted = [by_name[name] for name in asked.regions] or [row for row in rows if row.is_worth_it]
    if asked.recordings:
        wanted = [row for row in wanted if _recording(asked, row).is_file()]
    picked: list[Ranked] = []
    said = []
    for row in wanted:
        other = next((one for one in picked if ranking.overlap(one.region, row.region)), None)
        if other is not None:
            said.append(f"{row.region.name} is left out: {other.region.name} has work in common and would save more")
        elif asked.top is not None and len(picked) >= asked.top:
            said.append(f"{row.region.name} is left out: --top {asked.top}")
        else:
            picked.append(row)
    if not picked:
        where = f" and has a recording in {asked.recordings}" if asked.recordings else ""
        raise EngineError(f"no region of network {network.name} is worth a kernel{where}: see `network rank`")
    return picked, said


def _recording(asked: Asked, row: Ranked) -> Path:
    return Path(asked.recordings) / f"{row.region.name}.jsonl"


def defined(folder: NetworkFolder, network: Network, rows: Sequence[Ranked], asked: Asked) -> Defined:
    """The suite of these regions."""
    whole_ms = ranking.whole_of(network).best_ms
    total = sum(row.in_place_ms for row in rows)
    whole_ms = max(whole_ms, total)  # times at most may add up to more
    toolchain = "cpu" if network.device == "cpu" else "cuda"
    tasks = tuple(
        SuiteTask(
            row.region.name, str(folder.path / row.region.task), _settings(asked, row),
            time_share=row.in_place_ms / whole_ms if whole_ms else None,
        )
        for row in rows
    )  # fmt: skip
    rule = BudgetRule.EVEN if asked.limits == SuiteLimits() else BudgetRule.HEADROOM
    made = Defined(
        suite_name(network.name), tasks, (Arm(ARM),), title=f"Kernels for {network.name}",
        about=f"Searches kernels for {len(tasks)} regions of the network {network.name}.",
        settings=f"--toolchain {toolchain} {asked.settings}".strip(), baseline_arm=ARM, limits=asked.limits,
        budget=rule, least_saving=LEAST_SAVING,
    )  # fmt: skip
    return replace(made, toml=as_text(made))


def _settings(asked: Asked, row: Ranked) -> str:
    return f"--recording {shlex.quote(str(_recording(asked, row).absolute()))}" if asked.recordings else ""


def as_text(suite: Defined) -> str:
    """What stands beside the suite's journal for people; the journal is what counts."""
    lines = [f"# {suite.about} Made by `network optimise`.", f"name = {json.dumps(suite.name)}"]
    lines += [f"settings = {json.dumps(suite.settings)}", f'budget = "{suite.budget}"']
    lines.append(f"tasks = [{', '.join(json.dumps(task.task) for task in suite.tasks)}]")
    return "\n".join([*lines, ""])
