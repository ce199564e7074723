"""What of a candidate's file runs when it is imported and its model called. The rest is neither screened nor executed.

Both use the same tree: what screening has not seen cannot run, whatever the file does to be called.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from types import CodeType

NAME, MAIN = "__name__", "__main__"
CONVERTER = "convert_state_dict"
"""A function that the evaluator calls: it makes ModelNew's state_dict of the reference's."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


def code(source: str, file: str) -> CodeType:
    """A candidate's file, compiled, without what never runs."""
    whole = compile(source, file, "exec")  # Python's own errors, also about what never runs
    try:
        return compile(live(ast.parse(source, file)), file, "exec")
    except (RecursionError, MemoryError):  # screening refuses such a file
        return whole


def live(module: ast.Module) -> ast.Module:
    """The same tree without what never runs: what stands under `if __name__ == "__main__":`, and the bodies of
    functions that nothing else names, as KernelBench's `get_inputs`."""
    if not any(_binds_name(node) for node in ast.walk(module)):
        module = _Guards().visit(module)
    for function in _never_called(module):
        function.body = [ast.copy_location(ast.Pass(), function.body[0])]
    return module


class _Guards(ast.NodeTransformer):
    """Leaves the branch that runs. In functions and classes what is bound under a guard says whose a name is."""

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        if (is_taken := _outcome(node.test)) is None:
            return node
        return (node.body if is_taken else node.orelse) or ast.copy_location(ast.Pass(), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node


def _outcome(test: ast.expr) -> bool | None:
    """What a test comes to in a file that is imported; None for any that is no constant and not just the comparison."""
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq | ast.NotEq)):
        return None
    sides = (test.left, test.comparators[0])
    has_name = any(isinstance(side, ast.Name) and side.id == NAME for side in sides)
    has_main = any(isinstance(side, ast.Constant) and side.value == MAIN for side in sides)
    return isinstance(test.ops[0], ast.NotEq) if has_name and has_main else None


def _binds_name(node: ast.AST) -> bool:
    """True for what may give `__name__` another value, under whatever kind of statement."""
    if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
        return False
    if isinstance(node, ast.alias) and node.name == "*":
        return True
    return any(value == NAME or (isinstance(value, list) and NAME in value) for _, value in ast.iter_fields(node))


def _never_called(module: ast.Module) -> list[Function]:
    """Functions of the module that no code which runs names, not even in a string. Decorators call what they decorate,
    and Python calls `__getattr__`."""
    waiting = [
        node
        for node in module.body
        if isinstance(node, Function)
        and not node.decorator_list
        and not node.name.startswith("__")
        and node.name != CONVERTER
    ]
    named = set(_names(module, {id(statement) for function in waiting for statement in function.body}))
    while called := [function for function in waiting if function.name in named]:
        waiting = [function for function in waiting if function not in called]
        named.update(name for function in called for statement in function.body for name in _names(statement))
    return waiting


def _names(node: ast.AST, left_out: Collection[int] = ()) -> Iterator[str]:
    """Every name and every whole string below a node, other than what it defines."""
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, str) and not (field == "name" and isinstance(node, Function)):
                yield child
            elif isinstance(child, ast.AST) and id(child) not in left_out:
                yield from _names(child, left_out)
