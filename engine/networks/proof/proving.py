"""The steps of a proof: time the network as it is, put back one region's kernel after the other beside those that were
kept before it, keep what is engaged, right and faster in place, then measure the stack of all that was kept.

What was measured already stands in the proof that is gone on with, and is not measured again.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch

from engine.networks import graphs, place_times, watching
from engine.networks.applying import ANEW, Times
from engine.networks.entries import Workload
from engine.networks.proof import engaging, pairing, parity, unseen
from engine.networks.proof import ways as ways_
from engine.networks.proof.pairing import Called
from engine.networks.proof.parity import Expected
from engine.networks.proof.ways import NoWay, Raised, Ways, guarded
from storage.networks import proofs
from storage.networks.proofs import Proof
from storage.networks.ranking import overlap
from storage.networks.records import (
    CUDA_GRAPH,
    EAGER,
    MAX_AUTOTUNE,
    TUNED_GRAPH,
    Engaged,
    Event,
    LeftOut,
    Network,
    OriginalTimed,
    Parity,
    PartMeasured,
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
REPLAYED = (CUDA_GRAPH, MAX_AUTOTUNE, TUNED_GRAPH)
"""Ways in which a graph replays the calls."""
FAILURES = (NoWay, torch.AcceleratorError)


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
    times: Times
    _contents: dict[str, list[Workload]] = field(default_factory=dict)
    _expected: dict[str, Expected] = field(default_factory=dict)
    _calls: dict[str, Counter[str]] = field(default_factory=dict)
    """Of every module of the network as it is, by workload and path."""
    _gate: str = EAGER
    _not_ready: Callable[[str], Event] | None = None
    """What is told of a way that is not ready in time, by the reason."""

    def run(self) -> None:
        """All steps that are left."""
        for workload in self.workloads:
            self._contents[workload.name] = unseen.drawn(workload, CONTENTS, SEED)
        self._time_original()
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
            self._leave_broken_gpu()
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
                self._tell(f"timing the network as it is, {way}, {workload.name}")
                self._choose_base()
                with self._or_told(partial(OriginalTimed, workload.name, way, None)):
                    self._note(self._original(workload, way))
                self._leave_broken_gpu()

    def _original(self, workload: Workload, way: str) -> OriginalTimed:
        try:
            if way == EAGER:
                return OriginalTimed(workload.name, way, self._alone_ms(workload))
            speed = self._speed(workload, (EAGER, ()), (way, ()), self.times.trial_s)
        except FAILURES as error:
            return OriginalTimed(workload.name, way, note=_reason(error))
        return OriginalTimed(workload.name, way, (self._eager_ms(workload) or speed.before_ms) / speed.speedup)

    def _alone_ms(self, workload: Workload) -> float:
        called = self._called((EAGER, ()), workload)
        with self.turn(), place_times.no_collection():
            return pairing.alone_ms(called, self._contents[workload.name][0], is_gpu=self.ways.is_gpu)

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
        others = [timed for timed in self.proof.originals if timed.way not in REPLAYED]
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
        return self.ways.base if self._gate in REPLAYED else self._gate

    def _tried(self, region: Region) -> RegionTried:
        """One region's kernel beside those that were kept."""
        step, beside = f"putting back {region.name}", self.proof.kept

        def ended(verdict: Verdict, why: str) -> RegionTried:
            parts = [self.proof.part(step, workload.name) for workload in self.workloads]
            engaged = [part.engaged[region.name] for part in parts if part.engaged and region.name in part.engaged]
            errors = [error for part in parts for error in part.parity or ()]
            speeds = [part.speed for part in parts if part.speed]
            return RegionTried(
                region.name, verdict, why, beside, tuple(engaged), tuple(errors), tuple(speeds)
            )  # fmt: skip

        with self._or_told(partial(ended, Verdict.UNFIT)):
            try:
                for workload in self.workloads:
                    if failure := self._tried_with(step, workload, region, beside):
                        return ended(*failure)
            except (Raised, torch.AcceleratorError) as error:
                return ended(Verdict.CRASHED, _reason(error))
            except NoWay as error:
                return ended(Verdict.UNFIT, str(error))
        if not (measured := ended(Verdict.KEPT, "")).engaged:
            return ended(Verdict.NOT_ENGAGED, "no workload calls it")
        return ended(*_paid(measured.speeds, proofs.weights_of(self.network), self._gate))

    def _tried_with(
        self, step: str, workload: Workload, region: Region, beside: tuple[str, ...]
    ) -> tuple[Verdict, str] | None:
        """What of a trial with one workload is not measured yet, compiled once; why the kernel fails, where it does."""
        with_it = (*beside, region.name)
        with self._compared():
            after = functools.cache(partial(self._called, (self._plain, with_it), workload))
            part = self._results(step, workload, with_it, after)
            if failure := _failure(region.name, part):
                return failure
            if part.speed is None and self._plain == self._gate:
                before = self._called((self._gate, beside), workload)
                speed = self._timed(workload, (self._gate, before), (self._gate, after()), self.times.trial_s)
                self._note(PartMeasured(step, workload.name, speed=speed))
        if self.proof.part(step, workload.name).speed is None:
            speed = self._speed(workload, (self._gate, beside), (self._gate, with_it), self.times.trial_s)
            self._note(PartMeasured(step, workload.name, speed=speed))
        return None

    def _results(
        self, step: str, workload: Workload, chosen: Collection[str], called: Callable[[], Called]
    ) -> PartMeasured:
        """Which kernels are seen in a call, and how far off results are; those are not looked at where one is not."""
        if (part := self.proof.part(step, workload.name)).engaged is None:
            self._note(PartMeasured(step, workload.name, engaged=self._engaged(chosen, called, workload)))
        part = self.proof.part(step, workload.name)
        if part.parity is None and all(engaged.is_whole for engaged in (part.engaged or {}).values()):
            self._note(PartMeasured(step, workload.name, parity=tuple(self._parity(chosen, called(), workload))))
        return self.proof.part(step, workload.name)

    def _engaged(self, chosen: Collection[str], called: Callable[[], Called], workload: Workload) -> dict[str, Engaged]:
        """By region that the workload calls."""
        regions = [self._region(name) for name in chosen]
        content = self._contents[workload.name][0]
        if workload.name not in self._calls:
            seen = guarded(watching.calls_of)(self.ways.network, content, is_training=self.ways.is_training)
            self._calls[workload.name] = Counter(call.path for call in seen)
        return engaging.seen(
            self.ways.package, regions, called, content, self._calls[workload.name], is_gpu=self.ways.is_gpu
        )  # fmt: skip

    def _parity(self, chosen: Collection[str], called: Called, workload: Workload) -> list[Parity]:
        contents = self._contents[workload.name][:2]
        if workload.name not in self._expected:
            self._expected[workload.name] = parity.expected(
                self.ways.network, self.ways.apart, contents, is_training=self.ways.is_training
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
    ) -> Speed:
        contents = self._contents[workload.name]
        with self.turn(), place_times.no_collection():
            return pairing.paired(before, after, contents, is_gpu=self.ways.is_gpu, limit_s=limit_s, seed=SEED)

    def _called(self, way: tuple[str, Collection[str]], workload: Workload) -> Called:
        """A way to call it, compiled and tuned."""
        alone = self.turn() if way[0] in ways_.MODES else contextlib.nullcontext()  # tuning is measuring
        with alone, self._in_time(way[0]):
            called = self.ways.called(way[0], way[1], example=workload)
            called(self._contents[workload.name][0])
        return called

    @contextlib.contextmanager
    def _or_told(self, event: Callable[[str], Event]) -> Iterator[None]:
        """Of a way that is not ready in time in here this is told."""
        self._not_ready = event
        try:
            yield
        finally:
            self._not_ready = None

    @contextlib.contextmanager
    def _in_time(self, way: str) -> Iterator[None]:
        """Around what may take too long. Nothing but the end of its process stops a compiler: another process goes on
        without that way."""
        event = self._not_ready

        def expired() -> None:
            assert event is not None
            self.say(event(f"{way} is {NOT_IN_TIME} {self.times.way_s:g} s"))
            os._exit(ANEW)

        timer = threading.Timer(self.times.way_s, expired)
        timer.daemon = True
        if event is not None:
            timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _leave_broken_gpu(self) -> None:
        """After an illegal access nothing runs on the GPU in this process any more: another process goes on."""
        if self.ways.is_gpu:
            try:
                torch.cuda.synchronize()
            except torch.AcceleratorError:
                os._exit(ANEW)

    def _stack(self) -> StackMeasured:
        """All kernels that were kept: each way, the best of both, and each kernel left out in its turn."""
        kept = self.proof.kept
        if not kept:
            return StackMeasured((), (), ())
        speeds: list[Speed] = []
        failed: dict[str, str] = {}
        for way in self.proof.started.ways:
            if not any(timed.way == way and timed.ms is None for timed in self.proof.originals):
                step = f"measuring all kernels that were kept, {way}"
                speeds += self._speeds(step, (way, ()), (way, kept), self.times.stack_s)
                if reason := next((part.note for part in self.proof.parts if part.step == step and part.note), ""):
                    failed[way] = reason
        best = self._best(kept, speeds)
        step = "comparing results with all kernels that were kept"
        parts = [self._whole(step, workload, kept) for workload in self.workloads]
        engaged = [part for seen in parts for part in (seen.engaged or {}).values()]
        errors = [error for part in parts for error in part.parity or ()]
        left_out = tuple(self._left_out(kept))
        return StackMeasured(
            kept, tuple(speeds), tuple(best), tuple(errors), tuple(engaged), left_out, self._greedy(kept), failed
        )  # fmt: skip

    def _speeds(
        self, step: str, before: tuple[str, Collection[str]], after: tuple[str, Collection[str]], limit_s: float
    ) -> list[Speed]:
        """Two ways under every workload, as far as that is not measured yet; none where one cannot be measured."""
        speeds: list[Speed] = []
        for workload in self.workloads:
            part = self.proof.part(step, workload.name)
            if part.speed is None and not part.note:
                self._tell(step)
                with self._or_told(partial(PartMeasured, step, workload.name)):
                    try:
                        part = replace(part, speed=self._speed(workload, before, after, limit_s))
                    except FAILURES as error:
                        part = replace(part, note=_reason(error))
                self._note(part)
                self._leave_broken_gpu()
            if part.speed is None:
                return []
            speeds.append(part.speed)
        return speeds

    def _whole(self, step: str, workload: Workload, kept: Collection[str]) -> PartMeasured:
        """What is seen of all kernels in a call, and its results."""
        part = self.proof.part(step, workload.name)
        if part.note or (part.engaged is not None and part.parity is not None):
            return part
        self._tell(step)
        with self._or_told(partial(PartMeasured, step, workload.name)), self._compared():
            called = functools.cache(partial(self._called, (self._plain, kept), workload))
            return self._results(step, workload, kept, called)

    def _best(self, kept: Collection[str], speeds: Sequence[Speed]) -> list[Speed]:
        """The fastest way with the kernels against the fastest without, measured beside each other."""
        same = [speed for speed in speeds if speed.before == self._gate]
        fastest = proofs.best_way(self._with_kernels(speeds), self.network)
        if fastest == self._gate or not same:
            return same
        step = f"measuring {fastest} with kernels against {self._gate} without"
        other = self._speeds(step, (self._gate, ()), (fastest, kept), self.times.stack_s)
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
            others = tuple(other for other in kept if other != name)
            speeds = self._speeds(
                f"leaving out {name}", (self._gate, others), (self._gate, kept), self.times.trial_s
            )  # fmt: skip
            if total := proofs.total(speeds, weights):
                yield LeftOut(name, total.speedup, total.low, total.high)

    def _greedy(self, kept: Collection[str]) -> str:
        """Of a network that generates text: the same greedy continuation?"""
        network: Any = self.ways.network
        tokens = next((value for workload in self.workloads for value in _token_inputs(workload)), None)
        if not callable(getattr(network, "generate", None)) or tokens is None or self.ways.is_training:
            return ""
        prompt = tokens[:1, : min(32, tokens.shape[1])]
        try:
            own, found = (self._generated(part, prompt) for part in (network, self.ways.with_kernels(kept)))
        except NoWay as error:
            return f"greedy generation was not compared: {error}"
        length = min(own.shape[1], found.shape[1])
        same = int((own[0, :length] == found[0, :length]).int().cumprod(0).sum()) - prompt.shape[1]
        return f"{same} of {own.shape[1] - prompt.shape[1]} greedy tokens are the same"

    def _generated(self, network: Any, prompt: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            tokens: torch.Tensor = guarded(network.generate)(prompt, max_new_tokens=NEW_TOKENS, do_sample=False)
        return tokens


def _reason(error: BaseException) -> str:
    return str(error) if isinstance(error, NoWay) else graphs.reason_of(error)


def _failure(region: str, part: PartMeasured) -> tuple[Verdict, str] | None:
    """Why a region's kernel fails by what was seen, where it does."""
    for name, engaged in (part.engaged or {}).items():
        if not engaged.is_whole:
            why = _not_engaged(engaged)
            return Verdict.NOT_ENGAGED, why if name == region else f"beside it {name} falls back: {why}"
    wrong = next((error for error in part.parity or () if not error.holds), None)
    return (Verdict.WRONG, _wrong(wrong)) if wrong else None


def _token_inputs(workload: Workload) -> Iterator[torch.Tensor]:
    for value in (*workload.args, *workload.kwargs.values()):
        if isinstance(value, torch.Tensor) and value.dtype == torch.int64 and value.dim() == 2:
            yield value


def _not_engaged(part: Engaged) -> str:
    if part.kernels == 0 and part.seen >= part.expected:
        return f"{part.workload}: its operator is called and launches no kernel on the GPU"
    return part.words


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
