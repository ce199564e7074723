"""Which kernel takes a call, or why none does; and a count of both. Touches no value of a tensor."""

from __future__ import annotations

import collections
import warnings
from collections.abc import Sequence
from typing import Any

import torch

from ._entries import Entry, Input
from ._table import PACKAGE

ALIGNMENT = 16  # bytes; a kernel that was judged on fresh tensors may load vectors of that size
MOST_INDEXED = 2**31 - 1  # elements; a kernel whose sizes are free may count in 32 bits
_DTYPES = {name: getattr(torch, name) for name in dir(torch) if isinstance(getattr(torch, name), torch.dtype)}
_PLAIN = {"float": (int, float), "int": (int,), "bool": (bool,)}
_capabilities: dict[int, tuple[int, int]] = {}
counts: collections.Counter[tuple[str, str]] = collections.Counter()


def refusal(entry: Entry, inputs: Sequence[Any], state: Sequence[torch.Tensor]) -> str:
    """Why the entry's kernel cannot take the call; empty where it can. Decides by types, sizes and strides alone."""
    if len(inputs) != len(entry.inputs):
        return f"{len(inputs)} arguments, it takes {len(entry.inputs)}"
    if torch.is_autocast_enabled(entry.device) and not any(_is_meta(value) for value in inputs):
        return "autocast is on"  # said first, for it changes which dtypes arrive
    device = None
    for value, wanted in (*zip(inputs, entry.inputs, strict=True), *zip(state, entry.state, strict=True)):
        if not wanted.is_tensor:
            if isinstance(value, torch.Tensor) or not isinstance(value, _PLAIN[wanted.dtype]):
                return f"{wanted.name} is no {wanted.dtype}"
            continue
        if isinstance(value, torch.Tensor) and not _has_shape(
            entry, value, wanted, is_input=value.dim() > 0 and wanted in entry.inputs
        ):
            return f"{wanted.name} {_other_sizes(entry, value.dim() != len(wanted.shape))}"
        if reason := unlike(value, wanted):
            return reason
        # torch.compile cannot see where a tensor begins in memory: there the operator copies one that begins elsewhere
        if not torch.compiler.is_compiling() and is_misaligned(value):
            return f"{wanted.name} does not begin at a multiple of {ALIGNMENT} bytes"
        if device is not None and value.device != device:
            return f"{wanted.name} is on another device"
        device = value.device
    if device is None or device.type not in (entry.device, "meta"):
        return f"its tensors are on {device}, the kernel is for {entry.device}"
    if device.type == "cuda":
        return _refusal_on_gpu(entry, device.index)
    return ""


def unlike(value: Any, wanted: Input) -> str:
    """How a tensor differs from what a kernel was judged with, other than in its sizes; empty where it does not."""
    if not isinstance(value, torch.Tensor):
        return f"{wanted.name} is no tensor"
    if value.dtype is not _DTYPES[wanted.dtype]:
        return f"{wanted.name} is {str(value.dtype)[6:]}, the kernel takes {wanted.dtype}"
    if value.stride() != wanted.stride if wanted.stride else not value.is_contiguous():
        return f"{wanted.name} lies otherwise in memory than the kernel was judged with"
    return ""


def has_sizes(entry: Entry, inputs: Sequence[torch.Tensor]) -> bool:
    """Whether these have the dtypes, sizes and strides that the entry's kernel was judged with."""
    return len(inputs) == len(entry.inputs) and all(
        value.dtype is _DTYPES[wanted.dtype]
        and _has_shape(entry, value, wanted, is_input=value.dim() > 0)
        and (value.stride() == wanted.stride if wanted.stride else value.is_contiguous())
        for value, wanted in zip(inputs, entry.inputs, strict=True)
    )


def is_misaligned(tensor: torch.Tensor) -> bool:
    """Whether a tensor begins where a vector of ALIGNMENT bytes cannot be loaded."""
    return bool(tensor.storage_offset() * tensor.element_size() % ALIGNMENT)


def _has_shape(entry: Entry, value: torch.Tensor, wanted: Input, *, is_input: bool) -> bool:
    shape, judged = value.shape, wanted.shape
    if entry.sizes == "exact" or not is_input:
        return shape == judged
    if len(shape) != len(judged) or value.numel() > max(MOST_INDEXED, _elements(judged)) or value.numel() == 0:
        return False
    return entry.sizes == "any" or shape[1:] == judged[1:]


def _other_sizes(entry: Entry, has_other_dimensions: bool) -> str:
    if entry.sizes == "any" and has_other_dimensions:
        return "has another number of dimensions: the kernel takes any sizes with as many as it was judged with"
    return "has other sizes than the kernel was judged at"


def _is_meta(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_meta


def _elements(shape: Sequence[int]) -> int:
    count = 1
    for length in shape:
        count *= length
    return count


def _refusal_on_gpu(entry: Entry, index: int | None) -> str:
    if not _is_one_of(entry.capabilities, index or 0):
        return "this GPU is of another compute capability than the kernel is built for"
    if entry.is_capturable is False and not torch.compiler.is_compiling() and torch.cuda.is_current_stream_capturing():
        return "a CUDA graph is being captured, which the kernel cannot be part of"
    if entry.follows_stream is False and torch.cuda.current_stream(index) != torch.cuda.default_stream(index):
        return "the current stream is not the default one, and the kernel does not wait for others"
    return ""


@torch._dynamo.assume_constant_result  # type: ignore[untyped-decorator]
def _is_one_of(capabilities: tuple[tuple[int, int], ...], index: int) -> bool:
    if index not in _capabilities:
        _capabilities[index] = torch.cuda.get_device_capability(index)
    return not capabilities or _capabilities[index] in capabilities


@torch._dynamo.assume_constant_result  # type: ignore[untyped-decorator]
def note(kind: str, reason: str) -> bool:
    """Count a call: once a call in eager PyTorch, once a trace under torch.compile. The first of a reason is told."""
    counts[kind, reason] += 1
    if kind == "reference" and counts[kind, reason] == 1:
        warnings.warn(f"{PACKAGE}: PyTorch's own code runs in place of the kernel: {reason}", stacklevel=2)
    return True


def report() -> str:
    """How often kernels ran and how often PyTorch's own code did in their place, with the reasons."""
    lines = [f"{count:8} {kind}: {reason}" for (kind, reason), count in counts.most_common()]
    return "\n".join([f"{PACKAGE}: calls so far (under torch.compile: traces)", *(lines or ["       0"])])
