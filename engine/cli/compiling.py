"""A compile-only result as a terminal shows it. Knows no compiler."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from engine.cli.judgement import printable
from storage.records import CompileResult, KernelResources

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
    for one in kernels:
        sizes = (one.registers, one.spill_stores, one.spill_loads, one.shared_bytes, one.stack_bytes)
        table.add_row(escape(printable(one.kernel)), *map(str, sizes))
    return table
