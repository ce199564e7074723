"""Cuts g++ output to what a person or a model can act on: errors first, candidate lines named, templates trimmed.

And what g++ says about vectorising the candidate's own lines, from its -fopt-info file. Knows no flags.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from engine.build.request import CANDIDATE_FILE

MAX_LINES = 60
MAX_WIDTH = 300
_HEAD = re.compile(
    r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:\d+:)? (?P<kind>fatal error|error|note|warning): (?P<text>.*)$"
)
_LINK = re.compile(r"undefined reference|multiple definition|cannot find -l|ld returned|relocation")
_BUILD_LINE = re.compile(r"^(\[\d+/\d+\] |FAILED: |ninja: |\S*(g\+\+|clang\+\+)\S* -std=)")
_PATH = re.compile(r"/\S+/(?=[\w.]+\.s:)")
_OURS = re.compile(rf"^({re.escape(CANDIDATE_FILE)}|cpp_sources\[\d+\])$")
_GAP = re.compile(
    r"is not a member of .(torch|at|c10|std)\b|.(at|c10|py). has not been declared|tilewright"
    r"|(class|struct) (at::Tensor|c10::\w+). has no member|incomplete type .*(c10|at)::|.(torch|c10)::TensorOptions."
    r"|no matching function for call to .((torch|at|c10)::|.*(at::Tensor|c10::\w+)::)"
    r"|no match for .operator.*(at|torch)::Tensor|fatal error: (torch|ATen|c10|pybind11)/"
    r"|TORCH_|pybind11|PYBIND11|AT_DISPATCH"
    r"|unable to deduce .*&|couldn't deduce template parameter|unresolved overloaded"
)
_MISSING_SYMBOL = re.compile(r"undefined (reference to|symbol).*\b(at|c10|torch)::|hidden symbol .*(at|c10)::")
MAX_REMARKS = 40
_LINE = re.compile(rf"^(?:{re.escape(CANDIDATE_FILE)}|cpp_sources\[\d+\]):(\d+):\d+: (optimized|missed): +(.*)$")
# Said about every call and statement next to a loop; the loop's own remark carries the reason.
_NOISE = re.compile(
    r"statement (clobbers memory|can throw)|splitting region|no grouped|basic block part|no vectype|: ?$"
)


@dataclass(frozen=True, slots=True)
class Block:
    """One message of the compiler with the lines that belong to it; `context` stood before it."""

    file: str
    line: int
    kind: str
    text: str
    context: tuple[str, ...]
    body: tuple[str, ...]

    @property
    def is_error(self) -> bool:
        """True for errors, false for notes and warnings."""
        return "error" in self.kind


def excerpt(log: str) -> str:
    """At most MAX_LINES lines: errors in order, each with its caret lines and where candidate code required it."""
    blocks = list(_blocks(log))
    errors = [block for block in blocks if block.is_error]
    lines = [line for block in errors for line in _shown(block)]
    lines += [_cut(line) for line in log.split("\n") if _LINK.search(line) and not lines]
    if not lines:
        said = [line for line in log.strip().split("\n") if not _BUILD_LINE.match(line)]
        lines = [_cut(_PATH.sub("", line)) for line in said[-MAX_LINES:]]
    if len(lines) > MAX_LINES:
        lines = [*lines[: MAX_LINES - 1], f"... and {len(lines) - MAX_LINES + 1} more lines"]
    return "\n".join(lines)


def has_errors(log: str) -> bool:
    """True when g++ or the linker names an error."""
    if any(block.is_error for block in _blocks(log)):
        return True
    return any(_LINK.search(line) for line in log.split("\n"))


def is_gap(log: str) -> bool:
    """True when the light header may be at fault, so the stock header deserves a try."""
    if any(_GAP.search(block.text) or _GAP.search(block.file) for block in _blocks(log) if block.is_error):
        return True
    return bool(_MISSING_SYMBOL.search(log))


def _blocks(log: str) -> Iterator[Block]:
    context: list[str] = []
    current: tuple[re.Match[str], list[str]] | None = None
    held: tuple[str, ...] = ()
    for line in log.split("\n"):
        match = _HEAD.match(line)
        opens_context = bool(re.match(r"^(In file included from|\s+from |.*: (In|At) |.*required from)", line))
        if (match or opens_context) and current:
            yield _block(current[0], held, current[1])
            current = None
        if match:
            current, held, context = (match, []), tuple(context), []
        elif opens_context:
            context.append(line)
        elif current:
            current[1].append(line)
    if current:
        yield _block(current[0], held, current[1])


def _block(match: re.Match[str], context: tuple[str, ...], body: list[str]) -> Block:
    keep = tuple(line for line in body if line.strip() and not line.startswith("ninja:"))
    return Block(match["file"], int(match["line"]), match["kind"], match["text"], context, keep)


def _shown(block: Block) -> Iterator[str]:
    is_ours = bool(_OURS.match(block.file))
    name = block.file if is_ours else "/".join(block.file.split("/")[-3:])
    yield _cut(f"{name}:{block.line}: {block.kind}: {block.text}")
    if is_ours:
        yield from (_cut(line) for line in block.body[:3])
        return
    required = [line for line in block.context if CANDIDATE_FILE in line or "cpp_sources[" in line]
    yield from (f"    {_cut(line.strip())}" for line in required[-3:])


def _cut(line: str) -> str:
    return line if len(line) <= MAX_WIDTH else line[: MAX_WIDTH - 3] + "..."


def remarks(text: str) -> tuple[str, ...]:
    """Remarks in line order, each once: `line 17: missed: couldn't vectorize loop`."""
    found: dict[tuple[int, str], None] = {}
    for raw in text.split("\n"):
        match = _LINE.match(raw)
        if match and not _NOISE.search(match[3]):
            found[(int(match[1]), f"{match[2]}: {match[3][:160]}")] = None
    return tuple(f"line {line}: {text}" for line, text in sorted(found))[:MAX_REMARKS]
