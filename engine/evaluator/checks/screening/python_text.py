"""What a candidate's Python may not do, by flat rules over its syntax tree: imports, names that reach into machinery,
assignments outside the module. Follows no values: what computes is seen when it runs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from engine.evaluator.checks.live_code import live
from engine.evaluator.checks.operators import is_harmless, words
from engine.evaluator.checks.screening.finding import Finding, Rule
from storage.results.policy import Policy

IMPORTS = words(
    """__future__ torch math typing typing_extensions dataclasses functools itertools operator os pathlib textwrap
    string re enum collections abc contextlib threading concurrent sys warnings logging hashlib time numpy copy
    numbers types platform shutil statistics json random pprint traceback einops"""
)
FLAGGED_IMPORTS = frozenset({"time", "numpy", "random", "types", "shutil", "traceback", "einops"})
REFUSED_IMPORTS: tuple[tuple[Rule, frozenset[str]], ...] = (
    (
        Rule.MACHINERY,
        words(
            """gc inspect ctypes _ctypes cffi builtins atexit engine storage pages faulthandler weakref resource mmap
            tracemalloc dis code codeop bdb pdb cProfile profile trace sysconfig site linecache _thread"""
        ),
    ),
    (
        Rule.PROCESSES,
        words("subprocess multiprocessing signal pty fcntl asyncio _posixsubprocess posix sched ray joblib"),
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
# Full names, by what is wrong with them. The first that fits decides.
NAMES: tuple[tuple[Rule, bool, str, re.Pattern[str]], ...] = tuple(
    (rule, is_refusal, why, re.compile(pattern, re.VERBOSE))
    for rule, is_refusal, why, pattern in (
        (
            Rule.LIBRARY, True, "hands the work to a compiler or to PyTorch's internals; do it in the kernel",
            r"""torch\.(compile|jit|_dynamo|_inductor|fx|export|onnx|_export|_C|_VF|_refs|_prims|_decomp|func|vmap
            |_higher_order_ops|_functorch|package|_numpy|_meta_registrations|_tensor|_ops|_jit_internal|_lowrank
            |utils\.mobile_optimizer)(\..*)?""",
        ),
        (
            Rule.STREAMS, True, "leaves the current stream; launch on the current stream only",
            r"""torch\.(cuda|accelerator|cpu)\.(Stream|stream|ExternalStream|set_stream|StreamContext|CUDAGraph|graph
            |graphs\b.*|make_graphed_callables|graph_pool_handle|streams\b.*|is_current_stream_capturing|default_stream
            |external_stream|get_stream_from_external)|torch\.(Stream|stream)""",
        ),
        (
            Rule.PRECISION, True, "switches the arithmetic of PyTorch; leave its settings alone",
            r"""torch\.(set_float32_matmul_precision|autocast(\..*)?|amp(\..*)?|cuda\.amp(\..*)?|cpu\.amp(\..*)?
            |set_autocast\w*|is_autocast\w*)""",
        ),
        (
            Rule.PROCESSES, True, "starts or ends processes; remove it",
            r"""os\.(fork\w*|exec\w+|spawn\w+|posix_spawn\w*|system|popen|kill\w*|wait\w*|setsid|_exit|abort|startfile
            |nice|pidfd_open)|torch\.(multiprocessing|distributed|utils\.data\.DataLoader|futures)(\..*)?
            |concurrent\.futures\.(ProcessPoolExecutor|process.*)|threading\.Timer
            |shutil\.(rmtree|move|copy\w*|chown|make_archive|unpack_archive)|(platform|shutil)\.(subprocess|os|sys).*""",
        ),
        (
            Rule.MACHINERY, False, "is unusual in a candidate",
            r"torch\.(cuda\.Event|set_grad_enabled|library\.[a-z_]\w*|cuda\.set_device)|time\.\w+|types\.\w+",
        ),
        (
            Rule.MACHINERY, True, "reaches into the machinery around the kernel; remove it",
            r"""torch\.(manual_seed|seed|initial_seed|set_rng_state|random\..*|cuda\.(manual_seed\w*|seed\w*|set_rng_state\w*)
            |set_num_threads|set_num_interop_threads|set_default_\w+|set_flush_denormal|use_deterministic_algorithms
            |set_deterministic_debug_mode|set_warn_always|overrides(\..*)?|library\..*|Tensor\.__torch\w+__|profiler(\..*)?
            |utils\.(data|_python_dispatch|_pytree|hooks|_mode_utils|backend_registration|dlpack|rename_privateuse1_backend)(\..*)?
            |autograd\.(profiler|graph|set_\w+)(\..*)?|_assert_async|_prims_common.*|nn\.modules\.module\..*|utils\.cpp_extension
            \.(?!load_inline$|load$|include_paths$|CUDA_HOME$|library_paths$|CppExtension$|CUDAExtension$)\w+.*
            |cuda\.(memory\.|caching_allocator\w*|set_per_process\w*|_\w+|set_sync_debug_mode|cudart|reset_\w+
            |change_current_allocator)\b.*)
            |sys\.(?!(version|version_info|path|platform|maxsize|executable|stdout|stderr|argv|float_info|exit|byteorder|flags
            |implementation|getsizeof|hexversion|prefix|getrecursionlimit|exc_info|api_version|exec_prefix)(\..*)?$)\w+.*
            |sys\.path\.\w+|threading\.(settrace|setprofile|excepthook|_\w+|enumerate|main_thread|current_thread|\w+_all_threads)
            |traceback\.(walk_stack|extract_stack|walk_tb)|os\.(sys|_\w+)\b.*|\w+\.(sys|os|builtins|gc|inspect|ctypes|importlib)\b.*
            |(copy|functools|operator|logging|warnings|contextlib)\._\w+|logging\.(threading|io|weakref)\b.*""",
        ),
        (
            Rule.OUTSIDE, True, "reaches files, the network or the system; remove it",
            r"""torch\.(save|load|hub(\..*)?|from_file|serialization(\..*)?|UntypedStorage\.from_file
            |utils\.(model_zoo|tensorboard)(\..*)?)|numpy\.(save\w*|load\w*|memmap|fromfile|tofile|genfromtxt|ctypeslib.*|lib\..*)
            |logging\.(FileHandler|handlers.*|config.*)
            |os\.(?!(path|environ|getenv|cpu_count|sched_getaffinity|getcwd|sep|name|linesep|pathsep|curdir|pardir|getpid
            |fspath|process_cpu_count|PathLike|uname|devnull|altsep|extsep|fsencode|fsdecode)(\..*)?$)\w+.*""",
        ),
        (Rule.DYNAMIC, True, "runs what cannot be read here; write it out", r"json\.loads|numpy\.from(string|buffer)"),
        (
            Rule.MACHINERY, True, "reaches behind Triton's language; a kernel needs triton.jit, autotune, heuristics, "
            "Config, cdiv, next_power_of_2, set_allocator and triton.language",
            r"""triton\.(?!(language|jit|autotune|heuristics|Config|cdiv|next_power_of_2|set_allocator|constexpr_function
            |tools\.tensor_descriptor|tools$|__version__$)\b)\w+.*|triton\.language\.(.*\.)?(extern\w*|core\._\w+|semantic|builtin)\b.*
            |triton\.language\.extra\.cuda\.(?!libdevice\b|smid$|num_threads$|num_warps$|convert_\w+$|gdc_wait$
            |gdc_launch_dependents$)\w+.*""",
        ),
        (
            Rule.STREAMS, True,
            "leaves the current stream; launch on CUstream(torch.cuda.current_stream().cuda_stream)",
            r"cutlass\.torch\.default_stream|cutlass\.cuda\.default_stream",
        ),
        (
            Rule.MACHINERY, True, "calls the driver; of `cuda` a kernel needs cuda.bindings.driver.CUstream",
            r"cuda(\.(?!bindings$|bindings\.driver$|bindings\.driver\.CUstream$)\w+.*)",
        ),
        (
            Rule.MACHINERY, True, "reaches behind CuTe's Python DSL; a kernel needs cutlass.cute, cutlass.pipeline, "
            "cutlass.utils, cutlass.memory, the types and loops of cutlass, and of cute.runtime from_dlpack, make_ptr "
            "and the fake tensors",
            r"""cutlass\.(?!(cute|pipeline|utils|memory)\b|(torch|cutlass_dsl)$|torch\.(dtype|current_stream)$
            |cutlass_dsl\.(T|dsl_user_op|\w*(Int|Uint|Float)\d\w*|Boolean|Constexpr|Numeric|min|max|const_expr|range\w*)$
            |(T?B?Float|Int|Uint)\d\w*\b|(Boolean|Numeric|Integer|Float|Constexpr|Pointer|AddressSpace|Swizzle|as_numeric
            |dsl_user_op|min|max|and_|or_|not_|all_|any_|select_|range|range_constexpr|range_dynamic|const_expr|dynamic_expr
            |full|full_like|Vector|__version__)\b|_mlir$|_mlir\.dialects$|_mlir\.dialects\.(nvvm|arith|math|vector)\b
            |_mlir\.dialects\.llvm$|_mlir\.dialects\.llvm\.(inline_asm|AsmDialect|StructType|extractvalue|bitcast)\b)\w+.*
            |cutlass\.cute\.(testing|export|ffi|metadata|launch_facts|viz|experimental|_\w+|Keep\w+|Dump\w+|LinkLibraries
            |EnableTVMFFI|GPUArch|print_latex\w*|HostTarget)\b.*
            |cutlass\.cute\.arch\.(clock\w*|globaltimer\w*)
            |cutlass\.cute\.runtime\.(?!from_dlpack$|make_ptr$|nullptr$|make_fake_\w+$)\w+.*
            |cutlass\.utils\.(distributed|profiling|print_latex\w*|gemm)\b.*
            |cutlass\.pipeline\.(profiling|dump_\w+|register_barrier|reset_\w+)\b.*""",
        ),
    )
)  # fmt: skip
# Of anything: what only somebody who leaves the kernel's own business asks for.
ATTRIBUTES: tuple[tuple[Rule, str, frozenset[str]], ...] = (
    (
        Rule.MACHINERY,
        "reaches into Python's internals; remove it",
        words(
            """__subclasses__ __globals__ __code__ __closure__ __builtins__ __getattribute__ __reduce__ __reduce_ex__
            __loader__ __spec__ __import__ f_back f_globals f_locals f_code f_builtins gi_frame tb_frame cr_frame
            __kwdefaults__ __defaults__ _make_subclass as_subclass __torch_function__ __torch_dispatch__ __dict__
            __mro__ __bases__ __base__"""
        ),
    ),
    (
        Rule.OUTSIDE,
        "changes files; a candidate is one file and needs no other",
        words(
            """write_text write_bytes unlink touch symlink_to hardlink_to rmdir mkdir rename chmod makedirs rmtree
            copyfile read_bytes export_to_c dump_to_object"""
        ),
    ),
    (
        Rule.MACHINERY,
        "gives a kernel another name than its function's; leave it out",
        frozenset({"set_name_prefix", "_cute_dsl_name_options"}),
    ),
    (Rule.PROCESSES, "makes a thread a daemon; join your threads instead", frozenset({"setDaemon"})),
)
BUILTINS: dict[str, tuple[Rule, str]] = {
    **dict.fromkeys(("exec", "eval", "compile"), (Rule.DYNAMIC, "runs code that cannot be read here; write it out")),
    **dict.fromkeys(
        ("globals", "locals", "vars", "__builtins__", "__loader__", "__spec__"),
        (Rule.DYNAMIC, "reaches names that cannot be read here; write them out"),
    ),
    **dict.fromkeys(("breakpoint", "memoryview"), (Rule.MACHINERY, "has no place in a kernel's file")),
    "open": (Rule.OUTSIDE, "opens a file; a candidate is one file and needs no other"),
}
KEYWORDS: dict[str, str] = {
    "triton.jit(repr)": "runs a kernel under another name than its function's; leave it out",
    "triton.autotune(do_bench)": "measures by itself; leave the measuring of configurations to Triton",
    "triton.autotune(post_hook)": "runs beside each measured configuration; leave it out",
    "cutlass.cute.compile(options)": "sets what the compiler reads and writes; leave it out",
    **dict.fromkeys(
        (f"cutlass.cute.{name}(link_libraries)" for name in ("kernel", "jit", "compile")),
        "links code that cannot be read here; leave it out",
    ),
}
# Hand memory to another library unseen.
INTERFACES = frozenset({"__array_interface__", "__array_struct__", "__cuda_array_interface__", "__buffer__"})
BY_NAME = frozenset({"getattr", "setattr", "delattr", "__import__"})
FETCHERS = frozenset({"operator.attrgetter", "operator.methodcaller"})
BUILD_VARIABLES = re.compile(
    r"TORCH_CUDA_ARCH_LIST|CUDA_HOME|CUDA_PATH|MAX_JOBS|CXX|CC|CUDACXX|NVCC\w*|CFLAGS|CXXFLAGS|LDFLAGS|CUTLASS\w*|CUTE(?!_DSL)\w*"
    r"|TORCH_EXTENSIONS_DIR|PATH|CPATH|CPLUS_INCLUDE_PATH|C_INCLUDE_PATH|USE_NINJA|PYTORCH_NVCC|CUDA_LAUNCH_BLOCKING"
    r"|TORCH_USE_CUDA_DSA|CUDA_DEVICE_MAX_CONNECTIONS|TORCH_NVCC_FLAGS|CCACHE\w*|DISTUTILS_USE_SDK|PYTORCH_KERNEL_CACHE_PATH"
)
SETS_VARIABLES = frozenset({"os.environ.setdefault", "os.environ.pop", "os.environ.update", "os.putenv"})
PRECISION_SETTINGS = re.compile(r"(allow_tf32|fp32_precision|allow_(fp16|bf16)\w*)$")
NARROW = re.compile(r"torch\.(half|float16|bfloat16|float8_\w+|float4_\w+)")
NARROW_METHODS = frozenset({"half", "bfloat16"})
# Asking for a type is no rounding.
COMPUTING = re.compile(r"torch\.(nn\.functional\.|special\.|linalg\.|fft\.)?[a-z_]\w*")
COMPARISONS = (ast.Compare, ast.Assert)
INTERCEPTING = ("Tensor", "TorchFunctionMode", "TorchDispatchMode")


@dataclass(slots=True)
class Names:
    """What a plain name stands for, wherever in the file: modules and their parts, under any other name."""

    full: dict[str, str] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)

    def of(self, node: ast.expr) -> str:
        """`torch.cuda.Stream` of `c.Stream`; empty for what is nobody else's."""
        if isinstance(node, ast.Name):
            if node.id in self.full:
                return self.full[node.id]
            return f"builtins.{node.id}" if node.id in BUILTINS.keys() | BY_NAME and node.id not in self.own else ""
        if isinstance(node, ast.Attribute):
            head = self.of(node.value)
            return f"{head}.{node.attr}" if head else ""
        if isinstance(node, ast.Call) and self.of(node.func) == "builtins.getattr" and len(node.args) > 1:
            head, leaf = self.of(node.args[0]), constant(node.args[1])
            return f"{head}.{leaf}" if head and leaf else ""
        if isinstance(node, ast.Subscript):
            return self.of(node.value)
        return ""


def names_of(module: ast.Module) -> Names:
    """Imports and plain assignments of what was imported, to any depth; scopes are not told apart."""
    names = Names()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for alias in node.names:
                names.full[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                names.full[alias.asname or alias.name] = f"{node.module or ''}.{alias.name}"
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            names.own.add(node.name)
    pairs = [pair for node in ast.walk(module) for pair in _assigned(node)]
    for _ in range(3):
        for name, value in pairs:
            if full_name := names.of(value):
                names.full.setdefault(name, full_name)
    return names


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name) and isinstance(node.value, ast.Name | ast.Attribute | ast.Call):
                yield target.id, node.value
    elif isinstance(node, ast.NamedExpr):
        yield node.target.id, node.value


def constant(node: ast.expr) -> str | None:
    """The text of a string constant, in one piece or added up."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = constant(node.left), constant(node.right)
        return left + right if left is not None and right is not None else None
    return None


def fall_backs(source: str) -> list[tuple[str, int]]:
    """Calls of PyTorch's computing functions where a file runs, with their lines: (`torch.min`, 40)."""
    try:
        module = live(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    names = names_of(module)
    calls = [(names.of(node.func), node.lineno) for node in ast.walk(module) if isinstance(node, ast.Call)]
    computing = [(name, line) for name, line in calls if COMPUTING.fullmatch(name) and not _is_free(name)]
    return sorted(computing, key=lambda call: call[1])


def _is_free(name: str) -> bool:
    leaf = name.rpartition(".")[2]
    return is_harmless(leaf) or leaf in ("tensor", "as_tensor", "no_grad", "device", "inference_mode", "from_numpy")


def findings(module: ast.Module, policy: Policy) -> Iterator[Finding]:
    """Everything that stands against a file."""
    names = names_of(module)
    called = {id(node.func) for node in ast.walk(module) if isinstance(node, ast.Call)}
    inner = {id(node.value) for node in ast.walk(module) if isinstance(node, ast.Attribute)}
    asked = {id(part) for node in ast.walk(module) if isinstance(node, COMPARISONS) for part in ast.walk(node)}
    for node in ast.walk(module):
        if _named_as(node) in INTERFACES:
            message = "hands memory to another library; do the work in the kernel"
            yield Finding(Rule.LIBRARY, getattr(node, "lineno", None), f"`{_named_as(node)}` {message}", True)
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from _imports(node, policy)
        elif isinstance(node, ast.ClassDef):
            yield from _classes(node, names)
        elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete):
            yield from _stores(node, names)
        elif isinstance(node, ast.Call):
            yield from _calls(node, names, policy)
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            full = names.of(node)
            if full.startswith("builtins.") and isinstance(node, ast.Name):
                yield from _builtin(node, full.removeprefix("builtins."), id(node) in called)
            if isinstance(node, ast.Attribute):
                yield from _attribute(node, node.attr, full)
            if full and id(node) not in inner:
                yield from _named(node, full, policy)
            if NARROW.fullmatch(full) and id(node) not in asked and policy.arithmetic in ("fp32", "tf32"):
                yield Finding(Rule.PRECISION, node.lineno, f"`{full}` rounds below {policy.precision}", False)


def _named_as(node: ast.AST) -> str:
    """A name as code or text writes it, defines it or asks for it."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return str(getattr(node, "id", "") or getattr(node, "attr", "") or getattr(node, "name", ""))


def _named(node: ast.expr, full: str, policy: Policy) -> Iterator[Finding]:
    for rule, is_refusal, why, pattern in NAMES:
        if pattern.fullmatch(full):
            yield Finding(rule, node.lineno, f"`{full}` {why}", is_refusal)
            return


def _attribute(node: ast.expr, name: str, full: str) -> Iterator[Finding]:
    if name == "__dict__" and not full:  # of an object of the candidate's own
        return
    for rule, why, attributes in ATTRIBUTES:
        if name in attributes and not (full.startswith(("numpy", "os.path")) and rule is not Rule.MACHINERY):
            yield Finding(rule, node.lineno, f"`.{name}` {why}", True)


def _builtin(node: ast.Name, name: str, is_called: bool) -> Iterator[Finding]:
    if name in BUILTINS:
        rule, why = BUILTINS[name]
        yield Finding(rule, node.lineno, f"`{name}` {why}", True)
    elif not is_called:
        yield Finding(
            Rule.DYNAMIC, node.lineno, f"`{name}` under another name hides what is reached; write it out", True
        )


def _calls(node: ast.Call, names: Names, policy: Policy) -> Iterator[Finding]:
    full, line = names.of(node.func), node.lineno
    if full in ("builtins.getattr", "builtins.setattr", "builtins.delattr") or full in FETCHERS:
        yield from _by_name(node, full, names, policy)
    elif full == "builtins.__import__":
        module = constant(node.args[0]) if node.args else None
        if module is None:
            yield Finding(Rule.DYNAMIC, line, "imports a module by a computed name; write the import out", True)
        else:
            yield from _import(module, module, line, policy)
    elif full in SETS_VARIABLES:
        first = constant(node.args[0]) if node.args else None
        yield from _variable(first, line)
    elif isinstance(node.func, ast.Name) and node.func.id == "super" and node.args and names.of(node.args[0]):
        yield Finding(Rule.MACHINERY, line, "reaches behind a class of PyTorch with super(); remove it", True)
    elif isinstance(node.func, ast.Name) and node.func.id == "type" and len(node.args) == 3:
        yield Finding(Rule.DYNAMIC, line, "makes a class with type(); write a class statement", True)
    elif isinstance(node.func, ast.Attribute) and not full:
        yield from _narrowing(node.func.attr, line, policy)
    for word in node.keywords:
        if why := KEYWORDS.get(f"{full}({word.arg})"):
            yield Finding(Rule.MACHINERY, line, f"`{word.arg}=` of {full} {why}", True)
    if any(word.arg == "daemon" and not _is_false(word.value) for word in node.keywords):
        yield Finding(Rule.PROCESSES, line, "starts a daemon thread; join your threads instead", True)


def _by_name(node: ast.Call, full: str, names: Names, policy: Policy) -> Iterator[Finding]:
    """An attribute reached by a text: as if it were written out, and refused where the text is computed."""
    position = 0 if full in FETCHERS else 1
    leaf = constant(node.args[position]) if len(node.args) > position else None
    line = node.lineno
    if leaf is None:
        yield Finding(Rule.DYNAMIC, line, "reaches an attribute by a computed name; write it out", True)
        return
    head = names.of(node.args[0]) if position else ""
    yield from _attribute(node, leaf, head)
    if not head:
        yield from _narrowing(leaf, line, policy)
    if head and full != "builtins.getattr":
        yield from _store(f"{head}.{leaf}", line)
    elif head:
        yield from _named(node, f"{head}.{leaf}", policy)


def _narrowing(method: str, line: int, policy: Policy) -> Iterator[Finding]:
    if method in NARROW_METHODS and policy.arithmetic in ("fp32", "tf32"):
        yield Finding(Rule.PRECISION, line, f"`.{method}()` rounds below {policy.precision}", False)


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def _stores(node: ast.AST, names: Names) -> Iterator[Finding]:
    targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
    for target in targets:
        for expression in ast.walk(target) if target is not None else ():
            if not isinstance(expression, ast.Attribute | ast.Subscript) or isinstance(expression.ctx, ast.Load):
                continue
            if (
                isinstance(expression, ast.Attribute)
                and expression.attr == "daemon"
                and not _is_false(getattr(node, "value", expression))
            ):
                yield Finding(
                    Rule.PROCESSES, expression.lineno, "makes a thread a daemon; join your threads instead", True
                )
            full = names.of(expression)
            if full == "os.environ" and isinstance(expression, ast.Subscript):
                yield from _variable(constant(expression.slice), expression.lineno)
            elif full:
                yield from _store(full, expression.lineno)


def _store(full: str, line: int) -> Iterator[Finding]:
    if PRECISION_SETTINGS.search(full):
        yield Finding(
            Rule.PRECISION, line, f"`{full}` switches the arithmetic of PyTorch; leave its settings alone", True
        )
    elif not full.startswith("builtins.getattr"):
        yield Finding(Rule.MACHINERY, line, f"assigns to `{full}`, which is not the candidate's own; remove it", True)


def _variable(name: str | None, line: int) -> Iterator[Finding]:
    if not BUILD_VARIABLES.fullmatch(name or ""):
        yield Finding(
            Rule.OUTSIDE, line, f"sets the environment variable {name!r}; only build variables may be set", True
        )


def _classes(node: ast.ClassDef, names: Names) -> Iterator[Finding]:
    for base in node.bases:
        if ast.unparse(base).rpartition(".")[2] in INTERCEPTING:
            yield Finding(Rule.MACHINERY, node.lineno, "a class of tensors of its own; return plain torch.Tensor", True)
    for inner in node.body:
        if isinstance(inner, ast.FunctionDef) and inner.name in ("__torch_function__", "__torch_dispatch__"):
            yield Finding(Rule.MACHINERY, inner.lineno, f"`{inner.name}` intercepts PyTorch; remove it", True)


def _imports(node: ast.Import | ast.ImportFrom, policy: Policy) -> Iterator[Finding]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield from _import(alias.name, alias.name, node.lineno, policy)
        return
    module = "." * node.level + (node.module or "")
    for alias in node.names:
        yield from _import(module, f"{module}.{alias.name}", node.lineno, policy)


def _import(module: str, full: str, line: int, policy: Policy) -> Iterator[Finding]:
    root = module.partition(".")[0]
    if any(full == allowed or full.startswith(allowed + ".") for allowed in policy.imports):
        return
    for rule, refused in REFUSED_IMPORTS:
        if root in refused:
            yield Finding(rule, line, f"imports `{module}`, which no kernel needs; remove it", True)
            return
    if root not in IMPORTS:
        listed = ", ".join(sorted(IMPORTS - FLAGGED_IMPORTS - {"__future__"}))
        yield Finding(Rule.IMPORTS, line, f"imports `{module or '.'}`; a candidate may import {listed}", True)
    elif root in FLAGGED_IMPORTS:
        yield Finding(Rule.IMPORTS, line, f"imports `{root}`, which a kernel seldom needs", False)
    else:
        for rule, is_refusal, why, pattern in NAMES:
            if is_refusal and pattern.fullmatch(full):
                yield Finding(rule, line, f"`{full}` {why}", True)
                return
