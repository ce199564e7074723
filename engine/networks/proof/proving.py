"""The steps of a proof: time the network as it is, put back one region's kernel after the other beside those that were
kept before it, keep what is engaged, right and faster in place, then measure the stack of all that was kept.

What was measured already stands in the proof that is gone on with, and is not measured again.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from engine.networks import graphs, place_times
from engine.networks.applying import NOT_READY
from engine.networks.entries import Workload
from engine.networks.proof import engaging, pairing, parity, unseen
from engine.networks.proof import ways as ways_
from engine.networks.proof.pairing import Called
from engine.networks.proof.parity import Expected
from engine.networks.proof.ways import NoWay, Ways
from storage.networks import proofs
from storage.networks.proofs import Proof
from storage.networks.ranking import overlap
from storage.networks.records import (
    CUDA_GRAPH,
    EAGER,
    MAX_AUTOTUNE,
    Engaged,
    Event,
    LeftOut,
    Network,
    OriginalTimed,
    Parity,
    ProofProgressed,
    Region,
    RegionTried,
    Speed,
    StackMeasured,
    Verdict,
)

CONTENTS = 4
SEED = 7
NEW_TOKENS = 24
NOT_IN_TIME = "not ready within"


@dataclass(slots=True)
class Prover:
    """Everything a proof works with. `say` hands over what came of a step; inside `turn` the device is this process's
    alone."""

    network: Network
    ways: Ways
    workloads: Sequence[Workload]
    proof: Proof
    say: Callable[[Event], None]
    turn: Callable[[], AbstractContextManager[object]]
    trial_s: float
    """At most for one pair of ways and one workload; `stack_s` for those of the stack at the end."""
    stack_s: float
    way_s: float
    """At most until a way to call the network is ready; `_not_ready` makes the event of one that is not."""
    _not_ready: Callable[[str], Event] | None = None
    _contents: dict[str, list[Workload]] = field(default_factory=dict)
    _expected: dict[str, Expected] = field(default_factory=dict)
    _gate: str = EAGER

    def run(self) -> None:
        """All steps that are left."""
        for workload in self.workloads:
            self._contents[workload.name] = unseen.drawn(workload, CONTENTS, SEED)
        self._time_original()
        self._not_ready = None
        self._gate = proofs.best_way(self.proof.originals, self.network)
        self._choose_base()
        for kernel in self.proof.started.kernels:
            if kernel.region in self.proof.tried:
                continue
            region = self._region(kernel.region)
            if other := next((name for name in self.proof.kept if overlap(region, self._region(name))), None):
                why = f"{other} is kept and has work in common"
                self._note(RegionTried(region.name, Verdict.LEFT_OUT, why, self.proof.kept))
                continue
            self._tell(f"putting back {region.name}", region.name)
            self._note(self._tried(region))
        if self.proof.stack is None:
            self._note(self._stack())

    def _note(self, event: Event) -> None:
        self.say(event)
        folded = proofs.folded(self.proof, event)
        assert folded is not None
        self.proof = folded

    def _tell(self, words: str, region: str = "") -> None:
        self._note(ProofProgressed(words, region))

    def _region(self, name: str) -> Region:
        return next(region for region in self.network.regions if region.name == name)

    def _time_original(self) -> None:
        """The network as it is, called in every way. Eager PyTorch is timed beside each other way, in turns: which one
        is fastest must not depend on what else the machine did meanwhile."""
        known = {(timed.workload, timed.way) for timed in self.proof.originals}
        for way in self.proof.started.ways:
            for workload in self.workloads:
                if (workload.name, way) in known:
                    continue
                if late := self._late_in(way):
                    self._note(OriginalTimed(workload.name, way, note=f"left out: not ready in time with {late}"))
                    continue
                self._not_ready = partial(OriginalTimed, workload.name, way, None)
                self._tell(f"timing the network as it is, {way}, {workload.name}")
                self._choose_base()
                try:
                    speed = self._speed(workload, (EAGER, ()), (way, ()), self.trial_s)
                except NoWay as error:
                    self._note(OriginalTimed(workload.name, way, note=str(error)))
                except Exception as error:  # noqa: BLE001 - the user's code and PyTorch's compiler may raise anything
                    self._note(OriginalTimed(workload.name, way, note=graphs.reason_of(error)))
                else:
                    eager_ms = self._eager_ms(workload) or speed.before_ms
                    ms = eager_ms if way == EAGER else eager_ms / speed.speedup
                    self._note(OriginalTimed(workload.name, way, ms))

    def _late_in(self, way: str) -> str:
        """The workload with which a way was not ready in time; it is not waited for with another one."""
        notes = [timed for timed in self.proof.originals if timed.way == way and NOT_IN_TIME in timed.note]
        return notes[0].workload if notes else ""

    def _eager_ms(self, workload: Workload) -> float | None:
        return next(
            (timed.ms for timed in self.proof.originals if (timed.workload, timed.way) == (workload.name, EAGER)), None
        )

    def _choose_base(self) -> None:
        """What a CUDA graph holds: of eager and compiled the faster one."""
        others = [timed for timed in self.proof.originals if timed.way not in (CUDA_GRAPH, MAX_AUTOTUNE)]
        self.ways.base = proofs.best_way(others, self.network)

    @contextlib.contextmanager
    def _compared(self) -> Iterator[None]:
        """Around ways that are compared: nothing that was compiled for others is in the way."""
        ways_.anew()
        try:
            yield
        finally:
            ways_.anew()

    @property
    def _plain(self) -> str:
        """The way in which calls are traced and results compared: no graph replays them."""
        return self.ways.base if self._gate in (CUDA_GRAPH, MAX_AUTOTUNE) else self._gate

    def _tried(self, region: Region) -> RegionTried:
        """One region's kernel beside those that were kept."""
        beside = self.proof.kept
        engaged: list[Engaged] = []
        errors: list[Parity] = []
        speeds: list[Speed] = []

        def ended(verdict: Verdict, why: str) -> RegionTried:
            return RegionTried(
                region.name, verdict, why, beside, tuple(engaged), tuple(errors), tuple(speeds)
            )  # fmt: skip

        self._not_ready = partial(ended, Verdict.UNFIT)
        try:
            for workload in self.workloads:
                if failure := self._tried_with(workload, region, beside, engaged, errors, speeds):
                    return ended(*failure)
        except NoWay as error:
            return ended(Verdict.UNFIT, str(error))
        except Exception as error:  # noqa: BLE001 - kernels, the user's code and PyTorch's compiler may raise anything
            return ended(Verdict.CRASHED, graphs.reason_of(error))
        finally:
            self._not_ready = None
        if not engaged:
            return ended(Verdict.NOT_ENGAGED, "no workload calls it")
        return ended(*_paid(speeds, proofs.weights_of(self.network), self._gate))

    def _tried_with(
        self, workload: Workload, region: Region, beside: tuple[str, ...], engaged: list[Engaged],
        errors: list[Parity], speeds: list[Speed],
    ) -> tuple[Verdict, str] | None:  # fmt: skip
        """One workload of a trial, compiled once for all that is asked of it; why the kernel fails, where it does."""
        with_it = (*beside, region.name)
        with self._compared():
            after = self._called((self._plain, with_it), workload)
            seen = self._engaged(with_it, after, workload)
            engaged += [seen[region.name]] if region.name in seen else []
            for name, part in seen.items():
                if not part.is_whole:
                    why = _not_engaged(part)
                    return Verdict.NOT_ENGAGED, why if name == region.name else f"beside it {name} falls back: {why}"
            found = self._parity(with_it, after, workload)
            errors += found
            if wrong := next((part for part in found if not part.holds), None):
                return Verdict.WRONG, _wrong(wrong)
            if self._plain == self._gate:
                before = self._called((self._gate, beside), workload)
                speeds.append(self._timed(workload, (self._gate, before), (self._gate, after), self.trial_s))
        if self._plain != self._gate:
            speeds.append(self._speed(workload, (self._gate, beside), (self._gate, with_it), self.trial_s))
        return None

    def _engaged(self, chosen: Collection[str], called: Called, workload: Workload) -> dict[str, Engaged]:
        """By region that the workload calls."""
        regions = [self._region(name) for name in chosen]
        content = self._contents[workload.name][0]
        return engaging.seen(self.ways.package, regions, called, content, is_gpu=self.ways.is_gpu)

    def _parity(self, chosen: Collection[str], called: Called, workload: Workload) -> list[Parity]:
        contents = self._contents[workload.name][:2]
        if workload.name not in self._expected:
            self._expected[workload.name] = parity.expected(
                self.ways.network, contents, is_training=self.ways.is_training
            )
        return parity.compared(
            self.ways.with_kernels(chosen), called, contents, self._expected[workload.name],
            is_training=self.ways.is_training,
        )  # fmt: skip

    def _speed(
        self, workload: Workload, before: tuple[str, Collection[str]], after: tuple[str, Collection[str]],
        limit_s: float,
    ) -> Speed:  # fmt: skip
        """Two ways, each with its kernels, in turns."""
        with self._compared():
            first, second = self._called(before, workload), self._called(after, workload)
            return self._timed(workload, (before[0], first), (after[0], second), limit_s)

    def _timed(
        self, workload: Workload, before: tuple[str, Called], after: tuple[str, Called], limit_s: float
    ) -> Speed:  # fmt: skip
        contents, is_gpu = self._contents[workload.name], self.ways.is_gpu
        with self.turn(), place_times.no_collection():
            timed = pairing.paired(before[1], after[1], contents, is_gpu=is_gpu, limit_s=limit_s, seed=SEED)
        peaks = [pairing.peak_bytes(called, contents[0], is_gpu=is_gpu) for _, called in (before, after)]
        return Speed(
            workload.name, before[0], after[0], timed.before_ms, timed.after_ms, timed.speedup, timed.low, timed.high,
            timed.pairs, *peaks,
        )  # fmt: skip

    def _called(self, way: tuple[str, Collection[str]], workload: Workload) -> Called:
        with self._within(f"{way[0]} is {NOT_IN_TIME} {self.way_s:g} s"):
            called = self.ways.called(way[0], way[1], example=workload)
            called(self._contents[workload.name][0])  # compiles, where it is compiled
        return called

    @contextlib.contextmanager
    def _within(self, why: str) -> Iterator[None]:
        """Around what may take too long: then that is told, and this process ends, since nothing else stops a compiler.
        Another process goes on without that way."""
        not_ready = self._not_ready

        def expired() -> None:
            assert not_ready is not None
            self.say(not_ready(why))
            os._exit(NOT_READY)

        if not_ready is None:
            yield
            return
        timer = threading.Timer(self.way_s, expired)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _stack(self) -> StackMeasured:
        """All kernels that were kept: each way, the best of both, and each kernel left out in its turn."""
        kept = self.proof.kept
        if not kept:
            return StackMeasured((), (), ())
        speeds: list[Speed] = []
        for way in self.proof.started.ways:
            if any(timed.way == way and timed.ms is None for timed in self.proof.originals):
                continue
            self._tell(f"measuring all kernels that were kept, {way}")
            try:
                speeds += [self._speed(workload, (way, ()), (way, kept), self.stack_s) for workload in self.workloads]
            except Exception as error:  # noqa: BLE001 - as above; what cannot be measured is not in the list
                self._tell(f"{way} with the kernels: {graphs.reason_of(error)}")
        self._tell("comparing results with all kernels that were kept")
        engaged: list[Engaged] = []
        errors: list[Parity] = []
        for workload in self.workloads:
            with self._compared():
                called = self._called((self._plain, kept), workload)
                engaged += self._engaged(kept, called, workload).values()
                errors += self._parity(kept, called, workload)
        greedy = self._greedy(kept)
        return StackMeasured(
            kept, tuple(speeds), tuple(self._best(kept, speeds)), tuple(errors), tuple(engaged),
            tuple(self._left_out(kept)), greedy,
        )  # fmt: skip

    def _best(self, kept: Collection[str], speeds: Sequence[Speed]) -> list[Speed]:
        """The fastest way with the kernels against the fastest without, measured beside each other."""
        same = [speed for speed in speeds if speed.before == self._gate]
        fastest = proofs.best_way(self._with_kernels(speeds), self.network)
        if fastest == self._gate or not same:
            return same
        self._tell(f"measuring {fastest} with kernels against {self._gate} without")
        other = [self._speed(workload, (self._gate, ()), (fastest, kept), self.stack_s) for workload in self.workloads]
        weights = proofs.weights_of(self.network)
        pairs = [(total.speedup, found) for found in (same, other) if (total := proofs.total(found, weights))]
        return max(pairs, key=lambda pair: pair[0])[1]

    def _with_kernels(self, speeds: Sequence[Speed]) -> list[OriginalTimed]:
        """What each way takes with the kernels: as without them, by the ratio that was measured."""
        ratios = {(speed.workload, speed.before): speed.speedup for speed in speeds}
        return [
            OriginalTimed(timed.workload, timed.way, timed.ms / ratio)
            for timed in self.proof.originals
            if timed.ms is not None and (ratio := ratios.get((timed.workload, timed.way)))
        ]

    def _left_out(self, kept: Sequence[str]) -> Iterator[LeftOut]:
        """What each kernel brings to the others."""
        weights = proofs.weights_of(self.network)
        for name in kept if len(kept) > 1 else ():
            self._tell(f"leaving out {name}")
            others = tuple(other for other in kept if other != name)
            speeds = [
                self._speed(workload, (self._gate, others), (self._gate, kept), self.trial_s)
                for workload in self.workloads
            ]
            if total := proofs.total(speeds, weights):
                yield LeftOut(name, total.speedup, total.low, total.high)

    def _greedy(self, kept: Collection[str]) -> str:
        """Of a network that generates text: the same greedy continuation?"""
        network: Any = self.ways.network
        tokens = next((value for workload in self.workloads for value in _token_inputs(workload)), None)
        if not callable(getattr(network, "generate", None)) or tokens is None or self.ways.is_training:
            return ""
        prompt = tokens[:1, : min(32, tokens.shape[1])]
        settings = {"max_new_tokens": NEW_TOKENS, "do_sample": False}
        try:
            with torch.no_grad():
                own = network.generate(prompt, **settings)
                found: Any = self.ways.with_kernels(kept)
                found = found.generate(prompt, **settings)
        except Exception as error:  # noqa: BLE001 - the user's code
            return f"greedy generation was not compared: {graphs.reason_of(error)}"
        length = min(own.shape[1], found.shape[1])
        same = int((own[0, :length] == found[0, :length]).int().cumprod(0).sum()) - prompt.shape[1]
        return f"{same} of {own.shape[1] - prompt.shape[1]} greedy tokens are the same"


def _token_inputs(workload: Workload) -> Iterator[torch.Tensor]:
    for value in (*workload.args, *workload.kwargs.values()):
        if isinstance(value, torch.Tensor) and value.dtype == torch.int64 and value.dim() == 2:
            yield value


def _not_engaged(part: Engaged) -> str:
    if part.kernels == 0 and part.seen >= part.expected:
        return f"{part.workload}: its operator is called and launches no kernel on the GPU"
    return f"{part.workload}: {part.seen} of {part.expected} calls reach the kernel"


def _wrong(part: Parity) -> str:
    return (
        f"{part.workload}: {part.output} is {part.error:.2g} away from {part.exact}, and the network itself "
        f"{part.own_error:.2g}; {part.allowed:.2g} is allowed"
    )


def _paid(speeds: Sequence[Speed], weights: Mapping[str, float], way: str) -> tuple[Verdict, str]:
    total = proofs.total(speeds, weights)
    assert total is not None
    if total.is_faster:
        return Verdict.KEPT, f"{way}: the network is faster with it"
    return Verdict.NO_GAIN, f"{way}: {'it costs time in place' if total.is_slower else 'within the noise'}"
