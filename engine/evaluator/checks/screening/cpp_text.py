"""What a candidate's C++ may not do, as far as its text shows it: headers, assembly, streams, types below the task's
precision, and calls by name: the built library's symbols decide those too, but here they have a line and cost no build.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import tree_sitter_cuda
from tree_sitter import Language, Node, Parser

from engine.evaluator.checks.screening.finding import Finding, Rule
from engine.evaluator.checks.screening.symbols import REFUSED, TAKEN
from storage.results.policy import Policy

MOST_OPEN = 20  # comments that are not closed: each costs the parser a look at all that follows
LANGUAGE = Language(tree_sitter_cuda.language())
LIBRARY_HEADERS = re.compile(
    r"(cublas|cudnn|cusparse|cusolver|cufft|cutensor|mkl|cblas|lapack|openblas|oneapi|dnnl|Eigen)", re.I
)
ASSEMBLY = re.compile(
    r"\bsyscall\b|\bsysenter\b|\bint\s+\$?0x80|(?:^|[;\n])\s*\.(?:byte|word|short|long|quad|octa|incbin|ascii|asciz|string"
    r"|section|globl|symver|set|macro|include|rept|value|2byte|4byte|8byte|hword|inst|fill|zero)\b"
)
STREAMS = frozenset({"cudaStreamPerThread", "CU_STREAM_PER_THREAD"})
LOADED = re.compile(r"\bconstructor\b")
PRECISION = re.compile(
    r"__half2?|half_t|half2?|Half|__nv_bfloat162?|nv_bfloat16|bfloat16_t|BFloat16|tfloat32_t|_Float16|__fp16|__bf16|float16_t"
    r"|float_e4m3_t|float_e5m2_t|__nv_fp8\w+|Float8_\w+|__float2half\w*|__float2bfloat16\w*|_mm\d*_cvtps_ph|_mm\d*_cvtneps_pbh"
)
TF32 = "tfloat32_t"
NARROW_TYPES = re.compile(r"k(Half|BFloat16|Float16|Float8_\w+)")
CASTS = re.compile(r"(\.|->)(to|toType)$")
NAMES = ("identifier", "type_identifier", "field_identifier", "namespace_identifier")
TEXTS = ("string_content", "raw_string_content")
# Of these nobody outside the library learns.
HIDDEN = ("static", "inline", "__device__", "__global__", "constexpr", "template")


def findings(source: str, policy: Policy, first_line: int | None = 1) -> Iterator[Finding]:
    """Everything that stands against a text; lines count from `first_line`, None where nobody knows it."""
    narrow: dict[str, int | None] = {}
    nodes = list(_nodes(source))
    defined = {_text(name) for node in nodes if (name := node.child_by_field_name("declarator")) is not None}
    for node in nodes:
        line = first_line + node.start_point[0] if first_line else None
        if node.type == "preproc_include":
            yield from _include(node, line)
        elif node.type == "call_expression":
            yield from _call(node, line, defined)
        elif node.type == "function_definition":
            yield from _definition(node, line)
        elif node.type == "gnu_asm_expression":
            yield from _assembly(node, line)
        elif node.type == "preproc_arg" and "asm" in _text(node) and ASSEMBLY.search(_text(node).lower()):
            yield Finding(Rule.MACHINERY, line, "a macro with assembly that calls the system; leave it out", True)
        elif node.type == "attribute_specifier" and LOADED.search(_text(node)):
            yield Finding(Rule.MACHINERY, line, "code that runs when the library is loaded", False)
        elif node.type in NAMES and _text(node) in STREAMS:
            yield Finding(Rule.STREAMS, line, f"`{_text(node)}` leaves the current stream; launch on that one", True)
        elif _is_narrow(node, policy):
            narrow.setdefault(_text(node), line)
    if narrow:
        names = ", ".join(f"`{name}`" for name in sorted(narrow)[:4])
        line = min((line for line in narrow.values() if line), default=None)
        yield Finding(Rule.PRECISION, line, f"C++ uses {names}; outputs must be {policy.precision}", False)


def _closed(source: str) -> str:
    """With an end to a comment that has none: the parser would look for one from each `/*` on, to the end of all."""
    open_ones = source.count("/*", source.rfind("*/") + 1)
    return f"{source}\n*/" if open_ones > MOST_OPEN else source


def _nodes(source: str) -> Iterator[Node]:
    cursor = Parser(LANGUAGE).parse(_closed(source).encode(errors="replace")).walk()
    while True:
        if cursor.node is not None:
            yield cursor.node
        if cursor.goto_first_child() or cursor.goto_next_sibling():
            continue
        while cursor.goto_parent():
            if cursor.goto_next_sibling():
                break
        else:
            return


def _text(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")


def _call(node: Node, line: int | None, defined: set[str]) -> Iterator[Finding]:
    function = node.child_by_field_name("function")
    name = _text(function).removeprefix("::") if function is not None else ""
    if function is None or not name.isidentifier() or (name in defined and function.type == "identifier"):
        return
    for rule, what, pattern in REFUSED:
        if pattern.search(name):
            yield Finding(rule, line, f"C++ calls `{name}`: {what}", True)
            return


def _definition(node: Node, line: int | None) -> Iterator[Finding]:
    """A function of the evaluator's own name; `extern "C"` or not, the process may bind to it."""
    declarator = node.child_by_field_name("declarator")
    name = _text(inner) if declarator and (inner := declarator.child_by_field_name("declarator")) else ""
    head = _text(node).partition("(")[0].split()
    is_inner = node.parent is not None and node.parent.type in ("field_declaration_list", "template_declaration")
    if name in TAKEN and not is_inner and not any(word in HIDDEN for word in head):
        yield Finding(
            Rule.MACHINERY, line, f"defines its own `{name}`, which the process around it uses; rename it", True
        )


def _include(node: Node, line: int | None) -> Iterator[Finding]:
    path = node.child_by_field_name("path")
    name = _text(path)[1:-1] if path is not None else ""
    if path is None or path.type not in ("system_lib_string", "string_literal"):
        yield Finding(Rule.DYNAMIC, line, "#include needs a header's name, not a macro", True)
    elif LIBRARY_HEADERS.search(name):
        yield Finding(
            Rule.LIBRARY, line, f"includes <{name}>, a numerical library; the kernel must compute itself", True
        )
    elif name.startswith(("/", "~")) or ".." in name:
        yield Finding(Rule.OUTSIDE, line, f"includes a file of this machine, {name}; use library headers", True)


def _assembly(node: Node, line: int | None) -> Iterator[Finding]:
    code = node.child_by_field_name("assembly_code")
    inside = "".join(_text(part) for part in _below(code) if part.type in TEXTS) if code is not None else ""
    if ASSEMBLY.search(inside.lower().replace("\\n", "\n").replace("\\t", "\t")):
        yield Finding(Rule.MACHINERY, line, "inline assembly with a system call or raw data; leave it out", True)


def _below(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from _below(child)


def _is_cast(node: Node) -> bool:
    """True for an argument of `.to(...)`: a type may be named in a dispatch without any rounding."""
    parent = node.parent
    while parent is not None and parent.type in ("qualified_identifier", "argument_list"):
        parent = parent.parent
    function = parent.child_by_field_name("function") if parent is not None else None
    return function is not None and CASTS.search(_text(function)) is not None


def _is_narrow(node: Node, policy: Policy) -> bool:
    if node.type not in ("type_identifier", "identifier") or policy.arithmetic not in ("fp32", "tf32"):
        return False
    name = _text(node)
    if NARROW_TYPES.fullmatch(name):
        return _is_cast(node)
    # A variable may be called half.
    if not PRECISION.fullmatch(name) or (name in ("half", "Half") and node.type == "identifier"):
        return False
    return not (policy.precision == "tf32" and name == TF32)
