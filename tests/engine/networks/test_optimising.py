"""Which regions of a network a search takes up, and with which settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import EngineError
from engine.networks import optimising
from engine.networks.optimising import Asked
from engine.suites import headroom
from storage.networks import ranking
from storage.networks.files import NetworkFolder
from storage.networks.ranking import Ranked
from storage.networks.records import Network, RegionLimited
from storage.suites.records import BudgetRule, Cell, SuiteLimits, Weighed
from tests import sample_networks


def ranked() -> tuple[Network, list[Ranked]]:
    network = sample_networks.network()
    limits = {region.name: RegionLimited(region.name, 1e-4, "memory", "a GPU") for region in network.regions}
    return network, ranking.ranked(network, limits)


def test_of_regions_with_work_in_common_the_one_that_saves_most_is_searched() -> None:
    network, rows = ranked()
    chosen, said = optimising.chosen(network, rows, Asked())
    assert chosen
    names = [row.region.name for row in chosen]
    assert not any(ranking.overlap(one.region, other.region) for one in chosen for other in chosen if one is not other)
    left_out = [row.region.name for row in rows if row.is_worth_it and row.region.name not in names]
    assert len(said) == len(left_out) > 0
    assert all("has work in common and would save more" in sentence for sentence in said)
    savings = [row.saving_ms or 0.0 for row in chosen]
    assert savings == sorted(savings, reverse=True)


def test_a_person_says_how_many_or_which_and_what_cannot_be_is_refused(tmp_path: Path) -> None:
    network, rows = ranked()
    first, said = optimising.chosen(network, rows, Asked(top=1))
    assert len(first) == 1
    assert any(sentence.endswith("--top 1") for sentence in said)
    last = [row for row in rows if row.region.task][-1].region.name
    assert [row.region.name for row in optimising.chosen(network, rows, Asked(regions=(last,)))[0]] == [last]
    with pytest.raises(EngineError, match="has no task for nowhere"):
        optimising.chosen(network, rows, Asked(regions=("nowhere",)))
    with pytest.raises(EngineError, match="has a recording in"):
        optimising.chosen(network, rows, Asked(recordings=str(tmp_path)))


def test_cells_are_regions_with_their_share_of_the_network_and_a_limit_makes_the_budget_follow_what_is_left() -> None:
    network, rows = ranked()
    chosen, _ = optimising.chosen(network, rows, Asked())
    folder = NetworkFolder(Path("/networks/tiny"))
    suite = optimising.defined(folder, network, chosen, Asked(settings="--depths 6"))
    assert suite.name == "tiny.regions"
    assert [task.name for task in suite.tasks] == [row.region.name for row in chosen]
    assert sum(task.time_share or 0.0 for task in suite.tasks) <= 1.0
    assert suite.settings == "--toolchain cuda --depths 6"
    assert suite.budget is BudgetRule.EVEN
    limited = optimising.defined(folder, network, chosen, Asked(limits=SuiteLimits(model_calls=50)))
    assert limited.budget is BudgetRule.HEADROOM


def test_steps_that_nobody_could_measure_in_the_network_are_not_given() -> None:
    cell = Weighed(Cell("norm", "search", 1), "run", saving=0.002, steps=2, why="10 % of the limit left")
    assert headroom._enough(cell, 0.003).steps == 0
    assert headroom._enough(cell, 0.003).why.endswith("less than 0.3 % of the total is not measurable")
    assert headroom._enough(cell, 0.001) == cell
