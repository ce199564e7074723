"""CuTe's Python DSL in the process that runs a candidate: where compiled kernels are kept, what was compiled, what its
compiler says against a kernel, and how kernels are compiled where there is no GPU. Imports the DSL in that process
alone; judges nothing.

The DSL compiles a function when it is first called or handed to `cute.compile`. It keeps what it has compiled in files
named by the hash of the traced module, but not what `cute.compile` makes; here it does. Later processes trace again,
which takes tenths of a second, and find the compiled module. Written for nvidia-cutlass-dsl 4.8.1.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import importlib.metadata
import io
import os
import re
import shutil
import struct
import sys
import tempfile
import traceback
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.evaluator.build.just_in_time import CACHE, Place
from engine.evaluator.build.request import CANDIDATE_FILE

PACKAGE = "nvidia-cutlass-dsl"
HANDED: Sequence[str] = ("__dlpack__",)  # `from_dlpack` calls it, with every launch
FOLDER = "dsl"  # of the files that the DSL keeps, in the cache of a compile step
_ELF, _CUDA_MACHINE = b"\x7fELF", 190
_REGISTERS, _FRAME, _SIZED = 0x2F, 0x11, 4  # attributes of a cubin's `.nv.info`, and the format of those with a size
_TRACING = "generate_mlir"  # the DSL's function within which a kernel is traced and compiled
_RUNNING = frozenset({"run_compiled_program"})
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_PLACE = re.compile(
    rf'"[^"\n]*{re.escape(CANDIDATE_FILE)}":(\d+):'
)  # as the compiler writes where an operation comes from
_SAID = re.compile(rf'{re.escape(CANDIDATE_FILE)}":\d+:\d+\): (.+)')
MAX_CHAIN, MAX_KERNELS, MAX_TEXT, MAX_SAID = 20, 200, 300, 600


@dataclass(slots=True)
class Compiled:
    """What the DSL compiled in this process, from the files that it keeps in `folder`."""

    folder: Path
    is_traced_only: bool = False
    _seen: set[str] = field(default_factory=set)

    def listen(self) -> None:
        """Every kernel that was compiled counts: there is nothing to wait for."""

    def as_plain(self) -> dict[str, Any]:
        """The kernels compiled, with registers, stack and shared memory; as plain JSON. There is nothing to choose."""
        kernels = [kernel for file in sorted(self.folder.glob("*.mlir")) for kernel in resources(file.read_bytes())]
        return {"kernels": kernels[:MAX_KERNELS], "choices": []}

    def without_device(self) -> contextlib.AbstractContextManager[Any]:
        """While inside, tensors of a GPU have no contents, and a compiled function does nothing when it is called."""
        return _without_device()


def version() -> str:
    """As `just_in_time.Compiler.version`, of the DSL."""
    for package in (PACKAGE, f"{PACKAGE}-libs-base"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return importlib.metadata.version(package)
    return ""


def prepare(place: Place) -> Compiled:
    """As `just_in_time.Compiler.prepare`, of the DSL."""
    folder = (place.compiles_to or Path(tempfile.gettempdir())) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    if place.kept is not None and (kept := place.kept / CACHE / FOLDER).is_dir():
        shutil.copytree(kept, folder, dirs_exist_ok=True)
    for name in [name for name in os.environ if name.startswith("CUTE_DSL_") and name != "CUTE_DSL_LIBS"]:
        del os.environ[name]
    os.environ["CUTE_DSL_CACHE_DIR"] = str(folder)
    os.environ["CUTE_DSL_LINEINFO"] = "1"  # a profile names source lines; the machine code is the same
    if place.arch:
        os.environ["CUTE_DSL_ARCH"] = place.arch
    hook = sys.excepthook
    base: Any = importlib.import_module("cutlass.base_dsl.dsl").BaseDSL
    sys.excepthook = hook  # the DSL puts its own in place, which ends the process
    prepared = base._prepare_compilation

    def keeping(dsl: Any, *arguments: Any, **options: Any) -> Any:
        setup = prepared(dsl, *arguments, **options)
        setup.no_cache = False
        return setup

    base._prepare_compilation = keeping
    base.print_warning = lambda *_: None  # that it keeps nothing, which it does
    return Compiled(folder, bool(place.arch))


def explained(error: BaseException | None, source: str) -> str:
    """As `just_in_time.Compiler.explained`, of what the DSL says while it traces and compiles; empty for an error of a
    launch."""
    chain: list[BaseException] = []
    while error is not None and len(chain) < MAX_CHAIN:
        chain.append(error)
        error = error.__cause__ or error.__context__
    frames = [frame for cause in chain for frame in traceback.extract_tb(cause.__traceback__)]
    names = {frame.name for frame in frames}
    if _TRACING not in names or names & _RUNNING:
        return ""
    lines = _lines(chain, source)
    where = f"{CANDIDATE_FILE}:{lines[-1]}: " if lines else ""
    shown = f"\n    {source.splitlines()[lines[-1] - 1].strip()}" if lines else ""
    calls = "".join(f"\n    called from {CANDIDATE_FILE}:{line}" for line in reversed(lines[:-1]))
    return f"{where}error: {_said(chain)}{shown}{calls}"


def _lines(chain: list[BaseException], source: str) -> list[int]:
    """The lines of the candidate's file that led to the innermost error which has any, outermost first."""
    count = source.count("\n") + 1
    found: list[int] = []
    for cause in reversed(chain):
        frames = traceback.extract_tb(cause.__traceback__)
        within = [frame.lineno for frame in frames if frame.filename.endswith(CANDIDATE_FILE) and frame.lineno]
        said = getattr(cause, "line", None)
        if isinstance(said, int) and str(getattr(cause, "filename", None) or CANDIDATE_FILE).endswith(CANDIDATE_FILE):
            within = [*within, said]
        within += [int(line) for line in _PLACE.findall(str(getattr(cause, "raw_error", "")))[:1]]
        found = list(dict.fromkeys(line for line in within if 0 < line <= count))
        if found:
            break
    return found[-8:]


def _said(chain: list[BaseException]) -> str:
    """The message of the error that says most: a compiler's own, else the innermost one."""
    for cause in chain:
        if log := str(getattr(cause, "ptxas_error", "") or getattr(cause, "nvvm_error", "")):
            return _ANSI.sub("", log).strip()
        if raw := _SAID.search(str(getattr(cause, "raw_error", ""))):
            return raw[1][:MAX_SAID]
    innermost = chain[-1]
    message = _ANSI.sub("", str(getattr(innermost, "message", "") or innermost)).strip()
    kind = type(innermost)
    hint = getattr(innermost, "suggestion", None)
    hints = [hint] if isinstance(hint, str) else list(hint or ())
    named = message if kind.__module__.startswith("cutlass") else f"{kind.__name__}: {message}"
    return "\n".join([named, *(f"    {_ANSI.sub('', str(text))}" for text in hints)])


def resources(module: bytes) -> Iterator[dict[str, Any]]:
    """Registers, stack and static shared memory of each kernel in the machine code that a compiled module holds."""
    from elftools.common.exceptions import ELFError  # screens name languages, and read no machine code
    from elftools.elf.elffile import ELFFile

    at = module.find(_ELF)
    while at >= 0:
        with contextlib.suppress(ELFError, struct.error, ValueError, KeyError, AttributeError):
            yield from _kernels(ELFFile(io.BytesIO(module[at:])))
        at = module.find(_ELF, at + 1)


def _kernels(code: Any) -> Iterator[dict[str, Any]]:
    if code["e_machine"] not in ("EM_CUDA", _CUDA_MACHINE):
        return
    symbols = code.get_section_by_name(".symtab")
    info = code.get_section_by_name(".nv.info").data()
    registers, frames = (
        {symbols.get_symbol(index).name: value for index, value in _attributes(info, wanted)}
        for wanted in (_REGISTERS, _FRAME)
    )
    for name, count in registers.items():
        shared = code.get_section_by_name(f".nv.shared.{name}")
        yield {
            "kernel": name[:MAX_TEXT],
            "registers": count,
            "spill_stores": 0,
            "shared_bytes": int(shared["sh_size"]) if shared else 0,
            "stack_bytes": frames.get(name, 0),
        }


def _attributes(info: bytes, wanted: int) -> Iterator[tuple[int, int]]:
    """Pairs of a symbol and a number under one attribute."""
    at = 0
    while at + 4 <= len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        at += 4
        if form != _SIZED:
            continue
        if attribute == wanted and size >= 8:
            yield struct.unpack_from("<II", info, at)
        at += size


# A DLPack tensor, of which the DSL reads device, type, shape and strides while it traces.
_DEVICE_OF_DLPACK, _ADDRESS = 2, 1 << 20
_KINDS = {
    "float16": (2, 16), "float32": (2, 32), "float64": (2, 64), "bfloat16": (4, 16), "int8": (0, 8), "int16": (0, 16),
    "int32": (0, 32), "int64": (0, 64), "uint8": (1, 8), "bool": (6, 8),
    "float8_e4m3fn": (10, 8), "float8_e5m2": (12, 8),
}  # fmt: skip


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64),
        ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
    )  # fmt: skip


_held: list[Any] = []  # what capsules point at


def _capsule(tensor: Any, *_: Any, **__: Any) -> Any:
    """A tensor without contents as DLPack has one on a GPU."""
    code, bits = _KINDS[str(tensor.dtype).removeprefix("torch.")]
    numbers = [(ctypes.c_int64 * max(1, tensor.ndim))(*map(int, sizes)) for sizes in (tensor.shape, tensor.stride())]
    shape, strides = (ctypes.cast(each, ctypes.c_void_p) for each in numbers)
    plain = _DLTensor(_ADDRESS, _DEVICE_OF_DLPACK, 0, tensor.ndim, code, bits, 1, shape, strides, 0, None, None)
    _held.append((plain, numbers))
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return make(ctypes.addressof(plain), b"dltensor", None)


@contextlib.contextmanager
def _without_device() -> Iterator[None]:
    import torch
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

    function: Any = importlib.import_module("cutlass.cutlass_dsl.cuda_jit_executor").CudaDialectJitCompiledFunction
    nothing: Callable[..., Any] = lambda *_, **__: 0  # noqa: E731 - takes the place of a method
    fake: Any = FakeTensor
    fake.__dlpack__, fake.__dlpack_device__ = _capsule, lambda _: (_DEVICE_OF_DLPACK, 0)
    fake.data_ptr = lambda _: _ADDRESS
    function.__call__, function.run_compiled_program = nothing, nothing
    cuda: Any = torch.cuda
    stream = types.SimpleNamespace(cuda_stream=0, stream_id=0)
    cuda.current_stream, cuda.current_device = (lambda *_: stream), (lambda: 0)
    cuda.get_device_properties = lambda *_: _properties()
    cuda.get_device_capability = lambda *_: (9, 0)
    with FakeTensorMode(allow_non_fake_inputs=True):
        yield


@functools.cache
def _properties() -> types.SimpleNamespace:
    """An H100 in its SXM form: launchers ask how many blocks it runs at once."""
    return types.SimpleNamespace(
        name="none", major=9, minor=0, multi_processor_count=132, shared_memory_per_block_optin=232448, warp_size=32,
        max_threads_per_multi_processor=2048, total_memory=80 << 30, L2_cache_size=50 << 20,
    )  # fmt: skip
