"""A module's text as a syntax tree, within bounds of time, memory and depth. Runs no code of it, and folds none."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from engine.errors import TaskError

MOST_BYTES = 1 << 20
MOST_DEPTH = 200
# Python's own parser takes quadratic time for some texts (four minutes for an f-string of 1 MB) and cannot be stopped:
# so a long text is parsed by a process with limits first. A short one takes a tenth of a second at most, but compiling
# it may take for ever: `finally` within `finally` doubles the code each time.
SHORT_BYTES = 32 << 10
PROCESSOR_S, MEMORY_BYTES = 3, 512 << 20
_TRIAL = f"""
import ast, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, ({PROCESSOR_S}, {PROCESSOR_S}))
resource.setrlimit(resource.RLIMIT_AS, ({MEMORY_BYTES}, {MEMORY_BYTES}))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
text = sys.stdin.buffer.read().decode("utf-8", "surrogatepass")
try:
    compile(text, "module", "exec", ast.PyCF_ONLY_AST if sys.argv[1] == "parse" else 0, dont_inherit=True)
except MemoryError:
    sys.exit(1)
except SyntaxError as error:
    print(ascii(f"{{error.msg}}, line {{error.lineno}}"))
except (ValueError, RecursionError) as error:
    print(ascii(str(error)))
"""
TOO_MUCH = f"takes more than {PROCESSOR_S} s or {MEMORY_BYTES >> 20} MB to be read: write it as shorter modules"


def parse(text: str, path: Path | str) -> ast.Module:
    """The text as a syntax tree, which callers share and leave as it is.

    Raises:
        TaskError: it is not valid Python, or no module that can be read within the bounds.
    """
    if refusal := _refusal(text):
        raise TaskError(f"{path} {refusal}")
    try:
        return _tree(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:  # the last two where it nests too deep
        reason = f"{error.msg}, line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else str(error)
        raise TaskError(f"{path} is not valid Python: {reason}") from error


def see_that_it_compiles(text: str, path: Path | str) -> None:
    """See that Python finds nothing more in a text that has been parsed, in a process with limits.

    Raises:
        TaskError: it does.
    """
    if (wrong := _tried(text.encode("utf-8", "surrogatepass"), "compile")) is None:
        raise TaskError(f"{path} {TOO_MUCH}")
    if wrong:
        raise TaskError(f"{path} is not valid Python: {wrong}")


@functools.lru_cache(maxsize=4)  # a page that is drawn asks ten times for the same tree
def _tree(text: str) -> ast.Module:
    module = ast.parse(text)
    if sum(1 for _ in _levels(module)) > MOST_DEPTH:
        raise RecursionError(f"it nests more than {MOST_DEPTH} deep")
    return module


@functools.lru_cache(maxsize=64)
def _refusal(text: str) -> str:
    """Why a text is not parsed; empty where it may be."""
    content = text.encode("utf-8", "surrogatepass")
    if len(content) > MOST_BYTES:
        return f"has {len(content):,} bytes, and a module may have {MOST_BYTES:,}"
    if len(content) <= SHORT_BYTES:
        return ""
    return TOO_MUCH if _tried(content, "parse") is None else ""  # what else is wrong is told where it is parsed here


def _tried(content: bytes, how: str) -> str | None:
    """What is wrong with a text, as Python says it; None where a limit ended that."""
    command = [sys.executable, "-I", "-S", "-c", _TRIAL, how]
    trial = subprocess.run(command, input=content, capture_output=True, check=False)
    return str(ast.literal_eval(trial.stdout.decode() or "''")) if trial.returncode == 0 else None


def _levels(module: ast.Module) -> Iterator[list[ast.AST]]:
    level: list[ast.AST] = [module]
    while level:
        yield level
        level = [child for node in level for child in ast.iter_child_nodes(node)]
