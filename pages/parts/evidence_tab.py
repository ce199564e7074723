"""What stands behind a verdict and a speed-up: trials, tolerance, seed, samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from pages.parts import index, plot, table, wording
from storage import queries
from storage.queries import CandidateRow, EvaluationRow, TimingSamples

FACTS = [table.Column("name", "Fact", "nowrap"), table.Column("value", "Value")]


def draw(run_id: str, candidate: CandidateRow) -> None:
    """Correctness left, timing right."""
    db = index.current()
    evaluation = queries.evaluation(db, run_id, candidate.candidate_id)
    if evaluation is None:
        st.caption("Not judged yet.")
        return
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("#### Build and correctness")
        _facts("Evidence for correctness", correctness(evaluation), f"correct:{candidate.candidate_id}")
    with right:
        st.markdown("#### Timing")
        samples = queries.timing_samples(db, run_id, candidate.candidate_id)
        if samples is None:
            st.caption("Not timed: only a correct kernel is.")
            return
        name = f"Latency of each timed call: {evaluation.sample_count} pairs, candidate and baseline in alternation"
        plot.draw(
            strip(samples), name, 220, f"{run_id}:{candidate.candidate_id}", key=f"samples:{candidate.candidate_id}"
        )
        _facts("Evidence for the speed-up", timing(evaluation), f"timing:{candidate.candidate_id}")


def _facts(name: str, found: Sequence[tuple[str, str]], key: str) -> None:
    rows = [table.Row(f"{i}", {"name": label, "value": value}) for i, (label, value) in enumerate(found)]
    table.draw(name, FACTS, rows, key=key, is_compact=True)


def correctness(e: EvaluationRow) -> list[tuple[str, str]]:
    """Build and check, in facts."""
    cached = " (cached)" if e.compile_is_cached else ""
    found = [
        ("verdict", wording.VERDICT_NAME[e.verdict] if e.verdict else "not judged yet"),
        ("build", f"{wording.seconds(e.compile_seconds)}{cached}"),
        ("check", wording.seconds(e.check_seconds)),
        ("largest error", _number(e.max_error)),
        ("tolerance", _number(e.tolerance)),
        ("reference's own error", _number(e.reference_error)),
        ("largest absolute error", _number(e.max_abs_error)),
        ("precision", e.precision or wording.NONE),
        ("seed", wording.NONE if e.seed is None else str(e.seed)),
        ("trials", ", ".join(e.trials) or wording.NONE),
    ]
    return found + [(name.replace("_", " "), value) for name, value in e.evidence.items()]


def timing(e: EvaluationRow) -> list[tuple[str, str]]:
    """Timing, in facts."""
    found = [
        ("speed-up", f"{wording.speedup(e.speedup, e.noise)} ({wording.plus_minus(e.noise)})"),
        ("95 % interval", wording.interval(e.low, e.high)),
        ("kernel, median", wording.latency(e.latency_ms)),
        (f"{e.baseline or 'baseline'}, median", wording.latency(e.baseline_latency_ms)),
        ("pairs", f"{e.sample_count:,}"),
        ("took", wording.seconds(e.timing_seconds)),
    ]
    return found + [(name.replace("_", " "), value) for name, value in e.timing_evidence.items()]


def strip(samples: TimingSamples) -> dict[str, Any]:
    """All samples of both sides as points over a box."""
    sides = (
        (samples.baseline or "baseline", samples.baseline_ms, "@gray-color"),
        ("kernel", samples.candidate_ms, "@blue-color"),
    )
    traces = [
        {"type": "box", "orientation": "h", "name": name, "x": values, "boxpoints": "all", "jitter": 0.6, "pointpos": 0,
         "marker": {"size": 4, "color": colour, "opacity": 0.7}, "line": {"width": 1.2, "color": colour},
         "fillcolor": "rgba(0,0,0,0)", "hovertemplate": "%{x:.4g} ms<extra></extra>"}
        for name, values, colour in sides
    ]  # fmt: skip
    axis = {"gridcolor": "@border-color", "zeroline": False}
    layout = {
        "showlegend": False, "margin": {"l": 70, "r": 12, "t": 8, "b": 40}, "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)", "font": {"color": "@text-color", "size": 12},
        "xaxis": {"title": {"text": "latency, ms", "font": {"size": 12}}, **axis}, "yaxis": axis,
        "uirevision": "samples",
    }  # fmt: skip
    return {"data": traces, "layout": layout}


def _number(value: float | None) -> str:
    return wording.NONE if value is None else f"{value:.3g}"
