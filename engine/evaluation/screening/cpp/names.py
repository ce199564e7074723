"""Names of C++ and CUDA that a candidate's kernel has no need for, by rule. Tables; knows no token."""

from __future__ import annotations

import re

from engine.evaluation.screening.finding import Rule
from engine.evaluation.screening.operators import words

LIBRARY_NAMES = re.compile(
    r"(cublas|cudnn|cusparse|cusolver|cufft|cutensor|hipblas|rocblas|miopen|dnnl|mkldnn|cblas_|LAPACKE_|mkl_|MKL_"
    r"|xnn_|nnp_|fbgemm|openblas|armpl_|vsl[A-Z]|v[sd](Exp|Tanh|Erf|Sqrt|Ln|Mul|Add|Div|Inv)$|blas[sdcz]|ideep)\w*"
    r"|(v[sd](Exp|Tanh|Erf|Sqrt|Ln|Mul|Add|Div|Inv))|[sdcz](gemm|gemv|ger|symm|syrk|trmm|trsm|axpy|dot|scal|nrm2|getrf|gesv|potrf)_"
)
LIBRARY_HEADERS = re.compile(
    r"(cublas|cudnn|cusparse|cusolver|cufft|cutensor|mkl|cblas|lapack|openblas|oneapi|dnnl|Eigen)", re.I
)
# Namespaces of PyTorch whose functions compute; the rest of at:: and torch:: is told apart by operators.py.
COMPUTING_NAMESPACES = re.compile(
    r"^(at::(_ops|native|cpu|cuda::blas|redispatch|functorch|meta|compositeimplicitautograd|compositeexplicitautograd)::"
    r"|torch::(nn|jit|linalg|special|fft|sparse|optim|autograd::generated|_inductor|inductor|aot_inductor)::|at::indexing::impl"
    r"|torch::stable::(?!detail|Tensor|Device|accelerator|library)|c10::Dispatcher|at::linalg_)"
)
DISPATCH = re.compile(
    r"(findSchemaOrThrow|findSchema|callBoxed|redispatchBoxed|torch_call_dispatcher|aoti_torch_call_dispatcher"
    r"|aoti_torch_(cpu|cuda|aten|mkldnn|proxy_executor)_\w+|aoti_torch_\w*(addmm|bmm|mm_out|_scaled|convolution|sdp)\w*)"
)
PYTHON_CALLS = re.compile(
    r"PyRun_\w+|PyImport_\w+|Py_CompileString\w*|PyObject_Call\w*|PyEval_\w+|PyObject_GetAttr\w*|PyObject_SetAttr\w*"
    r"|PySys_\w+|Py_Initialize\w*|PyFrame_\w+|PyThreadState_\w+|PyObject_VectorcallMethod|PyGILState_\w+"
)
STREAMS = re.compile(
    r"(cuda|cu|hip)(StreamCreate\w*|StreamBeginCapture\w*|StreamEndCapture\w*|Graph\w+|LaunchHostFunc\w*"
    r"|StreamAddCallback\w*|UserObjectCreate)|getStreamFrom(Pool|External)|setCurrentCUDAStream|CUDAStreamGuard"
    r"|OptionalCUDAStreamGuard|CUDAMultiStreamGuard|CUDAGraph|cudaStreamPerThread|CU_STREAM_PER_THREAD|getDefaultCUDAStream"
)
PROCESSES = re.compile(
    r"fork|vfork|clone3|execl|execlp|execle|execv|execvp|execve|execvpe|execveat|fexecve|system|popen|posix_spawnp?"
    r"|pthread_detach|daemon|setsid|kill|killpg|tgkill|tkill|pthread_kill|setpgid|unshare|setns|pidfd_open"
)
MACHINERY = re.compile(
    r"ptrace|process_vm_(readv|writev)|mprotect|pkey_mprotect|dlopen|dlmopen|dlsym|dlvsym|dladdr1?|dl_iterate_phdr|syscall"
    r"|__libc_dlsym|__libc_dlopen_mode|prctl|arch_prctl|seccomp|personality|userfaultfd|io_uring_setup|perf_event_open|bpf"
    r"|setrlimit|prlimit|mlockall|sched_setscheduler|setpriority|setitimer|timer_create|sigaction|memfd_create|atexit"
    r"|on_exit|quick_exit|_Exit|_exit|exit|abort_handler|set_num_threads|set_num_interop_threads|manual_seed|__environ|_r_debug"
    r"|get_link_map|process_madvise|cudaDeviceReset|cudaDeviceSetLimit|cudaCtxResetPersistingL2Cache"
    r"|cudaProfilerStart|cudaProfilerStop|cuptiSubscribe|cuptiActivityEnable"
)
MACHINERY_FLAGS = re.compile(
    r"omp_set_num_threads|sched_setaffinity|pthread_setaffinity_np|signal|getenv|secure_getenv|environ|cudaStreamSetAttribute"
    r"|cudaCtxSetLimit|mmap|pthread_create|raise|backtrace|__builtin_return_address|program_invocation_name"
)
OUTSIDE = re.compile(
    r"fopen|fopen64|freopen|fdopen|creat|openat|open64|opendir|readdir|tmpfile|mkstemp|mkdtemp|shm_open|shm_unlink|shmget|shmat|semget"
    r"|sem_open|mq_open|mkfifo|mknod|unlink|unlinkat|rmdir|mkdir|symlink|chmod|chown|truncate|ftruncate|sendfile|splice"
    r"|setenv|putenv|unsetenv|clearenv|socketpair|getaddrinfo|gethostbyname|sendto|recvfrom|sendmsg|recvmsg|inotify_init"
    r"|fstream|ifstream|ofstream|basic_fstream|filebuf|basic_ifstream|basic_ofstream|process_mrelease"
)
OUTSIDE_CALLS = re.compile(
    r"open|socket|connect|bind|listen|accept|rename|remove|link|pread|pwrite|read|write|send|recv|dup2?|close"
)
OUTSIDE_HEADERS = re.compile(
    r"(fstream|filesystem|sys/(socket|ptrace|shm|uio|un|inotify|prctl|syscall)\.h|netinet/.*|arpa/.*|netdb\.h|fcntl\.h"
    r"|dlfcn\.h|link\.h|spawn\.h|linux/.*|asm/.*)"
)
CLOCKS = words(
    """clock_gettime clock_getres gettimeofday time clock timespec_get __clock_gettime clock_nanosleep nanosleep
    cudaEventElapsedTime cudaEventRecord cudaEventSynchronize cudaDeviceSynchronize cudaStreamSynchronize
    cudaEventQuery cudaLaunchKernel cudaMemcpy cudaMemcpyAsync memcmp memcpy omp_get_wtime dlopen dlsym
    _ZNSt6chrono3_V212steady_clock3nowEv _ZNSt6chrono3_V212system_clock3nowEv"""
)
PRECISION = re.compile(
    r"__half2?|half_t|half|Half|__nv_bfloat162?|nv_bfloat16|bfloat16_t|BFloat16|tfloat32_t|_Float16|__fp16|__bf16|float16_t"
    r"|float_e4m3_t|float_e5m2_t|__nv_fp8\w+|Float8_\w+|__float2half\w*|__float2bfloat16\w*"
    r"|_mm\d*_cvtps_ph|_mm\d*_cvtneps_pbh"
)
NARROW_TYPES = re.compile(r"kHalf|kBFloat16|kFloat16|kFloat8_\w+")
PRECISION_SWITCHES = re.compile(
    r"setAllowTF32\w*|setFloat32MatmulPrecision|setAllowFP16\w*|setAllowBF16\w*|set_float32_matmul_precision|autocast_mode"
    r"|set_autocast_enabled|set_autocast\w*|AutocastMode|cublasSetMathMode|setFloat32Precision"
)

PLAIN_TABLES: tuple[tuple[Rule, re.Pattern[str], bool, str], ...] = (
    (Rule.LIBRARY, LIBRARY_NAMES, True, "calls a numerical library; write the computation in the kernel"),
    (
        Rule.LIBRARY,
        DISPATCH,
        True,
        "calls PyTorch operators by way of the dispatcher; write the computation in the kernel",
    ),
    (Rule.DYNAMIC, PYTHON_CALLS, True, "runs Python from C++; a kernel takes tensors and returns tensors"),
    (Rule.STREAMS, STREAMS, True, "leaves the current stream; launch on at::cuda::getCurrentCUDAStream()"),
    (Rule.PRECISION, PRECISION_SWITCHES, True, "switches the arithmetic of PyTorch; leave its settings alone"),
)
"""(rule, names, is a refusal, what it does) for names that are wrong wherever they stand."""

CALL_TABLES: tuple[tuple[Rule, re.Pattern[str], bool, str], ...] = (
    (
        Rule.PROCESSES,
        PROCESSES,
        True,
        "starts, detaches or signals processes; join the threads of your own pool instead",
    ),
    (Rule.MACHINERY, MACHINERY, True, "reaches into the process that runs the kernel; leave it out"),
    (Rule.MACHINERY, MACHINERY_FLAGS, False, "is unusual in a kernel"),
    (Rule.OUTSIDE, OUTSIDE, True, "touches files, the network or the environment; a kernel needs none"),
)
"""The same for names that are wrong when called or taken as a function, not when they are a member or a variable."""
