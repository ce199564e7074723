"""A failed evaluation told to the model: what failed, where, the nearest facts. Knows records, not prompts."""

from __future__ import annotations

from engine.record import Candidate
from storage.records import CheckResult, Mismatch, Verdict

HEADINGS = {
    Verdict.COMPILE_ERROR: "The source does not compile",
    Verdict.INCORRECT: "The kernel compiles and runs, but its output is wrong",
    Verdict.RUNTIME_ERROR: "The kernel compiles, but running it fails",
    Verdict.TIMEOUT: "The kernel did not finish within its time limit",
    Verdict.OUT_OF_MEMORY: "The kernel ran out of memory",
    Verdict.REFUSED: "The source was refused before it ran",
}


def describe_failure(candidate: Candidate) -> str:
    """The failure of an attempt as text for the model. The attempt must have failed."""
    verdict = candidate.verdict
    if verdict is None or verdict is Verdict.PASSED:
        raise ValueError(f"{candidate.candidate_id} has not failed")
    heading = HEADINGS[verdict]
    if candidate.compiled is not None and not candidate.compiled.is_ok:
        return f"{heading}.\n\n{candidate.compiled.diagnostics.strip()}"
    return f"{heading}.\n\n{_describe_check(candidate.checked)}"


def _describe_check(check: CheckResult | None) -> str:
    if check is None:
        return ""
    parts = [check.message.strip(), _describe_mismatch(check.mismatch) if check.mismatch else ""]
    if check.max_error is not None and check.tolerance is not None:
        parts.append(f"Scaled error {check.max_error:.3g}; allowed {check.tolerance:.3g}.")
    return "\n".join(part for part in parts if part)


def _describe_mismatch(m: Mismatch) -> str:
    index = ", ".join(map(str, m.index))
    trial = f" in trial '{m.trial}'" if m.trial else ""
    return (
        f"First wrong element{trial}: index ({index}) of shape {tuple(m.shape)}, "
        f"expected {m.expected:.8g}, got {m.actual:.8g}.\n"
        f"{m.wrong_count} of {m.total_count} elements are wrong ({m.wrong_count / max(m.total_count, 1):.1%}); "
        f"largest absolute error {m.max_abs_error:.3g}, largest relative error {m.max_rel_error:.3g}.\n"
        + _describe_region(m)
    )


def _describe_region(m: Mismatch) -> str:
    if not m.heat:
        return ""
    rows = [i for i, row in enumerate(m.heat) if any(row)]
    cols = [j for j in range(len(m.heat[0])) if any(row[j] for row in m.heat)]
    total = len(m.heat) * len(m.heat[0])
    hit = sum(cell > 0 for row in m.heat for cell in row)
    if not rows or not cols:
        return ""
    return (
        f"Seen as a {len(m.heat)} x {len(m.heat[0])} grid over the output, wrong values lie in {hit} of {total} cells: "
        f"grid rows {rows[0]}-{rows[-1]}, grid columns {cols[0]}-{cols[-1]}."
    )
