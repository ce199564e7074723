"""What a proof says, as sentences and rows for people: the command line, the card of a package, the report and the page
say the same. Knows no file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from storage.networks import proofs
from storage.networks.proofs import Proof, Total
from storage.networks.records import MAX_AUTOTUNE, ChosenKernel, Network, Parity, RegionTried, Speed, Verdict


@dataclass(frozen=True, slots=True)
class RegionRow:
    """One region's kernel: alone, and in the network."""

    region: str
    kernel: ChosenKernel | None
    trial: RegionTried
    in_place: Total | None
    """The network with it over the network without, all workloads by their weights."""
    is_engaged: bool | None
    """None where it was not tried."""
    worst: Parity | None
    """The output that is furthest off."""


def rows(network: Network, proof: Proof) -> list[RegionRow]:
    """Every region that was tried, in the order of the trials."""
    weights = proofs.weights_of(network)
    return [_row(trial, proof.kernels.get(name), proofs.total(trial.speeds, weights)) for name, trial in
            proof.tried.items()]  # fmt: skip


def _row(trial: RegionTried, kernel: ChosenKernel | None, in_place: Total | None) -> RegionRow:
    engaged = all(part.is_whole for part in trial.engaged) if trial.engaged else None
    if trial.verdict is Verdict.NOT_ENGAGED:
        engaged = False
    worst = max(trial.parity, key=lambda part: part.error / part.allowed, default=None)
    return RegionRow(trial.region, kernel, trial, in_place, engaged, worst)


MOST_COUNTED = 3
NO_REASON = "it could not be called so with the kernels in it; this record does not hold the message"
OWN_GRAPHS = (
    "max-autotune makes CUDA graphs of its own accord, and PyTorch refuses them where a kernel keeps a tensor from one "
    "call to the next"
)
WEIGHTED = "So many calls of each workload together, as the weights say that were given at the capture"

OPTIMISTIC = (
    "A large region's ceiling is optimistic: its limit counts its inputs, parameters and outputs, moved once, and its "
    "products, and nothing in between."
)
PEAK = "the most GPU memory that a call holds beyond what is held before it, such as parameters and inputs"


def replaced(network: Network, kept: Sequence[str]) -> str:
    """What runs in kernels now and where, in a sentence: "Replaced: conv2d + layer_norm in parts.1, parts.2."; empty
    where nothing is kept."""
    told = [
        f"{_listed(region.kind.split('+'), ' + ')} in {_listed(tuple(dict.fromkeys(region.places)), ', ')}"
        for region in network.regions
        if region.name in kept
    ]
    return f"Replaced: {'; '.join(told)}." if told else ""


def _listed(names: Sequence[str], between: str) -> str:
    more = len(names) - MOST_COUNTED
    return between.join(names[:MOST_COUNTED]) + (f" and {more} more" if more > 0 else "")


def counted(network: Network) -> str:
    """What the milliseconds of the whole network count: its workloads by their weights, "1 prefill + 200 decode"; empty
    where they are those of one call."""
    if [workload.weight for workload in network.workloads] in ([], [1.0]):
        return ""
    if len(network.workloads) > MOST_COUNTED:
        return f"{len(network.workloads)} workloads by weight"
    return " + ".join(f"{workload.weight:,g} {workload.name}" for workload in network.workloads)


def headline(network: Network, proof: Proof) -> str:
    """The figure that counts: the best with kernels over the best without."""
    if proof.stack is None:
        return ""
    total = proofs.total(proof.stack.best, proofs.weights_of(network))
    if total is None:
        return "No kernel pays in this network on this machine: it stays as it is."
    before, after = proof.stack.best[0].before, proof.stack.best[0].after
    ways = f"both {after}" if before == after else f"{after} with kernels, {before} without"
    words = f"{factor(total)} the best alternative ({ways}): {ms(total.before_ms)} to {ms(total.after_ms)}"
    words += f" for {what}" if (what := counted(network)) else ""
    return f"{words}." if total.is_faster else f"{words}, which is {_not_faster(total)}."


def by_workload(network: Network, proof: Proof) -> str:
    """What the headline comes to in each workload alone; empty where there is one."""
    if proof.stack is None or len(network.workloads) not in range(2, MOST_COUNTED + 1):
        return ""
    speeds = {speed.workload: speed for speed in proof.stack.best}
    each = [
        f"{name} {speed.speedup:.3f}x ({speed.low:.3f} to {speed.high:.3f})"
        for name in (workload.name for workload in network.workloads)
        if (speed := speeds.get(name))
    ]
    return f"A call of each workload alone: {', '.join(each)}." if each else ""


def _not_faster(total: Total) -> str:
    return "slower" if total.is_slower else "no difference beyond the noise"


def prediction(network: Network, proof: Proof) -> str:
    """What gains measured alone would add up to, and what was measured; both by eager calls, unlike the headline."""
    if proof.stack is None:
        return ""
    kernels = [name for name in proof.kernels if name not in proof.started.without]
    predicted = proofs.predicted(network, proof, kernels)
    measured = proofs.total(proofs.of_way(proof.stack, "eager"), proofs.weights_of(network))
    if predicted is None:
        return ""
    one = len(kernels) == 1
    alone = "the kernel, measured alone, promises" if one else f"{len(kernels)} kernels, measured alone, promise"
    gain = f"In eager calls (no compiler, no CUDA graph) {alone} a network {_change(predicted)}"
    if measured is None:
        return f"{gain}; none was kept."
    spread = f"{_percent(measured.low)} to {_percent(measured.high)}"
    was = f"{_change(measured.speedup)} ({spread})"
    kept = len(proof.stack.kept)
    which = ("it" if one else "all of them") if kept == len(kernels) else f"the {kept} kept"
    return f"{gain}; with {which} in place it was measured to be {was}."


def origin(network: Network) -> str:
    """Of a network that was captured elsewhere where it was measured and what is not here; else nothing."""
    if not network.is_example:
        return ""
    article = "an" if network.device.startswith(("NVIDIA", "AMD", "Intel")) else "a"
    where = "a processor" if network.device == "cpu" else f"{article} {network.device}"
    return f"measured on {where}; its recorded tensors are not part of it"


def lines(network: Network, proof: Proof) -> list[str]:
    """The proof as Markdown."""
    told = [*filter(None, (headline(network, proof), by_workload(network, proof), prediction(network, proof)))]
    if proof.stack and proof.stack.greedy:
        told.append(f"{proof.stack.greedy[:1].upper()}{proof.stack.greedy[1:]}.")
    text = [
        f"Measured on {network.device}, PyTorch {network.versions.get('torch', '?')}, in one process, in turns.",
        "",
    ]
    text += [*told, ""]
    if proof.stack and proof.stack.speeds:
        text += ["| workload | way | without, ms | with, ms | faster | 95 % interval |", "|---|---|---|---|---|---|"]
        text += [_line(speed) for speed in proof.stack.speeds]
        text += ["", *not_measured(proof), ""]
    text += ["| region | alone, over eager | in the network | verdict |", "|---|---|---|---|"]
    for row in rows(network, proof):
        alone = f"{row.kernel.speedup:.3g}x" if row.kernel and row.kernel.speedup else ""
        place = factor(row.in_place) if row.in_place else ""
        why = row.trial.why.replace("|", "/")
        text.append(f"| {row.region} | {alone} | {place} | {row.trial.verdict}: {why} |")
    return text


def not_measured(proof: Proof) -> list[str]:
    """Why there is no figure with the kernels of a way to call the network, a sentence each. Older records do not say
    why."""
    if (stack := proof.stack) is None:
        return []
    timed = {original.way for original in proof.originals if original.ms is not None} if stack.speeds else set()
    untold = timed - {speed.before for speed in stack.speeds}
    ways = [way for way in proof.started.ways if way in untold]
    missing = {way: f"{NO_REASON}. {OWN_GRAPHS}" if way == MAX_AUTOTUNE else NO_REASON for way in ways}
    missing |= stack.not_with_kernels
    return [f"Not measured with the kernels, {way}: {why.rstrip('.')}." for way, why in missing.items()]


def _line(speed: Speed) -> str:
    return (
        f"| {speed.workload} | {speed.before} | {speed.before_ms:.4g} | {speed.paired_ms:.4g} | {speed.speedup:.3f}x | "
        f"{speed.low:.3f} to {speed.high:.3f} |"
    )


def factor(total: Total) -> str:
    """`1.12x (1.11 to 1.13)`."""
    return f"{total.speedup:.3f}x ({total.low:.3f} to {total.high:.3f})"


def ms(value: float) -> str:
    """A time with its unit."""
    return f"{value:.4g} ms"


def _change(speedup: float) -> str:
    return f"{abs(100 * (speedup - 1)):.1f} % {'faster' if speedup >= 1 else 'slower'}"


def _percent(speedup: float) -> str:
    return f"{100 * (speedup - 1):+.1f} %"
