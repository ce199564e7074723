"""How many of a reference's operations its masks leave: what is masked need not be computed, nor the zeros multiplied
that come of it. Follows tensors through one call; knows operators, no module. What it cannot follow counts in full.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.weak import WeakTensorKeyDictionary

ROUNDING = 1e-9
HIDES = -1e4  # added to a score, it leaves nothing of it after a softmax
_WITH_ADDEND = frozenset({"addmm", "baddbmm"})
_BY_ELEMENT = frozenset({"mm", "bmm"}) | _WITH_ADDEND
"""Products in which a zero of an operand saves its share of the work, whatever the shapes."""
_KEEPS_ELEMENTS = frozenset({"_unsafe_view", "_to_copy", "tril", "triu", "_softmax_backward_data"})


@dataclass(slots=True)
class _Product:
    """A product of so many operations, and the share of its elements that masks leave."""

    flop: float
    left: float = 1.0


@dataclass(frozen=True, slots=True)
class _Derived:
    """A tensor that comes of products: element by element of `products`, `left` of it unmasked."""

    products: tuple[_Product, ...] = ()
    left: float = 1.0


class MaskedProducts:
    """Takes the operators of one call in their order."""

    def __init__(self) -> None:
        self._products: list[_Product] = []
        self._derived: MutableMapping[torch.Tensor, _Derived] = WeakTensorKeyDictionary()

    @property
    def needed(self) -> int:
        """Operations of the products, without those that masks make needless."""
        return round(sum(product.flop * product.left for product in self._products))

    def take(
        self, operator: torch._ops.OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], out: Any, flop: int
    ) -> None:
        """One operator that has run; `flop` are its operations by PyTorch's formulas."""
        name = operator._overloadpacket.__name__
        name = name if name.startswith("_") else name.removesuffix("_")  # in place it does the same
        given = [*args, *kwargs.values()]
        if not all(map(_is_plain, _tensors([*given, out]))):
            self._products += [_Product(flop)]
            return
        derived: _Derived | None
        if flop:
            derived = self._multiplied(operator, name, args, kwargs, flop)
        else:
            derived = self._carried(operator, name, given, out)
        if derived is not None:
            for tensor in _tensors([out]):
                self._derived[tensor] = derived

    def _multiplied(
        self, operator: torch._ops.OpOverload, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], flop: int
    ) -> _Derived:
        operands = list(_tensors(args))
        addends = [operands.pop(0)] if name in _WITH_ADDEND else []
        share = min([1.0, *map(self._nonzero, operands)]) if name in _BY_ELEMENT else 1.0
        if "scaled_dot_product" in name:
            share = _attended(_named(operator, args, kwargs))
        product = _Product(flop * share)
        self._products.append(product)
        return self._masked(_Derived((product,)), min([1.0, *map(self._unhidden, addends)]))

    def _carried(self, operator: torch._ops.OpOverload, name: str, given: Sequence[Any], out: Any) -> _Derived | None:
        """What comes of derived tensors: of products element by element where it has as many and mixes none."""
        sources = [(tensor, self._derived[tensor]) for tensor in _tensors(given) if tensor in self._derived]
        if not sources:
            return None
        sizes = {tensor.numel() for tensor in _tensors([out])}
        alike = [derived for tensor, derived in sources if {tensor.numel()} == sizes]
        if not alike:
            return _Derived()
        same = getattr(getattr(torch.ops.aten, name, None), operator._overloadname, operator)  # in place has no tags
        is_by_element = operator.is_view or torch.Tag.pointwise in same.tags or name in _KEEPS_ELEMENTS
        kept = tuple({id(product): product for product in _products(alike)}.values()) if is_by_element else ()
        return self._masked(_Derived(kept, min(derived.left for derived in alike)), self._unmasked(name, given))

    def _masked(self, derived: _Derived, left: float) -> _Derived:
        if left >= 1:
            return derived
        for product in derived.products:
            product.left = min(product.left, left)
        return _Derived(derived.products, min(derived.left, left))

    def _unmasked(self, name: str, given: Sequence[Any]) -> float:
        """The share of its result that this operator leaves unmasked. A mask that comes of a product itself is none."""
        match name, [*given]:
            case "masked_fill", [_, mask, *_] if self._is_fixed(mask):
                return 1 - _share(mask)
            case "where", [mask, first, other] if self._is_fixed(mask) and self._is_fixed(first) != self._is_fixed(
                other
            ):
                return 1 - _share(mask) if self._is_fixed(first) else _share(mask)
            case "tril" | "triu", [tensor, *diagonal]:
                rows, columns = tensor.shape[-2:]
                ones = torch.ones(rows, columns, dtype=torch.bool, device=tensor.device)
                return _share(getattr(ones, name)(*diagonal))
            case "add", [first, other, *_]:
                return min(self._unhidden(other), self._unhidden(first))
            case "mul", [first, other]:
                return min(_ones(factor) if self._is_fixed(factor) else 1.0 for factor in (first, other))
            case "_softmax_backward_data", [_, answer, *_]:
                return self._nonzero(answer)
        return 1.0

    def _is_fixed(self, value: Any) -> bool:
        """Whether it comes of no product."""
        return not isinstance(value, torch.Tensor) or value not in self._derived

    def _unhidden(self, addend: Any) -> float:
        if not isinstance(addend, torch.Tensor) or addend in self._derived or not addend.is_floating_point():
            return 1.0
        return 1.0 if not addend.numel() or float(addend.amin()) > HIDES else _share(addend > HIDES)

    def _nonzero(self, operand: torch.Tensor) -> float:
        """The share of an operand that masks leave, where what they do not leave is zero."""
        derived = self._derived.get(operand)
        if derived is None or derived.left >= 1 or _share(operand != 0) > derived.left + ROUNDING:
            return 1.0
        return derived.left


def _products(derived: Sequence[_Derived]) -> Iterator[_Product]:
    return (product for each in derived for product in each.products)


def _tensors(values: Sequence[Any]) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _is_plain(tensor: torch.Tensor) -> bool:
    """Whether its numbers can be compared and counted."""
    is_number = not tensor.is_complex() and (tensor.itemsize > 1 or not tensor.is_floating_point())
    return is_number and tensor.layout is torch.strided and not tensor.is_quantized and not tensor.is_nested


def _share(mask: torch.Tensor) -> float:
    return float(mask.count_nonzero()) / max(1, mask.numel())


def _ones(tensor: Any) -> float:
    """The share of ones of a tensor that holds nothing but zeros and ones; 1 of any other."""
    if not isinstance(tensor, torch.Tensor) or not tensor.numel():
        return 1.0
    if [float(end) for end in tensor.aminmax()] != [0.0, 1.0]:  # makes no tensor as large as this one
        return 1.0
    return _share(tensor) if bool(((tensor == 0) | (tensor == 1)).all()) else 1.0


def _named(operator: torch._ops.OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    names = [argument.name for argument in operator._schema.arguments]
    return dict(zip(names, args, strict=False)) | dict(kwargs)


def _attended(call: Mapping[str, Any]) -> float:
    """The share of its pairs of query and key that a call of attention takes into account."""
    mask = next((call[name] for name in ("attn_mask", "attn_bias") if call.get(name) is not None), None)
    if mask is not None:
        return _share(mask if mask.dtype == torch.bool else mask > HIDES)
    query, key = (call.get(name) for name in ("query", "key"))
    if not call.get("is_causal") or query is None or key is None:
        return 1.0
    rows, columns = query.shape[-2], key.shape[-2]
    return float(sum(min(row + 1, columns) for row in range(rows)) / (rows * columns))
