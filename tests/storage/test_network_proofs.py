"""What a network's journal says of kernels that were put back, and the figures and sentences that are made of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from storage.networks import files, in_network, proofs
from storage.networks.proofs import Proof
from storage.networks.records import (
    COMPILED,
    EAGER,
    MAX_AUTOTUNE,
    CaptureEnded,
    CaptureStarted,
    ChosenKernel,
    Engaged,
    Event,
    LeftOut,
    OriginalTimed,
    Parity,
    PartMeasured,
    ProofEnded,
    ProofProgressed,
    ProofStarted,
    ProofStopAsked,
    RegionTried,
    SearchStarted,
    Speed,
    StackMeasured,
    Verdict,
)
from storage.networks.standing import standing
from tests import sample_networks

KERNELS = (ChosenKernel("norm", "run-1", "c001", 2.0, 1.9, 2.1), ChosenKernel("gate", "run-2", "c003", 1.5, 1.4, 1.6))
STARTED = ProofStarted(1, KERNELS)
FAST = Speed("prefill", EAGER, EAGER, 10.0, 8.1, 1.25, 1.2, 1.3, 30)  # medians of calls, and of the pairs' ratio
SLOW = Speed("decode", EAGER, EAGER, 1.0, 1.1, 0.9, 0.85, 0.95, 30)


def folded(*events: Event) -> Proof:
    proof: Proof | None = None
    for event in events:
        proof = proofs.folded(proof, event)
    assert proof is not None
    return proof


def test_a_proof_is_what_its_events_say_and_goes_on_where_the_same_one_starts_again() -> None:
    kept, left = RegionTried("norm", Verdict.KEPT, "faster"), RegionTried("gate", Verdict.NO_GAIN, "noise", ("norm",))
    proof = folded(
        STARTED, ProofProgressed("putting back norm", "norm"), kept, ProofProgressed("putting back gate", "gate")
    )
    assert (proof.region, proof.words, proof.kept) == ("gate", "putting back gate", ("norm",))
    broken = folded(STARTED, kept, ProofEnded("its process was killed"))
    assert (broken.is_over, broken.reason) == (False, "its process was killed")
    again = proofs.folded(broken, STARTED)
    assert again is not None
    assert again.tried == broken.tried
    assert again.reason == ""
    whole = folded(STARTED, kept, left, StackMeasured(("norm",), (FAST,), (FAST,)), ProofEnded())
    assert (whole.is_over, proofs.shipped(whole)) == (True, ("norm",))
    another = proofs.folded(whole, replace(STARTED, number=2))
    assert another is not None
    assert (another.tried, another.stack) == ({}, None)


def test_parts_that_were_measured_add_up_and_stay_where_a_proof_goes_on() -> None:
    engaged = PartMeasured("putting back norm", "prefill", engaged={"norm": Engaged("prefill", 3, 3)})
    speed = PartMeasured("putting back norm", "prefill", speed=FAST)
    proof = folded(
        STARTED, ProofProgressed("putting back norm", "norm"), engaged, speed, ProofStopAsked(),
        ProofEnded("it was stopped"), STARTED,
    )  # fmt: skip
    part = proof.part("putting back norm", "prefill")
    assert (part.engaged, part.speed) == (engaged.engaged, FAST)
    assert proof.part("putting back norm", "decode") == PartMeasured("putting back norm", "decode")
    assert (proof.is_over, proof.words, proof.region) == (False, "", "")
    assert folded(STARTED, ProofStopAsked()).words == proofs.STOPPING
    assert not folded(STARTED, speed, replace(STARTED, measured_with={"torch": "3.0"})).parts


def test_a_whole_adds_up_workloads_by_weight_and_its_interval_is_rather_too_wide() -> None:
    total = proofs.total([FAST, SLOW], {"prefill": 1.0, "decode": 5.0})
    assert total is not None
    assert total.before_ms == 15.0
    assert total.after_ms == pytest.approx(10 / 1.25 + 5 / 0.9)
    assert total.speedup == pytest.approx(15 / (8 + 5.5555), rel=1e-4)
    assert total.low == pytest.approx(15 / (10 / 1.2 + 5 / 0.85))
    assert total.low < total.speedup < total.high
    assert proofs.total([FAST], {}) is None


def test_the_best_way_is_measured_in_every_workload() -> None:
    network = sample_networks.network("both")
    timed = [OriginalTimed("prefill", EAGER, 10.0), OriginalTimed("decode", EAGER, 1.0)]
    assert proofs.best_way([*timed, OriginalTimed("prefill", COMPILED, 1.0)], network) == EAGER
    fast = [OriginalTimed(workload, COMPILED, 0.5) for workload in ("prefill", "decode")]
    assert proofs.best_way([*timed, *fast], network) == COMPILED
    assert proofs.best_way([], network) == EAGER


def test_a_kernel_is_engaged_where_all_calls_reach_it_and_launch_something() -> None:
    assert Engaged("prefill", 3, 3).is_whole
    assert not Engaged("prefill", 3, 2).is_whole
    assert not Engaged("prefill", 0, 0).is_whole
    assert not Engaged("prefill", 3, 3, 0).is_whole
    assert Engaged("prefill", 3, 3, others=2).is_whole
    assert Engaged("prefill", 3, 2, others=1).words == (
        "prefill: 2 of 3 calls reach the kernel, beside 1 call of another kind"
    )
    assert Engaged("prefill", 3, 0, why="x is no tensor").words == (
        "prefill: 0 of 3 calls reach the kernel: x is no tensor"
    )  # fmt: skip
    assert Engaged("prefill", 4, 6).is_whole
    assert Engaged("prefill", 4, 6).words == (
        "prefill: 4 of 4 calls reach the kernel, and 2 more of the same operators in other places of the network"
    )
    assert not Parity("prefill", "output", float("nan"), 1e-6, 1e-5, "float64").holds


def test_sentences_say_what_was_measured_and_what_was_not() -> None:
    network = sample_networks.network("both")
    kept = RegionTried("norm", Verdict.KEPT, "faster", speeds=(FAST,), engaged=(Engaged("prefill", 3, 3),))
    faster = folded(
        STARTED, kept, StackMeasured(("norm",), (FAST,), (FAST,), left_out=(LeftOut("norm", 1.2, 1.1, 1.3),))
    )
    assert in_network.headline(network, faster) == (
        "1.250x (1.200 to 1.300) the best alternative (both eager): 10 ms to 8 ms for 1 prefill + 8 decode."
    )
    one_call = replace(network, workloads=network.workloads[:1])
    assert in_network.headline(one_call, faster).endswith("10 ms to 8 ms.")
    assert faster.stack is not None
    both = replace(faster, stack=replace(faster.stack, best=(FAST, SLOW)))
    each = "A call of each workload alone: prefill 1.250x (1.200 to 1.300), decode 0.900x (0.850 to 0.950)."
    assert in_network.by_workload(network, both) == each
    assert each in in_network.lines(network, both)
    assert in_network.by_workload(one_call, faster) == ""
    twice = replace(network, workloads=(*network.workloads, *network.workloads))
    assert in_network.counted(twice) == "4 workloads by weight"
    same = replace(FAST, speedup=1.0, low=0.98, high=1.02)
    refused = folded(
        STARTED, kept,
        StackMeasured(("norm",), (FAST,), (FAST,), not_with_kernels={"max-autotune": "a kernel keeps a tensor"}),
    )  # fmt: skip
    assert "Not measured with the kernels, max-autotune: a kernel keeps a tensor." in in_network.lines(network, refused)
    ways = (EAGER, COMPILED, MAX_AUTOTUNE)
    timed = [OriginalTimed("prefill", way, 9.0) for way in ways]
    of_before = folded(replace(STARTED, ways=ways), *timed, kept, StackMeasured(("norm",), (FAST,), (FAST,)))
    assert in_network.not_measured(of_before) == [
        f"Not measured with the kernels, {COMPILED}: {in_network.NO_REASON}.",
        f"Not measured with the kernels, {MAX_AUTOTUNE}: {in_network.NO_REASON}. {in_network.OWN_GRAPHS}.",
    ]
    assert in_network.not_measured(faster) == [], "no other way was asked for"
    unsure = folded(STARTED, kept, StackMeasured(("norm",), (same,), (same,)))
    assert "no difference beyond the noise" in in_network.headline(network, unsure)
    nothing = folded(STARTED, StackMeasured((), (), ()))
    assert in_network.headline(network, nothing).startswith("No kernel pays")
    assert in_network.headline(network, folded(STARTED)) == ""
    rows = in_network.rows(network, faster)
    assert [(row.region, row.is_engaged) for row in rows] == [("norm", True)]
    text = "\n".join(in_network.lines(network, faster))
    assert "| norm | 2x | 1.250x (1.200 to 1.300) | kept: faster |" in text
    assert "| prefill | eager | 10 | 8 | 1.250x | 1.200 to 1.300 |" in text, "as the headline has it"


def test_a_place_that_calls_a_region_twice_is_named_once() -> None:
    network = sample_networks.network("both")
    region = replace(network.regions[0], name="twice", kind="linear+mul", places=("a.1", "a.1", "a.2", "a.2"))
    assert in_network.replaced(replace(network, regions=(region,)), ["twice"]) == "Replaced: linear + mul in a.1, a.2."


def test_a_network_s_journal_has_the_search_and_the_proof_until_it_is_captured_anew(home: object) -> None:
    folder = files.folder_of("small")
    files.hold(folder)
    files.append(folder, CaptureStarted("app.py:make", "eval", "cpu"), CaptureEnded())
    files.write_network(folder, sample_networks.network("small"))
    files.append(folder, SearchStarted("small.regions"), STARTED, RegionTried("norm", Verdict.KEPT, "faster"))
    for event in (STARTED, RegionTried("norm", Verdict.KEPT, "faster", speeds=(FAST,))):
        assert files.decoded(files.encoded(event).encode()) == event
    files.append(folder, CaptureStarted("app.py:make", "eval", "cpu"), CaptureEnded())
    assert standing(folder).proof is None
