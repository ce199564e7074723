from collections import Counter
from dataclasses import replace
from pathlib import Path

from engine.search.actions import Ask, Conclude
from engine.search.methods.evolve.strategy import Evolve, alive, draw_parents
from storage.run import events as ev
from storage.run.settings import DepthOutcome
from storage.run.steering.verbs import CommandKind
from tests.engine.contexts import SOURCE, context_with_tools
from tests.engine.story import Step, Story, brief

SPEEDUPS = {"a": 1.0, "b": 4.0, "c": 2.0, "d": 3.0, "e": 0.5}


def move(story: Story) -> object:
    return brief(Evolve().next(story.record))


def two_founders(**options: object) -> Story:
    """Two correct kernels from nothing, and a failed one between them."""
    story = Story(strategy_options={"founders": 3, "seed": 7} | options).accepts("c001", 1.0)
    story.candidate("c002").does_not_compile("c002").settles("c002", DepthOutcome.GIVEN_UP)
    return story.accepts("c003", 2.0)


def test_the_fastest_stay_when_the_population_is_full() -> None:
    assert alive("abc", SPEEDUPS, 4, 2) == ["b", "c", "a"]
    assert alive("abcd", SPEEDUPS, 4, 2) == ["b", "d"]
    assert alive("abcde", SPEEDUPS, 4, 2) == ["b", "d", "e"], "one that is born later joins, slow or not"
    assert alive("abcd", {**SPEEDUPS, "b": 1.0}, 4, 3) == ["d", "c", "a"], "of equals the older one"
    assert alive("abc", {"a": 1.0}, 4, 2) == ["a"], "what was refused later is not alive"


def test_parents_are_drawn_by_fitness_and_alike_for_one_seed_and_place() -> None:
    drawn = [draw_parents("abcde", SPEEDUPS, seed="run", index=n, crossover=0.5) for n in range(400)]
    assert drawn == [draw_parents("abcde", SPEEDUPS, seed="run", index=n, crossover=0.5) for n in range(400)]
    first = Counter(one.first for one in drawn)
    assert first["b"] > 2 * first["a"] > 0
    assert 150 < sum(one.second is not None for one in drawn) < 250
    assert all(one.first != one.second for one in drawn)
    alone = draw_parents("a", SPEEDUPS, seed="run", index=0, crossover=1.0)
    assert (alone.first, alone.second) == ("a", None)


def test_founders_come_from_nothing_then_children_from_those_alive() -> None:
    assert move(Story(strategy_options={"founders": 2}).accepts("c001", 1.0)) == Step("synthesise", 1)
    failed = Story(strategy_options={"founders": 1}).candidate("c001").does_not_compile("c001")
    assert move(failed) == Conclude(0, DepthOutcome.GIVEN_UP, "c001", None, "the kernel does not compile")
    assert move(failed.settles("c001", DepthOutcome.GIVEN_UP)) == Step("synthesise", 1), "nobody is alive"
    child = move(two_founders(crossover=0.0))
    assert child in (Step("mutate", 3, "c001"), Step("mutate", 3, "c003"))


def test_a_crossover_has_two_parents_and_one_kernel_alone_has_none_to_cross_with() -> None:
    story = two_founders(crossover=1.0)
    ask = Evolve().next(story.record)
    assert isinstance(ask, Ask)
    assert ask.makes is not None
    assert {ask.about, ask.makes.second_parent_id} == {"c001", "c003"}
    assert move(story.steers(CommandKind.ROLL_BACK, "c001")) == Step("mutate", 3, "c001")
    assert Evolve().again(story.record, "cross", "c001").about == "c001", "asked for again, it finds another one"


def test_a_child_is_told_of_the_population_and_of_what_failed_with_its_report(tmp_path: Path) -> None:
    context = context_with_tools(tmp_path)
    context.strategy = Evolve()
    story = two_founders(crossover=1.0)
    context.record.settings = story.settings
    for event in story.record.events:
        if isinstance(event, ev.CandidateCreated):
            blob = context.blobs.put(f"{SOURCE}# {event.candidate_id}\n")
            event = replace(event, source_blob=blob)
        context.record.apply(event)
    ask = context.strategy.next(context.record)
    assert isinstance(ask, Ask)
    text = ask.prompt(context, ask)[1].text
    assert "- kernel 3 (a parent): 2x: c003" in text
    assert "- kernel 2 does not compile: c002" in text
    assert "error: no" in text
    assert text.count("# c001") == text.count("# c003") == 1
