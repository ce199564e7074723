"""Whose code a sampled address is in, and when a library did too much of the work."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from pathlib import Path

import pytest
import torch

from engine.evaluator.checks import processor_time
from engine.evaluator.checks.processor_time import (
    LEAST_IN_LIBRARY,
    LIBRARY,
    MACHINERY,
    OWN,
    SYSTEM,
    ProcessorTime,
    computes,
)
from engine.evaluator.machine import samples
from engine.evaluator.machine.samples import Region, Taken
from storage.results.vocabulary import Verdict

BUILT, FOREIGN = (8, 1, 77), (8, 1, 78)
HERE = {one.file: one.path for one in samples.executable(os.getpid())}
REGIONS = samples.executable(os.getpid())
TOP = 0x7FFF_0000_0000
OURS = Region(TOP, TOP + 100, 0, BUILT, "/libraries/1.so", is_writable=False)
THEIRS = Region(TOP + 1000, TOP + 1100, 0, FOREIGN, "/tmp/libm.so.6", is_writable=False)


def counted(places: Iterable[tuple[int, int, int]], came: tuple[Region, ...] = ()) -> ProcessorTime:
    """From (thread, address, samples)."""
    found = ProcessorTime({BUILT}, HERE)
    found.begin([*REGIONS, OURS, THEIRS])
    seen = tuple((thread, address, 5) for thread, address, count in places for _ in range(count))
    found.add(Taken((*seen, (1, THEIRS.begin, 99)), came, 0), 0, 10)
    return found


def address_of(name: str, library: str) -> int:
    path = next(path for path in HERE.values() if Path(path).name.startswith(library))
    found = ctypes.cast(ctypes.CDLL(path)[name], ctypes.c_void_p).value
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "library", "whose"),
    [
        ("sgemm_", "libtorch_cpu", LIBRARY),
        ("vsexp_", "libtorch_cpu", LIBRARY),
        ("_ZN2at3cpu4siluERKNS_6TensorE", "libtorch_cpu", LIBRARY),
        ("_ZN2at5clone", "libtorch_cpu", MACHINERY),
        ("cblas_sgemm_batch_strided", "libscipy_openblas", LIBRARY),
        ("expf", "libm", SYSTEM),
        ("abs", "libc", SYSTEM),
        ("omp_get_wtime", "libgomp", SYSTEM),
        ("PyLong_FromLong", "libpython", MACHINERY),
    ],
)
def test_every_function_is_somebodys(name: str, library: str, whose: str) -> None:
    if name == "_ZN2at5clone":
        name = "_ZN2at6detail9empty_cpuEN3c108ArrayRefIlEENS1_10ScalarTypeEbSt8optionalINS1_12MemoryFormatEE"
    if not any(Path(path).name.startswith(library) for path in HERE.values()):
        pytest.skip(f"this Python has no {library}")
    address = address_of(name, library)
    (region,) = [one for one in REGIONS if one.begin <= address < one.end]
    assert counted([]).whose(region, address)[0] == whose


@pytest.mark.parametrize(
    ("function", "is_library"),
    [
        ("mkl_blas_avx512_sgemm_kernel_0", True),
        ("_ZN4dnnl4impl3cpu3x644gemmEv", True),
        ("_ZN2at6native12_GLOBAL__N_111silu_kernelERNS_18TensorIteratorBaseE", True),
        ("_ZN2at6native12_GLOBAL__N_111copy_kernelERNS_14TensorIteratorEb", False),
        ("_ZN2at6native9empty_cpuEN3c108ArrayRefIlEE", False),
        ("_ZN2at6native6AVX512L11fill_kernelERNS_14TensorIteratorERKN3c106ScalarE", False),
        ("_ZNK3c1010Dispatcher4callEv", False),
        ("Sleef_expf8_u10avx2", False),
        (
            "_ZN2at8internal15invoke_parallelIZNS_12parallel_forIZNS_6native12_GLOBAL__N_115_vec_logsoftmaxIN3c108"
            "BFloat16EEEvPKT_PS6_lllEUlllE_EEvlllRS9_EUlllE_EEvlllSD_._omp_fn.0",
            True,
        ),
        ("", False),
    ],
)
def test_pytorchs_kernels_compute_and_its_copies_and_its_dispatcher_do_not(function: str, is_library: bool) -> None:
    assert computes(function) is is_library


def test_copies_compute_where_moving_data_is_the_task() -> None:
    copy = "_ZN2at6native12_GLOBAL__N_111copy_kernelERNS_14TensorIteratorEb"
    assert computes(copy, moves=True)
    assert not computes("_ZN2at6native9empty_cpuEN3c108ArrayRefIlEE", moves=True)


def test_a_file_of_another_place_with_a_trusted_name_is_a_library() -> None:
    judged = counted([(1, THEIRS.begin, 30), (1, OURS.begin, 10)]).judged()
    assert judged.total == {LIBRARY: 30, OWN: 10}
    failure = judged.failure("timed calls")
    assert failure.verdict is Verdict.REFUSED
    assert "75% of the processor's time" in failure.message
    assert "another file called libm.so.6 (75%)" in failure.message


def test_a_small_share_passes_and_machinery_counts_for_nobody() -> None:
    python = ctypes.cast(ctypes.pythonapi["PyLong_FromLong"], ctypes.c_void_p).value  # in libpython, or the program
    assert python is not None
    few = [(1, THEIRS.begin, LEAST_IN_LIBRARY), (1, OURS.begin, 20 * LEAST_IN_LIBRARY)]
    assert not counted(few).judged().is_library
    assert not counted([(1, THEIRS.begin, LEAST_IN_LIBRARY - 1), (1, python, 500)]).judged().is_library
    assert counted([(1, THEIRS.begin, LEAST_IN_LIBRARY), (1, OURS.begin, 9), (1, python, 500)]).judged().is_library


def test_threads_that_spin_do_not_hide_one_that_is_in_a_library() -> None:
    judged = counted([(1, THEIRS.begin, 20), *((2 + thread, OURS.begin, 90) for thread in range(8))]).judged()
    assert judged.is_library
    assert "of one thread" in judged.failure("timed calls").message


def test_memory_that_came_later_lies_over_what_was_there() -> None:
    over = Region(OURS.begin, OURS.end, 0, (0, 0, 0), "//anon", is_writable=False)
    assert counted([(1, OURS.begin, 20)], (over,)).judged().names == {"memory of no file": 20}
    writable = Region(OURS.begin, OURS.end, 0, (0, 0, 0), "//anon", is_writable=True)
    assert counted([(1, OURS.begin, 20)], (writable,)).judged().names == {"code in writable memory": 20}
    assert counted([(1, TOP + 500, 20)]).judged().names == {"memory that is no longer there": 20}


def test_code_that_was_changed_is_nobodys_own() -> None:
    judged = counted([(1, OURS.begin, 20)]).judged({OURS.begin})
    assert judged.total == {LIBRARY: 20}
    assert "changed while it ran" in next(iter(judged.names))


def test_the_functions_of_this_pytorch_have_names() -> None:
    assert processor_time.Functions.of(f"{torch.__path__[0]}/lib/libtorch_cpu.so").has_names
