"""What the devices of this host do; and what this machine has and lacks, each with what to do about it: the doctor's
report, fetched by a child process."""

from __future__ import annotations

from itertools import groupby

import streamlit as st

from engine.errors import EngineError
from engine.supervisor import Finding
from pages.parts import change_token, server_memory, wording
from pages.parts.status import behind, now
from pages.parts.system import devices_table, examined


def report() -> None:
    """Everything found, a table per section. An older report is gone while this machine is checked."""
    slot = st.empty()
    try:
        with slot, st.spinner("Checking this machine: sandbox, compilers, GPU, profiler"):
            findings, at = examined.latest()
    except EngineError as error:
        slot.error(f"System check failed: {wording.plain(str(error))}", icon=":material/error:")
        return
    with slot.container():
        verdict(findings)
        for section, lines in groupby(findings, key=lambda finding: finding.section):
            examined.draw(section, list(lines))
        st.caption(f"Checked {wording.moment(at)}")


def verdict(findings: list[Finding]) -> None:
    """In one sentence: whether runs can work here, and on what."""
    broken = [finding for finding in findings if finding.is_required and not finding.is_ok]
    if broken:
        names = wording.plain(", ".join(finding.name for finding in broken))
        st.error(f"**No run can start yet.** Missing: {names}.", icon=":material/block:")
        return
    on = [
        finding.name
        for finding in findings
        if finding.name.startswith("GPU ") and finding.name[4:].isdigit() and finding.is_ok
    ]
    none = next(
        (finding.detail.removesuffix("; optional") for finding in findings if finding.name == "GPU"), "none ready"
    )
    gpus = f"GPUs ready: {len(on)}." if on else f"GPU: {wording.plain(none)}."
    lacking = sum(not finding.is_ok for finding in findings)
    rest = f" Optional parts missing: {lacking}; see below." if lacking else ""
    st.success(f"**CPU toolchain ready. {gpus}**{rest}", icon=":material/check_circle:")


def memory() -> None:
    """What this server holds of it; an alarm where it is more than it has use for."""
    held = server_memory.resident_bytes()
    used, most = f"{held >> 20:,} MB", f"{server_memory.ALARM_BYTES >> 20:,} MB"
    if held > server_memory.ALARM_BYTES:
        st.error(
            f"**The dashboard's server holds {used} of memory**, more than {most}. Restart it: runs do not need it and "
            "go on. If it grows again, report which page was open.",
            icon=":material/memory:",
        )
    else:
        st.caption(f"The dashboard's server holds {used} of memory; beyond {most} an alarm stands here.")


@st.fragment
def devices() -> None:
    """What the devices do; drawn again when a run has news."""
    now.watch([], is_overview=True, token=change_token.of([], is_overview=True))
    devices_table.draw()


with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute", key="title_row"):
    st.title("System", anchor=False, width="content")
    st.button("Check again", icon=":material/refresh:", on_click=examined.ask_again, key="again")
memory()
with st.container(key="system_tables"):
    behind.draw()
    devices()
    report()
