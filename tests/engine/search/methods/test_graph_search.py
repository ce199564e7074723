"""The graph search: its arithmetic, its answers, and its walks through runs with known outcomes."""

from __future__ import annotations

import json
import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from engine.evaluator.request import Evaluator
from engine.search.actions import Action, Ask, Conclude, Consult, Evaluate, Finish, Refuse, Step, Teach, Wait, label
from engine.search.methods.graph_search.replies import ReadLabels, ReadOutline, ReadProposal
from engine.search.methods.graph_search.selection import Statistics, Visits, choose, score, value_of, weigh
from engine.search.methods.graph_search.strategy import GraphSearch
from engine.search.methods.options import Value
from engine.search.patching.edits import EditError
from storage import codec
from storage.knowledge.graph import NEW_METHOD, START
from storage.knowledge.records import Advised, Bottleneck, Category, KnownEdge, Transition, WeighedEdge
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult
from storage.results.profile_results import ProfileResult
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.record import Record
from storage.run.settings import Budget, DepthOutcome, RunState, StepKind
from storage.run.steering.verbs import Command, CommandKind
from tests.engine.contexts import open_context
from tests.engine.search.methods.test_contract import Play
from tests.guard.engine_side import NoToolchain

WORDS = {"category": "memory", "think": "it waits", "method": "does it", "before": "a;", "after": "b;"}

# --- selection and back-up


@pytest.mark.parametrize(
    ("seen", "prior", "parent", "c", "expected"),
    [
        (Visits(4, 1.2), 9.0, 10, 1.0, 0.3 + math.sqrt(math.log(10) / 5)),
        (Visits(4, 1.2), 9.0, 10, 0.0, 0.3),
        (Visits(0, 0.0), 0.2, 10, 2.0, 0.2 + 2 * math.sqrt(math.log(10))),  # the prior stands in for Q/N
        (Visits(0, 0.0), 0.2, 0, 1.0, 0.2),  # nobody has come by yet
        (Visits(1, -1.0), 0.2, 1, 1.0, -1.0),
    ],
)
def test_the_score_of_an_edge_is_its_mean_and_what_exploring_it_is_worth(
    seen: Visits, prior: float, parent: int, c: float, expected: float
) -> None:
    assert score(seen, prior, parent, c) == pytest.approx(expected)


def test_what_a_walk_brings_counts_for_its_own_edges_alone() -> None:
    found = Statistics()
    found.back_up([(START, "tile"), ("tile", "unroll")], 0.5)
    found.back_up([(START, "fuse"), ("fuse", "unroll")], -1.0)
    found.back_up([(START, "tile"), ("tile", "unroll"), ("unroll", "tile"), ("tile", "unroll")], 0.25)
    assert found.edges == {
        (START, "tile"): Visits(2, 0.75),
        ("tile", "unroll"): Visits(3, 1.0),  # twice in the walk that went round
        (START, "fuse"): Visits(1, -1.0),
        ("fuse", "unroll"): Visits(1, -1.0),
        ("unroll", "tile"): Visits(1, 0.25),
    }
    assert found.nodes == {START: 3, "tile": 3, "fuse": 1, "unroll": 1}


def test_a_new_method_counts_for_its_edge_and_for_the_edge_that_it_made() -> None:
    found = Statistics()
    found.back_up([(START, "tile"), ("tile", NEW_METHOD)], 0.5, "swizzle")
    assert found.edges[("tile", NEW_METHOD)] == found.edges[("tile", "swizzle")] == Visits(1, 0.5)
    assert found.nodes == {START: 1, "tile": 1}


@pytest.mark.parametrize(("factor", "value"), [(2.0, math.log(2)), (0.5, -math.log(2)), (None, -1.0)])
def test_a_value_is_the_log_of_the_speed_up_and_a_failure_is_minus_one(factor: float | None, value: float) -> None:
    assert value_of(factor) == pytest.approx(value)


def test_among_equal_edges_one_is_drawn_the_same_one_for_the_same_place() -> None:
    equal = weigh("c001", START, dict.fromkeys("abc", 0.1) | {"d": 0.0}, Statistics(), 1.0)
    drawn = [choose(equal, f"run:{n}").target for n in range(40)]
    assert drawn == [choose(equal, f"run:{n}").target for n in range(40)]
    assert set(drawn) == set("abc")


# --- what answers must hold


def step(name: str, **other: object) -> dict[str, object]:
    return {"technique": name} | WORDS | other


def test_a_sequence_keeps_its_code_and_takes_over_known_spellings() -> None:
    steps = [
        step("register  TILING", before="for (i)\n  a;", after="x"),
        step("Split-K", after="y" * 1300),
        step("register tiling"),
    ]
    read = ReadOutline(("register tiling",))(json.dumps({"steps": steps}))
    assert [one["technique"] for one in read.payload["steps"]] == ["register tiling", "Split-K", "register tiling"]
    assert read.payload["steps"][0]["before"] == "for (i)\n  a;"
    assert read.payload["steps"][1]["after"] == "y" * 1198 + "\n…"


@pytest.mark.parametrize(
    ("steps", "report"),
    [
        ([step("a")], "2 to 6 objects"),
        ([step("a")] * 7, "has 7 entries: at most 6"),
        ([step("a"), step("b", before=3)], 'steps 2: "before" must be lines of code'),
        ([step("a"), step("a new method")], "must name a technique"),
        ([step("a"), {"technique": "b"}], 'steps 2: "think" must be a text'),
    ],
)
def test_a_sequence_of_a_bad_length_or_form_is_refused(steps: list[object], report: str) -> None:
    with pytest.raises(EditError, match=report):
        ReadOutline(())(json.dumps({"steps": steps}))


def test_labels_are_known_names_or_leave_a_technique_its_own() -> None:
    read = ReadLabels(("blocking", "my trick"), ("cache blocking",))('{"labels": ["Cache Blocking", "new"]}')
    assert read.payload == {"labels": ["cache blocking", "my trick"]}


@pytest.mark.parametrize(
    ("labels", "report"), [('["new"]', "1 entries for 2"), ('["new", "elsewhere"]', 'holds "elsewhere"'), ("3", "list")]
)
def test_labels_of_a_bad_length_or_unknown_ones_are_refused(labels: str, report: str) -> None:
    with pytest.raises(EditError, match=report):
        ReadLabels(("a", "b"), ("cache blocking",))(f'{{"labels": {labels}}}')


def test_a_proposal_has_no_edge_yet() -> None:
    reply = {"technique": "Tiling", "category": "memory", "think": "t", "about": "a", "helps": "h", "hurts": "u"}
    read = ReadProposal(("tiling",), ())(json.dumps(reply | {"predicted_gain": 1.5}))
    assert (read.payload["technique"], read.payload["is_known"]) == ("tiling", True)
    with pytest.raises(EditError, match='"tiling" has an edge here already'):
        ReadProposal(("tiling",), ("tiling",))(json.dumps(reply | {"predicted_gain": 1.5}))


# --- walks


def edge(source: str, target: str, gain: float) -> KnownEdge:
    return KnownEdge(source, target, gain, 2, math.log(gain))


GRAPH = (edge(START, "tile", 1.5), edge(START, "fuse", 1.2), edge("tile", "unroll", 1.4), edge("unroll", "tile", 1.3))


class Walks(Play):
    """A run whose kernels are as fast as their techniques make them: a factor over the kernel before, None fails."""

    def __init__(
        self, brings: Mapping[str, float | None], edges: Sequence[KnownEdge] = GRAPH,
        replies: Mapping[str, object] | None = None, **options: Value,
    ) -> None:  # fmt: skip
        super().__init__("graph_search", 1)
        options = {"outlines": 0, "max_repairs": 0, "c": 0.0, **options}
        self.settings = replace(self.settings, budget=Budget(depths=50), strategy_options=options, knowledge="on")
        self.record = Record.of(self.settings, [])
        self.brings, self.edges, self.replies = dict(brings), edges, dict(replies or {})
        self.strategy, self.done = GraphSearch(), list[Action]()
        self.speedups: dict[str, float | None] = {}
        self.proposed = 0

    def course(self) -> list[Action]:
        """Every action up to the end of the run."""
        while not isinstance(action := self.strategy.next(self.record), Finish):
            self.take(action)
            assert len(self.done) < 400
        return [*self.done, action]

    def take(self, action: Action) -> None:
        """Carry it out."""
        self.done.append(action)
        for event in self.carry_out(action):
            self.record.apply(event)

    def steer(self, kind: CommandKind, argument: str) -> None:
        """A person's command takes effect."""
        name = f"k{len(self.record.commands)}"
        self.record.apply(ev.CommandAcknowledged(Command(name, kind, argument, "someone", 0.0), 0))
        self.record.apply(ev.CommandEffective(name, 0, ""))

    def _work(self, action: Step, number: int) -> Generator[ev.Event, None, str]:
        if not isinstance(action, Ask):
            return (yield from super()._work(action, number))
        if action.makes is None:
            assert action.about
            assert action.reads
            try:
                read = action.reads(json.dumps(self._reply(action)))
            except EditError as report:
                yield ev.ReviewWritten(
                    number, 0, action.label, action.index, action.about, self.keep("x"), "", str(report)
                )
                return "unreadable"
            blob, payload = self.keep(json.dumps(dict(read.fields))), json.dumps(dict(read.payload))
            yield ev.ReviewWritten(
                number, 0, action.label, action.index, action.about, blob, "", payload=payload
            )  # fmt: skip
            return "written"
        makes, name = action.makes, f"c{len(self.record.candidates) + 1:03d}"
        parent = self.speedups.get(action.about or "", 1.0) or 1.0
        factor = self.brings.get(makes.technique, 1.0) if makes.technique else 1.0
        self.speedups[name] = None if factor is None else parent * factor
        source = self.keep(f"class ModelNew: ...  # {name}\n")
        yield ev.CandidateCreated(
            number, name, action.about, makes.base_id, action.index, makes.generation, makes.repair, makes.origin,
            source, None, 1, 0, name, (), makes.technique, makes.predicted_gain, makes.trajectory,
        )  # fmt: skip
        return "created"

    def _reply(self, action: Ask) -> object:
        if action.label == "propose":
            self.proposed += 1
            new = {"technique": f"new {self.proposed}", "about": "a", "helps": "h", "hurts": "u"}
            return new | {"category": "memory", "think": "t", "predicted_gain": 1.1}
        return self.replies[action.label]

    def _result(self, action: Evaluate, number: int) -> ev.Event:
        speedup, name = self.speedups[action.about], action.about
        match action.stage:
            case StepKind.COMPILE if speedup is None:
                return ev.Compiled(number, name, CompileResult(False, 1.0, "no", verdict=Verdict.COMPILE_ERROR), None)
            case StepKind.COMPILE:
                return ev.Compiled(number, name, CompileResult(True, 1.0), None)
            case StepKind.CHECK:
                return ev.Checked(number, name, CheckResult(Verdict.PASSED, 1.0))
            case StepKind.TIME:
                assert speedup is not None
                return ev.Timed(number, name, TimingResult((1.0,) * 9, (speedup,) * 9))
            case _:
                return ev.Profiled(number, name, ProfileResult("h", (), "memory", "summary"), None)

    def _looked_up(self, action: Consult | Teach | Refuse, number: int) -> ev.Event:
        if not isinstance(action, Consult):
            return super()._looked_up(action, number)
        found = (Advised("tile", Category.MEMORY, "in tiles", "here", "there", 1.3, 0.5),)
        examples = {"tile": [codec.to_plain(Transition(START, "tile", f"why {n}", "tiles", "a", "b")) for n in (1, 2)]}
        blob = self.keep(json.dumps(examples))
        return ev.Consulted(
            number, action.index, action.about, "bound", Bottleneck.MEMORY, 1.0, found, "mark", others=("cache use",),
            edges=tuple(one for one in self.edges if one.source == action.node), examples_blob=blob,
        )  # fmt: skip


def words(actions: Sequence[Action]) -> list[str]:
    return [type(one).__name__.lower() if isinstance(one, Conclude | Finish | Wait) else label(one) for one in actions]


def written(actions: Sequence[Action]) -> list[tuple[str | None, str]]:
    """The kernel and the technique of each expansion."""
    asked = [one for one in actions if isinstance(one, Ask) and one.label == "optimise"]
    return [(one.about, one.makes.technique) for one in asked if one.makes]


JUDGED = ["compile", "check", "time", "profile", "conclude"]


def test_each_expansion_walks_from_the_first_kernel_along_the_best_edges_and_takes_one_more() -> None:
    run = Walks({"tile": 2.0, "unroll": 1.5}, expansions=3, depth=3)
    done = run.course()
    one = ["consult", "optimise", *JUDGED]
    assert words(done) == ["synthesise", *JUDGED, *one * 3, "finish"]
    assert written(done) == [("c001", "tile"), ("c002", "unroll"), ("c003", "tile")]
    assert done[-1] == Finish(RunState.FINISHED, "all 3 expansions are done")
    consults = [action.node for action in done if isinstance(action, Consult)]
    assert consults == [START, "tile", "unroll"]
    state = run.strategy.state(run.record)
    brought = [math.log(2), math.log(3), math.log(6)]
    walked = [state.statistics.edges[ends] for ends in ((START, "tile"), ("tile", "unroll"))]
    assert [one.count for one in walked] == [3, 2]
    assert [one.value for one in walked] == pytest.approx([sum(brought), sum(brought[1:])])
    ends = [one for one in done if isinstance(one, Conclude)]
    assert [one.reward for one in ends[1:]] == [pytest.approx(value, abs=1e-6) for value in brought]
    assert "walk start → tile → unroll → tile: 6x over its first kernel, value +1.79" in ends[-1].reason


def test_what_was_weighed_is_told_kernel_by_kernel_with_n_q_prior_and_score() -> None:
    run = Walks({"tile": 2.0}, expansions=2, depth=3)
    ends = [one for one in run.course() if isinstance(one, Conclude)]
    prior = {name: round(math.log(gain), 6) for name, gain in (("tile", 1.5), ("fuse", 1.2), ("unroll", 1.4))}
    two = round(math.log(2), 6)
    assert ends[-1].weighed == (
        WeighedEdge("c001", START, "tile", 1, two, prior["tile"], two, True),
        WeighedEdge("c001", START, "fuse", 0, 0.0, prior["fuse"], prior["fuse"]),
        WeighedEdge("c001", START, NEW_METHOD, 0, 0.0, 0.0, 0.0),
        WeighedEdge("c002", "tile", "unroll", 0, 0.0, prior["unroll"], prior["unroll"], True),
        WeighedEdge("c002", "tile", NEW_METHOD, 0, 0.0, 0.0, 0.0),
    )


def test_a_failure_counts_minus_one_and_is_not_repeated_on_that_kernel() -> None:
    run = Walks({"tile": None, "fuse": 0.5}, expansions=3, depth=2)
    done = run.course()
    assert written(done) == [("c001", "tile"), ("c001", "fuse"), ("c001", "new 1")]
    edges = run.strategy.state(run.record).statistics.edges
    assert edges[(START, "tile")] == Visits(1, -1.0)
    assert edges[(START, "fuse")].value == pytest.approx(math.log(0.5))
    failed = next(one for one in done if isinstance(one, Conclude) and one.outcome is DepthOutcome.GIVEN_UP)
    assert (failed.candidate_id, failed.reward) == ("c002", -1.0)


def test_a_new_method_is_proposed_taught_and_walked_on_from() -> None:
    run = Walks({"new 1": 3.0, "new 2": 0.5}, edges=(), expansions=4, depth=2, seed=1)
    done = run.course()
    new = ["consult", "propose", "teach", "optimise", *JUDGED]
    assert words(done)[6:] == [*new * 4, "finish"]
    assert {about for about, _ in written(done)} == {"c001", "c002"}
    taught = next(one for one in done if isinstance(one, Teach)).revision
    assert [(one.source, one.target) for one in taught.transitions] == [(START, "new 1")]
    assert [one.name for one in taught.techniques] == ["new 1"]
    edges = run.strategy.state(run.record).statistics.edges
    of_first = [about for about, _ in written(done)].count("c001")
    assert edges[(START, NEW_METHOD)].count == of_first
    assert edges[(START, "new 1")].count == 1 + 4 - of_first, "its own, and those that walked on from it"
    assert run.record.candidates["c002"].created.technique == "new 1"


def test_exploration_leaves_the_best_edge_for_others() -> None:
    def tried_on_the_first(c: float) -> list[str]:
        done = Walks({"tile": 2.0, "unroll": 1.2}, expansions=4, depth=3, c=c).course()
        return [name for about, name in written(done) if about == "c001"]

    assert tried_on_the_first(0.0) == ["tile"]
    assert tried_on_the_first(3.0)[:2] == ["tile", "fuse"]


def test_a_sequence_is_laid_out_relabelled_taught_and_merged_with_cycles_and_new_nodes() -> None:
    steps = [step("Tile"), step("blocking"), step("own trick"), step("tile")]
    replies = {"outline": {"steps": steps}, "relabel": {"labels": ["tile", "cache use", "new", "tile"]}}
    run = Walks({}, edges=(), replies=replies, expansions=1, outlines=1, depth=5)
    done = run.course()
    assert words(done)[6:10] == ["consult", "outline", "relabel", "teach"]
    taught = next(one for one in done if isinstance(one, Teach)).revision
    ends = [(one.source, one.target) for one in taught.transitions]
    assert ends == [(START, "tile"), ("tile", "cache use"), ("cache use", "own trick"), ("own trick", "tile")]
    assert [one.name for one in taught.techniques] == ["own trick"], "the others are known by name"
    assert taught.transitions[0].after == "b;"
    assert written(done) == [("c001", "tile")]


@pytest.mark.parametrize("labels", [["tile"], ["tile", "elsewhere"]])
def test_a_sequence_whose_labels_do_not_fit_is_left_out(labels: list[str]) -> None:
    replies = {"outline": {"steps": [step("x"), step("y")]}, "relabel": {"labels": labels}}
    run = Walks({}, edges=(), replies=replies, expansions=1, outlines=1)
    done = run.course()
    assert words(done)[6:11] == ["consult", "outline", "relabel", "propose", "teach"]
    assert run.strategy.state(run.record).targets[START].keys() == {"new 1"}


def test_a_chosen_base_is_where_the_next_walk_stays_and_a_roll_back_where_all_begin() -> None:
    run = Walks({"tile": 2.0, "unroll": 1.5}, depth=4)
    while len(run.record.concluded) < 3:
        run.take(run.strategy.next(run.record))
    run.steer(CommandKind.SET_BASE, "c002")
    while len(run.record.concluded) < 4:
        run.take(run.strategy.next(run.record))
    assert written(run.done)[-1] == ("c002", "new 1"), "it has unroll already"
    run.steer(CommandKind.ROLL_BACK, "c003")
    while len(run.record.concluded) < 5:
        run.take(run.strategy.next(run.record))
    assert written(run.done)[-1] == ("c003", "tile")
    last = next(one for one in run.done[::-1] if isinstance(one, Conclude))
    assert last.reward == pytest.approx(math.log(2), abs=1e-6), "over the kernel where the walk began"


def test_equal_edges_are_drawn_by_the_seed_and_a_killed_run_draws_as_it_would_have() -> None:
    equal = tuple(edge(START, name, 1.2) for name in "abcdef")
    drawn = {}
    for seed in range(6):
        run = Walks({}, equal, expansions=4, seed=seed)
        drawn[seed] = written(run.course())
        again = Walks({}, equal, expansions=4, seed=seed)
        for event in run.record.events[: 2 * len(run.record.events) // 3]:
            again.record.apply(event)
        action = again.strategy.next(again.record) if again.record.in_flight is None else None
        assert action is None or action in run.done
        assert written(Walks({}, equal, expansions=4, seed=seed).course()) == drawn[seed]
    assert len({str(one) for one in drawn.values()}) > 1


@pytest.mark.parametrize(("most", "shown"), [(0, 0), (1, 1), (2, 2), (5, 2)])
def test_the_prompt_carries_one_or_two_examples_of_the_edge(tmp_path: Path, most: int, shown: int) -> None:
    context, run = open_context(tmp_path), Walks({}, examples=most)
    run.keep = context.blobs.put
    context.strategy, context.record, context.toolchain = run.strategy, run.record, cast(Evaluator, NoToolchain("cpu"))
    while not (isinstance(action := run.strategy.next(run.record), Ask) and action.label == "optimise"):
        run.take(action)
    text = action.prompt(context, action)[-1].text
    assert text.count("tiles. why") == shown
    assert ("The step that is asked for below, taken in other kernels" in text) is bool(shown)
    assert "the first kernel, which no technique has led to yet" in text
