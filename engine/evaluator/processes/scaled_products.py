"""A reference's products of FP8 matrices as `torch._scaled_mm` computes them, found in the graph of its operators.

Found is a product of two matrices that are converted from 8 bits and scaled, before it or after it, by numbers that are
the same along the summed dimension: one for each matrix, or one for each row and column. Decides nothing: whether the
result is near enough is for the check of timed calls to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._inductor.custom_graph_pass import CustomGraphPass
from torch.fx import Graph, Node

from engine.evaluator.processes.half_baseline import Forward
from storage.results.baselines import NO_SCALED_PRODUCT

aten: Any = torch.ops.aten
prims: Any = torch.ops.prims

_CODES = (torch.float8_e4m3fn, torch.float8_e5m2)
_DIRECT = (torch.float32, torch.bfloat16, torch.float16)  # what `_scaled_mm` may write with one scale for each matrix
_BY_ROWS = torch.bfloat16  # and with one for each row and column, on every GPU that has it
_CONVERTS = (aten._to_copy.default, prims.convert_element_type.default, aten.to.dtype)
_TURNS = (aten.t.default, aten.permute.default, aten.transpose.int)
_SHAPES = (aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.expand.default, aten.clone.default)
_SCALES = {aten.mul.Tensor: False, aten.mul.Scalar: False, aten.div.Tensor: True, aten.div.Scalar: True}


def compiled(forward: Forward) -> Forward:
    """A forward under torch.compile with `torch._scaled_mm` in place of its products of FP8 matrices.

    Raises:
        RuntimeError: when it is called first: it has no such product.
    """
    rewriting = _Rewriting()
    call = torch.compile(forward, options={"post_grad_custom_pre_pass": rewriting})

    def called(*inputs: Any, **named: Any) -> Any:
        result = call(*inputs, **named)
        if not rewriting.count:
            raise RuntimeError(NO_SCALED_PRODUCT)
        return result

    return called


class _Rewriting(CustomGraphPass):
    """The step of torch.compile that puts them in, and how many it has."""

    count = 0

    def __call__(self, graph: Graph) -> None:
        self.count += rewritten(graph)

    def uuid(self) -> None:
        """None: a kept graph would pass over the count."""
        return


def rewritten(graph: Graph) -> int:
    """Put `torch._scaled_mm` in place of each product of FP8 matrices in a graph of aten's operators, each of whose
    nodes has its tensor without contents; how many there were."""
    products = [node for node in graph.nodes if node.target in (aten.mm.default, aten.addmm.default)]
    count = sum(_Product(graph, node).is_replaced() for node in products)
    graph.eliminate_dead_code()
    return count


@dataclass(slots=True)
class _Scaled:
    """A matrix of 8 bits, and what it is multiplied by: numbers, and tensors that broadcast to it and do not vary along
    its summed dimension; each with whether it divides."""

    codes: Node
    scales: list[tuple[Node | float, bool]] = field(default_factory=list)


class _Product:
    """One product (M, K) @ (K, N), being looked at and replaced. What is written for one that is none is dead."""

    def __init__(self, graph: Graph, product: Node) -> None:
        self._graph, self._product = graph, product
        self._bias: Any = product.args[0] if product.target is aten.addmm.default else None
        self._is_plain = not product.kwargs  # addmm may weigh its parts
        self._last = product

    def is_replaced(self) -> bool:
        a, b = self._product.args[-2:]
        if not self._is_plain or not (isinstance(a, Node) and isinstance(b, Node)):
            return False
        with self._graph.inserting_before(self._product):
            left, right = self._operand(a, 1), self._operand(b, 0)
        if left is None or right is None:
            return False
        if self._bias is None:
            self._take_what_follows(left, right)
        with self._graph.inserting_before(self._last):
            result = self._written(left, right)
        result.meta.update(self._last.meta)
        self._last.replace_all_uses_with(result)
        return True

    def _operand(self, node: Node, summed: int) -> _Scaled | None:
        """The matrix that a node holds, `summed` of whose dimensions goes away; None where it is no scaled FP8 one."""
        if _value(node).dtype in _CODES:
            return _Scaled(node)
        source = node.args[0] if node.args else None
        if not isinstance(source, Node):
            return None
        if node.target in _CONVERTS:
            return self._operand(source, summed)
        if node.target in _SCALES:
            return self._scaled(node, summed)
        if node.target in _TURNS and _value(node).ndim == 2 and _value(node).shape == _value(source).shape[::-1]:
            return self._turned(self._operand(source, 1 - summed))
        if node.target in _SHAPES:
            return self._reshaped(node, source, summed)
        return None

    def _scaled(self, node: Node, summed: int) -> _Scaled | None:
        for matrix, scale in _factors(node):
            aligned = self._aligned(scale, _value(node))
            if aligned is None or (isinstance(aligned, Node) and _value(aligned).shape[summed] != 1):
                continue
            if (found := self._operand(matrix, summed)) is not None:
                return _Scaled(found.codes, [*found.scales, (aligned, _SCALES[node.target])])
        return None

    def _turned(self, found: _Scaled | None) -> _Scaled | None:
        if found is None:
            return None
        return _Scaled(self._turn(found.codes), [
            (self._turn(scale) if isinstance(scale, Node) else scale, divides) for scale, divides in found.scales
        ])  # fmt: skip

    def _reshaped(self, node: Node, source: Node, summed: int) -> _Scaled | None:
        """The same shape, or several leading dimensions as one."""
        before, after = _value(source).shape, _value(node).shape
        if before == after:
            return self._operand(source, summed)
        if len(after) != 2 or summed != 1 or before[-1] != after[-1] or _value(node).numel() != _value(source).numel():
            return None
        if (found := self._operand(source, len(before) - 1)) is None:
            return None
        scales = list[tuple[Node | float, bool]]()
        for scale, divides in found.scales:
            if isinstance(scale, Node):
                scale = self._emit(aten.expand.default, scale, [*before[:-1], 1])
                scale = self._emit(aten.reshape.default, scale, [after[0], 1])
            scales.append((scale, divides))
        return _Scaled(self._emit(aten.reshape.default, found.codes, list(after)), scales)

    def _take_what_follows(self, left: _Scaled, right: _Scaled) -> None:
        """Scales of the product itself belong to its rows or its columns, and a conversion says what is written."""
        while len(self._last.users) == 1 and _value(self._last).dtype in (torch.float32, torch.float64):
            (user,) = self._last.users
            if user.target in _CONVERTS and _value(user).dtype in _DIRECT:
                self._last = user
                continue
            scale = next((scale for matrix, scale in _factors(user) if matrix is self._last), None)
            if user.target not in _SCALES or scale is None or scale is self._last:
                return
            with self._graph.inserting_before(user):
                aligned = self._aligned(scale, _value(self._last))
            shape = _value(aligned).shape if isinstance(aligned, Node) else (1, 1)
            if aligned is None or _value(user).shape != _value(self._last).shape or 1 not in shape:
                return
            (left if shape[1] == 1 else right).scales.append((aligned, _SCALES[user.target]))
            self._last = user

    def _written(self, left: _Scaled, right: _Scaled) -> Node:
        wanted = _value(self._last).dtype
        codes = self._in_rows(left.codes), self._turn(self._in_rows(self._turn(right.codes)))
        scales = [self._scale(found.scales) for found in (left, right)]
        is_by_rows = any(_value(scale).numel() > 1 for scale in scales)
        written = wanted if wanted in _DIRECT and (not is_by_rows or wanted is _BY_ROWS) else torch.float32
        factors = list[Node]()
        if is_by_rows and written is _BY_ROWS:
            rows, columns = _value(codes[0]).shape[0], _value(codes[1]).shape[1]
            scales = [self._spread(scales[0], [rows, 1]), self._spread(scales[1], [1, columns])]
        elif is_by_rows:
            factors, scales = scales, [self._number(1.0)] * 2
        result = self._emit(aten._scaled_mm.default, *codes, *scales, None, None, written, False)
        for factor in factors:
            result = self._emit(aten.mul.Tensor, result, factor)
        if written is not wanted:
            result = self._emit(prims.convert_element_type.default, result, wanted)
        return result if self._bias is None else self._emit(aten.add.Tensor, result, self._bias)

    def _scale(self, scales: Sequence[tuple[Node | float, bool]]) -> Node:
        """One scale in float32, of (1, 1) or as long as the matrix."""
        number, product = 1.0, None
        for scale, divides in scales:
            if not isinstance(scale, Node):
                number *= 1 / scale if divides else scale
                continue
            factor = self._emit(prims.convert_element_type.default, scale, torch.float32)
            factor = self._emit(aten.reciprocal.default, factor) if divides else factor
            product = factor if product is None else self._emit(aten.mul.Tensor, product, factor)
        if product is None:
            return self._number(number)
        return product if number == 1.0 else self._emit(aten.mul.Tensor, product, self._number(number))

    def _number(self, number: float) -> Node:
        device = _value(self._product).device
        return self._emit(aten.full.default, [1, 1], number, dtype=torch.float32, device=device)

    def _spread(self, scale: Node, shape: list[int]) -> Node:
        return self._in_rows(self._emit(aten.expand.default, scale, shape))

    def _aligned(self, scale: Any, whole: torch.Tensor) -> Node | float | None:
        """A scale with as many dimensions as the matrix has; None for what is none."""
        if isinstance(scale, int | float):
            return float(scale)
        if not isinstance(scale, Node) or not _value(scale).is_floating_point():
            return None
        shape = list(_value(scale).shape)
        if len(shape) > whole.ndim or _value(scale).dtype in _CODES:
            return None
        return self._emit(aten.reshape.default, scale, [1] * (whole.ndim - len(shape)) + shape)

    def _in_rows(self, matrix: Node) -> Node:
        if _value(matrix).is_contiguous():
            return matrix
        return self._emit(aten.clone.default, matrix, memory_format=torch.contiguous_format)

    def _turn(self, matrix: Node) -> Node:
        return self._emit(aten.permute.default, matrix, [1, 0])

    def _emit(self, operator: Any, *args: Any, **kwargs: Any) -> Node:
        node = self._graph.call_function(operator, args, kwargs)
        fake: Any = _value(self._product)
        with fake.fake_mode:
            node.meta["val"] = operator(*(_value(arg) if isinstance(arg, Node) else arg for arg in args), **kwargs)
        return node


def _value(node: Node) -> torch.Tensor:
    value: torch.Tensor = node.meta["val"]
    return value


def _factors(node: Node) -> list[tuple[Node, Any]]:
    """What a product of elements may be read as: a matrix and its scale."""
    if len(node.args) < 2 or not isinstance(node.args[0], Node):
        return []
    first, second = node.args[:2]
    ways: list[tuple[Any, Any]] = [(first, second)]
    if isinstance(second, Node) and not _SCALES.get(node.target, True):
        ways.append((second, first))
    shape = _value(node).shape
    return [(matrix, scale) for matrix, scale in ways if _value(matrix).shape == shape]
