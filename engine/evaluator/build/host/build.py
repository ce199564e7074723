"""Builds one request into a library, or finds it in the content-addressed cache. Runs in trusted processes only.

Cuts g++ output to what a person or a model can act on: errors first, candidate lines named, templates trimmed; and what
g++ says about vectorising the candidate's own lines, from its -fopt-info file.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from engine.evaluator import sandbox
from engine.evaluator.build import light_headers, request
from engine.evaluator.build.build_cache import BuildCache, Built
from engine.evaluator.build.host import flags, recipe
from engine.evaluator.build.host.installation import Installation, trees_of
from engine.evaluator.build.host.recipe import Binding, Recipe
from engine.evaluator.build.request import CANDIDATE_FILE, BuildRequest
from engine.evaluator.machine import lease
from engine.evaluator.sandbox import Isolation

MAX_LINES = 60
MAX_WIDTH = 300
_HEAD = re.compile(
    r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:\d+:)? (?P<kind>fatal error|error|note|warning): (?P<text>.*)$"
)
_LINK = re.compile(r"undefined reference|multiple definition|cannot find -l|ld returned|relocation")
_BUILD_LINE = re.compile(r"^(\[\d+/\d+\] |FAILED: |ninja: |sh \./\w+\.sh$|\+ exec |\S*(g\+\+|clang\+\+)\S* -std=)")
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
# What a header that was not read looks like, be it PyTorch's or one of the standard library that comes with it.
_UNKNOWN = re.compile(
    r"is not a member of|has no member|not been declared|not declared|does not name|incomplete type|no match"
    r"|fatal error"
)
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
        messages = [line for line in log.strip().split("\n") if not _BUILD_LINE.match(line)]
        lines = [_cut(_PATH.sub("", line)) for line in messages[-MAX_LINES:]]
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


def lacks_names(log: str) -> bool:
    """True when more of PyTorch's own header may help."""
    return is_gap(log) or any(_UNKNOWN.search(block.text) for block in _blocks(log) if block.is_error)


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
    numbered: dict[tuple[int, str], None] = {}
    for raw in text.split("\n"):
        match = _LINE.match(raw)
        if match and not _NOISE.search(match[3]):
            numbered[(int(match[1]), f"{match[2]}: {match[3][:160]}")] = None
    return tuple(f"line {line}: {text}" for line, text in sorted(numbered))[:MAX_REMARKS]


__all__ = ["BuildFailed", "Builder", "Built", "done_or_failed"]

MAX_LOG = 400_000
HEADER_S = 600.0  # ours, once per machine: a candidate's short limit must not end it


class BuildFailed(Exception):
    """The compiler refused the source; `log` is everything it said."""

    def __init__(self, excerpt: str, log: str, is_timeout: bool = False) -> None:
        super().__init__(excerpt)
        self.log = log
        self.is_timeout = is_timeout


@dataclass(frozen=True, slots=True)
class Builder:
    """Builds with one installation into one cache folder."""

    installation: Installation
    cache: Path
    limit_s: float = 300.0
    isolation: Isolation = field(default_factory=Isolation)

    def build(self, build_request: BuildRequest, module_text: str) -> Built:
        """The library of a request, with remarks on what was not done as it was asked for.

        Raises:
            BuildFailed: the compiler says no, or takes longer than the limit.
            flags.FlagRefused: the request asks for a flag that is not allowed.
            RequestRefused: the request has device code.
        """
        built = self._built(build_request, module_text)
        left_out = request.not_linked(flags.not_linked(build_request.link_flags), "PyTorch and OpenMP")
        return replace(built, remarks=(*build_request.remarks, *left_out, *built.remarks))

    def _built(self, build_request: BuildRequest, module_text: str) -> Built:
        """Light header first, the stock one where the light one does not reach, whole where what is missing may be in
        PyTorch's C++ frontend."""
        build_request = request.without_cuda(build_request)
        usual, whole = (
            recipe.write(build_request, module_text, self.installation, Binding.STOCK, is_whole=is_whole)
            for is_whole in (False, True)
        )
        for stock in (usual, whole):
            if built := self._libraries.find(stock.key):
                return built
        if light_headers.can_do(build_request.sources, build_request.functions):
            try:
                return self._light(build_request, module_text)
            except BuildFailed as failure:
                if failure.is_timeout or not is_gap(failure.log):
                    raise
        try:
            return self._make(usual, module_text)
        except BuildFailed as failure:
            if failure.is_timeout or not lacks_names(failure.log):
                raise
        return self._make(whole, module_text)

    def prepare(self) -> None:
        """Build what all candidates share ahead of the first one."""
        self._runtime()
        self._header(())

    @property
    def _libraries(self) -> BuildCache:
        return BuildCache(self.cache / "libraries")

    def _light(self, build_request: BuildRequest, module_text: str) -> Built:
        header = self._header(flags.allowed(build_request.flags))
        plan = recipe.write(build_request, module_text, self.installation, Binding.STABLE, header, self._runtime())
        return self._make(plan, module_text)

    def _make(self, plan: Recipe, module_text: str) -> Built:
        return self._libraries.found_or_built(plan.key, functools.partial(self._build_in, plan, module_text))

    def _build_in(self, plan: Recipe, module_text: str, work: Path) -> Built:
        started = time.monotonic()
        for name, text in plan.files.items():
            (work / name).write_text(text)
        # g++ quotes the lines that #line points to from the file of that name.
        (work / request.CANDIDATE_FILE).write_text(module_text)
        log = done_or_failed(
            sandbox.run([self.installation.ninja, "-v"], work, self.limit_s, self.isolation, self._readable()),
            self.limit_s,
        )
        report = (work / recipe.REMARKS).read_text(errors="replace") if (work / recipe.REMARKS).exists() else ""
        seconds = time.monotonic() - started
        return Built(recipe.LIBRARY, plan.binding, plan.namespace, seconds, log, remarks(report))

    def _readable(self) -> tuple[Path, ...]:
        """What a build reads beyond the system and Python's own packages."""
        installation = self.installation
        folders = (
            installation.torch,
            installation.cutlass_include,
            installation.cuda_include,
            installation.python_include,
        )
        (self.cache / "headers").mkdir(parents=True, exist_ok=True)
        return (*trees_of(installation.compiler), *map(Path, folders), light_headers.SHIM, self.cache / "headers")

    def _runtime(self) -> Path:
        return light_headers.runtime_object(self.installation.compiler, self.installation.compiler_version, self.cache)

    def _header(self, extra: tuple[str, ...]) -> Path | None:
        """Folder with the precompiled header for these flags, built once per machine; None when the set is rare."""
        if not flags.has_shared_header(extra):
            return None
        words = recipe.header_flags(self.installation, extra)
        key_parts = [words, self.installation.fingerprint, light_headers.shim_version()]
        key = hashlib.sha256(json.dumps(key_parts).encode()).hexdigest()
        folder = self.cache / "headers" / key[:32]
        compiled = folder / "prefix.hpp.gch"
        if compiled.exists():
            return folder
        folder.mkdir(parents=True, exist_ok=True)
        with lease.hold(folder / "lock"):
            if not compiled.exists():
                self._precompile(words, folder, compiled)
        return folder

    def _precompile(self, words: list[str], folder: Path, compiled: Path) -> None:
        shutil.copy(light_headers.SHIM / "prefix.hpp", folder / "prefix.hpp")
        draft = folder / f"draft.{os.getpid()}.gch"
        command = [self.installation.compiler, *words, "-x", "c++-header", str(folder / "prefix.hpp"), "-o", str(draft)]
        done = sandbox.run(command, cwd=folder, limit_s=HEADER_S)
        if done.status != 0:
            draft.unlink(missing_ok=True)
            raise sandbox.OwnFailure(f"the header for candidates does not compile here:\n{excerpt(done.output)}")
        draft.replace(compiled)


def done_or_failed(done: sandbox.Done, limit_s: float, excerpt: Callable[[str], str] = excerpt) -> str:
    """The log of a build that succeeded; `excerpt` cuts the log of one that did not.

    Raises:
        BuildFailed: it did not.
    """
    log = done.output[:MAX_LOG]
    if done.is_memory:
        raise BuildFailed("the compiler used more memory than a build may", log)
    if done.is_timeout:
        raise BuildFailed(f"the build took longer than {limit_s:.0f} s and was ended", log, is_timeout=True)
    if done.status != 0:
        raise BuildFailed(excerpt(log), log)
    return log
