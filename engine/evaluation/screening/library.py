"""What a built library takes from others: its undefined dynamic symbols, and which of them are wrong."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from pathlib import Path

from engine.evaluation.screening import operators
from engine.evaluation.screening.cpp.tensors import is_about_device
from engine.evaluation.screening.finding import Finding, Rule, ordered
from storage.policy import Policy

MAX_LIBRARY = 1 << 30
DYNAMIC_SYMBOLS = 11
SYMBOL_SIZE = 24
_NUMERICAL = re.compile(
    r"^(cublas|cudnn|cusparse|cusolver|cufft|cutensor|dnnl_|mkldnn|cblas_|LAPACKE_|mkl_|MKL_|xnn_|nnp_|fbgemm|armpl_|openblas"
    r"|_ZNK?(4dnnl|6fbgemm|5ideep)|aoti_torch_(cpu|cuda|xpu|mps|mkldnn)_)"
    r"|^_ZN2at(6native|10redispatch)\d|^_ZN2at3cpu\d+(?!\d|is_|L\d|init_)|^_ZNK?3c1010Dispatcher\d+(findSchema|callBoxed|redispatch)"
    r"|^v[sd](Exp|Tanh|Erf|Sqrt|Ln|Mul|Add|Div)$|^[sdcz](gemm|gemv|ger|symm|syrk|trmm|trsm|axpy|dot|scal|nrm2)_$"
)
_STREAMS = re.compile(
    r"^(cuda|cu|hip)(StreamCreate|StreamBeginCapture|Graph|LaunchHostFunc|StreamAddCallback)|getStreamFrom(Pool|External)"
)
_PROCESSES = re.compile(
    r"^(v?fork|clone3?|exec[lv]\w*|execveat|fexecve|system|popen|posix_spawnp?|pthread_detach|daemon|setsid|kill|killpg|tgkill)$|6thread6detachEv"
)
_MACHINERY = re.compile(
    r"^(ptrace|process_vm_\w+|mprotect|dlopen|dlmopen|dlv?sym|dl_iterate_phdr|syscall|prctl|__libc_dl\w+|userfaultfd|memfd_create|setitimer"
    r"|setrlimit\w*|prlimit\w*|cupti\w+)$|^_ZN2at(15set_num_threads|23set_num_interop_threads)"
)
_OUTSIDE = re.compile(
    r"^(fopen(64)?|freopen(64)?|open(at)?(64)?|creat|opendir|mkstemp|shm_open|unlink(at)?|rename|remove|socket|connect|bind|listen"
    r"|setenv|putenv|unsetenv|clearenv|mkdir|rmdir)$|^_ZNSt(14basic_[io]fstream|13basic_fstream|13basic_filebuf|10filesystem)"
)
_PYTHON = re.compile(
    r"^(PyRun_|PyImport_Import|PyImport_AddModule|PyImport_GetModule|Py_CompileString|PyEval_EvalCode|PySys_)"
)
_OPERATOR = re.compile(r"^_ZN2at4(_ops|cuda)(\d+)(\w+)$")
_TABLES = (
    (_NUMERICAL, Rule.LIBRARY, "a numerical library; the kernel must compute itself"),
    (_STREAMS, Rule.STREAMS, "another stream; launch on the current one"),
    (_PROCESSES, Rule.PROCESSES, "processes or detached threads; join your own threads"),
    (_MACHINERY, Rule.MACHINERY, "the process around the kernel"),
    (_OUTSIDE, Rule.OUTSIDE, "files, network or environment"),
    (_PYTHON, Rule.DYNAMIC, "Python code; a kernel takes and returns tensors"),
)
_OVERLOAD = re.compile(
    r"_?(memory_format|dtype|dtype_layout|device|other|int|names|Dimname|out|layout|ScalarType|Tensor|Scalar|dim|dims|default|sizes"
    r"|from|size|start|step|start_step|symint|self|source|pin_memory|prim_Device|prim_dtype|sections|indices|int_\w+|Dimname_\w+)"
)


def screen_library(symbols: Iterable[str], policy: Policy) -> list[Finding]:
    """What the linked functions of a built library give away.

    Args:
        symbols: undefined dynamic symbols, mangled, with or without a version.
        policy: what the task allows.
    """
    found: list[Finding] = []
    for symbol in symbols:
        name = symbol.partition("@")[0]
        operator = _operator(name)
        if operator and not (operators.is_free_method(operator) or _is_harmless(operator)):
            if not operators.is_allowed(operator, policy.library_operators):
                found.append(_finding(Rule.LIBRARY, f"PyTorch's operator `{operator}`; write it in the kernel"))
            continue
        found += [_finding(rule, f"`{name}`: {what}") for pattern, rule, what in _TABLES if pattern.search(name)]
    return ordered(found)


def _finding(rule: Rule, what: str) -> Finding:
    return Finding(rule, None, f"the built extension links {what}", True)


def _operator(name: str) -> str | None:
    """`matmul` of `at::_ops::matmul::call` and of `at::cuda::matmul`, overload and all."""
    match = _OPERATOR.match(name)
    if match is None:
        return None
    operator = match[3][: int(match[2])]
    return None if match[1] == "cuda" and is_about_device(f"at::cuda::{operator}") else operator


def _is_harmless(operator: str) -> bool:
    """An overload of a free operator: `empty_memory_format`, `to_dtype_layout`, `transpose_int`."""
    parts = operator.split("_")
    bases = ["_".join(parts[:count]) for count in range(1, len(parts))]
    bases += [base + "_" for base in bases]
    if operator.startswith("_"):
        return operator in ("_to_copy", "_local_scalar_dense", "_reshape_alias", "_unsafe_view")
    return any(
        operators.is_free_method(base) and (base in operators.COPIES or _is_overload(operator, base)) for base in bases
    )


def _is_overload(operator: str, base: str) -> bool:
    return bool(_OVERLOAD.fullmatch(operator.removeprefix(base)))


def imported_symbols(library: Path) -> list[str]:
    """Names of the undefined dynamic symbols of a 64-bit little-endian ELF file, sorted.

    Raises:
        ValueError: the file is not such a library, or is damaged.
    """
    if library.stat().st_size > MAX_LIBRARY:
        raise ValueError(f"{library} is too large to read")
    image = library.read_bytes()
    if image[:6] != b"\x7fELF\x02\x01":
        raise ValueError(f"{library} is not a 64-bit ELF library")
    try:
        return sorted(_undefined(image))
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        raise ValueError(f"{library} is damaged: {error}") from error


def _undefined(image: bytes) -> set[str]:
    (table,) = struct.unpack_from("<Q", image, 0x28)
    size, count = struct.unpack_from("<HH", image, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", image, table + index * size) for index in range(count)]
    found: set[str] = set()
    for _, kind, _, _, start, length, link, _, _, entry in sections:
        if kind != DYNAMIC_SYMBOLS or entry != SYMBOL_SIZE:
            continue
        names = sections[link][4]
        for place in range(start, start + length, entry):
            name, _, _, section = struct.unpack_from("<IBBH", image, place)
            if section == 0 and name:
                end = image.index(b"\0", names + name)
                found.add(image[names + name : end].decode("latin-1"))
    return found
