"""What a prompt says of a region's place in its network, in words: where it stands, what it takes, what is around it,
what values it meets. No tensor goes into it: ranges, shapes and names alone."""

from __future__ import annotations

from collections.abc import Iterable

from storage.networks import ranking
from storage.networks.ranking import REACHED_SHARE, Ranked
from storage.networks.records import EAGER, CompiledKernel, Network, Region, TensorFacts

MOST_NAMED = 4
MOST_KERNELS = 6


def words_of(network: Network, row: Ranked) -> str:
    """Sentences for the prompt."""
    region = row.region
    lines = [_where(network, row)]
    constant = [tensor.name for tensor in region.inputs if tensor.is_constant]
    if region.before:
        lines.append(f"It reads the results of {_listed(region.before)}.")
    if region.after:
        lines.append(f"Its results go into {_listed(region.after)}.")
    if region.inputs:
        lines.append(f"Values that were met: {'; '.join(map(_values, region.inputs))}.")
    if constant:
        lines.append(f"The same values in every call that was seen: {_listed(constant)}.")
    lines += _fused(network.kernels, region)
    if row.ceiling is not None:
        lines.append(
            f"At {REACHED_SHARE:.0%} of its hardware limit the whole network would be {row.ceiling:.2f} times as "
            f"fast as it is with {ranking.in_words(row.alternative)}."
        )
    return "\n".join(lines)


def _in_place(network: Network, row: Ranked) -> str:
    """The share by the way in which one would call the network."""
    best_ms = ranking.whole_of(network).best_ms
    if row.alternative == EAGER or not best_ms:
        return ""
    most = "at most " if row.is_at_most else ""
    return f" in eager PyTorch, {most}{100 * row.in_place_ms / best_ms:.1f} % with {ranking.in_words(row.alternative)}"


def _where(network: Network, row: Ranked) -> str:
    region = row.region
    calls = ", ".join(f"{use.calls} in a call of workload {use.workload}" for use in region.uses)
    share = f" They take {100 * row.share:.1f} % of its time{_in_place(network, row)}." if row.share else ""
    places = _listed([place or "the whole" for place in region.places])
    return f"This module is part of a network, {network.name}: it stands at {places}, and is called {calls}.{share}"


def _values(tensor: TensorFacts) -> str:
    if tensor.low is None or tensor.high is None:
        return tensor.words
    return f"{tensor.words} from {tensor.low:.4g} to {tensor.high:.4g}"


def _fused(kernels: Iterable[CompiledKernel], region: Region) -> list[str]:
    """What torch.compile makes of it."""
    first = region.parts or region.places[:1]
    touching = [
        kernel for kernel in kernels if any(_is_of(place, path, region) for place in kernel.places for path in first)
    ]
    names = list(dict.fromkeys(kernel.name for kernel in touching))
    if not names:
        return []
    shown = ", ".join(names[:MOST_KERNELS]) + (
        f" and {len(names) - MOST_KERNELS} more" if len(names) > MOST_KERNELS else ""
    )
    others = sorted({
        place for kernel in touching for place in kernel.places
        if not any(_is_of(place, path, region) for path in first)
    })  # fmt: skip
    shared = f", which also work for {_listed(others)}" if others else ""
    return [f"torch.compile runs it in {shown}{shared}."]


def _is_of(place: str, path: str, region: Region) -> bool:
    return place == path or (not region.parts and place.startswith(f"{path}."))


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    shown = names[:MOST_NAMED]
    more = [f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
    parts = [*shown, *more]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
