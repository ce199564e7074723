"""What operators between a candidate's values give: on tensors they compute, on containers they do not. No rule."""

from __future__ import annotations

import ast

from engine.evaluation.screening import operators
from engine.evaluation.screening.containers import operands
from engine.evaluation.screening.keeping import Keeping
from engine.evaluation.screening.strings import join
from engine.evaluation.screening.uses import Act
from engine.evaluation.screening.values import NUMBER, Box, Instance, Text, Values, box, loads, tensor, union


class Arithmetic(Keeping):
    """Operator by operator."""

    def binary(self, node: ast.BinOp, callee: bool) -> Values:
        """`a + b`."""
        left, right = self.values(node.left), self.values(node.right)
        method = operators.METHOD_OF[type(node.op).__name__]
        is_own = any(isinstance(v, Instance) for v in (*left, *right))
        if is_own:
            self.special(right, f"__r{method}__", [left])
        if (found := [*operands(left), *operands(right)]) and not is_own:
            self.note(Act.COMPUTED, type(node.op).__name__, node, is_result=max(found).is_result)
            return tensor(max(found))
        if own := self.special(left, f"__{method}__", [right]):
            return own
        is_text = any(isinstance(v, Text) for v in (*left, *right))
        if isinstance(node.op, ast.Add) and is_text:
            return join([left, right])
        if isinstance(node.op, ast.Mod | ast.Mult) and is_text:
            spread = [item for v in right if isinstance(v, Box) for item in v.items]
            return join([left, *(spread or [right])], is_whole=False)
        if isinstance(node.op, ast.Add) and any(isinstance(v, Box) for v in left):
            return box([i for v in (*left, *right) if isinstance(v, Box) for i in v.items])
        if isinstance(node.op, ast.BitOr | ast.Mult) and any(isinstance(v, Box) for v in (*left, *right)):
            boxes = frozenset(v for v in (*left, *right) if isinstance(v, Box))
            return boxes if isinstance(node.op, ast.Mult) else union((left, right))
        return NUMBER

    def unary(self, node: ast.UnaryOp, callee: bool) -> Values:
        """`-a`."""
        values = self.values(node.operand)
        if (found := loads(values)) and not isinstance(node.op, ast.Not):
            self.note(Act.COMPUTED, type(node.op).__name__, node, is_result=max(found).is_result)
            return tensor(max(found))
        return NUMBER

    def compare(self, node: ast.Compare, callee: bool) -> Values:
        """`a < b`."""
        sides = [self.values(side) for side in (node.left, *node.comparators)]
        is_none = any(isinstance(side, ast.Constant) and side.value is None for side in node.comparators)
        is_math = any(isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE | ast.Eq | ast.NotEq) for op in node.ops)
        is_equality = all(isinstance(op, ast.Eq | ast.NotEq) for op in node.ops)
        found = [load for side in sides for load in (operands(side) if is_equality else loads(side))]
        if found and is_math and not is_none:
            self.note(Act.COMPUTED, type(node.ops[0]).__name__, node, is_result=max(found).is_result)
            return tensor(max(found))
        return NUMBER
