"""One traced call of the network: how often each region's operators ran, and which kernels of a GPU they launched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.networks import place_times
from engine.networks.entries import Workload
from engine.networks.proof.pairing import Called
from storage.networks.records import Engaged, Region


def seen(
    package: Any, regions: Sequence[Region], called: Called, workload: Workload, *, is_gpu: bool
) -> dict[str, Engaged]:
    """Of each region that the workload calls: the calls that are due, and those that were seen."""
    called(workload)
    place_times.settle(is_gpu)
    with place_times.profiler(is_gpu) as watched:
        called(workload)
        place_times.settle(is_gpu)
    spans = place_times.spans(watched, f"{package._table.PACKAGE}::")
    found: dict[str, list[place_times.Span]] = {}
    for span in spans:
        if not _is_within_its_own(span):
            found.setdefault(span.name, []).append(span)
    entries = {entry.operator: number for number, entry in enumerate(package.ENTRIES)}
    by_region = {region.name: {package.ENTRIES[number].operator for number in region.entries} for region in
                 package.REGIONS}  # fmt: skip
    engaged = {}
    for region in regions:
        if not (due := next((use.calls for use in region.uses if use.workload == workload.name), 0)):
            continue
        calls = [span for name in by_region[region.name] & entries.keys() for span in found.get(name, ())]
        launches = sum(_launches(span, spans) for span in calls) if is_gpu else None
        engaged[region.name] = Engaged(workload.name, due, len(calls), launches)
    return engaged


def _is_within_its_own(span: place_times.Span) -> bool:
    """An operator that passes a call on to itself, without gradients, is one call."""
    parent = span.parent
    while parent is not None:
        if parent.name == span.name:
            return True
        parent = parent.parent
    return False


def _launches(span: place_times.Span, spans: Sequence[place_times.Span]) -> int:
    """Kernels that were launched within it."""
    inner = (other for other in spans if other is span or _is_inside(other, span))
    return sum(other.kernels for other in inner)


def _is_inside(span: place_times.Span, outer: place_times.Span) -> bool:
    return span is not outer and outer.start <= span.start and span.end <= outer.end
