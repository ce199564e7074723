"""Where a network stands, its figures in a line, and what of them must be known: sums that do not add up, and what the
capture could not do."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import streamlit as st

from pages.parts import wording
from pages.parts.network.networks_list import TONES
from pages.parts.widgets import code, figures
from pages.parts.widgets.figures import Figure
from storage.networks import in_network, ranking
from storage.networks.ranking import Ranked
from storage.networks.records import Network, NetworkState, WorkloadFacts
from storage.networks.standing import Standing

EXAMPLE = (
    "Its program is not either, so nothing can be searched or measured in it here: capture a network of your own. "
    "Kernels of its runs can be read, compared, exported and forked."
)


def state(name: str, stands: Standing, log: str) -> None:
    """The state in a sentence; of a capture that has failed, what it wrote and how to go on."""
    words = wording.sentence(stands.words)
    match stands.state:
        case NetworkState.CAPTURING:
            st.info(f"**Being captured.** {words or 'It has just begun'}", icon=":material/hourglass_top:")
        case NetworkState.FAILED:
            st.error(f"**The capture failed.** {words}", icon=":material/error:")
        case NetworkState.BROKEN_OFF:
            st.warning(f"**Broken off.** {words}", icon=":material/link_off:")
        case NetworkState.CAPTURED:
            pass
    if stands.state in (NetworkState.FAILED, NetworkState.BROKEN_OFF):
        again = ["python", "-m", "engine", "network", "capture", stands.entry, "--name", name]
        st.caption("The command that captures it again:")
        st.code(shlex.join(again), language=None, wrap_lines=True)
    if log and stands.state is not NetworkState.CAPTURED:
        with st.expander("What the capture has written", icon=":material/article:"):
            code.draw_plain("What the capture has written", log, key="capture_log", is_wrapped=True)


def draw(network: Network, rows: Sequence[Ranked], run_count: int) -> None:
    """One line on what was captured, and one of figures."""
    parameters = sum(module.parameters for module in network.modules if not module.path)
    facts = [
        f"`{_entry(network)}`", f"{network.mode} mode", wording.plain(network.device),
        f"captured {wording.moment(network.captured_at)} in {wording.seconds(network.seconds)}",
    ]  # fmt: skip
    if parameters:
        facts.append(f"{wording.quantity(parameters, '')} parameters")
    tone = TONES[NetworkState.CAPTURED]
    badge = ":gray-badge[example]" if network.is_example else f":{tone}-badge[{NetworkState.CAPTURED}]"
    st.markdown(f"{badge} " + " · ".join(facts))
    if origin := in_network.origin(network):
        st.caption(wording.plain(f"{wording.capital(origin)}. {EXAMPLE}"))
    figures.draw(
        "Figures of the network", list(_figures(network, rows, run_count)), key="network_figures", is_strip=True
    )
    st.caption(ceiling_words(network, rows))


def _entry(network: Network) -> str:
    """What makes it: of a file its name and folder, not the whole path."""
    source, colon, function = network.entry.rpartition(":")
    return f"{'/'.join(Path(source).parts[-2:])}{colon}{function}" if source.endswith(".py") else network.entry


def _figures(network: Network, rows: Sequence[Ranked], run_count: int) -> Iterator[Figure]:
    whole = ranking.whole_of(network)
    worth = [row for row in rows if row.is_worth_it]
    counted = in_network.counted(network)
    yield Figure(
        counted or "A call",
        wording.latency(whole.best_ms),
        f"by {whole.alternative}, at the capture",
        f"{in_network.WEIGHTED if counted else 'One call'}, as timed when the network was captured. "
        "Kernels are timed beside the network anew: see In the network.",
    )
    if whole.eager_ms and network.times:
        in_places = min(1.0, sum(map(_attributed(network), network.workloads)) / whole.eager_ms)
        yield Figure("In its modules", wording.percent(in_places), "of a call; the rest is between them")
    yield Figure("Worth a kernel", f"{len(worth)} of {len(rows)}", "regions")
    yield Figure("Runs", wording.count(run_count), "of its regions")
    shares = [ranking.host_share(workload) for workload in network.workloads if workload.device_ms is not None]
    if shares:
        low, high = wording.percent(min(shares)), wording.percent(max(shares))
        about = "what of a call no kernel runs on the GPU: no kernel shortens that, torch.compile or a CUDA graph may"
        yield Figure("Host-bound", low if low == high else f"{low[:-2]} to {high}", "of a call", about)
    peaks = [workload.peak_bytes for workload in network.workloads if workload.peak_bytes is not None]
    if peaks:
        yield Figure("Memory peak", wording.quantity(float(max(peaks)), "B"), "beyond parameters", in_network.PEAK)


def ceiling_words(network: Network, rows: Sequence[Ranked]) -> str:
    """How much faster the whole could be at the very most, and what that takes for granted."""
    ceiling = ranking.ceiling_of(network, [row for row in rows if row.is_worth_it])
    if ceiling is None:
        return "Ceiling: no limit of a region worth a kernel is measured yet."
    alternative, share = ranking.whole_of(network).alternative, wording.percent(ranking.REACHED_SHARE)
    return (
        f"Ceiling: at most {wording.speedup(ceiling)} over {alternative}, if every region worth a kernel ran at "
        f"{share} of the hardware's limit and all else stayed as it is by {alternative}. {in_network.OPTIMISTIC}"
    )


def _attributed(network: Network) -> Callable[[WorkloadFacts], float]:
    return lambda one: one.weight * ranking.scale(one) * ranking.attributed_ms(network, one)


def gaps(network: Network) -> None:
    """Where places and everything else miss the whole by more than noise."""
    sentences = [
        gap
        for workload in network.workloads
        if (gap := ranking.gap_of(workload, ranking.attributed_ms(network, workload)))
    ]
    if sentences:
        st.warning(
            "**Places and everything else are not the whole.** "
            + " ".join(f"{wording.plain(one)}." for one in sentences),
            icon=":material/balance:",
        )


def notes(network: Network) -> None:
    """What could not be done, and why; nothing where all could."""
    told = [*network.notes, *(f"{one.name}: {one.compiled_note}" for one in network.workloads if one.compiled_note)]
    if told:
        with st.expander(f"What could not be done ({len(told)})", icon=":material/info:"):
            st.markdown("\n".join(f"- {wording.plain(note)}" for note in told))
