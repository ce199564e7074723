"""Screens a candidate: its text, which is Python, the C++ in its strings, and ModelNew as a whole; and what its built
library takes from others, seen in its undefined dynamic symbols. Runs nothing; no text makes it raise."""

from __future__ import annotations

import ast
import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

from engine.evaluation.screening import operators
from engine.evaluation.screening.cpp import rules as cpp_rules
from engine.evaluation.screening.cpp.rules import Unit
from engine.evaluation.screening.cpp.tensors import is_about_device
from engine.evaluation.screening.finding import Finding, Rule, ordered
from engine.evaluation.screening.python import rules as python_rules
from engine.evaluation.screening.python.reader import read
from engine.evaluation.screening.python.values import Act, Box, Load, Piece, Reading, Tensor, Text, Values, loads
from storage.policy import Policy

MAX_LIBRARY = 1 << 30
DYNAMIC_SYMBOLS = 11
SYMBOL_SIZE = 24
_NUMERICAL = re.compile(
    r"^(cublas|cudnn|cusparse|cusolver|cufft|cutensor|dnnl_|mkldnn|cblas_|LAPACKE_|mkl_|MKL_|xnn_|nnp_|fbgemm|armpl_|openblas"
    r"|_ZNK?(4dnnl|6fbgemm|5ideep)|aoti_torch_(cpu|cuda|xpu|mps|mkldnn)_)"
    r"|^_ZN2at(6native|10redispatch)\d|^_ZN2at3cpu\d+(?!\d|is_|L\d|init_)|^_ZNK?3c1010Dispatcher\d+(findSchema|callBoxed|redispatch)"
    r"|^v[sd](Exp|Tanh|Erf|Sqrt|Ln|Mul|Add|Div)$|^[sdcz](gemm|gemv|ger|symm|syrk|trmm|trsm|axpy|dot|scal|nrm2)_$"
)
_STREAMS = re.compile(
    r"^(cuda|cu|hip)(StreamCreate|StreamBeginCapture|Graph|LaunchHostFunc|StreamAddCallback)|getStreamFrom(Pool|External)"
)
_PROCESSES = re.compile(
    r"^(v?fork|clone3?|exec[lv]\w*|execveat|fexecve|system|popen|posix_spawnp?|pthread_detach|daemon|setsid|kill|killpg|tgkill)$|6thread6detachEv"
)
_MACHINERY = re.compile(
    r"^(ptrace|process_vm_\w+|mprotect|dlopen|dlmopen|dlv?sym|dl_iterate_phdr|syscall|prctl|__libc_dl\w+|userfaultfd|memfd_create|setitimer"
    r"|setrlimit\w*|prlimit\w*|cupti\w+)$|^_ZN2at(15set_num_threads|23set_num_interop_threads)"
)
_OUTSIDE = re.compile(
    r"^(fopen(64)?|freopen(64)?|open(at)?(64)?|creat|opendir|mkstemp|shm_open|unlink(at)?|rename|remove|socket|connect|bind|listen"
    r"|setenv|putenv|unsetenv|clearenv|mkdir|rmdir)$|^_ZNSt(14basic_[io]fstream|13basic_fstream|13basic_filebuf|10filesystem)"
)
_PYTHON = re.compile(
    r"^(PyRun_|PyImport_Import|PyImport_AddModule|PyImport_GetModule|Py_CompileString|PyEval_EvalCode|PySys_)"
)
_OPERATOR = re.compile(r"^_ZN2at4(_ops|cuda)(\d+)(\w+)$")
_TABLES = (
    (_NUMERICAL, Rule.LIBRARY, "a numerical library; the kernel must compute itself"),
    (_STREAMS, Rule.STREAMS, "another stream; launch on the current one"),
    (_PROCESSES, Rule.PROCESSES, "processes or detached threads; join your own threads"),
    (_MACHINERY, Rule.MACHINERY, "the process around the kernel"),
    (_OUTSIDE, Rule.OUTSIDE, "files, network or environment"),
    (_PYTHON, Rule.DYNAMIC, "Python code; a kernel takes and returns tensors"),
)
_OVERLOAD = re.compile(
    r"_?(memory_format|dtype|dtype_layout|device|other|int|names|Dimname|out|layout|ScalarType|Tensor|Scalar|dim|dims|default|sizes"
    r"|from|size|start|step|start_step|symint|self|source|pin_memory|prim_Device|prim_dtype|sections|indices|int_\w+|Dimname_\w+)"
)


def screen_library(symbols: Iterable[str], policy: Policy) -> list[Finding]:
    """What the linked functions of a built library give away.

    Args:
        symbols: undefined dynamic symbols, mangled, with or without a version.
        policy: what the task allows.
    """
    found: list[Finding] = []
    for symbol in symbols:
        name = symbol.partition("@")[0]
        operator = _operator(name)
        if operator and not (operators.is_free_method(operator) or _is_harmless(operator)):
            if not operators.is_allowed(operator, policy.library_operators):
                found.append(_finding(Rule.LIBRARY, f"PyTorch's operator `{operator}`; write it in the kernel"))
            continue
        found += [_finding(rule, f"`{name}`: {what}") for pattern, rule, what in _TABLES if pattern.search(name)]
    return ordered(found)


def _finding(rule: Rule, what: str) -> Finding:
    return Finding(rule, None, f"the built extension links {what}", True)


def _operator(name: str) -> str | None:
    """`matmul` of `at::_ops::matmul::call` and of `at::cuda::matmul`, overload and all."""
    match = _OPERATOR.match(name)
    if match is None:
        return None
    operator = match[3][: int(match[2])]
    return None if match[1] == "cuda" and is_about_device(f"at::cuda::{operator}") else operator


def _is_harmless(operator: str) -> bool:
    """An overload of a free operator: `empty_memory_format`, `to_dtype_layout`, `transpose_int`."""
    parts = operator.split("_")
    bases = ["_".join(parts[:count]) for count in range(1, len(parts))]
    bases += [base + "_" for base in bases]
    if operator.startswith("_"):
        return operator in ("_to_copy", "_local_scalar_dense", "_reshape_alias", "_unsafe_view")
    return any(
        operators.is_free_method(base) and (base in operators.COPIES or _is_overload(operator, base)) for base in bases
    )


def _is_overload(operator: str, base: str) -> bool:
    return bool(_OVERLOAD.fullmatch(operator.removeprefix(base)))


def imported_symbols(library: Path) -> list[str]:
    """Names of the undefined dynamic symbols of a 64-bit little-endian ELF file, sorted.

    Raises:
        ValueError: the file is not such a library, or is damaged.
    """
    if library.stat().st_size > MAX_LIBRARY:
        raise ValueError(f"{library} is too large to read")
    image = library.read_bytes()
    if image[:6] != b"\x7fELF\x02\x01":
        raise ValueError(f"{library} is not a 64-bit ELF library")
    try:
        return sorted(_undefined(image))
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        raise ValueError(f"{library} is damaged: {error}") from error


def _undefined(image: bytes) -> set[str]:
    (table,) = struct.unpack_from("<Q", image, 0x28)
    size, count = struct.unpack_from("<HH", image, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", image, table + index * size) for index in range(count)]
    found: set[str] = set()
    for _, kind, _, _, start, length, link, _, _, entry in sections:
        if kind != DYNAMIC_SYMBOLS or entry != SYMBOL_SIZE:
            continue
        names = sections[link][4]
        for place in range(start, start + length, entry):
            name, _, _, section = struct.unpack_from("<IBBH", image, place)
            if section == 0 and name:
                end = image.index(b"\0", names + name)
                found.add(image[names + name : end].decode("latin-1"))
    return found


MAX_SOURCE = 1_000_000
MAX_NODES = 60_000
MAX_TEXTS = 60
CPP_SIGNS = ("#include", "__global__", "::", "#define", "->", "asm", "extern", "TORCH_LIBRARY")
REFERENCE = "Model"


def screen(source: str, policy: Policy, reference: str) -> list[Finding]:
    """What a candidate may not do, refusals first. A syntax error is for the compiler to report: no findings.

    Args:
        source: the candidate's file.
        policy: what its task allows.
        reference: the task's source.
    """
    if len(source) > MAX_SOURCE:
        return [_unreadable("the file is longer than a million characters")]
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    except (RecursionError, MemoryError):
        return [_unreadable("the file is nested too deeply to be read")]
    if sum(1 for _ in ast.walk(module)) > MAX_NODES:
        return [_unreadable("the file has too many expressions to be read")]
    try:
        return ordered(_findings(module, policy, _parsed(reference)))
    except RecursionError:
        return [_unreadable("the file is nested too deeply to be read")]


def _unreadable(why: str) -> Finding:
    return Finding(Rule.DYNAMIC, None, f"{why}; write the candidate plainly", True)


def _parsed(reference: str) -> ast.Module | None:
    try:
        return ast.parse(reference)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _findings(module: ast.Module, policy: Policy, reference: ast.Module | None) -> Iterator[Finding]:
    reading = read(module)
    yield from python_rules.judge(reading, policy)
    yield from python_rules.copies(reading, task_operators(reference))
    yield from judge(module, reading, reference)
    texts = _texts(module, reading)
    if len(texts) > MAX_TEXTS:
        yield _unreadable("the file holds too many C++ strings")
    units = [(text, Unit.of(text.text)) for text in texts[:MAX_TEXTS]]
    own = frozenset(name for _, unit in units for name in unit.own)
    for text, unit in units:
        for breach in cpp_rules.breaches(unit, own, policy):
            yield Finding(breach.rule, line_in_file(text, breach.line), breach.message, breach.is_refusal)


def _texts(module: ast.Module, reading: Reading) -> list[Text]:
    """C++ to read: what is built, then every other string that looks like it."""
    known = list(reading.sources)
    all_of_it = "\n".join(text.text for text in known)
    for node in _strings(module):
        value = str(node.value)
        if value not in all_of_it and _looks_like_cpp(value):
            steps = node.end_lineno is not None and value.count("\n") == node.end_lineno - node.lineno
            known.append(Text((Piece(value, node.lineno, steps),)))
    return known


def _strings(module: ast.Module) -> Iterable[ast.Constant]:
    """String constants that are no docstrings or bare statements."""
    bare = {id(node.value) for node in ast.walk(module) if isinstance(node, ast.Expr)}
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            yield node


def _looks_like_cpp(text: str) -> bool:
    return (any(sign in text for sign in CPP_SIGNS) and ("(" in text or "#" in text)) or (";" in text and "{" in text)


def line_in_file(text: Text, line: int) -> int | None:
    """The line of the candidate's file on which a line of its C++ stands."""
    left = line - 1
    for piece in text.pieces:
        breaks = piece.text.count("\n")
        if left <= breaks and piece.text:
            if piece.line is None:
                return None
            return piece.line + left if piece.is_stepping else piece.line
        left -= breaks
    return None


def judge(module: ast.Module, reading: Reading, reference: ast.Module | None) -> Iterator[Finding]:
    """Findings about the class ModelNew."""
    if not reading.has_model:
        return
    yield from _kernel(reading)
    yield from _tensor_classes(module)
    yield from _reuse(module, reading, reference)


def task_operators(reference: ast.Module | None) -> frozenset[str]:
    """Names of everything the reference calls."""
    if reference is None:
        return frozenset()
    calls = [node.func for node in ast.walk(reference) if isinstance(node, ast.Call)]
    leaves = [
        f.attr if isinstance(f, ast.Attribute) else f.id for f in calls if isinstance(f, ast.Attribute | ast.Name)
    ]
    return frozenset(leaves)


def _kernel(reading: Reading) -> Iterator[Finding]:
    is_reached = any(use.act is Act.KERNEL and use.is_forward for use in reading.uses)
    is_unclear = any(use.act is Act.UNCLEAR and use.is_forward and not use.name for use in reading.uses)
    advice = "call a function of the extension built by load_inline and return what it computed"
    if not is_reached and not is_unclear:
        yield Finding(Rule.DECOY, None, f"forward reaches no function of a built extension; {advice}", True)
    elif not is_reached:
        yield Finding(Rule.DECOY, None, "no call of a built extension can be seen in forward", False)
    elif reading.returned and not is_unclear and not _may_be_result(reading.returned):
        yield Finding(Rule.DECOY, None, f"the result of the extension is not returned; {advice}", False)


def _may_be_result(values: Values) -> bool:
    if any(load is Load.KERNEL for load in loads(values)):
        return True
    inner = [value.all for value in values if isinstance(value, Box)]
    return any(not isinstance(value, Tensor | Box) for value in values) or any(map(_may_be_result, inner))


def _tensor_classes(module: ast.Module) -> Iterator[Finding]:
    for node in ast.walk(module):
        if not isinstance(node, ast.ClassDef):
            continue
        if any(
            ast.unparse(base).endswith(("torch.Tensor", "Tensor", "TorchFunctionMode", "TorchDispatchMode"))
            for base in node.bases
        ):
            yield Finding(Rule.MACHINERY, node.lineno, "a class of tensors of its own; return plain torch.Tensor", True)
        for inner in node.body:
            if isinstance(inner, ast.FunctionDef) and inner.name in ("__torch_function__", "__torch_dispatch__"):
                yield Finding(Rule.MACHINERY, inner.lineno, f"`{inner.name}` intercepts PyTorch; remove it", True)


def _reuse(module: ast.Module, reading: Reading, reference: ast.Module | None) -> Iterator[Finding]:
    theirs = _forward(reference, REFERENCE)
    classes = {node.name: node for node in ast.walk(module) if isinstance(node, ast.ClassDef)}
    copies = {REFERENCE} if REFERENCE in classes else set()
    if theirs is not None:
        same = {name for name in classes if name != "ModelNew" and _same(_forward(module, name), theirs)}
        copies |= same
    bases = {base.rpartition(".")[2] for base in reading.model_bases}
    where = {name: classes[name].lineno for name in copies if name in classes}
    for name in sorted(copies | ({REFERENCE} & bases)):
        line = where.get(name)
        if name in bases:
            yield Finding(
                Rule.REFERENCE, line, f"ModelNew inherits from the reference `{name}`; derive from nn.Module", True
            )
        elif name in reading.called_classes:
            yield Finding(
                Rule.REFERENCE, line, f"forward runs the reference `{name}`; the kernel must do the work", True
            )
        elif name in reading.made_classes:
            yield Finding(Rule.REFERENCE, line, f"makes an instance of the reference `{name}`", False)
        else:
            yield Finding(Rule.REFERENCE, line, f"holds an unused copy of the reference `{name}`; leave it out", False)
    mine = _forward(module, "ModelNew")
    is_reached = any(use.act is Act.KERNEL and use.is_forward for use in reading.uses)
    if theirs is not None and not is_reached and _same(mine, theirs):
        line = mine.lineno if mine is not None else None
        yield Finding(Rule.REFERENCE, line, "ModelNew.forward is the reference's forward again", True)


def _forward(module: ast.Module | None, name: str) -> ast.FunctionDef | None:
    for node in ast.walk(module) if module is not None else ():
        if isinstance(node, ast.ClassDef) and node.name == name:
            return next((f for f in node.body if isinstance(f, ast.FunctionDef) and f.name == "forward"), None)
    return None


def _same(one: ast.FunctionDef | None, other: ast.FunctionDef | None) -> bool:
    return one is not None and other is not None and _shape(one) == _shape(other)


def _shape(function: ast.FunctionDef) -> str:
    """The body without docstring, annotations and the names of local variables."""
    body = [s for s in function.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    order: dict[str, str] = {}
    local = {a.arg for a in function.args.args}
    local |= {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for argument in function.args.args:
        order.setdefault(argument.arg, f"v{len(order)}")
    text = []
    for statement in body:
        is_return = isinstance(statement, ast.Return) and statement.value is not None
        tree = ast.parse(ast.unparse(statement).removeprefix("return ") if is_return else ast.unparse(statement))
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id in local:
                node.id = order.setdefault(node.id, f"v{len(order)}")
        text.append(type(statement).__name__ + ast.dump(tree))
    return "\n".join(text)
