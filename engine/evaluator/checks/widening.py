"""A module with 8-bit floats in double precision: what it converts to a narrower floating-point type stays in float64.

Only what it converts to 8 bits is rounded, for that is what it states; of a tensor that is its result the numbers
before that are kept, so that a kernel's rounding can be told from its error. Runs in the reference's worker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakTensorKeyDictionary

from engine.evaluator.checks import float8

_NARROWER = (torch.float32, torch.float16, torch.bfloat16)
_COPIES = (torch.ops.aten.clone.default, torch.ops.aten._unsafe_view.default)


class InDouble(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Inside it tensors of 8-bit floats are given as float64 ones of the same numbers."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._unrounded: Any = WeakTensorKeyDictionary()  # results of 8 bits: what they were before

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Else the first operation would import torch._dynamo, which takes a second and is not needed."""
        return False

    def unrounded(self, tensor: torch.Tensor) -> torch.Tensor:
        """A result before it was rounded to 8 bits, where it was."""
        kept: torch.Tensor = self._unrounded.get(tensor, tensor)
        return kept

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """One operator in double precision."""
        given = dict(kwargs or {})
        if func is torch.ops.aten._scaled_mm.default:
            return self._scaled_product(*args, **given)
        asked = given.get("dtype")
        if asked in (*_NARROWER, *float8.FORMATS):
            given["dtype"] = torch.float64
        result = func(*args, **given)
        if asked in float8.FORMATS and func is torch.ops.aten._to_copy.default:
            return self._rounded(result, asked)
        self._follow(func, args, given, result)
        return result

    def _rounded(self, exact: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Its numbers as the conversion leaves them, in float64. What it makes an infinity or NaN of stays so."""
        rounded = exact.to(dtype).to(torch.float64)
        most = torch.finfo(dtype).max
        self._unrounded[rounded] = torch.where(rounded.isfinite(), exact.clamp(-most, most), rounded)
        return rounded

    def _follow(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
        """A view or copy of a rounded result is one too."""
        source = args[0] if args else None
        if not (isinstance(source, torch.Tensor) and isinstance(result, torch.Tensor)) or source is result:
            return
        if (getattr(func, "is_view", False) or func in _COPIES) and source in self._unrounded:
            self._unrounded[result] = func(self._unrounded[source], *args[1:], **kwargs)

    def _scaled_product(
        self,
        a: torch.Tensor,
        b: torch.Tensor,
        scale_a: torch.Tensor,
        scale_b: torch.Tensor,
        bias: torch.Tensor | None = None,
        scale_result: torch.Tensor | None = None,
        out_dtype: torch.dtype | None = None,
        use_fast_accum: bool = False,
    ) -> torch.Tensor:
        """`torch._scaled_mm` of float64 tensors, with one scale for each operand or one for each row and column.

        Raises:
            NotImplementedError: scales of blocks.
        """
        rows, columns = (a.shape[0], 1), (1, b.shape[1])
        if (scale_a.numel() > 1 and scale_a.shape != rows) or (scale_b.numel() > 1 and scale_b.shape != columns):
            raise NotImplementedError("scales of blocks")
        product = (a @ b) * scale_a.double() * scale_b.double()
        product = product if bias is None else product + bias
        if out_dtype is not None and out_dtype not in float8.FORMATS:
            return product
        scaled = product if scale_result is None else product * scale_result.double()
        return self._rounded(scaled, out_dtype or torch.float8_e4m3fn)
