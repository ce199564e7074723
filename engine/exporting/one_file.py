"""A kernel of a run as one file that plain PyTorch and KernelBench's evaluator can load. Builds nothing."""

import ast
import inspect
import json
import pprint
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from engine.errors import EngineError
from engine.evaluator import languages, tasks
from engine.evaluator.build.host import flags
from engine.evaluator.build.light_headers import SHIM
from engine.evaluator.toolchain_table import HOST, device_of
from engine.exporting import carried, in_program
from engine.exporting.heading import heading, judged_dtype, judged_with, warnings
from storage import codec
from storage.results.hardware_limit import LaidOut
from storage.run import journal, labels
from storage.run.blobs import Blobs
from storage.run.folder import RunFolder
from storage.run.record import Candidate, Record
from storage.run.settings import RunSettings

MARK = "# The kernel, as Tilewright judged it. What stands above builds it with PyTorch alone."
MARK_OF_TRITON = "# The kernel, as Tilewright judged it."  # and of CuTe's Python DSL
END = "# The end of the kernel. What follows lets its module say what it cannot do."
SOLUTIONS = SOL_EXECBENCH, FLASHINFER_BENCH = "sol-execbench", "flashinfer-bench"
ENTRY = "tilewright_run"
_WRAPPED = re.compile(r"_tilewright\(([\w.\s]+?)(?:, \*_TILEWRIGHT_HOST)?\)")


def exported(folder: RunFolder, candidate_id: str | None, *, is_measured: bool = False) -> str:
    """A run's best kernel, or another one, as a file that stands alone; measured in one process where that is asked
    for.

    Raises:
        EngineError: no such kernel, none that is correct yet, or one that is not valid Python.
    """
    record = read_record(folder)
    candidate = kernel_of(folder, record, candidate_id) if candidate_id else record.best
    if candidate is None:
        raise EngineError(f"run {folder.run_id} has no correct kernel yet")
    source = Blobs(folder.blobs).get(candidate.created.source_blob)
    number = record.number(candidate.candidate_id)
    try:
        laid_out = record.limit.laid_out if record.limit else ()
        text = standing_alone(source, record.settings.toolchain, record.settings, laid_out)
    except SyntaxError as error:
        raise EngineError(f"kernel {number} of run {folder.run_id} is not valid Python: {error}") from error
    measured = in_program.measured(source, record.settings) if is_measured else ""
    mark = labels.read(folder).mark_of(candidate.candidate_id)
    return f"{heading(folder.run_id, record, candidate, number, measured, mark)}\n\n\n{text}"


def warned(folder: RunFolder, candidate_id: str | None) -> list[str]:
    """What the head of that file warns of: that the kernel is slower than what else there is.

    Raises:
        EngineError: as `exported`.
    """
    record = read_record(folder)
    candidate = kernel_of(folder, record, candidate_id) if candidate_id else record.best
    return list(warnings(record, candidate.trusted)) if candidate and candidate.trusted else []


def solution(folder: RunFolder, candidate_id: str | None, form: str) -> str:
    """A run's kernel as a solution of the problem that its task was made from, one of SOLUTIONS, as JSON.

    Raises:
        EngineError: as `exported`; or the task was made from no problem, stands at other constant axes than it, or the
            kernel is one for the CPU.
    """
    text = exported(folder, candidate_id)
    record = read_record(folder)
    settings = record.settings
    problem = tasks.problems.asked_for(settings.task_source)
    if problem is None:
        raise EngineError(
            f"run {folder.run_id} is of the task {settings.task_name}, which was made from no problem of "
            f"{' or '.join(SOLUTIONS)}: leave out --format"
        )
    if device_of(settings.toolchain) == HOST:
        raise EngineError(
            f"run {folder.run_id} made kernels for the CPU, and {form} runs solutions on a GPU: leave out --format"
        )
    if changed := tasks.problems.changed_axes(settings.task_source):
        raise EngineError(
            f"run {folder.run_id} changed what its problem holds constant ({', '.join(changed)}), so its kernels are "
            "no solutions of it: leave out --format"
        )
    definition, inputs = problem
    names, is_triton = ", ".join(inputs), settings.language == "triton"
    entry, model = _unused(ENTRY, text), _unused("_TILEWRIGHT_MODEL", text)
    spec: dict[str, Any] = {"entry_point": f"main.py::{entry}", "destination_passing_style": False, "dependencies": []}
    if form == SOL_EXECBENCH:  # C++ that a Python file builds itself counts as Python there
        spec |= {"languages": ["triton" if is_triton else "pytorch"], "target_hardware": ["LOCAL"]}
    else:
        device = record.limit.model if record.limit else settings.toolchain
        spec |= {
            "language": "triton" if is_triton else "python",
            "target_hardware": [device.partition(",")[0].replace(" ", "_")],
        }
    called = f'{model} = ModelNew().to("cuda")\n\n\ndef {entry}({names}):\n    return {model}({names})\n'
    plain = {
        "name": folder.run_id,
        "definition": definition,
        "author": "tilewright",
        "description": text.partition("\n")[0].removeprefix("# "),
        "spec": spec,
        "sources": [{"path": "main.py", "content": f"{text.rstrip()}\n\n\n{called}"}],
    }
    return f"{json.dumps(plain, indent=2)}\n"


def _unused(name: str, text: str) -> str:
    """The name, made longer until the text does not have it: what a kernel calls by it must stay its own."""
    while name in text:
        name += "_"
    return name


def read_record(folder: RunFolder) -> Record:
    """The fold of a run's journal.

    Raises:
        EngineError: its settings cannot be read.
    """
    try:
        return Record.of(folder.read_settings(), list(journal.read(folder.journal_file)))
    except codec.DecodeError as error:
        raise EngineError(f"run.json cannot be read, restore it from a backup: {error}") from error


def kernel_of(folder: RunFolder, record: Record, text: str) -> Candidate:
    """A kernel by its number or its id.

    Raises:
        EngineError: the run has no such kernel.
    """
    name = f"c{int(text):03d}" if text.isdecimal() else text
    if name not in record.candidates:
        raise EngineError(f"run {folder.run_id} has no kernel {text}; it has {len(record.candidates)}: see `show`")
    return record.candidates[name]


def standing_alone(
    source: str, toolchain: str, settings: RunSettings | None = None, laid_out: Sequence[LaidOut] = ()
) -> str:
    """A kernel's source behind what plain PyTorch needs to build it, and before what its module says of itself: what
    the kernel was judged with where its run's settings are known. Weights that are `laid_out` are so in the file too.

    Raises:
        SyntaxError: the source is not valid Python.
    """
    if language := languages.written_in(source):
        is_dsl = language == languages.CuteDsl.name
        needed_package = carried._tilewright_cute_dsl if is_dsl else carried._tilewright_triton
        texts = _text(carried._tilewright_guard), _text(needed_package), f"{needed_package.__name__}()"
        return (
            "\n\n\n".join(texts)
            + f"\n{MARK_OF_TRITON}\n{_rewritten(source, '')}\n{_guarded('cuda', settings, laid_out)}"
        )
    is_host = device_of(toolchain) == HOST
    kernel = _rewritten(source, ", *_TILEWRIGHT_HOST" if is_host else "")
    needed = carried._tilewright, carried._tilewright_headers, carried._tilewright_arch, carried._tilewright_guard
    parts = [_text(part) for part in needed]
    if is_host:
        parts.insert(0, f"_TILEWRIGHT_HOST = {pprint.pformat(_host(), width=116, compact=True)}")
    guarded = _guarded("cpu" if is_host else "cuda", settings, laid_out)
    return "\n\n\n".join([*parts, f"{MARK}\n{kernel}\n{guarded}"])


def without_support(text: str) -> str:
    """The kernel of an exported file, to be judged once more; any other text as it is."""
    mark = next((marker for marker in (MARK, MARK_OF_TRITON) if f"\n{marker}\n" in text), "")
    if not mark:
        return text
    kernel = text.partition(f"\n{mark}\n")[2]
    return _WRAPPED.sub(r"\1", kernel.rpartition(f"\n{END}\n")[0] if f"\n{END}\n" in kernel else kernel)


def _text(function: Callable[..., Any]) -> str:
    return inspect.getsource(function).rstrip()


def _guarded(device: str, settings: RunSettings | None, laid_out: Sequence[LaidOut]) -> str:
    dtype = judged_dtype(settings) if settings else ""
    judged = judged_with(settings) if settings else "the tensors of its task"
    has_backward = settings is not None and settings.policy.backward
    guard = f'_tilewright_guard(globals().get("ModelNew"), {device!r}, {dtype!r}, {judged!r}, {has_backward})\n'
    if not laid_out:
        return f"{END}\n{guard}"
    strides = {part.name: (part.shape, part.stride) for part in laid_out}
    layout = f'{_text(carried._tilewright_layout)}\n\n\n_tilewright_layout(globals().get("ModelNew"), {strides!r})\n'
    return f"{END}\n{layout}{guard}"


def _host() -> tuple[list[str], list[str], list[str]]:
    """What our own builds for the CPU put before a kernel's C++, and the flags before and after its own."""
    texts = (SHIM / "prefix.hpp").read_text() + (SHIM / "vector_length.hpp").read_text()
    ours = re.compile(r'#include (<(torch|tilewright)/|")|#pragma once|//')
    lines = [line for line in texts.splitlines() if line and not ours.match(line)]
    return lines, list(flags.BASE), list(flags.LAST)


def _rewritten(source: str, given: str) -> str:
    """The source with its `load_inline` wrapped, and without `from __future__ import`, before which nothing may stand.

    KernelBench puts lines of its own before a source, as we do.
    """
    module, text = ast.parse(source), source.encode()
    starts = [0, *(match.end() for match in re.finditer(rb"\r\n|\r|\n", text))]
    for node, new in sorted(_changes(module, given), key=lambda change: _place(change[0]), reverse=True):
        (line, column), (last_line, last_column) = _place(node)
        first, last = starts[line - 1] + column, starts[last_line - 1] + last_column
        text = text[:first] + new.format(ast.unparse(node)).encode() + text[last:]
    return text.decode()


def _place(node: Any) -> tuple[tuple[int, int], tuple[int, int]]:
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)


def _changes(module: ast.Module, given: str) -> Iterator[tuple[ast.AST, str]]:
    """What to replace, and by what; `{}` stands for what was there."""
    nodes = list(ast.walk(module))
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    names = {
        alias.asname or alias.name
        for node in imports
        for alias in node.names
        if (node.module, alias.name) == ("torch.utils.cpp_extension", "load_inline")
    }
    future = [node for node in imports if node.module == "__future__"]
    yield from ((node, "pass") for node in future)
    for node in nodes:
        is_name = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names
        if is_name or (isinstance(node, ast.Attribute) and node.attr == "load_inline"):
            yield node, f"_tilewright({{}}{given})"
        for noted in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if future and isinstance(noted, ast.expr):  # as text, which is what that import makes of it
                yield noted, _quoted(ast.unparse(noted))


def _quoted(text: str) -> str:
    return repr(text).replace("{", "{{").replace("}", "}}")
