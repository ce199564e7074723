"""Where a network stands, folded from its folder: what was captured, limits, runs of its regions. Knows no page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from storage.networks import files
from storage.networks.files import Line, NetworkFolder
from storage.networks.proofs import Proof, folded
from storage.networks.records import (
    CaptureEnded,
    CaptureProgressed,
    CaptureStarted,
    Network,
    NetworkState,
    RegionLimited,
    RegionRun,
    SearchStarted,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Standing:
    """`network` is None until a capture is whole. `words` say what a capture does, or why there is none."""

    state: NetworkState
    words: str = ""
    entry: str = ""
    network: Network | None = None
    limits: dict[str, RegionLimited] = field(default_factory=dict)
    """By region; the last one counts."""
    runs: dict[str, list[str]] = field(default_factory=dict)
    """Of a region, in the order in which they were started."""
    suite: str = ""
    """That searched kernels last; empty where none did."""
    proof: Proof | None = None
    """The last time that kernels were put back."""
    is_proving: bool = False
    """Whether that is at work."""


def standing(folder: NetworkFolder) -> Standing:
    """A network as its folder says now.

    Raises:
        NetworkError: what was captured is damaged.
    """
    lines, network = files.read(folder), files.read_network(folder)
    return fold(lines, network, is_at_work=folder.has_capture_at_work, is_proving=folder.has_proof_at_work)


def fold(
    lines: Iterable[Line], network: Network | None, *, is_at_work: bool, is_proving: bool = False
) -> Standing:  # fmt: skip
    """The same from what was read."""
    suite, proof = "", None
    entry, words, reason = "", "", ""
    limits: dict[str, RegionLimited] = {}
    runs: dict[str, list[str]] = {}
    for line in lines:
        match line.event:
            case CaptureStarted(entry):
                words = reason = ""
                limits.clear()
                proof = None
            case CaptureProgressed(words):
                pass
            case CaptureEnded(reason):
                pass
            case RegionLimited(region):
                limits[region] = line.event
            case RegionRun(region, run_id):
                runs.setdefault(region, []).append(run_id)
            case SearchStarted(suite):
                pass
            case event:
                proof = folded(proof, event)
    if is_at_work:
        return Standing(NetworkState.CAPTURING, words, entry, network, limits, runs)
    if network is not None:
        stands = Standing(NetworkState.CAPTURED, reason, entry, network, limits, runs)
        return replace(stands, suite=suite, proof=proof, is_proving=is_proving)
    if reason:
        return Standing(NetworkState.FAILED, reason, entry, None, limits, runs)
    why = f"the capture ended while it was {words or 'starting'}: capture it again, or delete it"
    return Standing(NetworkState.BROKEN_OFF, why, entry, None, limits, runs)
