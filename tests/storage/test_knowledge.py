"""What follows from the rows of the knowledge base: what is known by name, and figures."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from storage.knowledge import files, seed
from storage.knowledge.base import Base
from storage.knowledge.records import Evidence, Figures, Outcome, Prior, Revision
from tests.storage.knowledge_rows import attempt, change, state, technique

BOUND = Prior("bandwidth bound", "tile", gain=2.0, confidence=0.8)
START = change("start", states=(state(),), techniques=(technique(),), priors=(BOUND,))


def base(place: Path, *rows: Revision | Evidence) -> Base:
    for row in rows:
        if isinstance(row, Revision):
            files.append_revision(row, place)
    files.append_evidence([row for row in rows if isinstance(row, Evidence)], place)
    return files.load(place, seeded=False)


def in_bound(found: Base) -> Figures:
    return found.figures("tile", "bandwidth bound")


def test_without_evidence_the_prior_is_what_is_expected(tmp_path: Path) -> None:
    found = in_bound(base(tmp_path, START))
    assert (found.attempts, found.success, found.mean_gain, found.last_used) == (0, None, None, None)
    assert found.expected_gain == pytest.approx(2.0, abs=1e-12)
    assert found.confidence == 0.8


def test_figures_are_counted_and_averaged_as_they_say(tmp_path: Path) -> None:
    rows = [
        attempt(1, Outcome.FASTER, gain=4.0, predicted_gain=2.0, at=5.0),
        attempt(2, Outcome.FASTER, gain=1.5, predicted_gain=8.0, at=9.0),
        attempt(3, Outcome.SAME, gain=1.0),
        attempt(4, Outcome.SLOWER, gain=0.5),
        attempt(5, Outcome.INCORRECT, gain=100.0),
        attempt(6, Outcome.NOT_COMPILED),
        attempt(7, Outcome.PATCH_FAILED),
    ]
    found = in_bound(base(tmp_path, START, *rows))
    assert (found.attempts, found.faster, found.same, found.slower) == (7, 2, 1, 1)
    assert (found.incorrect, found.not_compiled, found.patch_failed, found.failed) == (1, 1, 1, 3)
    assert found.success == 2 / 7
    assert found.mean_gain == pytest.approx(math.prod([4.0, 1.5, 1.0, 0.5]) ** (1 / 4))
    assert found.median_gain == 1.25
    assert found.predicted == pytest.approx(4.0)
    assert found.confidence == pytest.approx((2 + 2 * 0.8) / 9)
    assert found.expected_gain == pytest.approx((4.0 * 1.5 * 0.5 * 2.0 * 2.0) ** (1 / 9))
    assert found.last_used == 9.0


def test_a_technique_that_regresses_is_expected_less_of_and_trusted_less_with_every_attempt(tmp_path: Path) -> None:
    before = in_bound(base(tmp_path, START))
    for number, outcome in enumerate([Outcome.SLOWER, Outcome.INCORRECT, Outcome.NOT_COMPILED, Outcome.PATCH_FAILED]):
        after = in_bound(base(tmp_path, attempt(number, outcome)))
        assert after.expected_gain < before.expected_gain
        assert after.confidence < before.confidence
        before = after
    assert before.is_negative


def test_one_failure_is_no_negative_evidence_and_neither_is_an_even_record(tmp_path: Path) -> None:
    assert not in_bound(base(tmp_path, START, attempt(1, Outcome.SLOWER))).is_negative
    assert not in_bound(base(tmp_path, attempt(2, Outcome.FASTER))).is_negative
    assert in_bound(base(tmp_path, attempt(3, Outcome.NOT_COMPILED))).is_negative


def test_figures_of_all_states_take_the_mean_prior_and_those_of_one_device_its_rows(tmp_path: Path) -> None:
    more = change("more", states=(state("latency bound"),), priors=(Prior("latency bound", "tile", 8.0, 0.4),))
    rows = [attempt(1, device="H200"), attempt(2, Outcome.SLOWER, state="latency bound"), attempt(3, state="")]
    found = base(tmp_path, START, more, *rows)
    assert found.figures("tile").attempts == 3
    assert found.figures("tile").confidence == pytest.approx((2 + 2 * 0.6) / 5)
    assert found.figures("tile").expected_gain == pytest.approx((1.5 * 0.5 * 1.5 * 4.0 * 4.0) ** (1 / 5))
    assert found.figures("tile", device="H200").attempts == 1
    assert found.figures("tile", "latency bound", device="H200").attempts == 0
    assert found.figures("never heard of").expected_gain == 1.0


def test_a_discovered_state_takes_what_its_nearest_state_expects_at_eight_tenths(tmp_path: Path) -> None:
    discovered = change("found", states=(state("found in a run", is_discovered=True, inherits="bandwidth bound"),))
    found = base(tmp_path, START, discovered)
    assert found.techniques_of("found in a run") == ["tile"]
    inherited = found.figures("tile", "found in a run")
    assert inherited.expected_gain == pytest.approx(1.8)
    assert inherited.confidence == pytest.approx(0.64)
    assert found.inherited_from("tile", "found in a run") == "bandwidth bound"

    known = in_bound(base(tmp_path, *(attempt(n, Outcome.SLOWER) for n in range(6))))
    inherited = files.load(tmp_path, seeded=False).figures("tile", "found in a run")
    assert inherited.expected_gain == pytest.approx(1 + 0.8 * (known.expected_gain - 1))
    assert inherited.attempts == 0

    own = change("own", priors=(Prior("found in a run", "tile", 3.0, 0.9),))
    found = base(tmp_path, own)
    assert found.figures("tile", "found in a run").expected_gain == pytest.approx(3.0)
    assert found.inherited_from("tile", "found in a run") == ""


def test_states_that_inherit_in_a_circle_come_to_an_end(tmp_path: Path) -> None:
    one, other = state("one", inherits="other"), state("other", inherits="one")
    priors = (Prior("other", "tile", 2.0, 1.0),)
    found = base(tmp_path, change("circle", states=(one, other), techniques=(technique(),), priors=priors))
    assert found.figures("tile", "one").expected_gain == pytest.approx(1.8)
    assert found.figures("tile", "other").expected_gain == pytest.approx(2.0)


def test_a_disabled_technique_is_not_offered_and_keeps_its_figures(tmp_path: Path) -> None:
    found = base(tmp_path, START, attempt(1), change("off", techniques=(technique(is_disabled=True),)))
    assert found.techniques_of("bandwidth bound") == []
    assert found.techniques["tile"].is_disabled
    assert in_bound(found).attempts == 1


def test_evidence_alone_makes_a_technique_known_in_a_state(tmp_path: Path) -> None:
    found = base(tmp_path, START, attempt(1, state="latency bound"), attempt(2, technique="undefined"))
    assert found.techniques_of("latency bound") == ["tile"]
    assert found.techniques_of("bandwidth bound") == ["tile"]
    assert found.figures("undefined").attempts == 1


def test_a_revert_takes_a_change_back_and_a_revert_of_the_revert_brings_it_again(tmp_path: Path) -> None:
    better = change("better", techniques=(technique(about="other words"),), priors=(Prior(*PAIR, 9.0, 1.0),))
    assert base(tmp_path, START, better).techniques["tile"].about == "other words"
    found = base(tmp_path, change("back", reverts="better"))
    assert found.techniques["tile"].about == "about tile"
    assert in_bound(found).expected_gain == pytest.approx(2.0)
    found = base(tmp_path, change("again", reverts="back"))
    assert found.techniques["tile"].about == "other words"
    assert in_bound(found).expected_gain == pytest.approx(9.0)
    assert [one.revision_id for one in found.revisions] == ["start", "better", "back", "again"]


PAIR = ("bandwidth bound", "tile")


def test_a_revert_counts_for_what_stands_before_it(tmp_path: Path) -> None:
    found = base(tmp_path, change("early", reverts="start"), START)
    assert "tile" in found.techniques


def test_the_seed_comes_first_is_overridden_by_name_and_can_be_reverted(tmp_path: Path) -> None:
    name = next(iter(files.load(tmp_path).techniques))
    assert files.load(tmp_path, seeded=False).techniques == {}
    files.append_revision(change("mine", techniques=(technique(name, about="in my words"),)), tmp_path)
    assert files.load(tmp_path).techniques[name].about == "in my words"
    assert len(files.load(tmp_path).techniques) == len(seed.revision().techniques)
    files.append_revision(change("without", reverts="seed"), tmp_path)
    assert list(files.load(tmp_path).techniques) == [name]
    assert seed.SEED not in (tmp_path / files.REVISIONS).read_text().replace('"reverts":"seed"', "")


def test_what_is_shipped_names_only_what_it_has() -> None:
    known = files.load(Path("/nowhere"))
    priors = seed.revision().priors
    assert priors
    assert {one.state for one in priors} <= known.states.keys()
    assert {one.technique for one in priors} <= known.techniques.keys()
    for one in known.techniques.values():
        assert one.helps, one.name
        assert one.hurts, one.name
        assert set(one.parts) <= known.techniques.keys()
        assert len(one.parts) <= 3


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"gain": 0.0}, "gain is a factor"),
        ({"gain": math.nan}, "gain is a factor"),
        ({"predicted_gain": math.inf}, "predicted_gain is a factor"),
        ({"at": math.nan}, "at is a time"),
        ({"tokens": -1}, "tokens are a count"),
        ({"run_id": ""}, "needs the run"),
    ],
)
def test_a_row_that_says_nothing_that_can_be_summed_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        attempt(1, **fields)
    with pytest.raises(ValueError, match="between 0 and 1"):
        Prior("s", "t", 1.0, 1.5)
