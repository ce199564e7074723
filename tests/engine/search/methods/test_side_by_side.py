"""Methods whose step indexes build on each other in part, with several at work: who takes what, and who waits."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from engine.search.actions import Ask, Conclude, Consult, Finish, Refuse, Teach, Wait
from engine.search.methods import place_of
from engine.search.methods.graph_search.strategy import GraphSearch
from engine.search.methods.kernelblaster.state import ANALYSE, REVISE
from engine.search.methods.kernelblaster.strategy import KernelBlaster
from engine.search.methods.options import Value
from storage.knowledge.graph import NEW_METHOD, START
from storage.run import events as ev
from storage.run.lanes import Lane, Lanes
from storage.run.record import Record
from storage.run.settings import DepthOutcome
from tests.engine.search.methods.test_contract import SEEDS, SideBySide, advised
from tests.engine.search.methods.test_graph_search import Walks, step


def trajectory_of(place: str) -> int:
    return int(json.loads(place)["trajectory"])


@pytest.mark.parametrize("seed", SEEDS)
def test_a_trajectory_is_one_line_of_steps_whatever_is_at_work_beside_it(seed: int) -> None:
    play, seen = SideBySide("kernelblaster", seed), 0
    while play.go_on():
        taken = [trajectory_of(lane.place) for lane in play.lanes.open.values() if lane.place]
        assert len(set(taken)) == len(taken)
        for event in play.record.events[seen:]:
            if isinstance(event, ev.StepStarted) and event.kind in (ANALYSE, REVISE):
                assert not play.lanes.open, "a look back waits for every step at work"
        seen = len(play.record.events)
    tips = dict[int, str | None]()
    first = next((one.candidate_id for one in play.record.concluded if one.outcome is DepthOutcome.ACCEPTED), None)
    for done in play.record.concluded:
        if done.depth in play.record.places:
            number = trajectory_of(play.record.places[done.depth])
            assert done.base_id == tips.get(number, first)
            if done.outcome is DepthOutcome.ACCEPTED:
                tips[number] = done.candidate_id


class SameAdvice(SideBySide):
    """Whoever asks the base is told the same, and draws the first technique that was not tried on the kernel."""

    def __init__(self, seed: int) -> None:
        super().__init__("kernelblaster", seed)
        options: dict[str, Value] = {"trajectories": 3, "steps": 1, "top_k": 1, "verifies": False, "learns": False}
        self.settings = replace(self.settings, strategy_options=options, width=3)
        self.record = Record.of(self.settings, [])
        self.lanes = Lanes(self.record)

    def _looked_up(self, action: Consult | Teach | Refuse, number: int) -> ev.Event:
        told = super()._looked_up(action, number)
        if not isinstance(told, ev.Consulted):
            return told
        found = tuple(replace(advised(f"technique {n}", self.chance), expected_gain=9.0 - n) for n in range(4))
        return replace(told, found=found)


def test_an_attempt_counts_for_the_technique_that_was_drawn_which_no_other_at_work_tries_on_that_kernel() -> None:
    drawn = 0
    for seed in range(20):
        play = SameAdvice(seed)
        while play.go_on():
            pass
        places = [json.loads(place) for place in play.record.places.values() if "technique" in place]
        tried = [(one["kernel"], one["technique"]) for one in places]
        assert len(set(tried)) == len(tried)
        kernels = play.record.candidates
        for one in KernelBlaster().state(play.lanes.ended).attempts:
            if one.candidate_id in kernels:
                place = play.record.places[kernels[one.candidate_id or ""].created.depth]
                assert json.loads(place)["technique"] == one.technique
                drawn += 1
    assert drawn


class WalksBeside(Walks):
    """Walks with several at work; an expansion goes on by one action each time that it is named."""

    def __init__(self, outlines: int = 0, **brings: float | None) -> None:
        super().__init__(brings, expansions=20, depth=3, outlines=outlines)
        self.lanes = Lanes(self.record)

    def lane(self, index: int) -> Lane:
        return self.lanes.open.get(index) or self.lanes.next()

    def act(self, index: int) -> object:
        """Its next action, carried out."""
        lane = self.lane(index)
        assert lane.index == index
        action = GraphSearch().next(lane.record)
        if isinstance(action, Wait):
            return action
        if not isinstance(action, Conclude | Finish):
            place = place_of(GraphSearch(), lane.record, action)
            if place and place != lane.place:
                self.apply(ev.PlaceTaken(index, place))
        for event in self.carry_out(action):
            self.apply(event)
        return action

    def apply(self, event: ev.Event) -> None:
        self.record.apply(event)
        self.lanes.apply(event)

    def until_written(self, index: int) -> tuple[str | None, str]:
        """Up to its kernel: the one that it is made from, and its technique."""
        while True:
            action = self.act(index)
            if isinstance(action, Ask) and action.makes is not None:
                return action.about, action.makes.technique

    def end(self, index: int) -> None:
        while not isinstance(self.act(index), Conclude):
            pass


def test_a_walk_at_work_counts_as_failed_until_it_ends_and_nobody_takes_its_edge_meanwhile() -> None:
    run = WalksBeside(tile=2.0, fuse=0.5, unroll=1.5)
    run.until_written(0)
    assert isinstance(run.act(1), Wait), "the first kernel is worked on alone"
    run.end(0)
    assert [run.until_written(index) for index in (1, 2, 3)] == [("c001", "tile"), ("c001", "fuse"), ("c001", "new 1")]
    run.end(1)
    assert run.until_written(4) == ("c002", "unroll"), "tile has ended well, so it can be walked along"
    run.end(2)
    assert run.until_written(5) == ("c002", "new 2"), "unroll is at work there"
    found = GraphSearch().state(run.lane(5).record).weighed("c001", 0)
    assert {one.target: one.visits for one in found} == {"tile": 2, "fuse": 1, NEW_METHOD: 1}
    values = {one.target: one.value for one in found}
    assert values == pytest.approx({"tile": math.log(2) - 1, "fuse": math.log(0.5), NEW_METHOD: -1.0})
    for index in (5, 4, 3):
        run.end(index)
    edges = GraphSearch().state(run.lanes.ended).statistics.edges
    assert edges[START, "tile"].count == 3
    assert edges[START, "tile"].value == pytest.approx(math.log(2) + math.log(3) + math.log(2))
    assert edges["tile", "unroll"].count == 1
    assert edges["tile", "unroll"].value == pytest.approx(math.log(3))
    branches = {one.created.depth: one.created.trajectory for one in run.record.candidates.values()}
    assert branches == {0: 0, 1: 1, 2: 2, 3: 3, 4: 1, 5: 1}


def test_a_killed_run_finds_every_walk_as_it_was_taken() -> None:
    run = WalksBeside(tile=2.0, fuse=0.5)
    run.end(0)
    for index in (1, 2, 3):
        run.until_written(index)
    run.end(2)
    again = Record.of(run.settings, [])
    for event in run.record.events:
        again.apply(event)
    lanes = Lanes(again, run.record.events)
    assert {n: one.place for n, one in lanes.open.items()} == {n: one.place for n, one in run.lanes.open.items()}
    assert {n: one.record.beside for n, one in lanes.open.items()} == {
        n: one.record.beside for n, one in run.lanes.open.items()
    }
    assert lanes.next().record.beside == run.lanes.next().record.beside


def test_the_expansion_that_lays_out_the_sequences_is_worked_on_alone() -> None:
    run = WalksBeside(outlines=1)
    run.replies = {"outline": {"steps": [step("tile"), step("fuse")]}, "relabel": {"labels": ["tile", "new"]}}
    run.end(0)
    while not isinstance(run.act(1), Conclude):
        assert isinstance(run.act(2), Wait)
    assert not isinstance(run.act(2), Wait)
