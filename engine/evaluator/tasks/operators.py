"""What a task's text says of its kind: its large operators, and the kernel class they make it. Runs nothing of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from engine.errors import TaskError
from engine.evaluator.tasks.parsing import parse
from storage.results import policy
from storage.results.policy import EVERYTHING
from storage.results.vocabulary import KernelClass

# Large operators in a file from which on it counts as a whole network.
NETWORK = 4
_CONVOLUTIONS = [f"{kind}{size}d" for kind in ("conv", "conv_transpose") for size in (1, 2, 3)]
_RECURRENT = {"LSTM": "lstm", "GRU": "gru", "RNN": "rnn_tanh"}
# As a layer, a function or a method, by the name that PyTorch's dispatcher knows.
_LARGE = {
    **{name: name for name in (*_CONVOLUTIONS, "linear", "bilinear", "matmul", "bmm", "mm", "addmm", "einsum")},
    "_scaled_mm": "_scaled_mm",
    **{name.title().replace("_", "").replace("D", "d"): name for name in (*_CONVOLUTIONS, "linear", "bilinear")},
    **dict.fromkeys(("scaled_dot_product_attention", "MultiheadAttention"), "scaled_dot_product_attention"),
    **_RECURRENT,
}
# Layers that are made of several large operators.
_MADE_OF = {
    f"Transformer{part}": ("linear",) * 4 + ("scaled_dot_product_attention",)
    for part in ("", "Encoder", "EncoderLayer", "Decoder", "DecoderLayer")
}
_LOSS = re.compile(r"loss|^cross_entropy$|^kl_div$|^binary_cross_entropy|cosine_similarity")
_REDUCES = re.compile(
    r"norm|pool|softmax|^transformer|softmin|^(cum)?(sum|prod|max|min)$|^mean$|^var$|^std$|logsumexp|^arg(max|min)$|^topk$|^sort$|^any$|"
    r"^all$|^median$|^flip$"
)
_ACTIVATES = re.compile(
    r"relu|elu$|sigmoid|tanh|swish|silu|mish|softplus|softsign|shrink|^exp$|^erf$|^clamp$|^sqrt$|^pow$|^abs$|^glu$"
)
_PLAIN_IMPORTS = {"torch", "math", "typing", "__future__", "collections", "functools", "itertools"}
_MAKES_STATE = {"register_buffer", "register_parameter", "getattr", "jit"}
_CLASS = re.compile(r"[A-Z][A-Za-z0-9]*[a-z]")
# Modules without state, and names of classes that are no modules.
_STATELESS = re.compile(
    r"^(Module|ModuleList|Sequential|Tensor|Size|Any|Optional|Union|List|Tuple|Dict|Callable|Identity|Flatten|Unflatten|"
    r"ReLU6?|LeakyReLU|ELU|SELU|CELU|GELU|SiLU|Mish|GLU|Tanh|Sigmoid|LogSigmoid|Softplus|Softsign|Softmin|Softmax2?d?|"
    r"LogSoftmax|Hard\w+|\w*shrink|Dropout[123]?d?|\w*Pool[123]d|\w*Pad[123]d|Upsample|CosineSimilarity|Fold|"
    r"Unfold|PixelShuffle|PairwiseDistance)$"
)


def proposed_operators(module: ast.Module) -> tuple[str, ...]:
    """What a whole network leaves to PyTorch unless somebody says otherwise: its large operators, in order of names.

    Nobody wants every convolution of a network replaced at once. Nothing for a file with few of them: there the
    operator is the task.
    """
    large = list(_large(module, 1))
    return tuple(sorted({name for name, _ in large})) if sum(count for _, count in large) >= NETWORK else ()


def guessed_class(module: ast.Module, left: Collection[str] = ()) -> KernelClass:
    """The kernel class by what takes the most time where it occurs: attention, then convolution, then products, a loss,
    a reduction or normalisation, an elementwise function; `other` where none of them does.

    What is `left` to PyTorch does not count, unless all is: then a kernel is written for what its writer likes.
    """
    large = {name for name, _ in _large(module, 1) if not _is_left(name, left)}
    called = {name for name in _called(module) if not _is_left(_LARGE.get(name, name), left)}
    is_attention = "scaled_dot_product_attention" in large or ("matmul" in large and "softmax" in called)
    choices = (
        (KernelClass.ATTENTION, is_attention and not large & set(_CONVOLUTIONS)),
        (KernelClass.CONVOLUTION, bool(large & set(_CONVOLUTIONS))),
        (KernelClass.MATMUL, bool(large) or "diag" in called),
        (KernelClass.LOSS, any(_LOSS.search(_lower(name)) for name in called)),
        (KernelClass.REDUCTION, any(_REDUCES.search(_lower(name)) for name in called)),
        (KernelClass.ACTIVATION, any(_ACTIVATES.search(_lower(name)) for name in called) or _is_arithmetic(module)),
    )
    return next((kernel_class for kernel_class, holds in choices if holds), KernelClass.OTHER)


def named_after(source: str) -> str:
    """What a module without a name is called: as the class that it defines last beside `Model`, else by the first three
    operators that it calls, else `model`.

    Raises:
        TaskError: it is not valid Python.
    """
    module = parse(source, "module")
    classes = [node.name for node in module.body if isinstance(node, ast.ClassDef) and node.name != "Model"]
    if classes:
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", classes[-1]).lower()[:40].strip("_") or "model"
    of_kind = (_LOSS, _REDUCES, _ACTIVATES)
    called = (name for name in _called(module) if name in _LARGE or any(kind.search(_lower(name)) for kind in of_kind))
    names = [name.strip("_") for name in dict.fromkeys(_LARGE.get(name, name.lower()) for name in called)]
    return "_".join(names[:3]) or "model"


def is_chain(source: str) -> bool:
    """Whether operators of a module's text follow one another, at least one of them a large one; attention is one
    operator."""
    try:
        module = parse(source, "the task")
    except TaskError:
        return False
    large = sum(count for _, count in _large(module, 1))
    if not large or (large < NETWORK and guessed_class(module) is KernelClass.ATTENTION):
        return False
    others = (name for name in _called(module) if _REDUCES.search(_lower(name)) or _ACTIVATES.search(_lower(name)))
    return large > 1 or any(name not in _LARGE for name in others) or _is_arithmetic(module)


def is_recurrence(source: str, left: Collection[str] = ()) -> bool:
    """Whether a module has recurrent layers that are not left to PyTorch."""
    try:
        module = parse(source, "the task")
    except TaskError:
        return False
    return any(name in _RECURRENT.values() and not _is_left(name, left) for name, _ in _large(module, 1))


def may_have_weights(source: str) -> bool:
    """Whether a module's text may make parameters or buffers; false only where everything that it makes has none."""
    try:
        module = parse(source, "the task")
    except TaskError:
        return True
    defined = {node.name for node in ast.walk(module) if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    for node in ast.walk(module):
        if isinstance(node, (ast.Import, ast.ImportFrom)) and not set(_imported(node)) <= _PLAIN_IMPORTS:
            return True
        if isinstance(node, (ast.Attribute, ast.Name)):
            name = node.attr if isinstance(node, ast.Attribute) else node.id
            if name in _MAKES_STATE or (_CLASS.match(name) and name not in defined and not _STATELESS.search(name)):
                return True
    return False


def kept_rules(version: int, source: str) -> str:
    """How kernels of a task were judged by rules of before, in words. Those differ in what is done with weights, so of
    a task without any there is nothing to say."""
    return policy.kept_rules(version) if may_have_weights(source) else ""


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or "."]
    yield from (name.partition(".")[0] for name in names)


def _is_arithmetic(module: ast.Module) -> bool:
    forwards = (node for node in ast.walk(module) if isinstance(node, ast.FunctionDef) and node.name == "forward")
    return any(
        isinstance(node, ast.BinOp) and not isinstance(node.op, ast.MatMult)
        for forward in forwards
        for node in ast.walk(forward)
    )


def _is_left(name: str, left: Collection[str]) -> bool:
    """As kernels are judged: `conv2d` is left by that name or as `conv`, and so is the layer `Conv2d`."""
    plain = name.lower().replace("_", "")
    names = {plain, re.sub(r"[123]d$", "", plain)}
    return EVERYTHING not in left and any(operator.lower().replace("_", "") in names for operator in left)


def _lower(name: str) -> str:
    return name.lower().removesuffix("_")


def _called(module: ast.Module) -> Iterator[str]:
    """Names of what the classes of a task call, in that order; how its inputs are drawn says nothing about it."""
    for part in (node for node in module.body if isinstance(node, ast.ClassDef)):
        calls = [node for node in ast.walk(part) if isinstance(node, ast.Call)]
        for node in sorted(calls, key=lambda call: (call.end_lineno or 0, call.end_col_offset or 0)):
            yield node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _large(node: ast.AST, count: int) -> Iterator[tuple[str, int]]:
    """Names of large operators and how many each place stands for: one in a loop or a helper is made more than once."""
    is_helper = isinstance(node, ast.FunctionDef) and node.name not in ("__init__", "forward")
    if is_helper or isinstance(node, (ast.For, ast.While, ast.comprehension, ast.ListComp, ast.GeneratorExp)):
        count = 3
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        yield "matmul", count
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        yield from ((part, count) for part in _MADE_OF.get(name, (_LARGE[name],) if name in _LARGE else ()))
    for child in ast.iter_child_nodes(node):
        yield from _large(child, count)
