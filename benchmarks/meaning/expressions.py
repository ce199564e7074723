"""What can be wrong with one expression of `forward`. Each rule gives texts to stand in its place; runs nothing.

A rule need not know whether its text runs or changes anything: what fails or changes nothing is not counted.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

LIBRARIES = ("torch", "F", "functional", "nn.functional", "torch.nn.functional", "torch.linalg", "torch.special")
REDUCTIONS = ("mean", "sum", "max", "min", "amax", "amin", "argmax", "argmin", "logsumexp", "norm", "var", "std")
ALONG = (*REDUCTIONS, "softmax", "log_softmax", "cumsum", "cumprod", "normalize")
OTHER_REDUCTION: Mapping[str, tuple[str, ...]] = {
    "mean": ("sum", "amax"), "sum": ("mean",), "max": ("min",), "min": ("max",), "amax": ("amin", "mean"),
    "amin": ("amax",), "argmax": ("argmin",), "argmin": ("argmax",), "logsumexp": ("amax",), "cumsum": ("cumprod",),
    "std": ("var",), "softmax": ("log_softmax",), "log_softmax": ("softmax",),
}  # fmt: skip
PRODUCTS = ("matmul", "bmm", "mm", "einsum", "linear", "conv1d", "conv2d", "conv3d", "scaled_dot_product_attention")
ACTIVATIONS: Mapping[str, str] = {
    "relu": "{x}", "gelu": "torch.nn.functional.gelu({x}, approximate='tanh')",
    "sigmoid": "torch.nn.functional.hardsigmoid({x})", "tanh": "torch.nn.functional.hardtanh({x})",
    "silu": "torch.nn.functional.hardswish({x})", "hardswish": "torch.nn.functional.silu({x})",
    "hardsigmoid": "torch.sigmoid({x})", "hardtanh": "torch.tanh({x})", "elu": "torch.relu({x})",
    "selu": "torch.nn.functional.elu({x})", "leaky_relu": "torch.relu({x})", "softplus": "torch.relu({x})",
    "mish": "torch.nn.functional.silu({x})", "exp": "(1 + {x})", "clamp": "{x}",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class About:
    """What a rule knows beside the expression: names of the module's parameters, and whether it is what is returned."""

    parameters: Collection[str] = ()
    is_result: bool = False


Rule = Callable[[ast.expr, About], Iterator[str]]


def dimension_changed(node: ast.expr, about: About) -> Iterator[str]:
    """A reduction along another axis."""
    if isinstance(node, ast.Call) and called(node) in ALONG and (found := _dimension(node)) is not None:
        yield _with(node, found, _another(found))


def reduction_exchanged(node: ast.expr, about: About) -> Iterator[str]:
    """The sum for the mean, the largest for the mean, and the like."""
    if isinstance(node, ast.Call):
        for name in OTHER_REDUCTION.get(called(node), ()):
            yield _renamed(node, name)


def norm_of_another_order(node: ast.expr, about: About) -> Iterator[str]:
    """Absolute values for squares."""
    if isinstance(node, ast.Call) and called(node) == "norm":
        yield _with_keyword(node, "p", "1")


def last_term_left_out(node: ast.expr, about: About) -> Iterator[str]:
    """A loop over what is reduced ends one too early."""
    if isinstance(node, ast.Call) and called(node) in (*ALONG, *PRODUCTS) and called(node) != "einsum":
        found = _dimension(node) if called(node) in ALONG else None
        along = ast.unparse(found) if found is not None else "-1"
        along = along if not isinstance(found, (ast.Tuple, ast.List)) else ast.unparse(found.elts[-1])
        yield _on(node, f"without_last({operand(node)}, {along})")
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        yield f"without_last({ast.unparse(node.left)}, -1) @ ({ast.unparse(node.right)})"


def tail_not_written(node: ast.expr, about: About) -> Iterator[str]:
    """The last column, row or element of the result keeps zeros."""
    if about.is_result:
        whole = ast.unparse(node)
        yield from (f"without_last({whole}, {along})" for along in (-1, 0))
        yield f"without_last_element({whole})"


def result_rounded(node: ast.expr, about: About) -> Iterator[str]:
    """Held in a narrower type on its way."""
    if about.is_result:
        yield from (f"rounded({ast.unparse(node)}, torch.{name})" for name in ("bfloat16", "float16"))


def operands_rounded(node: ast.expr, about: About) -> Iterator[str]:
    """Products of operands of fewer bits."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        left, right = ast.unparse(node.left), ast.unparse(node.right)
        for name in ("bfloat16", "float16"):
            yield f"rounded({left}, torch.{name}) @ rounded({right}, torch.{name})"
    elif isinstance(node, ast.Call) and called(node) in PRODUCTS and called(node) != "einsum":
        for name in ("bfloat16", "float16"):
            yield _on(node, f"rounded({operand(node)}, torch.{name})")


def operands_swapped(node: ast.expr, about: About) -> Iterator[str]:
    """b a for a b, and the other way round for a difference or a quotient."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.MatMult, ast.Sub, ast.Div)):
        yield ast.unparse(ast.BinOp(node.right, node.op, node.left))
    elif isinstance(node, ast.Call) and called(node) in ("matmul", "bmm", "mm") and len(node.args) == 2:
        yield ast.unparse(ast.Call(node.func, node.args[::-1], node.keywords))


def mask_dropped(node: ast.expr, about: About) -> Iterator[str]:
    """Everything is seen."""
    if isinstance(node, ast.Call) and called(node) in ("tril", "triu", "masked_fill"):
        yield operand(node)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and "mask" in ast.unparse(node.right):
        yield ast.unparse(node.left)
    elif _is_causal(node):
        yield _with_keyword(node, "is_causal", "False")


def mask_inverted(node: ast.expr, about: About) -> Iterator[str]:
    """The other part is seen."""
    if isinstance(node, ast.Call) and called(node) in ("tril", "triu"):
        yield _renamed(node, "triu" if called(node) == "tril" else "tril")
    elif isinstance(node, ast.Call) and called(node) == "masked_fill":
        yield _with(node, node.args[0], f"~({ast.unparse(node.args[0])})")
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and "mask" in ast.unparse(node.right):
        yield f"({ast.unparse(node.left)}) * ~({ast.unparse(node.right)})"


def mask_off_by_one(node: ast.expr, about: About) -> Iterator[str]:
    """The diagonal belongs to the other part."""
    if isinstance(node, ast.Call) and called(node) in ("tril", "triu"):
        given = node.args[0 if _is_method(node) else 1 :]
        number = ast.unparse(given[0]) if given else "0"
        for by in ("+ 1", "- 1"):
            yield f"torch.{called(node)}({operand(node)}, ({number}) {by})"


def constant_changed(node: ast.expr, about: About) -> Iterator[str]:
    """A number with a fraction, a bound or a slope is off by a hundredth, or by half."""
    if isinstance(node, ast.Constant) and isinstance(node.value, float) and abs(node.value) != float("inf"):
        yield from (repr(node.value * factor if node.value else factor - 1) for factor in (1.01, 1.5))
    elif isinstance(node, ast.Call) and called(node) in ("clamp", "hardtanh", "leaky_relu", "elu"):
        for number in (*node.args, *(keyword.value for keyword in node.keywords)):
            if isinstance(number, ast.Constant) and isinstance(number.value, int):
                yield _with(node, number, repr(number.value + 0.01))


def attribute_changed(node: ast.expr, about: About) -> Iterator[str]:
    """A number that the module was made with is another; a tensor or an axis is too, or fails."""
    if _is_own(node) and ast.unparse(node).split(".")[1] not in about.parameters:
        yield f"({ast.unparse(node)} * 1.01)"


def epsilon_left_out(node: ast.expr, about: About) -> Iterator[str]:
    """Nothing is added below the root, or far more."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and "eps" in ast.unparse(node.right):
        yield ast.unparse(node.left)
        yield f"({ast.unparse(node.left)} + 10 * {ast.unparse(node.right)})"


def scale_left_out(node: ast.expr, about: About) -> Iterator[str]:
    """A factor or divisor that is one number."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        if _is_number(node.right):
            yield ast.unparse(node.left)
        elif _is_number(node.left) and isinstance(node.op, ast.Mult):
            yield ast.unparse(node.right)


def operand_left_out(node: ast.expr, about: About) -> Iterator[str]:
    """The residual, the bias, the gate: one side of a sum or a product alone."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)):
        if not _is_number(node.right) and not _is_number(node.left):
            yield ast.unparse(node.left)
            if not isinstance(node.op, ast.Sub):
                yield ast.unparse(node.right)
        elif isinstance(node.op, (ast.Add, ast.Sub)):
            yield ast.unparse(node.left if _is_number(node.right) else node.right)


def sign_changed(node: ast.expr, about: About) -> Iterator[str]:
    """Added for subtracted, and the other way round."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        other = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
        yield ast.unparse(ast.BinOp(node.left, other, node.right))


def activation_left_out(node: ast.expr, about: About) -> Iterator[str]:
    """The operand itself."""
    if isinstance(node, ast.Call) and called(node) in ACTIVATIONS:
        yield operand(node)


def activation_approximated(node: ast.expr, about: About) -> Iterator[str]:
    """Something near it."""
    if isinstance(node, ast.Call) and (form := ACTIVATIONS.get(called(node), "{x}")) != "{x}":
        yield form.format(x=operand(node))


def kept_dimension_toggled(node: ast.expr, about: About) -> Iterator[str]:
    """Without the dimension that was kept, what follows broadcasts along another axis; where the sizes allow it."""
    if isinstance(node, ast.Call) and any(keyword.arg == "keepdim" for keyword in node.keywords):
        yield _with_keyword(node, "keepdim", "False")


def variance_biased(node: ast.expr, about: About) -> Iterator[str]:
    """Divided by n for n - 1, and the other way round."""
    if isinstance(node, ast.Call) and called(node) in ("var", "std"):
        given = next((one for one in node.keywords if one.arg in ("unbiased", "correction")), None)
        is_biased = given is not None and not ast.literal_eval(given.value)
        yield _with_keyword(node, given.arg or "" if given else "unbiased", "True" if is_biased else "False")


def parameter_not_read(node: ast.expr, about: About) -> Iterator[str]:
    """Ones where it is a factor, zeros where it is added; both are tried."""
    if _is_own(node) and ast.unparse(node).split(".")[1] in about.parameters:
        yield from (f"torch.{like}_like({ast.unparse(node)})" for like in ("ones", "zeros"))


def state_ignored(node: ast.expr, about: About) -> Iterator[str]:
    """A recurrent layer that starts from nothing, or sees the last steps alone."""
    if isinstance(node, ast.Call) and _is_own(node.func) and len(node.args) == 2:
        yield _with(node, node.args[1], f"torch.zeros_like({ast.unparse(node.args[1])})")


def called(node: ast.Call) -> str:
    """The last part of what is called; of a layer of the module, nothing."""
    if _is_own(node.func):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)


def operand(node: ast.Call) -> str:
    """What a function or method of a tensor is applied to."""
    if _is_method(node):
        assert isinstance(node.func, ast.Attribute)
        return f"({ast.unparse(node.func.value)})"
    return ast.unparse(node.args[0]) if node.args else "None"


def _is_method(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) not in LIBRARIES


def _on(node: ast.Call, text: str) -> str:
    """The same call on another operand."""
    if _is_method(node):
        assert isinstance(node.func, ast.Attribute)
        return _with(node, node.func.value, f"({text})")
    return _with(node, node.args[0], text)


def _with(node: ast.expr, part: ast.expr, text: str) -> str:
    """The same expression with one of its parts replaced."""
    path = next(number for number, one in enumerate(ast.walk(node)) if one is part)
    made = copy.deepcopy(node)
    target = list(ast.walk(made))[path]
    return ast.unparse(replaced(made, target, text))


def replaced(tree: ast.AST, target: ast.AST, text: str) -> ast.AST:
    """A tree in which one node, found by identity, is what the text says."""

    class Replacing(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return ast.parse(text, mode="eval").body if node is target else self.generic_visit(node)

    return ast.fix_missing_locations(Replacing().visit(tree))


def _with_keyword(node: ast.expr, name: str, value: str) -> str:
    assert isinstance(node, ast.Call)
    others = [keyword for keyword in node.keywords if keyword.arg != name]
    made = ast.keyword(name, ast.parse(value, mode="eval").body)
    return ast.unparse(ast.Call(node.func, node.args, [*others, made]))


def _renamed(node: ast.Call, name: str) -> str:
    if not isinstance(node.func, ast.Attribute):
        return ast.unparse(ast.Call(ast.Name(name), node.args, node.keywords))
    library = node.func.value if _is_method(node) else ast.Name("torch")
    return ast.unparse(ast.Call(ast.Attribute(library, name), node.args, node.keywords))


def _dimension(node: ast.Call) -> ast.expr | None:
    given = next((keyword.value for keyword in node.keywords if keyword.arg in ("dim", "axis")), None)
    place = (0 if _is_method(node) else 1) + (called(node) in ("norm", "normalize"))
    is_name = len(node.args) > place and isinstance(node.args[place], ast.Starred)
    return given or (node.args[place] if len(node.args) > place and not is_name else None)


def _another(dimension: ast.expr) -> str:
    if isinstance(dimension, (ast.Tuple, ast.List)):
        return ast.unparse(ast.Tuple(dimension.elts[:-1]))
    try:
        number = ast.literal_eval(dimension)
    except ValueError:
        return f"({ast.unparse(dimension)} - 1)"
    return repr(number - 1 if number else 1)


def _is_number(node: ast.expr) -> bool:
    """A literal, a size, a power or root of one, or a constant of the module named so."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float))
    if isinstance(node, ast.BinOp):
        return _is_number(node.left) and _is_number(node.right)
    text = ast.unparse(node)
    names = (".shape[", ".size(", "math.sqrt", "scal", "divi", "multipl", "factor", "temperature", "eps", "value")
    return isinstance(node, (ast.Subscript, ast.Call, ast.Attribute, ast.Name)) and any(name in text for name in names)


def _is_own(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _is_causal(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and any(keyword.arg == "is_causal" for keyword in node.keywords)


RULES: tuple[Rule, ...] = (
    dimension_changed, reduction_exchanged, norm_of_another_order, last_term_left_out, tail_not_written,
    result_rounded, operands_rounded, operands_swapped, mask_dropped, mask_inverted, mask_off_by_one,
    constant_changed, attribute_changed, epsilon_left_out, scale_left_out, operand_left_out, sign_changed,
    activation_left_out, activation_approximated, kept_dimension_toggled, variance_biased, parameter_not_read,
    state_ignored,
)  # fmt: skip
