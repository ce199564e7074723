"""A suite's results as CSV, JSON, LaTeX, Markdown or one HTML file: the tables of `tables.py` and what they rest on."""

from __future__ import annotations

import csv
import html
import io
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from engine.suites import tables
from engine.suites.formats import NONE
from engine.suites.tables import Heading, TextTable
from storage import codec
from storage.run.folder import RunFolder, runs_folder
from storage.suites import curves, summary
from storage.suites.curves import BARS
from storage.suites.reaching import reaching
from storage.suites.summary import ALL, Against, Results

STYLE = Path(__file__).with_name("export.css")
STROKES = ("none", "7 4", "2 4", "8 4 2 4")
WIDTH, HEIGHT, LEFT, BOTTOM = 860, 300, 62, 34


def exported(results: Results, form: str) -> str:
    """The whole text in one of FORMATS."""
    return FORMATS[form](results)


def all_tables(results: Results) -> list[TextTable]:
    """Every table that has a row, in the order of the page."""
    paper = tables.paper_table(results)
    text_tables = [
        tables.paired_table(results), tables.arms_table(results), tables.costs_table(results),
        tables.reaching_table(results),
        *(tables.fast_table(results, BARS, against) for against in Against if against is not Against.ARM),
        *([paper] if paper else []), tables.scorecard(results),
        tables.portability_table(results), tables.kernelbench_fast(results),
        tables.kernelbench_table(results),
        tables.cells_table(results), tables.headroom_table(results), provenance(results),
    ]  # fmt: skip
    return [table for table in text_tables if table.rows]


def provenance(results: Results) -> TextTable:
    """What each arm's runs were made with, from their run.json; runs that are gone are left out."""
    columns = (
        Heading("Arm", is_number=False), Heading("Settings", is_number=False), Heading("Model", is_number=False),
        Heading("Strategy", is_number=False), Heading("Language", is_number=False), Heading("Prompts", is_number=False),
        Heading("Device", is_number=False),
    )  # fmt: skip
    prompts: dict[str, set[str]] = {}
    for cell in results.cells:
        try:
            settings = RunFolder(runs_folder() / (cell.standing.run_id or "-")).read_settings()
        except (OSError, codec.DecodeError):
            continue
        prompts.setdefault(cell.cell.arm, set()).add(settings.prompts.in_words or "not recorded")
    rows = []
    for arm in results.suite.defined.arms:
        runs = [cell.result for cell in results.cells if cell.cell.arm == arm.name and cell.result]
        if runs:
            words = f"{results.suite.defined.settings} {arm.settings}".strip()
            sets = [{run.model for run in runs}, {run.strategy for run in runs}, {run.language for run in runs}]
            values = [*sets, prompts.get(arm.name, set()), {run.device for run in runs}]
            rows.append((arm.name, words or "none", *(", ".join(sorted(names - {""})) or NONE for names in values)))
    about = f"Suite {results.suite.defined.name}, baseline arm {results.suite.defined.baseline_arm}."
    return TextTable("Made with", columns, tuple(rows), about)


def as_csv(results: Results) -> str:
    """A row for every cell, figures unrounded; empty where there is none."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow((
        "task", "class", "arm", "repeat", "state", "run", "device", "model", "strategy", "language", "precision",
        "speedup", "speedup_low", "speedup_high", "latency_ms", "eager_ms", "alternative_speedup", "limit_ms",
        "first_kernel_speedup", "ratio_of_means", "max_abs_error", "flags", "tries", "kernels_compiled",
        "kernels_correct", "gains", "model_calls", "tokens", "cost_usd", "engine_s", "device_s", "alternative",
        "own_share",
    ))  # fmt: skip
    for measured in results.cells:
        run, best, cell = measured.result, tables.best_of(measured), measured.cell
        row: list[object] = [
            cell.task,
            measured.kernel_class,
            cell.arm,
            cell.repeat,
            measured.standing.state,
            measured.standing.run_id,
        ]
        row += [run.device, run.model, run.strategy, run.language] if run else [None] * 4
        row += (
            [best.precision, best.speedup, best.low, best.high, best.latency_ms, best.eager_ms] if best else [None] * 6
        )
        row += [run.second_speedup, run.limit_ms] if run else [None] * 2
        row += [run.timed[0].speedup if run and run.timed else None]
        row += [best.ratio_of_means, best.max_abs_error, "; ".join(dict.fromkeys(best.flags))] if best else [None] * 3
        if run:
            row += [len(run.tries), sum(t.is_compiled for t in run.tries), run.correct, run.gains, run.calls]
            row += [run.tokens, run.cost_usd, run.engine_s, run.device_s, run.second_name]
            row += [best.own_share if best else None]
        writer.writerow(["" if value is None else value for value in row + [None] * (33 - len(row))])
    return out.getvalue()


def as_json(results: Results) -> str:
    """Every figure unrounded: definition, cells, each arm per class, pairs, fast_p, curves, the paper's rows."""
    classes = [ALL, *results.classes]
    against = [baseline for baseline in Against if baseline is not Against.ARM or len(results.arms) > 1]
    plain = {
        "suite": codec.to_plain(results.suite.defined),
        "devices": results.devices,
        "sentences": tables.headline(results),
        "arms": [
            codec.to_plain(summary.figures(results, arm, kernel_class))
            for kernel_class in classes for arm in results.arms
        ],
        "pairs": [
            codec.to_plain(pair) | {"sign_test_p": pair.chance}
            for kernel_class in classes for pair in tables.comparisons(results, kernel_class)
        ],
        "fast_p": [
            {"against": str(baseline)} | codec.to_plain(curve)
            for baseline in against for arm in results.arms if (curve := curves.fast_curve(results, arm, baseline))
        ],
        "reaching": [
            codec.to_plain(way)
            for kernel_class in classes for arm in results.arms for way in reaching(results, arm, kernel_class)
        ],
        "curves": {arm: codec.to_plain(curves.curve(results, arm)) for arm in results.arms},
        "paper": codec.to_plain(summary.paper_rows(results)),
        "cells": [codec.to_plain(cell) for cell in results.cells],
        "made_with": [dict(zip(("arm", "settings", "model", "strategy", "language", "prompts", "device"), row,
                               strict=True)) for row in provenance(results).rows],
    }  # fmt: skip
    return json.dumps(plain, indent=1, ensure_ascii=False) + "\n"


def as_markdown(results: Results) -> str:
    """Sentences, then tables as GitHub reads them."""
    parts = [
        f"# {_title(results)}",
        tables.progress_with_size(results.suite) + ".",
        "\n".join(f"- {sentence}" for sentence in _said(results)),
    ]
    for table in all_tables(results):
        rows = [
            [column.label for column in table.columns], ["---:" if c.is_number else "---" for c in table.columns],
            *table.rows,
        ]  # fmt: skip
        lines = ["| " + " | ".join(text.replace("|", "\\|").replace("\n", " ") for text in row) + " |" for row in rows]
        parts += [f"## {table.title}", "\n".join(lines), *([table.about] if table.about else [])]
    return "\n\n".join(parts) + "\n"


_LATEX: Mapping[str, str] = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "×": r"$\times$", "–": "--", "<": r"$<$", ">": r"$>$",
    "|": r"$|$",
}  # fmt: skip


def as_latex(results: Results) -> str:
    """Tables for a paper, a `table` each; they need the package booktabs."""
    parts = ["% needs \\usepackage{booktabs}", *(f"% {sentence}" for sentence in _said(results))]
    for table in all_tables(results):
        form = "".join("r" if column.is_number else "l" for column in table.columns)
        rows = [" & ".join(map(_latex, row)) + r" \\" for row in table.rows]
        head = " & ".join(_latex(column.label) for column in table.columns) + r" \\"
        about = _latex(f"{table.title}. {table.about}".strip())
        parts.append("\n".join([
            r"\begin{table}", r"\centering", rf"\caption{{{about}}}", rf"\begin{{tabular}}{{{form}}}", r"\toprule",
            head, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}", r"\end{table}",
        ]))  # fmt: skip
    return "\n\n".join(parts) + "\n"


def _latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text.replace("\n", " "))


def as_html(results: Results) -> str:
    """One file that needs no server and no network: sentences, two charts, every table."""
    title, charts = html.escape(_title(results)), _fast_chart(results) + _call_chart(results)
    sentences = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in _said(results))
    about = html.escape(f"{tables.progress_with_size(results.suite)}. {results.suite.defined.about}")
    body = "".join(map(_html_table, all_tables(results)))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<style>{STYLE.read_text()}</style>'
        f"</head><body><main><h1>{title}</h1><p>{about}</p><ul>{sentences}</ul>{charts}{body}</main></body></html>\n"
    )


def _html_table(table: TextTable) -> str:
    def cells(tag: str, texts: Sequence[str]) -> str:
        kinds = [' class="n"' if column.is_number else "" for column in table.columns]
        return "".join(f"<{tag}{k}>{html.escape(text)}</{tag}>" for k, text in zip(kinds, texts, strict=True))

    head = cells("th", [column.label for column in table.columns])
    rows = "".join(f"<tr>{cells('td', row)}</tr>" for row in table.rows)
    notes = "; ".join(f"{column.label}: {column.about}" for column in table.columns if column.about)
    about = html.escape(" ".join(part for part in (table.about, f"{notes}." if notes else "") if part))
    title = html.escape(table.title)
    return (
        f'<h2>{title}</h2><div class="scroll" tabindex="0" role="group" aria-label="{title}"><table><thead><tr>{head}'
        f"</tr></thead><tbody>{rows}</tbody></table></div><p>{about}</p>"
    )


Point = tuple[float, float]


def _fast_chart(results: Results) -> str:
    results, _ = tables.compared(results)
    fast_curves = [curve for arm in results.arms if (curve := curves.fast_curve(results, arm, Against.EAGER))]
    values = [value for curve in fast_curves for value, _ in curve.steps]
    if not values:
        return ""
    low, high = min(0.5, *values) / 1.2, max(2.0, *values) * 1.2
    lines = {
        curve.arm: [(low, curve.at(low)), *((x, curve.at(x)) for x, _ in curve.steps), (high, curve.at(high))]
        for curve in fast_curves
    }
    ticks = [(mark, f"{mark:g}×") for mark in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if low <= mark <= high]
    sides = [(mark / 5, f"{20 * mark} %") for mark in range(6)]
    return _chart("fast_p: share of runs more than p times as fast as eager", lines, ticks, sides, is_log_x=True)


def _call_chart(results: Results) -> str:
    results, _ = tables.compared(results)
    points_by_arm = {arm: points for arm in results.arms if (points := curves.curve(results, arm))}
    lines = {arm: [(point.spent, point.mean) for point in points] for arm, points in points_by_arm.items()}
    if not lines:
        return ""
    last = max(x for points in lines.values() for x, _ in points)
    top = max(1.05, *(point.high for points in points_by_arm.values() for point in points))
    ticks = [(last * part / 4, f"{last * part / 4:.0f}") for part in range(5)]
    sides = [(value, f"{value:.2f}×") for value in (1 + (top - 1) * part / 4 for part in range(5))]
    bands = {arm: [(p.spent, p.low, p.high) for p in points] for arm, points in points_by_arm.items()}
    return _chart("Speed-up over model calls, kernels used where faster", lines, ticks, sides, bands)


def _chart(
    title: str, lines: Mapping[str, Sequence[Point]], ticks: Sequence[tuple[float, str]],
    sides: Sequence[tuple[float, str]], bands: Mapping[str, Sequence[tuple[float, float, float]]] | None = None,
    *, is_log_x: bool = False,
) -> str:  # fmt: skip
    """Steps as SVG; lines are told apart by dash and colour."""
    scale: Callable[[float], float] = math.log if is_log_x else float
    xs = [scale(x) for points in lines.values() for x, _ in points]
    ys = [y for y, _ in sides]
    left, right, low, high = min(xs), max(xs), min(ys), max(ys)

    def at(x: float, y: float) -> tuple[str, str]:
        across = LEFT + (scale(x) - left) / (right - left or 1.0) * (WIDTH - LEFT - 8)
        down = HEIGHT - BOTTOM - (y - low) / (high - low or 1.0) * (HEIGHT - BOTTOM - 10)
        return f"{across:.1f}", f"{down:.1f}"

    def steps(points: Sequence[Point]) -> str:
        marks = [at(*point) for point in points]
        return f"M{marks[0][0]} {marks[0][1]}" + "".join(f"H{x}V{y}" for x, y in marks[1:])

    drawn = []
    for mark, label in ticks:
        x = at(mark, low)[0]
        drawn.append(f'<path class="grid" d="M{x} 10V{HEIGHT - BOTTOM}"/>')
        drawn.append(f'<text x="{x}" y="{HEIGHT - 12}" text-anchor="middle">{label}</text>')
    for mark, label in sides:
        y = at(next(iter(lines.values()))[0][0], mark)[1]
        drawn.append(f'<path class="grid" d="M{LEFT} {y}H{WIDTH - 8}"/>')
        drawn.append(f'<text x="{LEFT - 6}" y="{y}" dy="4" text-anchor="end">{label}</text>')
    for number, arm in enumerate(lines):
        if band := (bands or {}).get(arm):
            over = steps([(x, top) for x, _, top in band])
            back = "".join(f"V{y}H{x}" for x, y in reversed([at(x, bottom) for x, bottom, _ in band]))
            drawn.append(f'<path class="band c{number % 4}" d="{over}{back}Z"/>')
    for number, points in enumerate(lines.values()):
        dash = STROKES[number % len(STROKES)]
        drawn.append(f'<path class="line c{number % 4}" stroke-dasharray="{dash}" d="{steps(points)}"/>')
    names = "".join(
        f'<li><svg viewBox="0 0 30 8" aria-hidden="true"><path class="line c{number % 4}" '
        f'stroke-dasharray="{STROKES[number % len(STROKES)]}" d="M0 4H30"/></svg>{html.escape(arm)}</li>'
        for number, arm in enumerate(lines)
    )
    return (
        f'<figure><figcaption>{html.escape(title)}</figcaption><div class="wide" tabindex="0" role="group" '
        f'aria-label="{html.escape(title)}, chart"><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{html.escape(title)}; the tables below have the figures">{"".join(drawn)}</svg></div>'
        f'<ul class="names">{names}</ul></figure>'
    )


def _title(results: Results) -> str:
    defined = results.suite.defined
    return f"{defined.title} ({defined.name})" if defined.title else defined.name


def _said(results: Results) -> list[str]:
    return [re.sub(r"\s+", " ", sentence) for sentence in tables.headline(results)]


FORMATS: Mapping[str, Callable[[Results], str]] = {
    "csv": as_csv, "json": as_json, "latex": as_latex, "markdown": as_markdown, "html": as_html,
}  # fmt: skip
ENDINGS = {"csv": "csv", "json": "json", "latex": "tex", "markdown": "md", "html": "html"}
