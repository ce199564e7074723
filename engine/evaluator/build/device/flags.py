"""nvcc's flags: what every candidate gets, what it may add, what is left out, and which libraries it may link."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from engine.evaluator.build.host import flags as host
from engine.evaluator.build.host.flags import FlagRefused as FlagRefused

# The first four are PyTorch's own: with them half types have no implicit conversions and no operators.
BASE = (
    "-D__CUDA_NO_HALF_OPERATORS__",
    "-D__CUDA_NO_HALF_CONVERSIONS__",
    "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-D__CUDA_NO_HALF2_OPERATORS__",
    "--expt-relaxed-constexpr",
)
# Line numbers cost nothing at run time and let ncu and compute-sanitizer name the candidate's lines.
QUIET = ("-w", "-lineinfo", "-Xptxas", "-v")
HOST_QUIET = ("-w", "-fdiagnostics-color=never", "-fmax-errors=12", "-ftemplate-backtrace-limit=4")

_PAIRS = frozenset(
    """-Xptxas --ptxas-options -Xcompiler --compiler-options -gencode --generate-code -arch --gpu-architecture -code
    -maxrregcount --maxrregcount -std --std -diag-suppress --diag-suppress -I -isystem --include-path -t --threads
    -Xcudafe -D""".split()  # noqa: SIM905 - a table of words
)
_ALLOWED = re.compile(
    r"-O[0-3]|--?(use_fast_math|expt-relaxed-constexpr|expt-extended-lambda|extended-lambda|extra-device-vectorization"
    r"|restrict|lineinfo|generate-line-info|w|G|device-debug|disable-warnings)"
    r"|--?(ftz|prec-div|prec-sqrt|fmad|maxrregcount|std|diag-suppress|split-compile|Ofast-compile)=[\w+,.-]+"
    r"|-D\w+(=[\w.+-]*)?|-U\w+|-W[\w=+,-]*|-lineinfo"
)
_ARCH = re.compile(r"(-arch|--gpu-architecture|-gencode|--generate-code|-code|--gpu-code)=([\w=,\[\]\"']+)")
_PTXAS = re.compile(
    r"(-O[0-3]|-v|-warn-.*|--warn-.*|-dlcm=\w+|-dscm=\w+|--def-(load|store)-cache=\w+|-allow-expensive-.*)(,|$)"
)
_LEFT_OUT = re.compile(
    r"(-I|-isystem|--include-path|-t|--threads|-Xcudafe)(=.*)?|-I.+|--ptxas-options=-v|-v|--verbose|-Xptxas=-v"
)
_LIBRARIES = re.compile(
    r"-l(cuda|cudart|cublas|cublasLt|cudnn|curand|cufft|cusparse|cusolver|nvrtc|m|pthread|dl|rt|gomp)"
)


def allowed(extra: Sequence[str]) -> tuple[str, ...]:
    """The candidate's nvcc flags as single words; include paths are left out, for everything it may include is there.

    Raises:
        FlagRefused: a flag may not be used.
    """
    return tuple(word for flag in _joined(extra) for word in _judged(flag))


def has_arch(words: Sequence[str]) -> bool:
    """True when the candidate names its architecture itself."""
    return any(_ARCH.fullmatch(word) for word in words)


def gencode(arch: str) -> str:
    """`-gencode` for `sm_90a`."""
    number = arch.removeprefix("sm_")
    return f"-gencode=arch=compute_{number},code=sm_{number}"


def host_words(extra: Sequence[str]) -> tuple[str, ...]:
    """The candidate's flags for the host compiler.

    Raises:
        FlagRefused: a flag may not be used.
    """
    host.allowed(extra)
    return tuple(word for flag in extra for word in flag.split())


def libraries(extra: Sequence[str]) -> tuple[str, ...]:
    """The libraries a candidate may link by name; other linker flags are left out, they could name any file."""
    words = [word for flag in extra for word in flag.split()]
    return tuple(word for word in words if _LIBRARIES.fullmatch(word))


def not_linked(extra: Sequence[str]) -> list[str]:
    """The flags that are left out and would change what is linked."""
    return [word for word in host.not_linked(extra) if not _LIBRARIES.fullmatch(word)]


def _joined(extra: Sequence[str]) -> Iterator[str]:
    """`-Xptxas -v` and the like as `-Xptxas=-v`, whether they came as one word or two."""
    words = iter([word for flag in extra for word in flag.split()])
    for word in words:
        yield f"{word}={next(words, '')}" if word in _PAIRS else word


def _judged(flag: str) -> tuple[str, ...]:
    if _LEFT_OUT.fullmatch(flag):
        return ()
    name, _, value = flag.partition("=")
    if name == "-D":
        flag = f"-D{value}"
    if name in ("-Xptxas", "--ptxas-options") and all(_PTXAS.fullmatch(option) for option in value.split(",")):
        return (f"-Xptxas={value}",)
    if name in ("-Xcompiler", "--compiler-options"):
        host.allowed(value.strip("'\"").split(","))
        return (f"-Xcompiler={value}",)
    if _ALLOWED.fullmatch(flag) or _ARCH.fullmatch(flag):
        return (flag,)
    raise FlagRefused(
        f"the flag {flag!r} is not allowed in extra_cuda_cflags; code generation flags (-O, -D, -std, --use_fast_math, "
        f"-maxrregcount, -Xptxas, -arch, -gencode) are, files, plugins and other programs are not"
    )
