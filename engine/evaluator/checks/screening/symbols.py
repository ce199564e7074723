"""What a built library takes from others, and what it puts in their place: its dynamic symbols against a list.

Operators that go through PyTorch's dispatcher may be linked: whether they run is observed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from engine.evaluator.checks.operators import words
from engine.evaluator.checks.screening.finding import Finding, Rule, ordered

MAX_LIBRARY = 1 << 30
REFUSED: tuple[tuple[Rule, str, re.Pattern[str]], ...] = tuple(
    (rule, what, re.compile(pattern, re.VERBOSE))
    for rule, what, pattern in (
        (
            Rule.LIBRARY, "a numerical library, called past PyTorch's dispatcher; the kernel must compute itself",
            r"""^(cublas|cudnn|cusparse|cusolver|cufft|cutensor|dnnl_|mkldnn|cblas_|LAPACKE_|mkl_|MKL_|xnn_|nnp_|fbgemm|armpl_
            |openblas|_ZNK?(4dnnl|6fbgemm|5ideep)|aoti_torch_(cpu|cuda|xpu|mps|mkldnn)_)|^_ZN2at(6native|10redispatch|9functorch)\d
            |^_ZN2at3cpu\d+(?!\d|is_|L\d|init_)|^_ZN2at4cuda(4blas|\d+(?!(current_device|device_count|set_device|device_synchronize|stream_synchronize|synchronize
            |warp_size|is_available|memcpy_and_sync|warn_or_error_on_sync|sleep|flush_icache|manual_seed(_all)?)E)[a-z_0-9]+E)
            |^v[sd](Exp|Tanh|Erf|Sqrt|Ln|Mul|Add|Div)$
            |^[sdcz](gemm|gemv|ger|symm|syrk|trmm|trsm|axpy|dot|scal|nrm2|getrf|gesv|potrf)_$""",
        ),
        (
            Rule.STREAMS, "another stream; launch on the current one",
            r"""^(cuda|cu|hip)(StreamCreate|StreamBeginCapture|Graph|LaunchHostFunc|StreamAddCallback)|getStreamFrom(Pool|External)
            |setCurrentCUDAStream|9CUDAGraph""",
        ),
        (
            Rule.PROCESSES, "processes or detached threads; join your own threads",
            r"""^(v?fork|clone3?|exec[lv]\w*|execveat|fexecve|system|popen|posix_spawnp?|pthread_detach|daemon|setsid|kill|killpg
            |tgkill|pthread_kill|unshare|setns|pidfd_open)$|6thread6detachEv""",
        ),
        (
            Rule.MACHINERY, "the process around the kernel, or what watches it",
            r"""^(ptrace|process_vm_\w+|p?key_mprotect|mprotect|dlopen|dlmopen|dlv?sym|dl_iterate_phdr|syscall|prctl|__libc_dl\w+
            |userfaultfd|memfd_create|setitimer|timer_create|setrlimit\w*|prlimit\w*|cupti\w+|cudaProfiler\w+|cudaDeviceReset
            |cudaDeviceSetLimit|cudaCtxResetPersistingL2Cache|sigaction|_exit|_Exit|quick_exit|on_exit)$
            |^_ZN2at(15set_num_threads|23set_num_interop_threads)|RecordFunction|(clear|remove|disable|reenable|add)\w*Callback
            |TLSRecordFunction|8profiler""",
        ),
        (
            Rule.OUTSIDE, "files, network or environment",
            r"""^(fopen(64)?|freopen(64)?|fdopen|open(at)?(64)?|creat|opendir|mkstemp|shm_open|shmget|unlink(at)?|rename|remove|socket
            |socketpair|connect|bind|listen|accept4?|send(to|msg)?|recv(from|msg)?|p?write(v|64)?|p?read(v|64)?|dup[23]?|setenv
            |putenv|unsetenv|clearenv|mkdir|rmdir|ftruncate|sendfile)$
            |^_ZNSt(14basic_[io]fstream|13basic_fstream|13basic_filebuf|10filesystem)""",
        ),
        (
            Rule.DYNAMIC, "Python code; a kernel takes and returns tensors",
            r"^(PyRun_|PyImport_Import|PyImport_AddModule|PyImport_GetModule|Py_CompileString|PyEval_EvalCode|PySys_)",
        ),
        (
            Rule.PRECISION, "a switch of PyTorch's arithmetic; leave its settings alone",
            r"setAllowTF32|setFloat32MatmulPrecision|setAllow(FP16|BF16)|setFloat32Precision|8autocast\d+set",
        ),
    )
)  # fmt: skip
# What kernels link: C and C++ at work on memory, text and numbers, OpenMP, threads, CUDA's runtime, PyTorch, Python.
KNOWN = re.compile(
    r"""_Z\w+|__(cxa|gxx|dynamic_cast|cuda|kmpc|gmon|assert|stack|isoc|libc_single|errno|tls|dso)\w*|__\w+_(chk|finite)|_(Unwind|ITM|Py)\w+
    |cuda[A-Z]\w+|cu[A-Z]\w+|(aoti_torch|torch|GOMP|omp|Py|pthread|mem|str|wmem|wcs|sched|sysconf|get_nprocs|sem)\w*
    |(m|c|re|aligned_|v)alloc|posix_memalign|free|\w*printf|puts|putchar|putc|fput[cs]|fflush|fwrite|std(out|err)|abort|exit
    |getenv|secure_getenv|qsort|bsearch|rand|srand|ato[fil]l?|(nano|clock_nano|u)?sleep|time|clock|clock_gettime|gettimeofday
    |localtime\w*|(l|ll)?abs|(l|ll)?div|is[a-z]+|to(upper|lower)|environ
    |(f|fe|l|ll)?(a?(sin|cos|tan)h?|atan2|exp[m12]*|log[1p20b]*|pow|sqrt|cbrt|hypot|erfc?|[lt]gamma\w*|ceil|floor|trunc|l?l?round
    |l?l?rint|nearbyint|f?mod|remainder|remquo|copysign|nan|nextafter|nexttoward|fdim|fmax|fmin|fma|fabs|frexp|ldexp|modf|scalbl?n
    |ilogb|sincos|j[01n]|y[01n])[fl]?""",
    re.VERBOSE,
)
TAKEN = words(
    """clock_gettime clock_getres gettimeofday time clock timespec_get clock_nanosleep nanosleep cudaEventElapsedTime
    cudaEventRecord cudaEventSynchronize cudaDeviceSynchronize cudaStreamSynchronize cudaEventQuery cudaLaunchKernel
    cudaMemcpy cudaMemcpyAsync memcmp memcpy omp_get_wtime dlopen dlsym _ZNSt6chrono3_V212steady_clock3nowEv
    _ZNSt6chrono3_V212system_clock3nowEv"""
)


def screen_library(imported: Iterable[str], exported: Iterable[str] = ()) -> list[Finding]:
    """What the symbols of a built library give away; mangled names, with or without a version."""
    findings: list[Finding] = []
    for symbol in imported:
        name = symbol.partition("@")[0]
        for rule, what, pattern in REFUSED:
            if pattern.search(name):
                findings.append(Finding(rule, None, f"the built extension links `{name}`: {what}", True))
                break
        else:
            if not KNOWN.fullmatch(name):
                message = f"the built extension links `{name}`, which kernels do not usually need"
                findings.append(Finding(Rule.MACHINERY, None, message, False))
    for symbol in exported:
        if symbol.partition("@")[0] in TAKEN:
            message = f"the built extension defines its own `{symbol}`, which the process around it uses; rename it"
            findings.append(Finding(Rule.MACHINERY, None, message, True))
    return ordered(findings)


def symbols(library: Path) -> tuple[list[str], list[str]]:
    """Names of the undefined and of the defined dynamic symbols of an ELF library, each sorted.

    Raises:
        ValueError: the file is not such a library, or is damaged.
    """
    # Not above: every engine imports this module for its lists, and only processes that judge read libraries.
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import SymbolTableSection

    if library.stat().st_size > MAX_LIBRARY:
        raise ValueError(f"{library} is too large to read")
    imported: set[str] = set()
    exported: set[str] = set()
    try:
        with open(library, "rb") as file:
            for section in ELFFile(file).iter_sections("SHT_DYNSYM"):
                assert isinstance(section, SymbolTableSection)
                for symbol in section.iter_symbols():
                    if symbol.name:
                        (imported if symbol["st_shndx"] == "SHN_UNDEF" else exported).add(symbol.name)
    # The parser raises whatever a damaged field makes of it.
    except (
        ELFError,
        ValueError,
        OverflowError,
        AssertionError,
        KeyError,
        IndexError,
        AttributeError,
        TypeError,
    ) as error:
        raise ValueError(f"{library} is no ELF library, or damaged: {error}") from error
    return sorted(imported), sorted(exported)
