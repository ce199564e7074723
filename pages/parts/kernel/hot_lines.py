"""Where in its source a kernel's time went: lines with their share of the samples and what they wait for; the whole
source and the instructions on demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from pages.parts import index, texts, wording
from pages.parts.widgets import code, table
from storage.index import queries
from storage.index.queries import CandidateRow, ProfileRow
from storage.results import counters, kernel_names
from storage.results.profile_results import SourceLine

MOST_LINES = 15
MOST_CHARACTERS = 300_000
COLUMNS = [
    table.Column("share", "Samples", "", "share of all samples of the call that fell on instructions of this line"),
    table.Column("line", "Line", "right nowrap"),
    table.Column("waits", "Mostly waits for", "", "the reason of most samples of this line"),
    table.Column("source", "Source", "wide"),
]


def draw(run_id: str, candidate: CandidateRow, profile: ProfileRow) -> None:
    """Nothing where the profiler has not sampled by line."""
    lines = queries.source_lines(index.current(), run_id, candidate.candidate_id)
    if not lines or not profile.samples:
        return
    st.markdown("## Source lines")
    only = profile.evidence.get("source lines", "")
    where = f"in the profiled call, {only}" if only else "in the profiled call"
    st.caption(
        f"{wording.counted(profile.samples, 'sample')} of warps {where}. An inlined instruction "
        "counts for each line that it came from."
    )
    source = texts.read(run_id, candidate.source_blob)
    text = [] if source.is_gone else source.text.splitlines()
    rows = [_row(number, line, text, profile.samples) for number, line in enumerate(lines[:MOST_LINES])]
    table.draw("Source lines by their share of the samples", COLUMNS, rows, key="source_lines", is_compact=True)
    name = candidate.candidate_id
    if text:
        whole = st.expander("Whole source with samples", key=f"sampled_source:{name}", on_change="rerun")
        if whole.open:
            with whole:
                code.draw_plain("The source with its samples", listing(text, lines, profile.samples), f"sampled:{name}")
    if profile.sass_blob:
        instructions = st.expander("Instructions (SASS)", key=f"sass:{name}", on_change="rerun")
        if instructions.open:
            with instructions:
                _instructions(run_id, name, profile.sass_blob)


def share(samples: int, of: int) -> str:
    """In percent, three digits at most."""
    return f"{wording.significant(100 * samples / of, 2)} %"


def listing(source: Sequence[str], lines: Sequence[SourceLine], samples: int) -> str:
    """The kernel's source, each line with its share of the samples and what most of them waited for in front."""
    sums: dict[int, dict[str, int]] = {}
    for line in lines:
        if not line.file:
            at = sums.setdefault(line.line, {})
            at[line.stall] = at.get(line.stall, 0) + line.samples
    return "\n".join(f"{_margin(sums.get(n, {}), samples)} {n:>4}  {text}" for n, text in enumerate(source, 1))


def _margin(waits: Mapping[str, int], samples: int) -> str:
    if not waits:
        return " " * 28
    return f"{share(sum(waits.values()), samples):>7} {max(waits, key=lambda name: waits[name]).replace('_', ' '):<20}"


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
