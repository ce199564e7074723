"""In whose code a candidate's calls spent the processor's time: addresses that were sampled from outside, by the file
and the function that they lie in. Whoever calls a library by whatever name, its instructions run where it lies.

The candidate's build, the C and C++ libraries and OpenMP's count as its own. Python, PyTorch's machinery and its copies
count for nobody. The rest is a library that computes. Knows neither how samples are taken nor a call.
"""

from __future__ import annotations

import bisect
import functools
import mmap
import re
import sysconfig
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy
from elftools.elf.elffile import ELFFile

from engine.evaluator.checks.candidate_failures import Failure
from engine.evaluator.checks.launches import demangled
from engine.evaluator.checks.operators import COPIES, HARMLESS, words
from engine.evaluator.machine.samples import Region, Taken
from storage.results.vocabulary import Verdict

CHECK = "processor time"
OWN, SYSTEM, MACHINERY, LIBRARY = "own", "system", "machinery", "library"
SHARE = 0.1
LEAST, LEAST_IN_LIBRARY = 20, 8
MOST_TOLD = 3
NOWHERE = Region(0, 0, 0, (0, 0, 0), "memory that is no longer there", is_writable=False)
_SYSTEM = re.compile(r"(ld-linux\S*|lib(c|m|mvec|stdc\+\+|gcc_s|gomp|pthread|dl|rt|quadmath)[-.]\S*)")
_TORCH = re.compile(r"(libtorch(_\w+)?|libc10(_\w+)?|libshm|_C\.\S+)\.so|_C\.\S+")
# What computes in PyTorch's libraries: its kernels, but for those of operators that make and move data, and the
# libraries in it. All that has a C name there is such a library's, but for these.
_KERNEL = re.compile(
    r"\bat::native::(?:(?:\(anonymous namespace\)|DEFAULT|AVX\w*|SVE\w*|CPU_CAPABILITY|detail|templates)::)*(\w+)"
)
_LOOP = re.compile(
    r"(Vectorized|vectorized_|basic_|multiple_outputs_)[Ll]oop\w*|cpu_(serial_)?kernel\w*|opmath_\w+|Generic\w*"
)
_LIBRARIES = re.compile(r"\b(dnnl|fbgemm|ideep|asmjit|kleidiai|at::(vec|vml|cpu))::")
_NOT_A_LIBRARY = re.compile(
    r"Sleef_|cpuinfo_|aoti_torch_|torch_|Py|THP|c10_|__(cxa|static|do_|gxx|clang)|_(init|fini)$|_GLOBAL_"
)
_MOVES = HARMLESS | {"padding"}
_AMBIGUOUS = words("dim contiguous transpose unfold select data size stride numel real")


@dataclass(slots=True)
class ProcessorTime:
    """Samples so far, by thread and place. `own` are the files of the candidate's build, `known` those of this process,
    by what the kernel calls them. `moves` says that the task itself only moves data: then copies compute, too.
    """

    own: Collection[tuple[int, int, int]]
    known: Mapping[tuple[int, int, int], str]
    moves: bool = False
    regions: list[Region] = field(default_factory=list)
    came: list[Region] = field(default_factory=list)
    places: Counter[tuple[int, Region, int]] = field(default_factory=Counter)
    taken: int = 0
    lost: int = 0

    def begin(self, regions: Iterable[Region]) -> None:
        """The executable memory when sampling begins."""
        self.regions = sorted(regions, key=lambda region: region.begin)

    def add(self, taken: Taken, began_ns: int, ended_ns: int) -> None:
        """The samples that fall between two times, those of a call."""
        self.came += taken.came
        self.lost += taken.lost
        self.taken += len(taken.samples)
        for thread, address, at in taken.samples:
            if began_ns <= at < ended_ns:
                self.places[thread, self._region(address), address] += 1

    @property
    def used(self) -> set[Region]:
        """The memory that samples fell into."""
        return {region for _, region, _ in self.places}

    @property
    def blind(self) -> str:
        """Why nothing can be told: a PyTorch without names has its libraries' code among its own."""
        paths = {self.known.get(region.file, "") for region in self.used}
        stripped = [path for path in paths if Path(path).name == "libtorch_cpu.so" and not Functions.of(path).has_names]
        return "the functions of this PyTorch have no names" if stripped else ""

    def _region(self, address: int) -> Region:
        """Memory that came later lies over what was there before."""
        for region in reversed(self.came):
            if region.begin <= address < region.end:
                return region
        number = bisect.bisect(self.regions, address, key=lambda region: region.begin) - 1
        region = self.regions[number] if number >= 0 else NOWHERE
        return region if address < region.end else NOWHERE

    def whose(self, region: Region, address: int) -> tuple[str, str]:
        """Whose code it is, and what it is called there."""
        path = self.known.get(region.file, "") if region.file[2] else ""
        if region is NOWHERE:
            return LIBRARY, region.path
        if region.is_writable:
            return LIBRARY, "code in writable memory"
        if region.file in self.own:
            return OWN, "the candidate's build"
        if region.path in ("[vdso]", "[vsyscall]"):
            return SYSTEM, region.path
        if not region.file[2]:
            return LIBRARY, "memory of no file"
        name = Path(path).name
        if _SYSTEM.fullmatch(name):
            return SYSTEM, name
        if _TORCH.fullmatch(name):
            function = Functions.of(path).at(address - region.begin + region.offset)
            return (LIBRARY if computes(function, self.moves) else MACHINERY), f"{_called(function)} in {name}"
        if _is_pythons(path):
            return MACHINERY, "Python"
        return LIBRARY, name or f"another file called {Path(region.path).name}"

    def judged(self, altered: Collection[int] = ()) -> Judged:
        """What they tell. `altered` is where memory begins that no longer holds what its file does."""
        shares: dict[int, Counter[str]] = {}
        names: Counter[str] = Counter()
        for (thread, region, address), count in self.places.items():
            who, name = self.whose(region, address)
            if region.begin in altered and who != LIBRARY:
                who, name = LIBRARY, f"code of {name} that was changed while it ran"
            shares.setdefault(thread, Counter())[who] += count
            if who == LIBRARY:
                names[name] += count
        return Judged(list(shares.values()), names)


@dataclass(frozen=True, slots=True)
class Judged:
    """Samples by whose code they fall into, of each thread, and those in a library by its name."""

    threads: Sequence[Counter[str]]
    names: Counter[str]

    @property
    def total(self) -> Counter[str]:
        """The counts of all threads together."""
        return sum(self.threads, Counter())

    @property
    def computed(self) -> int:
        """Samples in which somebody computed."""
        return sum(self.total.values()) - self.total[MACHINERY]

    @property
    def is_library(self) -> bool:
        """Whether a library did more than a small share of the work, of all threads or of one: others may spin."""
        return any(
            counts[LIBRARY] >= LEAST_IN_LIBRARY and _share(counts) > SHARE for counts in (self.total, *self.threads)
        )

    def failure(self, during: str) -> Failure:
        """Why it is refused."""
        share, whose = _share(self.total), ""
        if share <= SHARE:
            share, whose = (
                max(_share(counts) for counts in self.threads if counts[LIBRARY] >= LEAST_IN_LIBRARY),
                " of one thread",
            )
        functions = ", ".join(
            f"{name} ({count / self.total[LIBRARY] * share:.0%})" for name, count in self.names.most_common(MOST_TOLD)
        )
        return Failure(
            Verdict.REFUSED,
            f"{during}: {share:.0%} of the processor's time{whose} was spent in the code of a library, a library "
            f"fall-back: {functions}. Do this work in the kernel that forward launches",
        )

    @property
    def _largest(self) -> str:
        return "".join(f" (most in {name})" for name, _ in self.names.most_common(1))

    def __str__(self) -> str:
        total, computed = self.total, max(1, self.computed)
        return (
            f"{self.computed} samples of calls, taken from outside: {total[OWN] / computed:.0%} in the candidate's "
            f"build, {total[SYSTEM] / computed:.0%} in the C, C++ and OpenMP libraries, "
            f"{total[LIBRARY] / computed:.1%} in others{self._largest}; beside them {total[MACHINERY]} in Python, "
            "PyTorch's dispatcher and its copies"
        )


def _share(counts: Counter[str]) -> float:
    """The share of libraries in all that computed."""
    return counts[LIBRARY] / max(1, sum(counts.values()) - counts[MACHINERY])


@dataclass(frozen=True, slots=True)
class Reading:
    """What the samples tell, or `why` they tell nothing; `is_prevented` where that is not the system's doing."""

    detail: str
    failure: Failure | None = None
    why: str = ""
    is_prevented: bool = False

    def undecided(self, why: str) -> Reading:
        """The reading where something else forbids to decide by it."""
        return replace(self, failure=None, why=why)


@functools.lru_cache(10_000)
def computes(function: str, moves: bool = False) -> bool:
    """Whether a function of PyTorch's libraries, by its mangled name, is one that computes."""
    if not function.startswith("_Z"):
        return bool(function) and not _NOT_A_LIBRARY.match(function)
    if kernel := _kernel(function):
        return not _is_named(kernel, _MOVES - COPIES if moves else _MOVES)
    text = _written(function)
    return "6native" in text or bool(_LIBRARIES.search(text))


def _written(function: str) -> str:
    """Its name as in its source, without what the compiler adds to the body of a parallel loop."""
    return demangled(function.partition(".")[0])


def _kernel(function: str) -> str:
    """The kernel of ATen that it is, or that a loop was made for; empty where it is none."""
    return next((name for name in _KERNEL.findall(_written(function)) if not _LOOP.fullmatch(name)), "")


def _called(function: str) -> str:
    kernel = _kernel(function)
    return f"at::native::{kernel}" if kernel else _written(function).partition("(")[0][:80]


def _is_named(name: str, operators: frozenset[str]) -> bool:
    """Whether words of it are an operator's name: `direct_copy_kernel` copies."""
    if name.strip("_") in operators:
        return True
    parts = [part for part in name.split("_") if part]
    spans = ("_".join(parts[first:last]) for first in range(len(parts)) for last in range(first + 1, len(parts) + 1))
    return any(len(span) > 2 and span in operators - _AMBIGUOUS for span in spans)


def _is_pythons(path: str) -> bool:
    places = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))
    name = Path(path).name
    return name.startswith(("python3", "libpython3")) or any(
        path.startswith(f"{folder}/lib-dynload") for folder in places
    )


class Functions:
    """The functions of one library by address, read where they are looked up: PyTorch has half a million."""

    def __init__(self, path: str) -> None:
        with open(path, "rb") as file:
            text = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
            elf = ELFFile(file)
            self._segments = [
                (segment["p_offset"], segment["p_filesz"], segment["p_vaddr"])
                for segment in elf.iter_segments("PT_LOAD")
            ]
            table, strings = (elf.get_section_by_name(name) for name in (".symtab", ".strtab"))
        self.has_names = bool(table and strings)
        self._text, self._addresses = text, numpy.zeros(0, numpy.uint64)
        if not (table and strings):
            return
        self._strings = strings["sh_offset"]
        kind = numpy.dtype("<u4, u1, u1, <u2, <u8, <u8")
        count = table["sh_size"] // kind.itemsize
        rows = numpy.frombuffer(text, kind, count, table["sh_offset"])
        rows = rows[((rows["f1"] & 15) != 1) & ((rows["f1"] & 15) < 3) & (rows["f3"] != 0) | ((rows["f1"] & 15) == 10)]
        rows = rows[numpy.argsort(rows["f4"], kind="stable")]
        self._addresses, self._names = rows["f4"].copy(), rows["f0"].copy()

    @staticmethod
    @functools.cache
    def of(path: str) -> Functions:
        """The functions of a library, read once."""
        return Functions(path)

    def at(self, offset: int) -> str:
        """The mangled name of the function that holds this byte of the file; empty where none is known."""
        address = next((offset - begin + at for begin, size, at in self._segments if begin <= offset < begin + size), 0)
        number = int(numpy.searchsorted(self._addresses, address, side="right")) - 1
        if number < 0:
            return ""
        begin = self._strings + int(self._names[number])
        return self._text[begin : self._text.find(b"\0", begin)].decode(errors="replace")
