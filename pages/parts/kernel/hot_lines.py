"""Where in its source a kernel's time went: lines with their share of the samples and what they wait for, in a table
and as heat in the margin of its source; the instructions on demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from pages.parts import index, texts, wording
from pages.parts.widgets import code, table
from pages.parts.widgets.code import Heat, HeatMap
from storage.index import queries
from storage.index.queries import CandidateRow, ProfileRow
from storage.results import counters, kernel_names
from storage.results.profile_results import SourceLine

MOST_LINES = 15
MOST_CHARACTERS = 300_000
COLUMNS = [
    table.Column("share", "Samples", "", "share of all samples of the call that fell on instructions of this line"),
    table.Column("line", "Line", "right nowrap"),
    table.Column("source", "Source", "wide"),
]
WAITS = table.Column("waits", "Mostly waits for", "", "the reason of most samples of this line")
"""Of a GPU's samples alone: perf tells where a processor was, not why."""


def draw(run_id: str, candidate: CandidateRow, profile: ProfileRow) -> None:
    """Nothing where the profiler has not sampled by line."""
    lines = queries.source_lines(index.current(), run_id, candidate.candidate_id)
    if not lines or not profile.samples:
        return
    st.markdown("## Source lines")
    has_waits = any(line.stall for line in lines)
    st.caption(_about(profile, has_waits))
    source = texts.read(run_id, candidate.source_blob)
    text = [] if source.is_gone else source.text.splitlines()
    rows = [_row(number, line, text, profile.samples) for number, line in enumerate(lines[:MOST_LINES])]
    columns = [*COLUMNS[:2], WAITS, *COLUMNS[2:]] if has_waits else COLUMNS
    table.draw("Source lines by their share of the samples", columns, rows, key="source_lines", is_compact=True)
    name = candidate.candidate_id
    if profile.sass_blob:
        instructions = st.expander("Instructions (SASS)", key=f"sass:{name}", on_change="rerun")
        if instructions.open:
            with instructions:
                _instructions(run_id, name, profile.sass_blob)


def _about(profile: ProfileRow, has_waits: bool) -> str:
    """What the shares are of."""
    only = profile.evidence.get("source lines", "")
    where = f"in the profiled call, {only}" if only else "in the profiled call"
    taken = f"{wording.counted(profile.samples, 'sample')} of warps {where}." if has_waits else (
        f"{wording.counted(profile.samples, 'sample')} of the processor in the profiled calls. The time of a function "
        "that a line calls, such as expf, is not in the line's share."
    )  # fmt: skip
    return (
        f"{taken} An inlined instruction counts for each line that it came from. *Source* and *Diff* have the shares "
        "in their margins."
    )


HEAT = "In the margin: the share of the profiler's samples on that line; hover for how much of the call that is."
LEAST_SHARE = 0.005
"""Lines with less of the samples have no heat."""


def heat(run_id: str, candidate_id: str, latency_ms: float | None) -> HeatMap:
    """How much of the time each line of the kernel's own source took; empty where no profile has looked at lines."""
    profile = queries.profile(index.current(), run_id, candidate_id)
    samples = profile.samples if profile and not profile.failure else 0
    lines = [line for line in queries.source_lines(index.current(), run_id, candidate_id) if not line.file]
    return heat_of(lines, samples, latency_ms) if samples else {}


def heat_of(lines: Sequence[SourceLine], samples: int, latency_ms: float | None) -> HeatMap:
    """Shares of `samples` by line; a line that several kernels share is added up."""
    sums: dict[int, dict[str, int]] = {}
    for line in lines:
        at = sums.setdefault(line.line, {})
        at[line.stall] = at.get(line.stall, 0) + line.samples
    counts = {number: sum(waits.values()) for number, waits in sums.items()}
    most = max(counts.values(), default=0)
    return {
        number: Heat(count / most, share(count, samples), _meaning(sums[number], samples, latency_ms))
        for number, count in counts.items()
        if count >= LEAST_SHARE * samples
    }


def _meaning(waits: Mapping[str, int], samples: int, latency_ms: float | None) -> str:
    """What a reader is told of one line."""
    count = sum(waits.values())
    stall = max(waits, key=lambda name: waits[name])
    of_call = f", about {wording.latency(latency_ms * count / samples)} of the call" if latency_ms else ""
    waited = f"; mostly waits for: {counters.STALLS.get(stall, stall)}" if stall else ""
    return f"{share(count, samples)} of the samples{of_call}{waited}"


def share(samples: int, of: int) -> str:
    """In percent, three digits at most."""
    return f"{wording.significant(100 * samples / of, 2)} %"


def _row(number: int, line: SourceLine, source: Sequence[str], samples: int) -> table.Row:
    text = line.text if line.file else (source[line.line - 1].strip() if 0 < line.line <= len(source) else "")
    where = f"{line.file.rsplit('/', 1)[-1]}:{line.line}" if line.file else str(line.line)
    waits = counters.STALLS.get(line.stall, line.stall)
    reason = line.stall.replace("_", " ")
    cells = {
        "share": table.bar(share(line.samples, samples), line.samples / samples, title=f"{line.samples:,} samples"),
        "line": table.text(where, title=line.file or f"line {line.line} of this kernel's source"),
        "waits": table.text(
            waits or wording.NONE, title=f"{reason}: {line.stall_samples:,} of {line.samples:,} samples"
        ),
        "source": table.text(text or wording.NONE, note=kernel_names.short(line.kernel), title=line.kernel[:1000]),
    }
    return table.Row(f"{number}", cells)


def _instructions(run_id: str, name: str, blob: str) -> None:
    sass = texts.read(run_id, blob)
    if sass.is_gone:
        texts.say_gone(sass, "listing of instructions")
        return
    icon = ":material/download:"
    st.download_button("Download", sass.text, f"{name}-sass.txt", icon=icon, on_click="ignore", key="sass_text")
    if len(sass.text) > MOST_CHARACTERS:
        st.caption(f"Showing {MOST_CHARACTERS:,} of {len(sass.text):,} characters; download it to see all.")
    code.draw_plain("The instructions", sass.text[:MOST_CHARACTERS], f"instructions:{name}")
