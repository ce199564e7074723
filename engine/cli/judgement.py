"""What a terminal shows of one evaluation or one compilation. Knows results, not what they were had from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from engine.cli.live import interval
from engine.cli.terminal import printable
from engine.evaluator.checks.screening import Finding
from storage import codec
from storage.results import deployment
from storage.results.check_records import CheckOutcome, StagedCheck, worst_of_stages
from storage.results.deployment import Deployment
from storage.results.evaluation_results import CompileResult, KernelResources
from storage.results.flags import counted, flags, in_words
from storage.results.timeline import Timeline

STYLE = {
    CheckOutcome.HELD: "green",
    CheckOutcome.FLAGGED: "yellow",
    CheckOutcome.BROKEN: "red",
    CheckOutcome.ABSENT: "dim",
}


def print_judgement(console: Console, answer: Mapping[str, Any]) -> None:
    """The answer of `evaluate`: what came of it first, then what it stands on."""
    console.print(f"[bold]{answer['verdict']}[/]{escape(_speed(answer))}", highlight=False)
    for baseline in answer["baselines"]:
        console.print(f"  {escape(printable(_over(baseline)))}", highlight=False)
    if answer["message"]:
        console.print(escape(printable(answer["message"].strip())), highlight=False)
    for remark in answer["remarks"]:
        console.print(escape(printable(remark)), highlight=False)
    if answer["max_error"] is not None:
        console.print(
            f"error nearest its tolerance {answer['max_error']:.3g} of {answer['tolerance']:.3g}", highlight=False
        )
    check_records = worst_of_stages(
        codec.from_plain(StagedCheck, check_record | {"stages": [check_record["stage"]]})
        for check_record in answer["proofs"]
    )
    if check_records:
        console.print(checks_table(check_records), highlight=False)
    console.print(counted(check_records), highlight=False)
    for flag in flags(check_records):
        console.print(f"{flag.name}: {flag.check}. {flag.advice}", highlight=False)
    for stage, plain in answer["timeline"].items():
        if plain is not None:
            words = codec.from_plain(Timeline, plain).in_words
            console.print(f"[dim]{stage} took {words}[/]", highlight=False)
    if answer["profile"]:
        summary = answer["profile"].get("summary") or f"no profile: {answer['profile'].get('unavailable', '')}"
        console.print(escape(printable(summary)), highlight=False)
    if answer["deployment"]:
        for row in deployment.told(codec.from_plain(Deployment, answer["deployment"])):
            console.print(f"{row.name}: {escape(printable(f'{row.standing}. {row.sentence}'))}", highlight=False)


def _over(baseline: Mapping[str, Any]) -> str:
    if baseline["failure"]:
        return f"over {baseline['name']}: not timed: {baseline['failure']}"
    over = f"{baseline['speedup']:.3g}x over {baseline['name']} ({interval(*baseline['speedup_interval'])})"
    over += f", {baseline['latency_ms']:.4g} ms"
    return over + ("" if baseline["seconds"] is None else f", compiled and timed in {baseline['seconds']:.0f} s")


def print_findings(console: Console, findings: Sequence[Finding]) -> None:
    """What screening says of a text, a line each; what refuses it first."""
    for finding in findings:
        word = "[red]refused[/]" if finding.is_refusal else "[yellow]look at[/]"
        where = f"line {finding.line}: " if finding.line else ""
        console.print(f"{word} {where}{escape(printable(finding.message))} [dim]({finding.rule})[/]", highlight=False)
    if not findings:
        console.print(
            "Nothing found in the text. What the built library links and what forward runs is judged by evaluate."
        )


def checks_table(check_records: list[StagedCheck]) -> Table:
    """One row per check."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("group", "check", "standing", "detail"):
        table.add_column(heading, overflow="fold", no_wrap=heading in ("group", "standing"))
    found = flags(check_records)
    for check_record in check_records:
        word = f"[{STYLE[check_record.standing]}]{in_words(check_record, found)}[/]"
        table.add_row(
            str(check_record.group), escape(printable(check_record.check)), word, escape(printable(check_record.detail))
        )
    return table


def _speed(answer: Mapping[str, Any]) -> str:
    if answer["speedup"] is None:
        return f", {answer['untimed']}" if answer.get("untimed") else ""
    return (
        f", {answer['speedup']:.3g}x over {answer['baseline']} ({interval(*answer['speedup_interval'])}), "
        f"{answer['latency_ms']:.4g} ms "
        f"(baseline {answer['baseline_latency_ms']:.4g} ms)"
    )


COLUMNS = ("kernel", "registers", "spill stores", "spill loads", "shared memory", "stack")


def print_compiled(console: Console, result: CompileResult) -> None:
    """What came of it first, then the kernels, or what the compiler said."""
    cached = ", from the cache" if result.is_cached else ""
    console.print(f"[bold]{result.verdict}[/], {result.seconds:.1f} s{cached}", highlight=False)
    if result.diagnostics:
        console.print(escape(printable(result.diagnostics)), highlight=False)
    if result.resources:
        console.print(resources_table(result.resources), highlight=False)
    for remark in result.remarks:
        console.print(escape(printable(remark)), highlight=False)


def resources_table(kernels: tuple[KernelResources, ...]) -> Table:
    """One row per kernel; bytes but for the registers."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in COLUMNS:
        table.add_column(name, overflow="fold")
    for kernel in kernels:
        sizes = (kernel.registers, kernel.spill_stores, kernel.spill_loads, kernel.shared_bytes, kernel.stack_bytes)
        table.add_row(escape(printable(kernel.kernel)), *map(str, sizes))
    return table
