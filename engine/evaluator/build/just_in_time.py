"""Triton in the process that runs a candidate: where compiled kernels are kept, which configurations an autotuner may
try, and what was compiled. Imports Triton in that process alone; judges nothing. Beside it `Compiler`, what is asked of
any language whose kernels are compiled when they are launched; `cute_dsl.py` answers it for CuTe's Python DSL.

Triton compiles a kernel when it is launched. The first calls are made in a compile step of their own; processes that
check, time or profile get its cache and its choices, so that nothing is compiled or tuned in a call that is measured.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

CACHE, CHOICES = "cache", "choices.json"
HANDED: Sequence[str] = ()
INTERPRET = {"TRITON_INTERPRET": "1"}
"""Set before Triton is imported, its interpreter runs the kernels, without a GPU."""
_GROUPS = "__grp__*.json"
_COMPILER_ERRORS = frozenset({"CompilationError", "PTXASError", "OutOfResources", "AutotunerError"})
MAX_CHAIN = 20
_WORD = 4  # bytes; Triton counts spilled words
MAX_TEXT = 300
MAX_TRIED = 200


@dataclass(frozen=True, slots=True)
class Tried:
    """One configuration of an autotuner. `ms` is the median of its calls, None where it does not run."""

    config: str
    ms: float | None


@dataclass(frozen=True, slots=True)
class Choice:
    """What an autotuner chose for one set of arguments."""

    kernel: str
    key: str
    config: str
    tried: tuple[Tried, ...] = ()

    def __str__(self) -> str:
        ran = [attempt.ms for attempt in self.tried if attempt.ms is not None]
        failed = len(self.tried) - len(ran)
        took = f" ({min(ran):.4g} ms; the slowest {max(ran):.4g} ms)" if ran else ""
        more = f"; {failed} of them did not run" if failed else ""
        return (
            f"autotune of {self.kernel} for {self.key}: {len(self.tried)} configurations tried in the compile step"
            f"{more}, chosen {self.config}{took}"
        )


@dataclass(slots=True)
class JustInTime:
    """What Triton does in this process. `choices` are those of the compile step; `is_tuning`: this is that step."""

    is_tuning: bool
    choices: list[Choice] = field(default_factory=list)
    _tried: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    _launched: list[Any] = field(default_factory=list)
    _is_listening: bool = False

    def bench(self, tuner: Any, original: Any, arguments: Any, config: Any, meta: Mapping[str, Any]) -> list[float]:
        """In place of an autotuner's own measurement of one configuration."""
        kernel, key = str(tuner.base_fn.__name__)[:MAX_TEXT], _key(tuner, meta)
        if not self.is_tuning:
            return [0.0 if _short(config) == self._chosen(kernel, key) else float("inf")] * 3
        times: list[float] = original(tuner, *arguments, config=config, **meta)
        self._tried.setdefault((kernel, key), {})[_short(config)] = times
        return times

    def _chosen(self, kernel: str, key: str) -> str:
        """The configuration of these arguments, else of the kernel's first ones, for a size not seen before."""
        fitting = [choice for choice in self.choices if choice.kernel == kernel]
        return next((choice.config for choice in fitting if choice.key == key), fitting[0].config if fitting else "")

    def listen(self) -> None:
        """Note from here on what is launched."""
        self._launched, self._is_listening = [], True

    def note(self, compiled: Any) -> None:
        """A compiled kernel as it is launched."""
        if self._is_listening and not any(compiled is kernel for kernel in self._launched):
            self._launched.append(compiled)

    def as_plain(self) -> dict[str, Any]:
        """The kernels launched, with registers, spills and shared memory, and the choices; as plain JSON."""
        choices = [asdict(_choice(*name, times)) for name, times in self._tried.items() if times]
        return {"kernels": [_resources(kernel) for kernel in self._launched[:MAX_TRIED]], "choices": choices}


@dataclass(frozen=True, slots=True)
class Place:
    """`kept` holds what a compile step left, None before it. `compiles_to` is that step's own folder, None after it.

    `language` is the kernels' own, by name; `arch` what they are compiled for where there is no GPU, else empty.
    """

    language: str
    kept: Path | None = None
    compiles_to: Path | None = None
    arch: str = ""


class Kernels(Protocol):
    """What a language compiled in the process that runs a candidate."""

    def listen(self) -> None:
        """Note from here on what is launched."""
        ...

    def as_plain(self) -> dict[str, Any]:
        """`kernels` with their resources, and `choices` of autotuners; as plain JSON."""
        ...


class Compiler(Protocol):
    """What compiles the kernels of a language when they are launched; a module is one.

    Attributes:
        HANDED: methods of a tensor by which such a kernel is given it, where its address is not enough.
    """

    HANDED: Sequence[str]

    def version(self) -> str:
        """The version of the language's package that is installed here, empty where none is. Imports nothing."""
        ...

    def prepare(self, place: Place) -> Kernels:
        """Give the language what was compiled before, and a folder for the rest; before the file is executed."""
        ...

    def explained(self, error: BaseException | None, source: str) -> str:
        """What the language's compiler says against a kernel, with lines of the candidate's file; empty for any other
        error."""
        ...


def version() -> str:
    """As `Compiler.version`, of Triton."""
    try:
        return importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        return ""


def prepare(place: Place) -> JustInTime:
    """As `Compiler.prepare`, of Triton."""
    folder = place.compiles_to or Path(tempfile.gettempdir()) / "triton"
    state = JustInTime(is_tuning=place.compiles_to is not None)
    if place.kept is not None:
        shutil.copytree(place.kept / CACHE, folder, dirs_exist_ok=True)
        _move_groups(folder)
        state.choices = read_choices(json.loads((place.kept / CHOICES).read_text()))
    os.environ["TRITON_CACHE_DIR"] = str(folder)
    _watch(state)
    return state


def explained(error: BaseException | None, source: str) -> str:
    """As `Compiler.explained`, of Triton."""
    chain: list[Any] = []
    while error is not None and len(chain) < MAX_CHAIN:
        if _is_of_compiler(error):
            chain.append(error)
        error = error.__cause__ or error.__context__
    if not chain:
        return ""
    innermost = chain[-1]
    message = str(getattr(innermost, "error_message", "") or innermost)
    lines = [line for cause in reversed(chain) if (line := _line(cause, source))]
    where = f"candidate.py:{lines[0]}: " if lines else ""
    shown = f"\n    {source.splitlines()[lines[0] - 1].strip()}" if lines else ""
    calls = "".join(f"\n    called from candidate.py:{line}" for line in lines[1:])
    return f"{where}error: {message}{shown}{calls}"


def _is_of_compiler(error: BaseException) -> bool:
    names = {kind.__name__ for kind in type(error).__mro__ if kind.__module__.startswith("triton")}
    return not names.isdisjoint(_COMPILER_ERRORS) or (type(error) is RuntimeError and "PassManager::run" in str(error))


def _line(error: Any, source: str) -> int | None:
    """The line of the candidate's file: Triton counts from the `def` of the function that it compiles."""
    named = re.match(r"\s*(?:async )?def\s+(\w+)", getattr(error, "src", None) or "")
    within = getattr(getattr(error, "node", None), "lineno", None)
    if named is None or not isinstance(within, int):
        return None
    starts = [number for number, line in enumerate(source.splitlines()) if re.match(rf"\s*def\s+{named[1]}\b", line)]
    line = starts[0] + within if starts else 0
    return line if 0 < line <= source.count("\n") + 1 else None


def read_choices(plain: Any) -> list[Choice]:
    """Choices as a worker tells them.

    Raises:
        ValueError: they are malformed.
    """
    try:
        return [
            Choice(
                _short(choice["kernel"]),
                _short(choice["key"]),
                _short(choice["config"]),
                tuple(_tried(choice["tried"])),
            )
            for choice in plain[:MAX_TRIED]
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError("what the worker tells of its autotuners is malformed") from error


def _short(text: Any) -> str:
    return str(text)[:MAX_TEXT]


def _tried(plain: Any) -> Iterator[Tried]:
    for attempt in plain[:MAX_TRIED]:
        yield Tried(_short(attempt["config"]), None if attempt["ms"] is None else float(attempt["ms"]))


def _move_groups(folder: Path) -> None:
    """Triton names the files of a kernel by their whole paths: here they lie elsewhere."""
    for file in folder.glob(f"*/{_GROUPS}"):
        named = json.loads(file.read_text())
        children = {name: str(file.parent / name) for name in named["child_paths"] if "/" not in name}
        file.write_text(json.dumps({"child_paths": children}))


def _watch(state: JustInTime) -> None:
    """Put our measurement in the place of the autotuner's, and see each kernel that a compile step launches."""
    tuners: Any = importlib.import_module("triton.runtime.autotuner").Autotuner
    functions: Any = importlib.import_module("triton.runtime.jit").JITFunction
    bench, run = tuners._bench, functions.run

    def watched_bench(tuner: Any, *arguments: Any, config: Any, **meta: Any) -> list[float]:
        return state.bench(tuner, bench, arguments, config, meta)

    tuners._bench = watched_bench
    if state.is_tuning:

        def watched_run(function: Any, *arguments: Any, **options: Any) -> Any:
            compiled = run(function, *arguments, **options)
            state.note(compiled)
            return compiled

        functions.run = watched_run


def _key(tuner: Any, meta: Mapping[str, Any]) -> str:
    """The values of the arguments that an autotuner tells apart, as text."""
    named = {**(tuner.nargs or {}), **meta}
    values = [str(named[name])[:40] for name in tuner.keys if name in named]
    kinds = [str(value.dtype) for name, value in named.items() if name in tuner.arg_names and hasattr(value, "dtype")]
    return f"({', '.join([*values, *dict.fromkeys(kinds)])})"[:MAX_TEXT]


def _choice(kernel: str, key: str, times: Mapping[str, Any]) -> Choice:
    tried = tuple(Tried(config, _median(each)) for config, each in times.items())
    ran = [attempt for attempt in tried if attempt.ms is not None] or tried[:1]
    return Choice(kernel, key, min(ran, key=lambda attempt: attempt.ms or 0.0).config, tried)


def _median(times: Any) -> float | None:
    first = float(times[0]) if isinstance(times, list | tuple) else float(times)
    return first if first < float("inf") else None


def _resources(compiled: Any) -> dict[str, Any]:
    """The resources of one compiled kernel; Triton learns its registers when it loads it."""
    metadata = compiled.metadata
    return {
        "kernel": str(compiled.name)[:MAX_TEXT],
        "registers": int(getattr(compiled, "n_regs", 0) or 0),
        "spill_stores": _WORD * int(getattr(compiled, "n_spills", 0) or 0),
        "shared_bytes": int(metadata.shared),
        "warps": int(metadata.num_warps),
        "stages": int(getattr(metadata, "num_stages", 0) or 0),
    }
