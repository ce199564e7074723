"""One traced call of the network: how often each region's operators ran, and which kernels of a GPU they launched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from engine.networks import place_times
from engine.networks.entries import Workload
from engine.networks.place_times import Span
from engine.networks.proof.pairing import Called
from storage.networks.records import Engaged, Form, Region


def seen(
    package: Any, regions: Sequence[Region], made: Callable[[], Called], workload: Workload, calls: Mapping[str, int],
    *, is_gpu: bool,
) -> dict[str, Engaged]:  # fmt: skip
    """Of each region that the workload calls: the calls that are due, and those that were seen. `made` compiles the
    network with the kernels, of which the package counts what it leaves to PyTorch; `calls` are those of every module
    by its path, of whatever kind."""
    package._dispatch.counts.clear()
    called = made()
    called(workload)
    place_times.settle(is_gpu)
    with place_times.profiler(is_gpu) as watched:
        called(workload)
        place_times.settle(is_gpu)
    spans = place_times.spans(watched, f"{package._table.PACKAGE}::")
    operators = {
        region.name: {package.ENTRIES[number].operator for number in region.entries} for region in package.REGIONS
    }
    engaged = {}
    for region in regions:
        if due := next((use.calls for use in region.uses if use.workload == workload.name), 0):
            own = [span for span in spans if span.name in operators[region.name] and not _is_passed_on(span)]
            launches = sum(inner.kernels for span in own for inner in _within(span, spans)) if is_gpu else None
            others = sum(calls.get(path, 0) for path in region.places) - due if region.form is Form.MODULE else 0
            engaged[region.name] = Engaged(workload.name, due, len(own), launches, max(0, others))
            if len(own) < due:
                engaged[region.name] = replace(engaged[region.name], why=_why(package, region))
    return engaged


def _why(package: Any, region: Region) -> str:
    """What the package counted of calls that it left to PyTorch."""
    said = [reason.partition(": ") for kind, reason in package._dispatch.counts if kind == "reference"]
    return "; ".join(reason for name, _, reason in said if name == region.name)


def _is_passed_on(span: Span) -> bool:
    """An operator that passes a call on to itself, without gradients, is one call."""
    outer = span.parent
    while outer is not None and outer.name != span.name:
        outer = outer.parent
    return outer is not None


def _within(span: Span, spans: Sequence[Span]) -> Iterator[Span]:
    """It and those inside it."""
    return (other for other in spans if span.start <= other.start and other.end <= span.end)
