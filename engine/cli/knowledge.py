"""What runs have learned, on the command line: read from the files, changed by appending revisions. Knows no run."""

from __future__ import annotations

import json
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from engine.cli.terminal import Console, printable
from engine.learned_examples import learn_from_examples
from storage import codec
from storage.knowledge import changes, exported, files, merging
from storage.knowledge.base import Base
from storage.knowledge.exported import KnowledgeError
from storage.knowledge.failures import FailureRule
from storage.knowledge.figures import revisions_in_force
from storage.knowledge.records import Evidence, Figures, Revision, RuleWords, State, Technique
from storage.results.policy import RULES, kept_rules

SHOWN_ATTEMPTS = 10
SHOWN_NAMES = 20


def run_verb(options: Namespace) -> int:
    """One of the verbs of `knowledge`."""
    handlers: dict[str, Callable[[Namespace], None]] = {
        "list": list_known,
        "show": show_named,
        "revisions": list_revisions,
        "export": export_all,
        "import": import_file,
        "learn": lambda _: print(f"{learn_from_examples()} attempts of the shipped examples were new."),
        "revert": lambda o: _append(o, changes.reverted(files.load(), o.revision, o.why)),
        "disable": lambda o: _append(o, changes.switched(files.load(), o.name, True, o.why)),
        "enable": lambda o: _append(o, changes.switched(files.load(), o.name, False, o.why)),
        "edit": lambda o: _append(o, changes.edited(files.load(), o.name, dict(o.fields), o.why)),
    }
    handlers[options.what](options)
    return 0


def list_known(options: Namespace) -> None:
    """States and techniques with their figures, or failure rules with theirs."""
    base = files.load()
    if options.rules:
        _list_rules(base, options.json)
        return
    if options.state:
        changes.named(base, options.state)
    states = _states(base)
    techniques = _techniques(base, options.state, options.device)
    if options.json:
        print(json.dumps({"states": states, "techniques": techniques}))
        return
    console = Console()
    if not options.state:
        console.print(_table("state", _state_row, states))
    console.print(_table("technique", _technique_row, techniques))
    if others := {row.technique for row in base.attempts if row.technique} - base.techniques.keys():
        names = printable(", ".join(sorted(others)[:SHOWN_NAMES]))
        line = f"{len(others)} more in attempts, defined nowhere: {names}"
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    _warn(console, base)


def _list_rules(base: Base, as_json: bool) -> None:
    rules = base.rules()
    if as_json:
        print(json.dumps({"rules": [_plain_rule(rule) for rule in rules]}))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in (
        "rule",
        "language",
        "toolchain",
        "kernels",
        "mended",
        "told",
        "came back",
        "status",
        "failure: mend",
    ):
        table.add_column(heading, overflow="fold" if heading == "failure: mend" else "ellipsis")
    for rule in rules:
        counts = map(str, (rule.kernels, rule.mended, rule.told, rule.recurred))
        words = f"{rule.signature}: {rule.mend}"
        texts = (rule.rule_id, rule.language, rule.toolchain, *counts, rule.status, words)
        table.add_row(*(escape(printable(text)) for text in texts))
    console = Console()
    console.print(table if rules else "There is no failure rule yet: every run adds those of its own kernels.")
    _warn(console, base)


def _plain_rule(rule: FailureRule) -> dict[str, Any]:
    plain: dict[str, Any] = codec.to_plain(rule)
    return plain | {"status": rule.status, "confidence": rule.confidence}


def _show_rule(base: Base, rule: FailureRule, as_json: bool) -> None:
    cases = [case for case in base.cases if rule.is_about(case)]
    if as_json:
        print(json.dumps({"rule": _plain_rule(rule), "kernels": [codec.to_plain(case) for case in cases]}))
        return
    console = Console()
    for name, value in _plain_rule(rule).items():
        console.print(f"{name}: {printable(str(value))}", highlight=False, markup=False, soft_wrap=True)
    for case in cases[-SHOWN_ATTEMPTS:]:
        shown = "mended it" if case.mends == rule.signature else case.message or "told, without it"
        line = f"{case.run_id} {case.candidate_id} {case.task}: {shown}"
        console.print(printable(line), highlight=False, markup=False, soft_wrap=True)


def _states(base: Base) -> list[dict[str, Any]]:
    attempts = Counter(row.state for row in base.attempts)
    return [
        codec.to_plain(state) | {"attempts": attempts[name], "known_techniques": base.techniques_of(name)}
        for name, state in sorted(base.states.items())
    ]


def _techniques(base: Base, state: str | None, device: str | None) -> list[dict[str, Any]]:
    names = base.techniques_of(state) if state else sorted(base.techniques)
    pairs = [(base.techniques[name], base.figures(name, state, device=device)) for name in names]
    return [codec.to_plain(technique) | {"figures": _plain(figures)} for technique, figures in pairs]


def _plain(figures: Figures) -> dict[str, Any]:
    plain: dict[str, Any] = codec.to_plain(figures)
    return plain | {"failed": figures.failed, "is_negative": figures.is_negative}


def _table(about: str, row_of: Callable[[dict[str, Any]], tuple[str, ...]], rows: Iterable[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    headings = (about, "bottleneck", "techniques", "attempts") if about == "state" else (about, "category", *_HEADINGS)
    for heading in headings:
        table.add_column(heading, justify="left" if heading in headings[:2] else "right")
    for row in rows:
        table.add_row(*row_of(row), style="dim" if row["is_disabled"] else None)
    return table


_HEADINGS = ("attempts", "faster", "failed", "mean gain", "expected", "confidence")


def _state_row(row: dict[str, Any]) -> tuple[str, ...]:
    return _name(row), row["bottleneck"], str(len(row["known_techniques"])), str(row["attempts"])


def _technique_row(row: dict[str, Any]) -> tuple[str, ...]:
    return _name(row), row["category"], *_figures(row["figures"])


def _figures(figures: dict[str, Any]) -> tuple[str, ...]:
    gain = f"{figures['mean_gain']:.3g}x" if figures["mean_gain"] is not None else "-"
    expected = f"{figures['expected_gain']:.3g}x"
    if figures["is_negative"]:
        expected = f"[red]{expected}[/]"
    counts = (str(figures[name]) for name in ("attempts", "faster", "failed"))
    return *counts, gain, expected, f"{figures['confidence']:.2f}"


def _name(row: dict[str, Any]) -> str:
    marks = [word for word in ("discovered", "disabled") if row.get(f"is_{word}")]
    return escape(printable(row["name"])) + (f" ({', '.join(marks)})" if marks else "")


def _warn(console: Console, base: Base) -> None:
    if base.damaged:
        lines = "line" if base.damaged == 1 else "lines"
        console.print(
            f"[bold red]damaged:[/] {base.damaged} {lines} under {files.folder()} cannot be read and are left out; "
            "restore the files from a backup",
            soft_wrap=True,
        )


def show_named(options: Namespace) -> None:
    """A technique with its story, a state with its techniques, or a failure rule with its kernels."""
    base = files.load()
    is_defined = options.name in base.techniques or not base.attempts_of(options.name)
    entry = changes.named(base, options.name) if is_defined else None
    if isinstance(entry, RuleWords):
        rule = changes.rule_of(base, options.name)
        if rule is None:
            raise KnowledgeError(f"no kernel here has shown the failure of {options.name}: import its evidence first")
        _show_rule(base, rule, options.json)
        return
    if isinstance(entry, State):
        _show_state(Console(), base, entry, options.json)
    else:
        _show_technique(Console(), base, options.name, entry, options.json)


def _show_state(console: Console, base: Base, state: State, as_json: bool) -> None:
    techniques = _techniques(base, state.name, None)
    if as_json:
        print(json.dumps({"state": codec.to_plain(state), "techniques": techniques}))
        return
    _show_fields(console, state)
    console.print(_table("technique", _technique_row, techniques))


def _show_technique(console: Console, base: Base, name: str, technique: Technique | None, as_json: bool) -> None:
    rows = base.attempts_of(name)
    places = {
        **{f"in {state}": base.figures(name, state) for state in _places(base, name, rows)},
        **{f"on {device}": base.figures(name, device=device) for device in sorted({row.device for row in rows})},
    }
    if as_json:
        attempts = [codec.to_plain(row) | {"runs": base.runs_of(row)} for row in rows]
        plain = {"technique": codec.to_plain(technique), "figures": _plain(base.figures(name)), "attempts": attempts}
        print(json.dumps(plain | {"places": {where: _plain(figures) for where, figures in places.items()}}))
        return
    if technique:
        _show_fields(console, technique)
    else:
        console.print(f"{printable(name)}: named by attempts, defined nowhere", highlight=False, markup=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("where", *_HEADINGS):
        table.add_column(heading, justify="left" if heading == "where" else "right")
    for where, figures in {"everywhere": base.figures(name), **places}.items():
        table.add_row(escape(printable(where)), *_figures(_plain(figures)))
    console.print(table)
    _show_attempts(console, base, rows)


def _places(base: Base, technique: str, rows: Iterable[Evidence]) -> list[str]:
    named = {name for name in base.states if technique in base.techniques_of(name)}
    return sorted(named | {row.state for row in rows if row.state})


def _show_fields(console: Console, entry: State | Technique) -> None:
    for name, value in codec.to_plain(entry).items():
        if value and value is not True:
            text = ", ".join(value) if isinstance(value, list | tuple) else str(value)
            console.print(f"{name}: {printable(text)}", highlight=False, markup=False, soft_wrap=True)
    if entry.is_disabled:
        console.print("disabled: runs are not offered it", highlight=False)


def _show_attempts(console: Console, base: Base, rows: list[Evidence]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in (
        "run",
        "kernel",
        "task",
        "state",
        "device",
        "predicted",
        "measured",
        "over eager",
        "over best",
        "outcome",
        "runs",
        "rules",
    ):
        table.add_column(heading)
    for row in rows[-SHOWN_ATTEMPTS:]:
        factors = (row.predicted_gain, row.gain, row.over_eager, row.over_best)
        shown = (f"{factor:.3g}x" if factor is not None else "-" for factor in factors)
        texts = (row.run_id, row.candidate_id, row.task, row.state, row.device, *shown, row.outcome)
        counts = (str(len(base.runs_of(row))), str(row.rules))
        table.add_row(*(escape(printable(text)) for text in (*texts, *counts)))
    if old := sum(row.rules < RULES for row in rows):
        note = f"{old} of {len(rows)} attempts have rules 1: their kernels were {kept_rules(1)}. Their gains count."
        console.print(note, highlight=False, markup=False, soft_wrap=True)
    if len(rows) > SHOWN_ATTEMPTS:
        console.print(f"the last {SHOWN_ATTEMPTS} of {len(rows)} attempts:", highlight=False)
    if rows:
        console.print(table)


def list_revisions(options: Namespace) -> None:
    """Every change and whether it still counts."""
    base = files.load()
    counting = {revision.revision_id for revision in revisions_in_force(base.revisions)}
    if options.json:
        plain = [codec.to_plain(revision) | {"counts": revision.revision_id in counting} for revision in base.revisions]
        print(json.dumps(plain))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("revision", "when", "by", "why", "changes", ""):
        table.add_column(heading)
    for revision in base.revisions:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(revision.at)) if revision.at else ""
        parts = {"state": revision.states, "technique": revision.techniques, "prior": revision.priors}
        parts |= {"failure rule": revision.rules}
        what = ", ".join(f"{len(rows)} {name}{'' if len(rows) == 1 else 's'}" for name, rows in parts.items() if rows)
        texts = (revision.revision_id, when, revision.by, revision.why, what or f"reverts {revision.reverts}")
        table.add_row(
            *(escape(printable(text)) for text in texts), "" if revision.revision_id in counting else "reverted"
        )
    Console().print(table)


def export_all(options: Namespace) -> None:
    """Everything as one file."""
    base = files.load()
    exported.write(Path(options.file), base, options.origin)
    rows = f"{len(base.rows)} rows of attempts, {len(base.cases)} rows of failures and {len(base.revisions)} revisions"
    print(f"Wrote {rows} to {options.file}.")


def import_file(options: Namespace) -> None:
    """Take over an exported file."""
    prefer = merging.Prefer(options.prefer) if options.prefer else None
    done = merging.import_file(Path(options.file), prefer, options.origin)
    rows = f"{done.attempts} rows of attempts, {done.failures} rows of failures and {done.revisions} revisions"
    print(f"Imported {rows} of {printable(done.origin)}.")
    if done.known:
        print(f"{done.known} were here already.")
    for conflict in done.conflicts:
        print(f"Kept {prefer} of the {conflict.kind} {printable(conflict.name)}.")


def _append(options: Namespace, revision: Revision) -> None:
    files.append_revision(revision)
    print(f"Revision {revision.revision_id}: {printable(revision.why)}.")
