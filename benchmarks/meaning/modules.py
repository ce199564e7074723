"""What can be wrong with one layer that a constructor makes: the same parameters, and something else made of them.

A wrong layer is a class of its own, derived from the right one, so that the module's state_dict stays as it is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping

from benchmarks.meaning.expressions import About, Rule, called

DIMENSIONS = ("1d", "2d", "3d")
X, WEIGHT, BIAS, EPSILON, MODE = "{x}", "{weight}", "{bias}", "{eps}", "{training}"
MADE = "(self.kept + [None])"
FORMULAS: Mapping[str, str] = {
    "LayerNorm": "F.layer_norm({x}, self.normalized_shape, {weight}, {bias}, {eps})",
    "GroupNorm": "F.group_norm({x}, self.num_groups, {weight}, {bias}, {eps})",
    "RMSNorm": "F.rms_norm({x}, self.normalized_shape, {weight}, {eps})",
    "BatchNorm": "F.batch_norm({x}, self.running_mean, self.running_var, {weight}, {bias}, {training}, 0.0, {eps})",
    "InstanceNorm": "F.instance_norm({x}, None, None, {weight}, {bias}, True, 0.0, {eps})",
    "PReLU": "F.prelu({x}, {weight})",
    "Linear": "F.linear({x}, {weight}, {bias})",
    "Conv": "self._conv_forward({x}, {weight}, {bias})",
    "ConvTranspose": "F.conv_transpose{d}({x}, {weight}, {bias}, self.stride, self.padding, self.output_padding, "
    "self.groups, self.dilation)",
}
TOGETHER = {
    "LayerNorm": "math.prod(self.normalized_shape)",
    "GroupNorm": "(x[0].numel() // self.num_groups)",
    "BatchNorm": "(x.numel() // x.shape[1])",
    "InstanceNorm": "x[0, 0].numel()",
}
"""How many numbers a normalisation takes the variance of."""
NORMS = (*TOGETHER, "RMSNorm")
PRODUCTS = ("Linear", "Conv", "ConvTranspose")
POOLS = ("AvgPool", "MaxPool")
ACTIVATIONS: Mapping[str, tuple[str, ...]] = {
    "ReLU": ("Identity()",), "ReLU6": ("ReLU()",), "GELU": ("Identity()", "GELU(approximate='tanh')"),
    "Sigmoid": ("Identity()", "Hardsigmoid()"), "Tanh": ("Identity()", "Hardtanh()"),
    "SiLU": ("Identity()", "Hardswish()"), "Hardswish": ("Identity()", "SiLU()"), "Softmax": ("Identity()",),
    "LeakyReLU": ("ReLU()",), "Mish": ("SiLU()",), "ELU": ("ReLU()",),
}  # fmt: skip
Fields = dict[str, str]


def layer_weight_not_applied(kind: str) -> Iterator[Fields]:
    """Ones in its place, or what it is made with."""
    if kind in NORMS:
        yield {"weight": "torch.ones_like(self.weight)"}
    elif kind == "PReLU":
        yield {"weight": "torch.full_like(self.weight, 0.25)"}


def layer_bias_not_applied(kind: str) -> Iterator[Fields]:
    """None is added."""
    if "{bias}" in FORMULAS.get(kind, ""):
        yield {"bias": "(None if self.bias is not None else 1 / 0)"}


def layer_weight_and_bias_swapped(kind: str) -> Iterator[Fields]:
    """The one in the place of the other."""
    if kind in TOGETHER:
        yield {"weight": "self.bias", "bias": "self.weight"}


def layer_keeps_constructed_weights(kind: str) -> Iterator[Fields]:
    """What was there when the layer was made, and nothing that was loaded after."""
    if kind in FORMULAS:
        yield {"weight": f"{MADE}[0]", "bias": f"{MADE}[1]"}


def layer_epsilon_changed(kind: str) -> Iterator[Fields]:
    """Left out, or another."""
    if kind in NORMS:
        yield {"eps": "1e-30"}
        yield {"eps": "(10 * (self.eps or 1e-6))"}


def layer_uses_other_statistics(kind: str) -> Iterator[Fields]:
    """Those of the batch for the running ones, and the other way round."""
    if kind == "BatchNorm":
        yield {"training": "not self.training"}


def layer_variance_unbiased(kind: str) -> Iterator[Fields]:
    """Divided by n - 1."""
    if kind in TOGETHER:
        share = f"(1 - 1 / {TOGETHER[kind]})"
        yield {"weight": f"(self.weight * {share} ** 0.5)", "eps": f"(self.eps * {share})"}


def layer_operands_rounded(kind: str) -> Iterator[Fields]:
    """Of fewer bits."""
    if kind in PRODUCTS:
        for name in ("bfloat16", "float16"):
            yield {"x": f"rounded(x, torch.{name})", "weight": f"rounded(self.weight, torch.{name})"}
    elif kind in NORMS:
        yield {"x": "rounded(x, torch.bfloat16)"}


def layer_last_term_left_out(kind: str) -> Iterator[Fields]:
    """A loop over what is summed ends one too early."""
    if kind in (*PRODUCTS, *NORMS):
        yield {"x": f"without_last(x, {1 if kind.startswith('Conv') else -1})"}


def layer_input_shifted(kind: str) -> Iterator[Fields]:
    """Read from one column further."""
    if kind in (*PRODUCTS, *POOLS):
        yield {"x": "torch.roll(x, 1, -1)"}


def layer_kernel_flipped(kind: str) -> Iterator[Fields]:
    """A convolution for a correlation, in one direction."""
    if kind in ("Conv", "ConvTranspose"):
        yield {"weight": "self.weight.flip(-1)"}


def layer_argument_changed(node: ast.expr, about: About) -> Iterator[str]:
    """The edge handled in another way, or a number of a layer that is another one."""
    if not isinstance(node, ast.Call):
        return
    kind, name = kind_of(node), called(node)
    if kind == "Conv":
        yield _given(node, padding_mode="'replicate'")
    elif kind == "AvgPool":
        yield _given(node, count_include_pad="False")
    for keyword in node.keywords:
        if keyword.arg in ("margin", "negative_slope", "alpha", "beta", "threshold", "p") and name != "Dropout":
            yield _given(node, **{keyword.arg: f"1.01 * {ast.unparse(keyword.value)}"})


def layer_activation_exchanged(node: ast.expr, about: About) -> Iterator[str]:
    """None, or something near it."""
    if isinstance(node, ast.Call):
        for other in ACTIVATIONS.get(called(node), ()):
            yield f"nn.{other}"


def kind_of(node: ast.Call) -> str:
    """A layer's name without its number of dimensions."""
    return re.sub(r"[123]d$", "", called(node))


def _given(node: ast.Call, **values: str) -> str:
    kept = [keyword for keyword in node.keywords if keyword.arg not in values]
    made = [ast.keyword(name, ast.parse(value, mode="eval").body) for name, value in values.items()]
    return ast.unparse(ast.Call(node.func, node.args, [*kept, *made]))


ALTERATIONS: tuple[Callable[[str], Iterator[Fields]], ...] = (
    layer_weight_not_applied, layer_bias_not_applied, layer_weight_and_bias_swapped, layer_keeps_constructed_weights,
    layer_epsilon_changed, layer_uses_other_statistics, layer_variance_unbiased, layer_operands_rounded,
    layer_last_term_left_out, layer_input_shifted, layer_kernel_flipped,
)  # fmt: skip
RULES: tuple[Rule, ...] = (layer_argument_changed, layer_activation_exchanged)


def altered(node: ast.expr, alteration: Callable[[str], Iterator[Fields]]) -> Iterator[tuple[str, str]]:
    """Calls to stand in a layer's place, each with the text of the class that it calls."""
    if not isinstance(node, ast.Call):
        return
    for number, fields in enumerate(alteration(kind_of(node))):
        name = f"{called(node)}{alteration.__name__.title().replace('_', '')}{number or ''}"
        yield ast.unparse(ast.Call(ast.Name(name), node.args, node.keywords)), _class(name, called(node), fields)


def _class(name: str, layer: str, fields: Fields) -> str:
    kind = re.sub(r"[123]d$", "", layer)
    usual = {"x": "x", "weight": "self.weight", "bias": "self.bias", "eps": "self.eps", "training": "self.training"}
    formula = FORMULAS.get(kind, "super().forward({x})").replace("{d}", layer[-2:])
    kept = (
        "    def __init__(self, *args, **kwargs):\n        super().__init__(*args, **kwargs)\n"
        "        self.kept = [one.detach().clone() for one in self.parameters()]\n\n"
    )
    return (
        f"class {name}(nn.{layer}):\n{kept if MADE in ''.join(fields.values()) else ''}"
        f"    def forward(self, x):\n        return {formula.format(**{**usual, **fields})}\n"
    )
