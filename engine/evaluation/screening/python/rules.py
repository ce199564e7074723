"""Judges what a candidate's Python does, use by use, by tables of names. Knows the reading, not the text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from engine.evaluation.screening import operators
from engine.evaluation.screening.finding import Finding, Rule
from engine.evaluation.screening.operators import words
from engine.evaluation.screening.python.values import Act, Reading, Use
from storage.policy import Policy

KERNEL_ONLY = "do it in the C++ kernel"
IMPORTS = words(
    """__future__ torch math typing typing_extensions dataclasses functools itertools operator os pathlib textwrap
    string re enum collections abc contextlib threading concurrent sys warnings logging hashlib time numpy copy
    numbers types platform shutil statistics json random pprint traceback einops"""
)
FLAGGED_IMPORTS = frozenset({"time", "numpy", "random", "types", "shutil", "traceback", "einops", "threading"})
QUIET_FLAGS = frozenset({"threading"})
REFUSED_IMPORTS: tuple[tuple[Rule, frozenset[str]], ...] = (
    (
        Rule.MACHINERY,
        words(
            """gc inspect ctypes _ctypes cffi builtins atexit engine storage pages faulthandler weakref resource mmap
    tracemalloc dis code codeop bdb pdb cProfile profile trace sysconfig site linecache sys_monitoring _thread"""
        ),
    ),
    (
        Rule.PROCESSES,
        words("""subprocess multiprocessing signal pty fcntl asyncio _posixsubprocess posix sched ray joblib"""),
    ),
    (
        Rule.OUTSIDE,
        words(
            """socket ssl requests urllib urllib3 http httpx aiohttp ftplib smtplib telnetlib socketserver xmlrpc
    tempfile glob fileinput sqlite3 shelve dbm io webbrowser select selectors"""
        ),
    ),
    (
        Rule.DYNAMIC,
        words(
            """importlib imp runpy pkgutil zipimport base64 binascii zlib gzip bz2 lzma codecs marshal pickle cPickle
    dill cloudpickle zipfile tarfile ast tokenize"""
        ),
    ),
)
ATTRIBUTES = words(
    """__subclasses__ __globals__ __code__ __closure__ __builtins__ __getattribute__ __reduce__ __reduce_ex__
    __loader__ __spec__ __import__ f_back f_globals f_locals f_code f_builtins gi_frame tb_frame cr_frame __mro__
    __bases__ __base__ __kwdefaults__ __defaults__ __set_name__ __init_subclass__ _make_subclass as_subclass
    __torch_function__ __torch_dispatch__ __doc__ __func__"""
)
FLAGGED_ATTRIBUTES = frozenset({"__mro__", "__bases__", "__base__", "__func__", "__init_subclass__", "__set_name__"})
STREAMS = re.compile(
    r"torch\.(cuda|accelerator|cpu)\.(Stream|stream|ExternalStream|set_stream|StreamContext|CUDAGraph|graph|graphs\b.*"
    r"|make_graphed_callables|graph_pool_handle|streams\b.*|is_current_stream_capturing|default_stream|external_stream"
    r"|get_stream_from_external)|torch\.(Stream|stream)"
)
COMPILERS = re.compile(
    r"torch\.(compile|jit|_dynamo|_inductor|fx|export|onnx|_export|_C|_VF|_refs|_prims|_decomp|_higher_order_ops|func|vmap"
    r"|_functorch|ops\.(aten|prims?|quantized|mkldnn|mkl|onednn|higher_order|inductor)|utils\.mobile_optimizer|package"
    r"|_lowrank|_numpy|_meta_registrations|_torch_docs|_tensor|_ops|_jit_internal|nn\.modules\.\w+\.F)(\..*)?"
)
MACHINERY = re.compile(
    r"torch\.(manual_seed|seed|initial_seed|set_rng_state|random\..*|cuda\.(manual_seed\w*|seed\w*|set_rng_state\w*)"
    r"|set_num_threads|set_num_interop_threads|set_grad_enabled|set_default_\w+|set_flush_denormal|use_deterministic_algorithms"
    r"|set_deterministic_debug_mode|set_warn_always|overrides(\..*)?|library\.(Library|impl|register_\w+)|utils\.(data|_python_dispatch"
    r"|_pytree|hooks|_mode_utils|backend_registration|rename_privateuse1_backend)(\..*)?|profiler(\..*)?|autograd\.(profiler|graph)(\..*)?"
    r"|utils\.cpp_extension\.(?!load_inline$|load$|include_paths$|CUDA_HOME$|library_paths$|CppExtension$|CUDAExtension$)\w+.*"
    r"|cuda\.(memory\.|caching_allocator\w*|set_per_process\w*|_\w+|set_device|set_sync_debug_mode|cudart|reset_\w+|change_current_allocator|Event)\b.*"
    r"|nn\.modules\.module\..*|Tensor\.__torch\w+__|_assert_async|utils\.dlpack\..*|autograd\.set_\w+|_prims_common.*)"
    r"|builtins\.(breakpoint|memoryview|help|input|copyright|credits)|sys\.(_getframe|settrace|setprofile|_current_frames"
    r"|setrecursionlimit|setswitchinterval|addaudithook|meta_path|path_hooks|path_importer_cache|modules|excepthook|displayhook"
    r"|monitoring.*|_\w+|intern|unraisablehook|gettrace|getprofile|set\w+)"
    r"|threading\.(settrace|setprofile|excepthook|_\w+|enumerate|main_thread|current_thread|settrace_all_threads|setprofile_all_threads)"
    r"|types\.(FunctionType|CodeType|FrameType|ModuleType|MethodType|BuiltinFunctionType).*|traceback\.(walk_stack|extract_stack|walk_tb)"
    r"|copy\._\w+|functools\._\w+|operator\._\w+|os\.(sys|_\w+)\b.*|logging\.(sys|os|threading|time|io|re|weakref|shutil|traceback|_\w+)\b.*"
    r"|warnings\.(sys|builtins|_\w+)\b.*|contextlib\.(sys|os|_\w+)\b.*|\w+\.(sys|os|builtins|gc|inspect|ctypes|importlib)\b.*"
)
MACHINERY_FLAGS = re.compile(
    r"torch\.(cuda\.Event|set_grad_enabled|library\..*|cuda\.set_device|autograd\.graph.*)|time\.\w+|types\.\w+"
)
PRECISION = re.compile(
    r"torch\.(set_float32_matmul_precision|autocast(\..*)?|amp(\..*)?|cuda\.amp(\..*)?|cpu\.amp(\..*)?|set_autocast\w*"
    r"|is_autocast\w*|backends\.(cuda|cudnn|mkldnn|cpu)\.(.*\.)?(allow_tf32|fp32_precision|allow_fp16\w*|allow_bf16\w*))"
)
NARROW = re.compile(r"torch\.(half|float16|bfloat16|float8_\w+|float4_\w+)")
BUILD_VARIABLES = re.compile(
    r"TORCH_CUDA_ARCH_LIST|CUDA_HOME|CUDA_PATH|MAX_JOBS|CXX|CC|CUDACXX|NVCC\w*|CFLAGS|CXXFLAGS|LDFLAGS|CUTLASS\w*|CUTE\w*"
    r"|TORCH_EXTENSIONS_DIR|PATH|CPATH|CPLUS_INCLUDE_PATH|C_INCLUDE_PATH|USE_NINJA|PYTORCH_NVCC|CUDA_LAUNCH_BLOCKING"
    r"|TORCH_USE_CUDA_DSA|CUDA_DEVICE_MAX_CONNECTIONS|TORCH_NVCC_FLAGS|CCACHE\w*|DISTUTILS_USE_SDK|PYTORCH_KERNEL_CACHE_PATH"
)
OS_FREE = re.compile(
    r"os\.(path(\..*)?|environ(\.(get|copy|items|keys|values|setdefault|pop))?|getenv|cpu_count|sched_getaffinity|getcwd|sep|name"
    r"|linesep|pathsep|curdir|pardir|getpid|fspath|process_cpu_count|PathLike|uname|devnull|altsep|extsep|fsencode|fsdecode)"
)
OS_PROCESSES = re.compile(
    r"os\.(fork\w*|exec\w+|spawn\w+|posix_spawn\w*|system|popen|kill\w*|wait\w*|setsid|_exit|abort|startfile|nice|pidfd_open)"
)
SYS_FREE = re.compile(
    r"sys\.(version|version_info(\..*)?|path(\..*)?|platform|maxsize|executable|stdout(\..*)?|stderr(\..*)?|argv|float_info(\..*)?|exit"
    r"|byteorder|implementation(\..*)?|getsizeof|hexversion|prefix|getrecursionlimit|flags(\..*)?|exc_info|api_version|exec_prefix)"
)
PROCESSES = re.compile(
    r"torch\.(multiprocessing|distributed|utils\.data\.DataLoader|futures)(\..*)?|concurrent\.futures\.(ProcessPoolExecutor|process.*)"
    r"|threading\.(Timer)|shutil\.(rmtree|move|copy\w*|chown|make_archive|unpack_archive)|(platform|shutil)\.(subprocess|os|sys).*"
)
OUTSIDE = re.compile(
    r"torch\.(save|load|hub(\..*)?|utils\.(model_zoo|tensorboard|_contextlib)(\..*)?|from_file|serialization(\..*)?|UntypedStorage\.from_file)"
    r"|numpy\.(save\w*|load\w*|memmap|fromfile|tofile|genfromtxt|ctypeslib.*|lib\..*|distutils.*|f2py.*|testing.*)|logging\.(FileHandler|handlers.*|config.*)"
    r"|pathlib\.Path\.(write_\w+|unlink|mkdir|touch|rename|replace|open|rmdir|symlink_to|chmod)"
)
DYNAMIC = re.compile(
    r"builtins\.(exec|eval|compile)|numpy\.(fromstring|frombuffer)|types\.(CodeType|FunctionType)|json\.loads|re\.template"
)
FILE_METHODS = words(
    """write_text write_bytes unlink touch symlink_to hardlink_to rmdir mkdir rename chmod makedirs rmtree copyfile
    read_bytes"""
)
THREAD_FLAGS = frozenset({"daemon", "setDaemon"})


def judge(reading: Reading, policy: Policy) -> Iterator[Finding]:
    """Findings use by use."""
    threads = [u for u in reading.uses if u.name == "threading.Thread" and u.act is Act.CALLED]
    is_joined = any(u.name.endswith(".join") for u in reading.uses)
    for use in reading.uses:
        for examine in (_machinery, _outside, _processes, _streams, _dynamic, _storing):
            yield from examine(use)
        yield from _imports(use, policy)
        yield from _library(use, policy)
        yield from _precision(use, policy)
        yield from _cache(use)
    if threads and not is_joined:
        yield Finding(Rule.PROCESSES, threads[0].line, "starts a thread that nobody joins; join it", False)


def _refuse(rule: Rule, use: Use, message: str) -> Finding:
    return Finding(rule, use.line or None, message, True)


def _flag(rule: Rule, use: Use, message: str) -> Finding:
    return Finding(rule, use.line or None, message, False)


def _library(use: Use, policy: Policy) -> Iterator[Finding]:
    if use.act in (Act.CALLED, Act.LOADED) and COMPILERS.fullmatch(use.name):
        yield _refuse(
            Rule.LIBRARY, use, f"`{use.name}` hands the work to PyTorch's compiler or internals; {KERNEL_ONLY}"
        )
        return
    if not use.is_forward or operators.is_allowed(use.name, policy.library_operators):
        return
    if use.act is Act.COMPUTED:
        if operators.is_allowed({"MatMult": "matmul"}.get(use.name, use.name), policy.library_operators):
            return
        what = f"arithmetic on tensors (`{use.name}`) in the forward path"
    elif use.act in (Act.CALLED, Act.LOADED) and operators.is_computing(use.name):
        what = f"`{use.name}` in the forward path"
    else:
        return
    if use.is_result or (use.act is Act.LOADED and not use.name.startswith("torch.Tensor.")):
        yield _refuse(
            Rule.LIBRARY, use, f"{what} is a library fall-back: PyTorch computes instead of the kernel; {KERNEL_ONLY}"
        )
    elif use.name not in operators.ARITHMETIC:
        yield _flag(Rule.LIBRARY, use, f"{what} works on weights or fresh tensors in every call")


def copies(reading: Reading, task_operators: frozenset[str]) -> Iterator[Finding]:
    """Data movement in the forward path: refused where it is the task itself."""
    for use in reading.uses:
        if use.is_forward and use.act is Act.CALLED and use.is_result and operators.is_copying(use.name):
            leaf = operators.leaf(use.name)
            if leaf in task_operators:
                yield _refuse(Rule.LIBRARY, use, f"`{use.name}` is the task itself; {KERNEL_ONLY}")
            else:
                yield _flag(Rule.LIBRARY, use, f"`{use.name}` moves data in every call")


def _precision(use: Use, policy: Policy) -> Iterator[Finding]:
    if use.act in (Act.CALLED, Act.STORED) and PRECISION.fullmatch(use.name):
        yield _refuse(Rule.PRECISION, use, f"`{use.name}` switches the arithmetic of PyTorch; leave its settings alone")
    if policy.precision not in ("fp32", "tf32") or use.act is not Act.CALLED:
        return
    if use.name in ("torch.Tensor.half", "torch.Tensor.bfloat16"):
        yield _flag(Rule.PRECISION, use, f"`.{operators.leaf(use.name)}()` rounds below {policy.precision}")
    narrow = [word for word in re.findall(r"torch\.\w+", use.detail) if NARROW.fullmatch(word)]
    if narrow and use.name.startswith("torch."):
        yield _flag(Rule.PRECISION, use, f"`{use.name}` with {narrow[0]} rounds below {policy.precision}")


def _imports(use: Use, policy: Policy) -> Iterator[Finding]:
    is_call = use.act is Act.CALLED and use.name in ("importlib.import_module", "builtins.__import__")
    if is_call and use.argument is None:
        yield _refuse(Rule.DYNAMIC, use, "imports a module by a computed name; write the import out")
    if use.act is not Act.IMPORTED and not (is_call and use.argument):
        return
    full = use.argument if is_call and use.argument else use.name
    module = (use.detail or full) if not is_call else full
    root = module.partition(".")[0]
    if any(_within(full, allowed) for allowed in policy.imports):
        return
    for rule, refused in REFUSED_IMPORTS:
        if root in refused:
            yield _refuse(rule, use, f"imports `{module}`, which no kernel needs; remove it")
            return
    if root not in IMPORTS:
        listed = ", ".join(sorted(IMPORTS - FLAGGED_IMPORTS - {"__future__"}))
        yield _refuse(Rule.IMPORTS, use, f"imports `{module or full}`; a candidate may import {listed}")
    elif root in FLAGGED_IMPORTS - QUIET_FLAGS:
        yield _flag(Rule.IMPORTS, use, f"imports `{root}`, which a kernel seldom needs")


def _within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def _machinery(use: Use) -> Iterator[Finding]:
    last = operators.leaf(use.name)
    if use.act in (Act.LOADED, Act.CALLED, Act.IMPORTED):
        if MACHINERY_FLAGS.fullmatch(use.name):
            if use.act is Act.CALLED:
                yield _flag(Rule.MACHINERY, use, f"`{use.name}` is unusual in a candidate")
        elif MACHINERY.fullmatch(use.name):
            yield _refuse(Rule.MACHINERY, use, f"`{use.name}` reaches into the machinery around the kernel; remove it")
        elif last in FLAGGED_ATTRIBUTES:
            yield _flag(Rule.MACHINERY, use, f"`.{last}` is unusual in a candidate")
        elif last in ATTRIBUTES:
            yield _refuse(Rule.MACHINERY, use, f"`.{last}` reaches into Python's internals; remove it")
        elif use.name.startswith("sys.") and not SYS_FREE.fullmatch(use.name):
            yield _refuse(Rule.MACHINERY, use, f"`{use.name}` reaches into the interpreter; remove it")
        elif use.name.startswith("sys.path.") and use.act is Act.CALLED:
            yield _refuse(Rule.MACHINERY, use, "changes where modules are imported from; remove it")


def _storing(use: Use) -> Iterator[Finding]:
    if use.act is not Act.STORED:
        return
    if use.name.startswith("hook."):
        yield _flag(Rule.MACHINERY, use, f"`{use.name.removeprefix('hook.')}` runs code around the model's call")
    elif use.name.startswith("?."):
        if use.name in ("?.daemon",):
            yield _refuse(Rule.PROCESSES, use, "makes a thread a daemon; join your threads instead")
    elif use.name in ("os.environ", "sys.modules") or use.name.startswith(("os.environ.", "sys.modules.")):
        if use.name.startswith("sys.modules"):
            yield _refuse(Rule.MACHINERY, use, "replaces imported modules; remove it")
        elif not BUILD_VARIABLES.fullmatch(use.argument or ""):
            yield _refuse(
                Rule.OUTSIDE, use, f"sets the environment variable {use.argument!r}; only build variables may be set"
            )
    elif PRECISION.fullmatch(use.name) or use.name.startswith("torch.nn.Module."):
        return
    elif use.name.startswith("threading.Thread.") and use.name.endswith("daemon"):
        yield _refuse(Rule.PROCESSES, use, "makes a thread a daemon; join your threads instead")
    elif use.detail != "item" or "." in use.name:
        yield _refuse(Rule.MACHINERY, use, f"assigns to `{use.name}`, which is not the candidate's own; remove it")


def _outside(use: Use) -> Iterator[Finding]:
    if use.act not in (Act.CALLED, Act.LOADED):
        return
    last = operators.leaf(use.name)
    if use.name in ("os.environ.setdefault", "os.environ.pop", "os.environ.update", "os.putenv"):
        if use.act is Act.CALLED and not BUILD_VARIABLES.fullmatch(use.argument or ""):
            yield _refuse(
                Rule.OUTSIDE, use, f"sets the environment variable {use.argument!r}; only build variables may be set"
            )
    elif use.name.startswith("os.") and not OS_FREE.fullmatch(use.name):
        if not OS_PROCESSES.fullmatch(use.name):
            yield _refuse(Rule.OUTSIDE, use, f"`{use.name}` reaches files or the system; remove it")
    elif OUTSIDE.fullmatch(use.name):
        yield _refuse(Rule.OUTSIDE, use, f"`{use.name}` reaches files or the network; remove it")
    elif use.name == "builtins.open":
        yield from _opening(use)
    elif use.name.startswith("?.") and last in FILE_METHODS:
        yield _refuse(Rule.OUTSIDE, use, f"`.{last}` changes files; a candidate is one file and needs no other")


def _opening(use: Use) -> Iterator[Finding]:
    yield _refuse(Rule.OUTSIDE, use, "opens a file; a candidate is one file and needs no other")


def _processes(use: Use) -> Iterator[Finding]:
    if use.act not in (Act.CALLED, Act.LOADED):
        return
    if OS_PROCESSES.fullmatch(use.name) or PROCESSES.fullmatch(use.name):
        yield _refuse(Rule.PROCESSES, use, f"`{use.name}` starts or ends processes; remove it")
    elif use.name == "threading.Thread" and re.search(r"\bdaemon=(?!0\b|False)", use.detail):
        yield _refuse(Rule.PROCESSES, use, "starts a daemon thread; join your threads instead")
    elif use.name == "?.setDaemon":
        yield _refuse(Rule.PROCESSES, use, "makes a thread a daemon; join your threads instead")


def _streams(use: Use) -> Iterator[Finding]:
    if use.act in (Act.CALLED, Act.LOADED) and STREAMS.fullmatch(use.name):
        yield _refuse(Rule.STREAMS, use, f"`{use.name}` leaves the current stream; launch on the current stream only")


def _dynamic(use: Use) -> Iterator[Finding]:
    if use.act is Act.DYNAMIC:
        yield _refuse(Rule.DYNAMIC, use, f"{use.name}: what runs cannot be read; write it out")
    elif use.act in (Act.CALLED, Act.LOADED) and DYNAMIC.fullmatch(use.name):
        yield _refuse(Rule.DYNAMIC, use, f"`{use.name}` runs code that cannot be read here; write it out")
    elif use.act is Act.UNCLEAR and use.name:
        yield _flag(Rule.DYNAMIC, use, use.name)
    elif use.act is Act.CALLED and use.name == "builtins.type":
        yield _refuse(Rule.DYNAMIC, use, "makes a class with type(); write a class statement")


def _cache(use: Use) -> Iterator[Finding]:
    if use.act is Act.KEPT and use.is_forward:
        yield _flag(Rule.CACHE, use, f"keeps a tensor of one call in `{use.name}`; every call must compute anew")
    elif use.act is Act.CALLED and use.is_forward and use.name in ("functools.lru_cache", "functools.cache"):
        yield _flag(Rule.CACHE, use, f"`{use.name}` remembers results in the forward path")
