"""What a built library links: read from real ELF files, judged by name."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from engine.evaluation.screening import Rule, imported_symbols, screen_library
from storage.policy import Policy

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
]


def test_what_honest_libraries_link_is_let_through() -> None:
    assert screen_library(HONEST, Policy()) == []
    assert screen_library([f"{name}@GLIBC_2.2.5" for name in HONEST], Policy()) == []


@pytest.mark.parametrize(
    ("symbol", "rule"),
    [
        ("_ZN2at4_ops7sigmoid4callERKNS_6TensorE", Rule.LIBRARY),
        ("_ZN2at4_ops6matmul4callERKNS_6TensorES4_", Rule.LIBRARY),
        ("_ZN2at4_ops10mul_Tensor4callERKNS_6TensorES4_", Rule.LIBRARY),
        ("_ZN2at4_ops9fill_diagonal_4callEv", Rule.LIBRARY),
        ("_ZN2at3cpu2mmERKNS_6TensorES3_", Rule.LIBRARY),
        ("_ZN2at4cuda2mmERKNS_6TensorES3_", Rule.LIBRARY),
        ("_ZN2at4cuda4blas4gemmIfEEvccllldPKT_lS4_ldPS2_l", Rule.LIBRARY),
        ("_ZN2at6native7cpublas4gemmENS0_13TransposeTypeES2_lllfPKflS4_lfPfl", Rule.LIBRARY),
        ("_ZNK3c1010Dispatcher17findSchemaOrThrowEPKcS2_", Rule.LIBRARY),
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
        ("fopen@GLIBC_2.2.5", Rule.OUTSIDE),
        (
            "_ZNSt14basic_ofstreamIcSt11char_traitsIcEEC1ERKNSt7__cxx1112basic_stringIcS1_SaIcEEESt13_Ios_Openmode",
            Rule.OUTSIDE,
        ),
        ("PyRun_SimpleStringFlags", Rule.DYNAMIC),
    ],
)
def test_what_no_kernel_needs_is_refused(symbol: str, rule: Rule) -> None:
    found = screen_library([*HONEST, symbol], Policy())
    assert [(finding.rule, finding.is_refusal) for finding in found] == [(rule, True)]


def test_an_operator_the_task_leaves_to_the_library_may_be_linked() -> None:
    assert screen_library(["_ZN2at4_ops6conv2d4callEv"], Policy(library_operators=("conv2d",))) == []


def test_the_undefined_symbols_of_a_real_library_are_those_that_nm_shows(tmp_path: Path) -> None:
    source, library = tmp_path / "a.cpp", tmp_path / "a.so"
    source.write_text(
        '#include <cstdio>\nextern "C" void sgemm_();\nvoid f() { sgemm_(); std::puts("x"); fopen("a", "b"); }\n'
    )
    compiler = shutil.which("g++") or "c++"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    symbols = imported_symbols(library)
    shown = subprocess.run(["nm", "-D", "--undefined-only", str(library)], capture_output=True, text=True, check=True)
    assert symbols == sorted({line.split()[-1].partition("@")[0] for line in shown.stdout.splitlines()})
    assert {finding.rule for finding in screen_library(symbols, Policy())} == {Rule.LIBRARY, Rule.OUTSIDE}


@pytest.mark.parametrize("cut", [0, 5, 40, 300])
def test_a_damaged_library_is_named(tmp_path: Path, cut: int) -> None:
    library = tmp_path / "a.so"
    library.write_bytes((b"\x7fELF\x02\x01" + b"\xff" * 400)[:cut])
    with pytest.raises(ValueError, match=r"a\.so"):
        imported_symbols(library)
