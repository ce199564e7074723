"""What calling Python's and PyTorch's own functions gives a candidate. Knows no rule."""

from __future__ import annotations

import ast
import re

from engine.evaluation.screening import operators
from engine.evaluation.screening.operators import words
from engine.evaluation.screening.python import containers
from engine.evaluation.screening.python.attributes import Attributes
from engine.evaluation.screening.python.containers import join
from engine.evaluation.screening.python.values import (
    NOTHING,
    NUMBER,
    UNKNOWN,
    Act,
    Arguments,
    Bound,
    Box,
    Extension,
    Function,
    Getter,
    Instance,
    Kind,
    Layer,
    Load,
    Method,
    Names,
    Number,
    Parent,
    Path,
    Tensor,
    Text,
    Unknown,
    Values,
    box,
    elements,
    loads,
    tensor,
    texts,
    union,
)

BUILDS = ("torch.utils.cpp_extension.load_inline", "torch.utils.cpp_extension.load")
SOURCES = ("cpp_sources", "cuda_sources", "sycl_sources")
CONTAINERS = frozenset(
    f"builtins.{name}" for name in ["list", "tuple", "set", "frozenset", "reversed", "sorted", "iter", "zip"]
)
NUMBERS = frozenset(
    f"builtins.{name}"
    for name in words(
        """int float bool len abs min max round divmod range pow isinstance issubclass hasattr callable id
        hash all any ord print complex slice"""
    )
)
CALLABLE = (Function, Bound, Method, Layer, Instance, Extension)
QUERIES = operators.LOOKS - {"grad", "storage", "__getitem__"}


class LibraryCalls(Attributes):
    """Calls of names that were imported or are built in."""

    def _pass_on(self, given: Arguments, node: ast.expr) -> Values:
        """A function handed to somebody else's code is called by it, with the other arguments."""
        callbacks = frozenset(v for values in given.all for v in values if isinstance(v, CALLABLE))
        if not callbacks:
            return NOTHING
        others = [v for v in given.all if not any(isinstance(each, CALLABLE) for each in v)]
        spread = [
            union((elements(values), values)) if any(isinstance(v, Box) for v in values) else values
            for values in others
        ]
        return self.call(callbacks, Arguments(spread, {}, True), node)

    def _call_path(self, name: str, given: Arguments, node: ast.expr) -> Values:
        if name.startswith("builtins."):
            special = self._call_builtin(name, given, node)
            if special is not None:
                return special
        load = given.load
        detail = " ".join(sorted({v.name for values in given.all for v in values if isinstance(v, Path)}))
        named = " ".join(f"{key}={','.join(texts(v)) or _number(v)}" for key, v in sorted(given.named.items()))
        self.note(
            Act.CALLED,
            name,
            node,
            is_result=bool(load and load.is_result),
            argument=given.text,
            detail=f"{detail} {named}".strip(),
        )
        if name in BUILDS:
            return self._build(name, given, node)
        passed = self._pass_on(given, node)
        returned = self._returned(name, given, load)
        return union((passed, returned)) if name.startswith(("functools.", "torch.", "itertools.")) else returned

    def _returned(self, name: str, given: Arguments, load: Load | None) -> Values:
        last = operators.leaf(name)
        if name.startswith("operator."):
            return self._from_operator(last, given, load)
        if name.startswith("torch.nn.Module."):
            return tensor(Load.WEIGHT) if last in ("parameters", "buffers", "state_dict", "get_parameter") else UNKNOWN
        if name in ("torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.nn.Buffer"):
            return tensor(Load.WEIGHT)
        if name.startswith("torch.nn.") and last in ("Sequential", "ModuleList", "ModuleDict", "ParameterList"):
            return box([union((*given.all, *(elements(v) for v in given.all if _is_box(v))))])
        if re.fullmatch(r"torch\.nn\.(\w+\.)*[A-Z]\w*", name):
            return frozenset({Layer(name)})
        if (name.startswith("torch.Tensor.") and last in QUERIES) or name.startswith("torch.is_"):
            return NUMBER
        if name.startswith(("torch.", "numpy.")):
            return self._from_torch(name, last, load)
        if name == "importlib.import_module":
            return self.imported(texts(given.at(0)))
        if name.startswith("collections.") and last in containers.MAKERS:
            return box([union(map(elements, given.all))])
        if name == "types.SimpleNamespace":
            return box([union(given.all)])
        if name.startswith("copy.") and given.plain:
            return given.at(0)
        if name.startswith(("functools.", "itertools.", "copy.", "collections.", "contextlib.", "enum.")):
            return union((*given.all, *(elements(v) for v in given.all))) or UNKNOWN
        if name.startswith(("math.", "time.")):
            return NUMBER
        return given.at(0) if name.startswith(("textwrap.dedent", "textwrap.indent", "string.Template")) else UNKNOWN

    def _from_torch(self, name: str, last: str, load: Load | None) -> Values:
        if last in operators.ALLOCATION and name.count(".") == 1:
            is_taken_over = last in ("tensor", "as_tensor", "from_numpy") and load is not None
            return tensor(load if is_taken_over and load is not None else Load.BLANK)
        parts = name.split(".")
        if len(parts) > 1 and (parts[1] in operators.NEUTRAL_PACKAGES or parts[1] in operators.NEUTRAL):
            return UNKNOWN if load is None else tensor(load)
        held = tensor(load if load is not None else Load.BLANK)
        return box([held]) if last in containers.SEQUENCES else held

    def _from_operator(self, last: str, given: Arguments, load: Load | None) -> Values:
        if last in ("attrgetter", "methodcaller"):
            return frozenset({Getter(tuple(word for values in given.plain for word in texts(values)))})
        if last in ("add", "concat", "iadd", "mod") and load is None:
            return join(given.plain)
        return elements(given.at(0)) if last in ("getitem", "itemgetter") else tensor(load) if load else NUMBER

    def _call_builtin(self, name: str, given: Arguments, node: ast.expr) -> Values | None:
        short = name.removeprefix("builtins.")
        if short == "getattr":
            return self._getattr(given, node)
        if short in ("setattr", "delattr"):
            return self._setattr(given, node)
        if short == "super":
            owner = self._owner()
            return frozenset({Parent(owner)}) if owner else UNKNOWN
        if short == "vars" and given.plain:
            return self.attribute(given.at(0), "__dict__", node, callee=True)
        if short in ("globals", "locals", "vars"):
            return frozenset({Names("")})
        if short == "type" and len(given.plain) == 1:
            return self.attribute(given.at(0), "__class__", node, callee=True)
        if short in ("staticmethod", "classmethod", "property"):
            return given.at(0) or UNKNOWN
        if short == "__import__":
            self.note(Act.CALLED, name, node, argument=given.text)
            return self.imported(texts(given.at(0)))
        if name in CONTAINERS or short == "dict":
            return box([union(map(elements, given.all))]) if given.all else box([])
        if short in ("next", "enumerate", "filter", "map"):
            passed = self._pass_on(given, node)
            self._note_callable_paths(given, node)
            return box([union((passed, *map(elements, given.all)))]) if short != "next" else elements(given.at(0))
        if short in ("str", "format") and given.plain:
            return join([given.at(0)])
        if short == "sum" and given.load is not None:
            self.note(Act.COMPUTED, "sum()", node, is_result=given.load.is_result)
            return tensor(given.load)
        if short in ("abs", "min", "max", "pow", "round") and given.load is not None:
            self.note(Act.COMPUTED, f"{short}()", node, is_result=given.load.is_result)
            return tensor(given.load)
        return NUMBER if name in NUMBERS else None

    def _note_callable_paths(self, given: Arguments, node: ast.expr) -> None:
        """`map(torch.relu, xs)` calls torch.relu."""
        load = max((load for values in given.all for load in loads(elements(values))), default=None)
        for value in given.at(0):
            if isinstance(value, Path):
                self.note(Act.CALLED, value.name, node, is_result=bool(load and load.is_result))

    def _getattr(self, given: Arguments, node: ast.expr) -> Values:
        names, owner = texts(given.at(1)), given.at(0)
        is_open = any(not isinstance(v, Text) or not v.is_whole for v in given.at(1))
        if is_open and any(isinstance(v, Path | Tensor | Kind | Layer) for v in owner):
            self.note(Act.DYNAMIC, "getattr with a computed name", node)
        every = [self.attribute_table(v.kind).values() for v in owner if isinstance(v, Instance) and is_open]
        found = [self.attribute(owner, name, node) for name in names]
        return union((*found, *(v for table in every for v in table), *given.plain[2:])) or UNKNOWN

    def _setattr(self, given: Arguments, node: ast.expr) -> Values:
        target = node.args[0] if isinstance(node, ast.Call) and node.args else node
        for name in texts(given.at(1)) or ["?"]:
            self.store_attribute(target, given.at(0), name, given.at(2), node)
        return NUMBER

    def _owner(self) -> Kind | None:
        return self.scope.owner

    def imported(self, names: list[str]) -> Values:
        """Modules imported by a call."""
        return frozenset(Path(name) for name in names) or UNKNOWN

    def _build(self, name: str, given: Arguments, node: ast.expr) -> Values:
        self.reading.has_build = True
        passed = [given.named[key] for key in SOURCES if key in given.named] or given.plain[1:3]
        if name.endswith(".load"):
            passed = []
        for values in passed:
            flat = union((values, elements(values) if _is_box(values) else NOTHING))
            known = [value for value in flat if isinstance(value, Text)]
            self.reading.sources += [text for text in known if text not in self.reading.sources]
            if not known and not (flat <= NUMBER or all(isinstance(v, Box | Number) for v in flat)):
                self.note(Act.DYNAMIC, "C++ source that is not a string constant", node)
            elif any(text.is_hidden for text in known) or any(isinstance(value, Unknown) for value in flat):
                self.note(Act.DYNAMIC, "C++ source with parts that are not string constants", node)
            elif any(not text.is_whole for text in known):
                self.note(Act.UNCLEAR, "C++ source put together at run time", node)
        return frozenset({Extension()})


def _is_box(values: Values) -> bool:
    return any(isinstance(value, Box) for value in values)


def _number(values: Values) -> str:
    for value in values:
        if isinstance(value, Number):
            return str(value.value)
        if isinstance(value, Path):
            return value.name
    return "?"
