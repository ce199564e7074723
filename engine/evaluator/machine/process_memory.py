"""Moves tensors between this process and a stopped one, past any code of that process. Knows addresses, not meanings.

What lies at an address is true at that moment; that the address holds what its process says is a claim.
"""

from __future__ import annotations

import ctypes
import errno
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

PIECE = 1 << 30
LOWEST, HIGHEST = 1 << 12, 1 << 47
SPREAD = 64
ROOM = 64 << 20

_libc = ctypes.CDLL(None, use_errno=True)


class _Span(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class MemoryRefused(Exception):
    """The system, or the other process's memory map, does not allow it."""


class BadClaim(Exception):
    """A process says that its tensor lies where none can lie."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a process says that a tensor lies: first element's address, strides in elements, elements spanned."""

    address: int
    stride: tuple[int, ...]
    extent: int

    @classmethod
    def claimed(cls, leaf: Mapping[str, Any], like: torch.Tensor) -> Place:
        """From the worker's words about an output whose shape and dtype are known to be those of `like`.

        Raises:
            BadClaim: no such tensor can be, or it is spread over far more memory than it fills.
        """
        stride = leaf.get("stride")
        extent = dense_extent(stride, like)
        assert isinstance(stride, list)
        return cls(checked_address(leaf.get("address")), tuple(stride), extent)


def dense_extent(stride: Any, like: torch.Tensor) -> int:
    """Elements from first to last of a tensor of this shape with strides that are a claim.

    Raises:
        BadClaim: they are none, or spread it over far more memory than it fills.
    """
    if not isinstance(stride, list) or len(stride) != like.dim() or not all(_is_count(step) for step in stride):
        raise BadClaim("its strides are not those of a tensor of this shape")
    extent = extent_of(like.shape, stride)
    if extent * like.itemsize > max(SPREAD * like.nbytes, ROOM):
        raise BadClaim(f"it is spread over {extent * like.itemsize >> 20} MiB; return a dense tensor")
    return extent


def checked_address(claimed: Any) -> int:
    """An address a process may have.

    Raises:
        BadClaim: it is none.
    """
    if isinstance(claimed, int) and LOWEST <= claimed < HIGHEST:
        return claimed
    raise BadClaim("its address is none a process can have")


def is_permitted(pid: int) -> bool:
    """Whether this process may read another's memory at all: asked for an address that holds nothing."""
    try:
        read(pid, LOWEST, torch.empty(1, dtype=torch.uint8))
    except MemoryRefused as refusal:
        return bool(refusal.args[0] == errno.EFAULT)
    return True


def read_tensor(pid: int, place: Place, like: torch.Tensor) -> torch.Tensor:
    """A copy of the tensor at a place, with the shape and dtype of `like` and the strides of the place."""
    if like.numel() == 0:
        return torch.empty_like(like)
    block = torch.empty(place.extent, dtype=like.dtype)
    read(pid, place.address, block)
    return block.as_strided(like.shape, place.stride)


def read(pid: int, address: int, into: torch.Tensor) -> None:
    """Fill a tensor from another process, what lies in its gaps included.

    Raises:
        MemoryRefused: with the system's error number.
    """
    _move(_libc.process_vm_readv, pid, address, into)


def write(pid: int, address: int, content: torch.Tensor) -> None:
    """Put a tensor's bytes into another process as they lie in memory, those in its gaps included.

    Raises:
        MemoryRefused: with the system's error number.
    """
    _move(_libc.process_vm_writev, pid, address, content)


def write_all(pid: int, addresses: Sequence[Any], contents: Sequence[torch.Tensor]) -> None:
    """Several of them, to addresses that are claims.

    Raises:
        BadClaim, MemoryRefused: an address is none, or not of writable memory.
    """
    if len(addresses) != len(contents):
        raise BadClaim("it has another number of input buffers")
    for address, content in zip(addresses, contents, strict=True):
        if content.numel():
            write(pid, checked_address(address), content)


def is_same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Bit by bit, of two tensors of one layout, gaps included: NaN equals itself, and minus zero is another zero."""
    own_address, there = ctypes.c_void_p(a.data_ptr()), ctypes.c_void_p(b.data_ptr())
    difference: int = _libc.memcmp(own_address, there, ctypes.c_size_t(_spanned(a)))
    return difference == 0


def extent_of(shape: Sequence[int], stride: Sequence[int]) -> int:
    """Elements from the first to the last of a tensor of that shape and stride; 0 where it has none."""
    return 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True)) if math.prod(shape) else 0


def _spanned(tensor: torch.Tensor) -> int:
    """Bytes from a tensor's first element to its last."""
    return tensor.itemsize * extent_of(tensor.shape, tensor.stride())


def _move(call: Callable[..., int], pid: int, address: int, tensor: torch.Tensor) -> None:
    done, spanned = 0, _spanned(tensor)
    while done < spanned:
        size = min(spanned - done, PIECE)
        own_span, there = _Span(tensor.data_ptr() + done, size), _Span(address + done, size)
        moved = call(pid, ctypes.byref(own_span), 1, ctypes.byref(there), 1, 0)
        if moved <= 0:
            number = ctypes.get_errno()
            raise MemoryRefused(number, os.strerror(number))
        done += moved


def _is_count(step: Any) -> bool:
    return isinstance(step, int) and 0 <= step < HIGHEST
