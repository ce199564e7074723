"""What the light headers offer and what a source needs beside them, seen from its text alone; the object file behind
them, compiled once per machine and linked into every extension."""

from __future__ import annotations

import functools
import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path

from engine.evaluator import sandbox
from engine.evaluator.machine import lease

SHIM = Path(__file__).resolve().parent / "shim"
RUNTIME = SHIM / "tilewright" / "runtime.cpp"
RUNTIME_FLAGS = ("-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-ffunction-sections", "-fdata-sections", "-w")
RUNTIME_LIMIT_S = 300.0
# PyTorch's library by name alone. An extension takes its functions when it is loaded; to link with the true one, ld
# reads half a million symbols, which takes as long as compiling a small kernel.
NAMED = "libtorch_cpu.so"
NAMED_WORDS = ("-shared", "-nostdlib", "-x", "c", "/dev/null", f"-Wl,-soname,{NAMED}")

_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]((?:ATen|c10|pybind11|torch)/[^>\"]*)", re.MULTILINE)
_OWN_BINDING = re.compile(r"\bPYBIND11_MODULE|\bpy::|\bpybind11::|\b(?:STABLE_)?TORCH_LIBRARY|\bPyObject\b")
_QUALIFIED = re.compile(r"\b(?:torch|at|c10)::(?:cuda::)?([A-Za-z_]\w*)")
# Tensor methods that a kernel's launcher may well use and that the light header does not have.
_METHODS = re.compile(
    r"(?:\.|->)(?:unflatten|unbind|chunk|split|unfold|tensor_split|repeat|repeat_interleave|flip|roll|diagonal|index_select)"
    r"\s*\("
)
_STANDARD = re.compile(r"\bstd::([a-z_]\w*)")
_REAL = re.compile(r"torch/headeronly/(util|macros)/")
# The stock header brings nearly all of the standard library, so sources use names without including their headers.
_HOMES = {
    "algorithm": """sort stable_sort fill fill_n copy copy_n transform min_element max_element find find_if any_of
        all_of none_of reverse count count_if lower_bound upper_bound nth_element clamp minmax generate
        rotate unique min max""",
    "array": "array",
    "atomic": "atomic atomic_int memory_order memory_order_relaxed",
    "chrono": "chrono",
    "complex": "complex",
    "functional": "function plus multiplies greater less bind ref cref hash minus",
    "iostream": "cout cerr endl cin ostream flush",
    "iomanip": "setprecision setw fixed",
    "map": "map multimap",
    "memory": "unique_ptr shared_ptr make_unique make_shared addressof",
    "mutex": "mutex lock_guard unique_lock once_flag call_once scoped_lock",
    "numeric": "accumulate iota inner_product partial_sum reduce",
    "random": "mt19937 random_device uniform_real_distribution normal_distribution uniform_int_distribution",
    "set": "set",
    "sstream": "ostringstream stringstream istringstream",
    "string_view": "string_view",
    "thread": "thread this_thread",
    "unordered_map": "unordered_map",
    "unordered_set": "unordered_set",
    "deque": "deque",
    "queue": "queue priority_queue",
    "variant": "variant visit monostate",
    "cassert": "",
}
_HEADER_OF = {name: header for header, names in _HOMES.items() for name in names.split()}
_EXTRA = (
    (
        re.compile(r"Half|BFloat16|HALF|REDUCED_FLOATING"),
        ("torch/headeronly/util/Half.h", "torch/headeronly/util/BFloat16.h"),
    ),
    (
        re.compile(r"Float8"),
        ("torch/headeronly/util/Float8_e4m3fn.h", "torch/headeronly/util/Float8_e5m2.h"),
    ),
    (re.compile(r"accessor|PtrTraits"), ("tilewright/accessor.h",)),
    (re.compile(r"\bassert\s*\("), ("cassert",)),
    (re.compile(r"\b(?:s?n?printf)\s*\("), ("cstdio",)),
    (re.compile(r"\b(?:malloc|free|abs|exit|rand|atoi)\s*\("), ("cstdlib",)),
    (re.compile(r"\b(?:FLT|DBL)_(?:MAX|MIN|EPSILON)\b"), ("cfloat",)),
    (re.compile(r"\bU?(?:INT|LONG|LLONG)_(?:MAX|MIN)\b"), ("climits",)),
)


@functools.cache
def shim_version() -> str:
    """Hash of the headers we put before the candidate."""
    digest = hashlib.sha256()
    for path in sorted(SHIM.rglob("*.[hc]*")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def can_do(sources: Sequence[str], functions: Sequence[str] | None) -> bool:
    """False when it shows without compiling that a source needs PyTorch's own headers."""
    return functions is not None and not any(_OWN_BINDING.search(text) or _lacks(text) for text in sources)


def includes(sources: Sequence[str]) -> list[str]:
    """Headers that the sources' names need and that the light header does not bring, in a fixed order."""
    needed: set[str] = set()
    for text in sources:
        needed.update(_HEADER_OF[name] for name in _STANDARD.findall(text) if name in _HEADER_OF)
        needed.update(header for pattern, headers in _EXTRA if pattern.search(text) for header in headers)
    return sorted(needed)


def _lacks(text: str) -> bool:
    headers = (header for header in _INCLUDE.findall(text) if not _REAL.match(header))
    if any(not (SHIM / header).exists() for header in headers):
        return True
    if _METHODS.search(text):
        return True
    return any(name not in _offered() for name in _QUALIFIED.findall(text))


@functools.cache
def _offered() -> frozenset[str]:
    """Every identifier of the light headers: what is not among them is surely not offered."""
    words: set[str] = set()
    for path in (SHIM / "tilewright").glob("*.h"):
        words.update(re.findall(r"[A-Za-z_]\w*", path.read_text()))
    return frozenset(words)


def runtime_object(compiler: str, compiler_version: str, cache: Path) -> Path:
    """The runtime for this compiler, built if it is not there yet; beside it lies what stands for PyTorch's library.

    Raises:
        OwnFailure: it does not compile here.
    """
    key = hashlib.sha256(
        "\n".join([compiler, compiler_version, shim_version(), *RUNTIME_FLAGS, *NAMED_WORDS]).encode()
    ).hexdigest()
    folder = cache / "headers" / f"runtime.{key[:24]}"
    ready = folder / "runtime.o"
    if ready.exists():
        return ready
    folder.mkdir(parents=True, exist_ok=True)
    with lease.hold(folder / "lock"):
        if not ready.exists():
            _compile_runtime(compiler, folder, ready)
    return ready


def _compile_runtime(compiler: str, folder: Path, ready: Path) -> None:
    draft = folder / f"draft.{os.getpid()}.o"
    named = [compiler, *NAMED_WORDS, "-o", str(folder / NAMED)]
    runtime = [compiler, *RUNTIME_FLAGS, f"-I{SHIM}", "-c", str(RUNTIME), "-o", str(draft)]
    for command in (named, runtime):
        done = sandbox.run(command, cwd=folder, limit_s=RUNTIME_LIMIT_S, readable=(SHIM,))
        if done.status != 0:
            draft.unlink(missing_ok=True)
            raise sandbox.OwnFailure(f"the runtime of the light headers does not compile here:\n{done.output[:4000]}")
    draft.replace(ready)
