"""Builds one request with device code into a library, or finds it in the cache. Runs in trusted processes only.

Cuts the output of nvcc to what a model can use: its front end's, ptxas' and the host compiler's errors, in order; and
says what ptxas tells about each kernel, under names as people read them.
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from engine.evaluator import sandbox
from engine.evaluator.build import light_headers
from engine.evaluator.build.build_cache import BuildCache
from engine.evaluator.build.device import flags, recipe
from engine.evaluator.build.device.installation import DeviceInstallation
from engine.evaluator.build.host import build as host
from engine.evaluator.build.host.build import BuildFailed, Built, done_or_failed
from engine.evaluator.build.host.installation import trees_of
from engine.evaluator.build.host.recipe import LIBRARY, Binding, Recipe
from engine.evaluator.build.request import CANDIDATE_FILE, BuildRequest, not_linked
from engine.evaluator.sandbox import Isolation
from storage.results.evaluation_results import KernelResources

MAX_LINES = 60
MAX_WIDTH = 300
MAX_ERRORS = 8
BACKTRACE = 4
_HEAD = re.compile(
    r"^(?:(?P<file>\"?[^\s(][^(\n]*)\((?P<line>\d+)\)|At end of source): "
    r"(?P<kind>catastrophic error|error|warning|note)(?: #[\w-]+)?: (?P<text>.*)$"
)
_PTXAS = re.compile(
    r"^(ptxas|nvlink|fatbinary|nvcc) .*?\b(error|fatal)\b\s*: ?(?P<text>.*)$|^.*ptx, line \d+; error\s*: (?P<ptx>.*)$"
)
_AT = re.compile(r"at line (\d+) of \"?([^\"\n]+?)\"?$")
_OURS = re.compile(rf"^({re.escape(CANDIDATE_FILE)}|(cpp|cuda)_sources\[\d+\])$")
_END = re.compile(
    r"^(\d+ errors?( and \d+ warnings?)? detected|Error limit reached|Compilation terminated|ninja: |FAILED: "
    r"|\+ exec |\[\d+/\d+\])"
)
_GAP = re.compile(
    r"namespace \"(at|torch|c10|std|at::cuda|c10::cuda)(::\w+)*\" has no member|class \"(at|c10)::\w+.*\" has no member"
    r"|no instance of (overloaded )?(function|function template|constructor) \"(at|c10|torch)::"
    r"|cannot open source file \"(torch|ATen|c10|pybind11)/|tilewright|pybind11|cannot determine which instance"
    r"|identifier \"(TORCH_|AT_|C10_|PYBIND11)\w*\" is undefined"
    r"|incomplete (class )?type \"?(c10|at)::|(at|c10|torch)::TensorOptions"
    r"|name followed by \"::\" must be a class or namespace name"
)
_ENTRY = re.compile(r"Compiling entry function '(\S+)' for '(\w+)'")
_PROPERTIES = re.compile(r"Function properties for (\S+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_HIDDEN = ("_GLOBAL__N_", "_INTERNAL_")
_BUILT_IN = {
    "v": "void", "b": "bool", "c": "char", "a": "int8", "h": "uint8", "s": "short", "t": "ushort", "i": "int",
    "j": "unsigned", "l": "long", "m": "ulong", "x": "longlong", "f": "float", "d": "double",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Block:
    """One message of nvcc's front end with the lines that belong to it."""

    file: str
    line: int
    kind: str
    text: str
    body: tuple[str, ...]


def excerpt(log: str) -> str:
    """At most MAX_LINES lines. Device and host pass of nvcc say the same error twice: it is told once."""
    errors: dict[str, None] = {}
    for block in _blocks(log):
        if "error" in block.kind:
            errors.setdefault("\n".join(_shown(block)))
    lines = [line for text in list(errors)[:MAX_ERRORS] for line in text.split("\n")]
    if len(errors) > MAX_ERRORS:
        lines.append(f"... and {len(errors) - MAX_ERRORS} more errors")
    lines += [_cut(_ptxas(match)) for line in log.split("\n") if (match := _PTXAS.match(line)) and not lines]
    if not lines:
        return host.excerpt(log)
    if len(lines) > MAX_LINES:
        lines = [*lines[: MAX_LINES - 1], f"... and {len(lines) - MAX_LINES + 1} more lines"]
    return "\n".join(lines)


def is_gap(log: str) -> bool:
    """True when the light headers may be at fault, so PyTorch's own deserve a try."""
    blocks = [block for block in _blocks(log) if "error" in block.kind]
    return any(_GAP.search(block.text) or _is_operator(block) for block in blocks) or host.is_gap(log)


def _is_operator(block: Block) -> bool:
    return block.text.startswith("no operator") and any("at::Tensor" in line for line in block.body[:3])


def has_reason(log: str) -> bool:
    """True when a compiler or the linker names an error of the candidate's."""
    if any("error" in block.kind for block in _blocks(log)):
        return True
    return any(_PTXAS.match(line) for line in log.split("\n")) or host.has_errors(log)


def _blocks(log: str) -> Iterator[Block]:
    current: re.Match[str] | None = None
    body: list[str] = []
    for line in log.split("\n"):
        match = _HEAD.match(line)
        if (match or _END.match(line)) and current:
            yield _block(current, body)
            current = None
        if match:
            current, body = match, []
        elif current:
            body.append(line)
    if current:
        yield _block(current, body)


def _block(match: re.Match[str], body: list[str]) -> Block:
    keep = tuple(line for line in body if line.strip())
    return Block((match["file"] or "").strip('"'), int(match["line"] or 0), match["kind"], match["text"], keep)


def _shown(block: Block) -> list[str]:
    """The error, its line of code if it is the candidate's, and where the candidate's code led there."""
    is_ours = bool(_OURS.match(block.file))
    name = block.file if is_ours else "/".join(block.file.split("/")[-3:])
    location = f"{name}:{block.line}" if name else "at the end of the source"
    lines = [_cut(f"{location}: error: {block.text}")]
    start = next((i for i, line in enumerate(block.body) if "detected during" in line), len(block.body))
    if is_ours:
        lines += [_cut(line) for line in block.body[: min(start, 4)]]
    for line in block.body[start:]:
        match = _AT.search(line)
        if match and _OURS.match(match[2]) and len(lines) < BACKTRACE + 5:
            lines.append(_cut(f"    needed at {match[2]}:{match[1]}"))
    return lines


def _ptxas(match: re.Match[str]) -> str:
    return f"ptxas: {(match['text'] or match['ptx'] or match[0]).strip()}"


def _cut(line: str) -> str:
    return line if len(line) <= MAX_WIDTH else line[: MAX_WIDTH - 3] + "..."


def kernel_resources(log: str) -> tuple[KernelResources, ...]:
    """One record per kernel, in the order of compilation."""
    kernels: list[KernelResources] = []
    about = ""
    for line in log.split("\n"):
        if match := _ENTRY.search(line):
            kernels.append(KernelResources(demangled(match[1]), 0))
            about = match[1]
        elif match := _PROPERTIES.search(line):
            about = match[1] if kernels and demangled(match[1]) == kernels[-1].kernel else ""
        elif kernels and about and (match := _STACK.search(line)):
            stack, stores, loads = map(int, match.groups())
            kernels[-1] = replace(kernels[-1], stack_bytes=stack, spill_stores=stores, spill_loads=loads)
        elif kernels and (match := _REGISTERS.search(line)):
            shared = _SHARED.search(line)
            kernels[-1] = replace(kernels[-1], registers=int(match[1]), shared_bytes=int(shared[1]) if shared else 0)
    return tuple(kernels)


def spills(kernels: tuple[KernelResources, ...]) -> tuple[str, ...]:
    """What is worth a person's or a model's eyes: registers that did not fit."""
    return tuple(
        f"{kernel.kernel}: {kernel.spill_stores} bytes spilled to and {kernel.spill_loads} read back from "
        "local memory, "
        f"{kernel.registers} registers per thread"
        for kernel in kernels
        if kernel.spill_stores or kernel.spill_loads
    )


def demangled(symbol: str) -> str:
    """`gemm<float, 128>` of a mangled name: the last part of the name with its plain template arguments."""
    if not symbol.startswith("_Z"):
        return symbol
    rest = symbol[2:].removeprefix("N").lstrip("KVL")
    parts: list[str] = []
    while match := re.match(r"L?(\d+)", rest):
        size, start = int(match[1]), match.end()
        parts.append(rest[start : start + size])
        rest = rest[start + size :]
        if rest.startswith("I") and not symbol.startswith("_ZN"):
            break
    names = [part for part in parts if not part.startswith(_HIDDEN)]
    name = names[-1] if names else symbol
    return f"{name}<{', '.join(args)}>" if rest.startswith("I") and (args := _arguments(rest[1:])) else name


def _arguments(text: str) -> list[str]:
    """Plain types and constants; a longer type ends the list with `...`."""
    arguments: list[str] = []
    while text and text[0] != "E":
        if match := re.match(r"L[a-z](n?)(\d+)E", text):
            arguments.append(f"{'-' if match[1] else ''}{match[2]}")
            text = text[match.end() :]
        elif match := re.match(r"(\d+)", text):
            end = match.end() + int(match[1])
            arguments.append(text[match.end() : end])
            text = text[end:]
            if text.startswith("I"):
                return [*arguments, "..."]
        elif text[0] in _BUILT_IN:
            arguments.append(_BUILT_IN[text[0]])
            text = text[1:]
        else:
            return [*arguments, "..."]
    return arguments


@dataclass(frozen=True, slots=True)
class DeviceBuilder:
    """Builds with one installation into one cache folder."""

    installation: DeviceInstallation
    cache: Path
    limit_s: float = 300.0
    isolation: Isolation = field(default_factory=Isolation)

    def build(self, build_request: BuildRequest, module_text: str) -> Built:
        """The library of a request, with remarks on what was not done as it was asked for.

        Raises:
            BuildFailed: a compiler says no, or takes longer than the limit.
            FlagRefused: the request asks for a flag that is not allowed.
        """
        built = self._built(build_request, module_text)
        left_out = not_linked(flags.not_linked(build_request.link_flags), "PyTorch and the libraries of CUDA")
        return replace(built, remarks=(*build_request.remarks, *left_out, *built.remarks))

    def _built(self, build_request: BuildRequest, module_text: str) -> Built:
        """Light headers first, PyTorch's own where they do not reach."""
        stock = recipe.write(build_request, module_text, self.installation, Binding.STOCK)
        if built := self._libraries.find(stock.key):
            return built
        if light_headers.can_do([*build_request.sources, *build_request.cuda_sources], build_request.functions):
            plan = recipe.write(build_request, module_text, self.installation, Binding.STABLE, self._runtime())
            try:
                return self._make(plan, module_text)
            except BuildFailed as failure:
                if failure.is_timeout or not is_gap(failure.log):
                    raise
        return self._make(stock, module_text)

    def prepare(self) -> None:
        """Build what all candidates share ahead of the first one."""
        self._runtime()

    @property
    def _libraries(self) -> BuildCache:
        return BuildCache(self.cache / "libraries")

    def _runtime(self) -> Path:
        return light_headers.runtime_object(self.installation.compiler, self.installation.compiler_version, self.cache)

    def _make(self, plan: Recipe, module_text: str) -> Built:
        return self._libraries.found_or_built(plan.key, functools.partial(self._build_in, plan, module_text))

    def _build_in(self, plan: Recipe, module_text: str, work: Path) -> Built:
        started = time.monotonic()
        for name, text in plan.files.items():
            (work / name).write_text(text)
        # Compilers quote the lines that #line points to from the file of that name.
        (work / CANDIDATE_FILE).write_text(module_text)
        log = self._compile(plan, work)
        kernels = kernel_resources(log)
        seconds, remarks = time.monotonic() - started, spills(kernels)
        return Built(LIBRARY, plan.binding, plan.namespace, seconds, log, remarks, resources=kernels)

    def _compile(self, plan: Recipe, work: Path) -> str:
        """Both halves of nvcc's work at once; in one piece where that fails without an error that names a reason."""
        if not self._take_apart(plan, work):
            return self._ninja(work)
        try:
            return self._ninja(work)
        except BuildFailed as failure:
            if failure.is_timeout or has_reason(failure.log):
                raise
        (work / recipe.PHASES_FILE).write_text(plan.files[recipe.PHASES_FILE])
        return self._ninja(work)

    def _take_apart(self, plan: Recipe, work: Path) -> bool:
        if not plan.nvcc:
            return False
        listed = sandbox.run([*plan.nvcc, *recipe.DRY_RUN], work, self.limit_s, self.isolation, self._readable())
        phases = recipe.phases_of(listed.output) if listed.status == 0 else None
        if phases is None:
            return False
        recipe.lay_out(work, phases, plan.key)
        return True

    def _ninja(self, work: Path) -> str:
        command = [self.installation.ninja, "-v", f"-j{recipe.jobs()}"]
        done = sandbox.run(command, work, self.limit_s, self.isolation, self._readable())
        return done_or_failed(done, self.limit_s, excerpt)

    def _readable(self) -> tuple[Path, ...]:
        """What a build reads beyond the system and Python's own packages."""
        installation = self.installation
        toolkit = Path(installation.nvcc).parent.parent
        folders = (
            installation.torch,
            installation.cutlass_include,
            installation.cuda_include,
            installation.python_include,
        )
        (self.cache / "headers").mkdir(parents=True, exist_ok=True)
        return (
            toolkit,
            *trees_of(installation.compiler),
            *map(Path, folders),
            Path(installation.cudart).parent,
            light_headers.SHIM,
            self.cache / "headers",
        )
