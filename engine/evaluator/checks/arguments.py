"""What a call is given, as `get_inputs` and `get_init_inputs` return it: tensors in nested lists, tuples, dicts and
objects, taken apart and put together again.

Both workers put them together alike; what is described is plain JSON. A class of the task's text is known to the
reference's process alone: in the candidate's an object with the same attributes and items stands in its place, without
methods. Computes nothing.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree

from engine.evaluator.checks import float8

Node = Mapping[str, Any]
PLAIN = (bool, int, float, str, type(None))
JUDGED = (
    "float64", "float32", "float16", "bfloat16", "complex64", "complex128", "bool",
    "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", *float8.NAMES,
)  # fmt: skip
MOST_DEPTH, MOST_LEAVES = 32, 4096
_SHOWN = 2000


class Unusable(Exception):
    """An argument that cannot be handed to another process; the message says which and what to do."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a call is given: by position and by name."""

    positional: list[Any]
    named: dict[str, Any] = field(default_factory=dict)
    further: list[torch.Tensor] = field(default_factory=list)
    """By position too, after all that `get_inputs` returned."""

    @classmethod
    def of(cls, returned: Any) -> Arguments:
        """What `get_inputs` returned: a list of arguments, or a tuple of such a list and of a dict of those by name.

        Raises:
            Unusable: it is neither.
        """
        match returned:
            case (list() | tuple() as positional, Mapping() as named) if type(returned) is tuple and all(
                isinstance(name, str) for name in named
            ):
                return cls(list(positional), dict(named))
            case torch.Tensor() | str() | Mapping():
                kind = "tensor" if isinstance(returned, torch.Tensor) else _name(type(returned))
                remedy = "([], {...})" if isinstance(returned, Mapping) else "[...]"
                raise Unusable(
                    f"a {kind}: return the arguments of forward as a list, or as (args, kwargs) where some are given "
                    f"by name, here {remedy}"
                )
            case Iterable():
                return cls(list(returned))
        raise Unusable(f"a {_name(type(returned))}: return the arguments of forward as a list")

    @property
    def by_position(self) -> list[Any]:
        """All that is given without a name."""
        return [*self.positional, *self.further]

    def passed_to(self, function: Callable[..., Any]) -> Any:
        """What the function makes of them."""
        return function(*self.positional, *self.further, **self.named)

    def mapped(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Arguments:
        """The same with each tensor changed.

        Raises:
            Unusable: as `flattened`.
        """
        kinds = Kinds()
        tensors, node = flattened(self, kinds)
        return rebuilt(node, list(map(change, tensors)), kinds)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A class of objects among arguments, as one of them was: what its parts are called, and how one is made of
    them."""

    cls: type
    how: str
    """`tuple`: named and by place. `attributes`. `both`: attributes, which are items too. `items`. `list`: by place."""
    keys: tuple[Any, ...]
    make: Callable[[Sequence[Any]], Any] = field(compare=False)
    context: Any = None


class Kinds(list[_Kind]):
    """The kinds of objects that one process has taken apart, by number."""

    def number(self, kind: _Kind) -> int:
        """Its number, a new one where none is alike."""
        if kind not in self:
            self.append(kind)
        return self.index(kind)


class Record(dict[str, Any]):
    """Stands in a candidate's process for an object whose attributes are items too, as of transformers' ModelOutput:
    items by name and by place, without those that are None."""

    def __init__(self, attributes: Mapping[str, Any]) -> None:
        super().__init__({name: value for name, value in attributes.items() if value is not None})
        self.__dict__.update(attributes)

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(key) if isinstance(key, str) else tuple(self.values())[key]


def flattened(arguments: Arguments, kinds: Kinds) -> tuple[list[torch.Tensor], Node]:
    """The tensors of arguments in order, and how the arguments are put together from them.

    Raises:
        Unusable: one of them is of a class that cannot be taken apart, or they nest too deep.
    """
    tensors: list[torch.Tensor] = []
    take = functools.partial(_described, tensors=tensors, kinds=kinds, depth=0)
    node = {
        "positional": [take(item) for item in arguments.positional],
        "named": {name: take(item) for name, item in arguments.named.items()},
        "further": [take(item) for item in arguments.further],
    }
    return tensors, node


def of_constructor(returned: Iterable[Any], kinds: Kinds) -> Node:
    """What `get_init_inputs` returned, taken apart.

    Raises:
        Unusable: as `flattened`, or a tensor is among it.
    """
    tensors, node = flattened(Arguments(list(returned)), kinds)
    if tensors:
        raise Unusable("a tensor: make it in the constructor, from numbers given there")
    return node


def rebuilt(node: Node, tensors: Sequence[torch.Tensor], kinds: Kinds | None = None) -> Arguments:
    """The arguments again, with these tensors in them; without `kinds`, with others in the place of their objects.

    Raises:
        Unusable: an object cannot be made again.
    """
    make = functools.partial(_made, tensors=tensors, kinds=kinds)
    named = {name: make(part) for name, part in node["named"].items()}
    return Arguments([make(part) for part in node["positional"]], named, [make(part) for part in node["further"]])


def names_of(node: Node) -> list[str]:
    """What each tensor of arguments is, in their order: `input 0`, `input 1['mask'][0]`, `input 'ids'`."""
    tops = [*((f"input {number}", part) for number, part in enumerate(node["positional"]))]
    tops += [(f"input {name!r}", part) for name, part in node["named"].items()]
    return [name for top, part in tops for name in _named(part, top)]


def shown(node: Node, tensors: Sequence[torch.Tensor]) -> str:
    """How forward is called, as Python would write it: `int64[2, 8], mask=bool[2, 8], past=[(…, …)]`."""
    parts = [_shown(part, tensors) for part in node["positional"]]
    parts += [f"{name}={_shown(part, tensors)}" for name, part in node["named"].items()]
    return cut(", ".join(parts), _SHOWN)


def is_plain(node: Node) -> bool:
    """Whether all arguments are given by position, and none holds others."""
    return not node["named"] and not any(
        {"list", "tuple", "dict", "object"} & part.keys() for part in node["positional"]
    )


def cut(text: str, most: int) -> str:
    """Its beginning."""
    return text if len(text) <= most else f"{text[:most]}…"


def tensor_shown(tensor: torch.Tensor) -> str:
    """`float32[2, 8]`."""
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def is_judged(tensor: torch.Tensor) -> bool:
    """Whether numbers of its dtype can be compared; PyTorch converts 4-bit floats to nothing."""
    return str(tensor.dtype).removeprefix("torch.") in JUDGED


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")


def _described(item: Any, tensors: list[torch.Tensor], kinds: Kinds, depth: int) -> Node:
    if depth > MOST_DEPTH or len(tensors) > MOST_LEAVES:
        raise Unusable(
            f"arguments that nest more than {MOST_DEPTH} deep or hold more than {MOST_LEAVES:,} tensors: return fewer"
        )
    if isinstance(item, torch.Tensor):
        if item.layout is not torch.strided:
            raise Unusable(f"a sparse tensor ({item.layout}): make it dense, or build the sparse one in forward")
        if not is_judged(item):
            raise Unusable(
                f"a tensor of {item.dtype}, whose numbers cannot be compared or drawn here: return float32, bfloat16 "
                "or the bits as uint8, and convert in forward"
            )
        tensors.append(item)
        return {"tensor": len(tensors) - 1}
    if isinstance(item, PLAIN):
        return {"value": item}
    if isinstance(item, (torch.dtype, torch.device)):
        return {type(item).__name__: str(item).removeprefix("torch.")}
    take = functools.partial(_described, tensors=tensors, kinds=kinds, depth=depth + 1)
    if type(item) in (list, tuple):
        return {type(item).__name__: [take(part) for part in item]}
    if type(item) is dict and all(type(key) in PLAIN for key in item):
        return {"dict": [[key, take(part)] for key, part in item.items()]}
    if (apart := _taken_apart(item)) is not None:
        kind, parts = apart
        return {
            "object": kinds.number(kind), "how": kind.how, "name": kind.cls.__name__, "keys": list(kind.keys),
            "parts": [take(part) for part in parts],
        }  # fmt: skip
    raise Unusable(
        f"a {_name(type(item))}: use tensors, numbers, strings, None, dtypes, devices, and lists, tuples, dicts, "
        "dataclasses and registered pytree nodes of these"
    )


def _taken_apart(item: Any) -> tuple[_Kind, Sequence[Any]] | None:
    """An object as its kind and its parts; None where nobody knows how."""
    cls: type = type(item)
    if isinstance(item, tuple) and hasattr(cls, "_make") and hasattr(cls, "_fields"):
        return _Kind(cls, "tuple", tuple(cls._fields), lambda parts: cls(*parts)), list(item)
    if isinstance(item, (Record, types.SimpleNamespace)):
        attributes = dict(vars(item))
        make = Record if isinstance(item, Record) else lambda given: types.SimpleNamespace(**given)
        how = "both" if isinstance(item, Record) else "attributes"
        return _Kind(cls, how, tuple(attributes), _of_fields(tuple(attributes), make)), list(attributes.values())
    if dataclasses.is_dataclass(cls):
        names = tuple(entry.name for entry in dataclasses.fields(cls) if entry.init)
        how = "both" if isinstance(item, Mapping) else "attributes"
        make = functools.partial(_constructed, cls)
        return _Kind(cls, how, names, _of_fields(names, make)), [getattr(item, name) for name in names]
    if (registered := pytree.SUPPORTED_NODES.get(cls)) is not None:
        return _registered(item, registered)
    return None


def _constructed(cls: type, given: Mapping[str, Any]) -> Any:
    try:
        return cls(**given)
    except Exception as error:  # a class of the task's own may raise anything
        raise Unusable(
            f"a {_name(cls)}, which cannot be made again from its fields ({type(error).__name__}: {error}): use a dict"
        ) from error


def _of_fields(names: Sequence[str], make: Callable[[Mapping[str, Any]], Any]) -> Callable[[Sequence[Any]], Any]:
    return lambda parts: make(dict(zip(names, parts, strict=True)))


def _registered(item: Any, registered: Any) -> tuple[_Kind, Sequence[Any]]:
    """A node that its class has registered with PyTorch's pytrees."""
    children, context = registered.flatten_fn(item)
    parts = list(children)
    how, keys = keys_of(item, registered, len(parts))
    return _Kind(type(item), how, keys, lambda given: registered.unflatten_fn(list(given), context), context), parts


def keys_of(item: Any, registered: Any, count: int) -> tuple[str, tuple[Any, ...]]:
    """How the parts of a registered node are reached, as `_Kind.how`, and by what; by place where it does not tell."""
    with_keys = registered.flatten_with_keys_fn
    entries = [entry for entry, _ in with_keys(item)[0]] if with_keys else []
    for how, kind, name in (("items", pytree.MappingKey, "key"), ("attributes", pytree.GetAttrKey, "name")):
        if entries and all(isinstance(entry, kind) and type(getattr(entry, name)) in PLAIN for entry in entries):
            return how, tuple(getattr(entry, name) for entry in entries)
    return "list", tuple(range(count))


def _made(node: Node, tensors: Sequence[torch.Tensor], kinds: Kinds | None) -> Any:
    make = functools.partial(_made, tensors=tensors, kinds=kinds)
    kind, what = next(iter(node.items()))
    match kind:
        case "tensor":
            return tensors[what]
        case "dtype":
            return getattr(torch, what)
        case "device":
            return torch.device(what)
        case "list":
            return [make(part) for part in what]
        case "tuple":
            return tuple(make(part) for part in what)
        case "dict":
            return {key: make(part) for key, part in what}
        case "object":
            parts = [make(part) for part in node["parts"]]
            return _standing_in(node, parts) if kinds is None else kinds[what].make(parts)
    return what


def _standing_in(node: Node, parts: Sequence[Any]) -> Any:
    """What a candidate gets in the place of an object of the task's."""
    by_name = dict(zip(node["keys"], parts, strict=True))
    match node["how"]:
        case "tuple":
            return collections.namedtuple(node["name"], node["keys"])(*parts)
        case "attributes":
            return types.SimpleNamespace(**by_name)
        case "both":
            return Record(by_name)
        case "items":
            return by_name
    return list(parts)


def _parts(node: Node) -> Iterator[tuple[str, Node]]:
    """What a node holds, each with how Python reaches it."""
    kind, what = next(iter(node.items()))
    match kind:
        case "list" | "tuple":
            yield from ((f"[{number}]", part) for number, part in enumerate(what))
        case "dict":
            yield from ((f"[{key!r}]", part) for key, part in what)
        case "object":
            is_attribute = node["how"] in ("tuple", "attributes", "both")
            for key, part in zip(node["keys"], node["parts"], strict=True):
                yield f".{key}" if is_attribute else f"[{key!r}]", part


def _named(node: Node, name: str) -> list[str]:
    if "tensor" in node:
        return [name]
    return [found for way, part in _parts(node) for found in _named(part, f"{name}{way}")]


def _shown(node: Node, tensors: Sequence[torch.Tensor]) -> str:
    kind, what = next(iter(node.items()))
    parts = [(way, _shown(part, tensors)) for way, part in _parts(node)]
    texts = ", ".join(text for _, text in parts)
    match kind:
        case "tensor":
            return tensor_shown(tensors[what])
        case "value":
            return cut(repr(what), 100)
        case "list":
            return f"[{texts}]"
        case "tuple":
            return f"({texts}{',' if len(parts) == 1 else ''})"
        case "dict":
            return "{" + ", ".join(f"{way[1:-1]}: {text}" for way, text in parts) + "}"
        case "object":
            return f"{node['name']}({', '.join(f'{way}={text}' for way, text in parts)})"
    return f"torch.{what}" if kind == "dtype" else str(what)
