"""The shipped knowledge refers only to what exists, and each state has something to try on a GPU and on a processor."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from storage.knowledge import seed
from storage.knowledge.records import Category, Technique
from storage.results.vocabulary import KernelClass

ROOT = Path(__file__).resolve().parents[2]
ARCHITECTURES = ("sm_80", "sm_89", "sm_90a", "sm_100a", "sm_110a", "sm_120a", "avx512", "avx2", "sse")
LANGUAGES = {"cute", "cuda", "triton"}
# What only a GPU's profile shows.
OF_GPUS = {"memory_bank_conflicts", "low_occupancy_shared_memory"}


STATES = {state.name: state for state in seed.revision().states}
TECHNIQUES = {technique.name: technique for technique in seed.revision().techniques}
PRIORS = seed.revision().priors


def test_there_are_sixteen_states_and_at_least_seventy_techniques_each_named_once() -> None:
    assert len(STATES) == len(seed.revision().states) == 16
    assert len(TECHNIQUES) == len(seed.revision().techniques) >= 70
    assert len({(prior.state, prior.technique) for prior in PRIORS}) == len(PRIORS)
    folded = [re.sub(r"\W|_", "", name).casefold() for name in TECHNIQUES]
    assert len(set(folded)) == len(folded), "two names that differ in spelling only"


def test_every_row_says_in_sentences_what_it_is() -> None:
    sentences = [state.about for state in STATES.values()]
    for technique in TECHNIQUES.values():
        assert technique.helps.startswith("Helps ")
        assert technique.hurts.startswith("Hurts ")
        sentences += [technique.about, technique.helps, technique.hurts]
    assert all(re.fullmatch(r"[A-Z][^\n]{15,238}\.", one) for one in sentences)


def test_closed_sets_are_kept() -> None:
    assert all(state.secondary and not state.is_discovered for state in STATES.values())
    for technique in TECHNIQUES.values():
        assert all(KernelClass(one) for one in technique.classes)
        assert LANGUAGES.issuperset(technique.languages)
        assert all(any(known.startswith(one) for known in ARCHITECTURES) for one in technique.architectures)


def test_a_composite_joins_two_or_three_single_techniques_that_apply_where_it_does() -> None:
    composites = [one for one in TECHNIQUES.values() if one.parts]
    assert len(composites) >= 5
    for composite in composites:
        parts = [TECHNIQUES[name] for name in composite.parts]
        assert 2 <= len(parts) <= 3
        assert not any(part.parts for part in parts)
        for kernel_class in composite.classes:
            for architecture in (one for one in ARCHITECTURES if composite.suits(architecture=one)):
                assert all(part.suits(kernel_class, "cute", architecture) for part in parts), composite.name


def test_every_technique_is_reached_from_a_state_and_every_state_has_four_to_twelve() -> None:
    assert {prior.technique for prior in PRIORS} == set(TECHNIQUES)
    by_state = {name: [prior for prior in PRIORS if prior.state == name] for name in STATES}
    assert sum(len(priors) for priors in by_state.values()) == len(PRIORS), "a prior of a state that does not exist"
    assert all(4 <= len(priors) <= 12 for priors in by_state.values())
    assert all(1.0 < prior.gain <= 3.0 and 0.0 < prior.confidence < 1.0 for prior in PRIORS)


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a", "sm_100a", "avx512", "avx2"])
def test_each_state_has_at_least_three_techniques_for_the_architecture(architecture: str) -> None:
    for state in STATES.keys() - (OF_GPUS if architecture.startswith("avx") else set()):
        names = [one.technique for one in PRIORS if one.state == state]
        offered = [name for name in names if TECHNIQUES[name].suits(architecture=architecture)]
        assert len(offered) >= 3, f"{state} offers {offered}"


def test_every_usual_name_of_the_optimisers_prompt_is_a_technique() -> None:
    text = (ROOT / "prompts/cutegen/optimise.md").read_text(encoding="utf-8")
    (listed,) = re.findall(r"the usual name of what you do: ([^.]+)\.", text)
    names = {" ".join(one.split()) for one in listed.split(",")}
    assert len(names) > 20
    assert names <= TECHNIQUES.keys()


def test_a_technique_suits_what_it_lists_and_what_is_not_known() -> None:
    one = Technique("TMA", Category.MEMORY, "", classes=("matmul",), languages=("cute",), architectures=("sm_9",))
    assert one.suits()
    assert one.suits("matmul", "cute", "sm_90a")
    assert not one.suits("loss")
    assert not one.suits(language="triton")
    assert not one.suits(architecture="sm_80")
    assert Technique("any", Category.GENERAL, "").suits("loss", "triton", "avx2")
