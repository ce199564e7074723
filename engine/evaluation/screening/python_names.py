"""Python names a candidate has no need for, by rule. Tables; knows no syntax."""

from __future__ import annotations

import re

from engine.evaluation.screening.finding import Rule
from engine.evaluation.screening.tables import words

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
