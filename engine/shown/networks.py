"""A network for programs: its regions by what a kernel would save, and what to do next. Measures nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from storage.networks import ranking
from storage.networks.ranking import Ranked
from storage.networks.records import Verdict
from storage.networks.standing import Standing


@dataclass(frozen=True, slots=True)
class RegionForm:
    """One region, with what a kernel for it could do. Milliseconds are of one call of every workload, weighted; null
    is not measured. `runs` have searched a kernel for it; `put_back` is the verdict in the network, empty where none
    was put back."""

    region: str
    form: str
    places: tuple[str, ...]
    calls: float
    share: float
    in_place_ms: float
    is_at_most: bool
    limit_ms: float | None
    saving_ms: float | None
    ceiling: float | None
    is_worth_it: bool
    reason: str
    cost: str
    task: str
    runs: tuple[str, ...]
    put_back: str


@dataclass(frozen=True, slots=True)
class RegionFailure:
    """Why a region's kernel was not kept in the network."""

    region: str
    verdict: str
    why: str


@dataclass(frozen=True, slots=True)
class NetworkForm:
    """A network's ranking. `ceiling` is the whole's speed-up over `alternative` if all regions that are worth it came
    near their limits."""

    network: str
    state: str
    eager_ms: float
    compiled_ms: float | None
    replayed_ms: float | None
    """As a CUDA graph; null on a processor and where it cannot be captured."""
    other_ms: dict[str, float]
    """By max-autotune, and by a CUDA graph of that, where they were timed."""
    alternative: str
    ceiling: float | None
    regions: tuple[RegionForm, ...]
    best: tuple[str, ...]
    """Regions whose kernels are kept in the network."""
    last_failures: tuple[RegionFailure, ...]
    to_try: tuple[str, ...]
    """Regions that are worth a kernel and have no run yet, that which would save most first."""
    next: str
    """The next sensible step, in words."""
    version: Literal[1] = 1


def form(stands: Standing, rows: list[Ranked]) -> NetworkForm:
    """The ranking of a network that was captured."""
    network, proof = stands.network, stands.proof
    assert network is not None, "only a captured network is ranked"
    whole, worth = ranking.whole_of(network), [row for row in rows if row.is_worth_it]
    tried = proof.tried if proof else {}
    new = tuple(row.region.name for row in worth if not stands.runs.get(row.region.name))
    return NetworkForm(
        network.name, str(stands.state), whole.eager_ms, whole.compiled_ms, whole.replayed_ms,
        dict(whole.other_ms), whole.alternative,
        ranking.ceiling_of(network, worth), tuple(_region(row, stands) for row in rows),
        tuple(name for name, trial in tried.items() if trial.verdict is Verdict.KEPT),
        tuple(
            RegionFailure(name, str(trial.verdict), trial.why)
            for name, trial in tried.items()
            if trial.verdict not in (Verdict.KEPT, Verdict.LEFT_OUT)
        ),
        new, _next(network.name, stands, rows, new),
    )  # fmt: skip


def _region(row: Ranked, stands: Standing) -> RegionForm:
    region, tried = row.region, stands.proof.tried if stands.proof else {}
    return RegionForm(
        region.name, str(region.form), tuple(region.places), row.calls, row.share, row.in_place_ms, row.is_at_most,
        row.limit_ms, row.saving_ms, row.ceiling, row.is_worth_it, row.reason, row.cost, region.task,
        tuple(stands.runs.get(region.name, ())),
        str(tried[region.name].verdict) if region.name in tried else "",
    )  # fmt: skip


def _next(name: str, stands: Standing, rows: list[Ranked], new: tuple[str, ...]) -> str:
    if new:
        missing = any(row.limit_ms is None for row in rows if row.is_worth_it)
        first = f"`python -m engine network rank {name} --limits` measures limits that are missing. " if missing else ""
        return f"{first}`python -m engine network optimise {name}` searches kernels for {', '.join(new)}."
    if stands.runs and stands.proof is None:
        return f"`python -m engine network apply {name}` puts kernels back and measures them there."
    if stands.proof is not None:
        return f"`python -m engine network ship {name}` writes the package of the kernels that pay."
    return "No region is worth a kernel on this machine."
