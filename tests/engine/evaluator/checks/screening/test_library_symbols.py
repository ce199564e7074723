"""What a built library links: read from real ELF files, judged by name."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from engine.evaluator.checks.screening import Rule, screen_library, symbols

HONEST = [
    "torch_call_dispatcher",
    "aoti_torch_get_data_ptr",
    "aoti_torch_library_def",
    "expf",
    "memcpy",
    "time",
    "localtime",
    "omp_get_thread_num",
    "GOMP_parallel",
    "pthread_mutex_lock",
    "pthread_create",
    "_ZNK2at10TensorBase8data_ptrIfEEPT_v",
    "_ZN2at4_ops10empty_like4callERKNS_6TensorE",
    "_ZN2at4_ops19empty_memory_format4callEv",
    "_ZN2at4_ops10contiguous4callEv",
    "_ZN2at4_ops15to_dtype_layout4callEv",
    "_ZN2at4_ops13transpose_int4callEv",
    "_ZN2at4_ops5clone4callEv",
    "_ZN2at4_ops5fill_4callEv",
    "PyEval_SaveThread",
    "PyObject_CallFunctionObjArgs",
    "_ZN8pybind116detail11type_casterIN2at6TensorEvE4loadENS_6handleEb",
    "cudaLaunchKernel",
    "cudaGetLastError",
    "cudaStreamSynchronize",
    "_ZNSt6thread15_M_start_threadEv",
    "_ZNSt6thread4joinEv",
    "_Znwm",
    "__cxa_throw",
    "getenv",
    "_ZN2at4_ops12fill__Scalar4callEv",
    "_ZN2at3cpu21is_cpu_support_avx512Ev",
    "_ZN2at15get_num_threadsEv",
    "_ZN2at4cuda26getCurrentDevicePropertiesEv",
    "_ZN2at4cuda9warp_sizeEv",
    "_ZN2at4cuda6detail23getDefaultCUDAGeneratorEa",
    "_ZN3c104cuda20getCurrentCUDAStreamEa",
    # Whether these run is observed.
    "_ZN2at4_ops7sigmoid4callERKNS_6TensorE",
    "_ZN2at4_ops6matmul4callERKNS_6TensorES4_",
    "_ZNK3c1010Dispatcher17findSchemaOrThrowEPKcS2_",
]


def test_what_honest_libraries_link_is_let_through() -> None:
    assert screen_library(HONEST) == []
    assert screen_library([f"{name}@GLIBC_2.2.5" for name in HONEST]) == []


@pytest.mark.parametrize(
    ("symbol", "rule"),
    [
        ("_ZN2at3cpu2mmERKNS_6TensorES3_", Rule.LIBRARY),
        ("_ZN2at4cuda2mmERKNS_6TensorES3_", Rule.LIBRARY),
        ("_ZN2at4cuda4blas4gemmIfEEvccllldPKT_lS4_ldPS2_l", Rule.LIBRARY),
        ("_ZN2at6native7cpublas4gemmENS0_13TransposeTypeES2_lllfPKflS4_lfPfl", Rule.LIBRARY),
        ("sgemm_", Rule.LIBRARY),
        ("cblas_sgemm", Rule.LIBRARY),
        ("cublasSgemm_v2", Rule.LIBRARY),
        ("dnnl_sgemm", Rule.LIBRARY),
        ("aoti_torch_cpu_addmm_out", Rule.LIBRARY),
        ("cudaStreamCreateWithFlags", Rule.STREAMS),
        ("cudaGraphLaunch", Rule.STREAMS),
        ("fork@GLIBC_2.2.5", Rule.PROCESSES),
        ("_ZNSt6thread6detachEv", Rule.PROCESSES),
        ("dlsym@GLIBC_2.34", Rule.MACHINERY),
        ("syscall", Rule.MACHINERY),
        ("_ZN2at19RecordFunctionGuardC1Eb", Rule.MACHINERY),
        ("_ZN2at20clearGlobalCallbacksEv", Rule.MACHINERY),
        ("_ZN2at7Context18setAllowTF32CuBLASEb", Rule.PRECISION),
        ("fopen@GLIBC_2.2.5", Rule.OUTSIDE),
        (
            "_ZNSt14basic_ofstreamIcSt11char_traitsIcEEC1ERKNSt7__cxx1112basic_stringIcS1_SaIcEEESt13_Ios_Openmode",
            Rule.OUTSIDE,
        ),
        ("PyRun_SimpleStringFlags", Rule.DYNAMIC),
    ],
)
def test_what_no_kernel_needs_is_refused(symbol: str, rule: Rule) -> None:
    found = screen_library([*HONEST, symbol])
    assert [(finding.rule, finding.is_refusal) for finding in found] == [(rule, True)]


SOURCE = """
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <thread>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>
#define JOINED(a, b) a##b
extern "C" void sgemm_();
extern "C" int clock_gettime(clockid_t, struct timespec*) noexcept { return 0; }
void f() {
  sgemm_();
  std::puts("x");
  JOINED(fop, en)("a", "b");
  JOINED(vfo, rk)();
  auto start = &execve;
  start(nullptr, nullptr, nullptr);
  std::thread([] {}).detach();
  std::ofstream out("x");
  dlsym(nullptr, "x");
  mprotect(nullptr, 0, 0);
  setenv("A", "B", 1);
}
"""


def test_a_real_library_shows_what_it_calls_however_it_is_written(tmp_path: Path) -> None:
    source, library = tmp_path / "a.cpp", tmp_path / "a.so"
    source.write_text(SOURCE)
    compiler = shutil.which("g++") or "c++"
    subprocess.run([compiler, "-std=c++20", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    imported, exported = symbols(library)
    shown = subprocess.run(["nm", "-D", "--undefined-only", str(library)], capture_output=True, text=True, check=True)
    assert imported == sorted({line.split()[-1].partition("@")[0] for line in shown.stdout.splitlines()})
    found = screen_library(imported, exported)
    assert {finding.rule for finding in found} == {Rule.LIBRARY, Rule.OUTSIDE, Rule.PROCESSES, Rule.MACHINERY}
    told = " ".join(finding.message for finding in found)
    names = ("sgemm_", "fopen", "vfork", "execve", "6thread6detachEv", "basic_ofstream", "dlsym", "mprotect", "setenv")
    assert [name for name in (*names, "clock_gettime") if name not in told] == []


@pytest.mark.parametrize("cut", [0, 5, 40, 300])
def test_a_damaged_library_is_named(tmp_path: Path, cut: int) -> None:
    library = tmp_path / "a.so"
    library.write_bytes((b"\x7fELF\x02\x01" + b"\xff" * 400)[:cut])
    with pytest.raises(ValueError, match=r"a\.so"):
        symbols(library)
