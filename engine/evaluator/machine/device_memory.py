"""Device memory that two processes see, by the few calls of the CUDA driver that torch does not hand out.

That an allocation holds what its process says is a claim; what lies there is true at that moment. Source: CUDA Driver
API, sections Memory Management and Unified Addressing. A call needs a current context, which torch makes on its first
use of the device.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Mapping
from typing import Any

import torch

from engine.evaluator.machine.process_memory import BadClaim, dense_extent

HANDLE_BYTES = 64
_LAZY_PEER_ACCESS = 1

_Address = ctypes.c_uint64


class _Handle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_char * HANDLE_BYTES)]


class DriverRefused(Exception):
    """The driver said no; the message names the call and its reason."""


class _Block:
    """Device memory as torch can wrap it."""

    def __init__(self, address: int, nbytes: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
            "strides": None,
        }


def tensor_at(address: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Memory at an address as a contiguous tensor; it must outlive the tensor."""
    count = math.prod(shape)
    if count == 0:
        return torch.empty(shape, dtype=dtype, device="cuda")
    block: torch.Tensor = torch.as_tensor(_Block(address, count * dtype.itemsize), device="cuda")
    return block.view(dtype).view(shape)


def allocate(nbytes: int) -> int:
    """Address of fresh device memory that can be exported.

    Raises:
        DriverRefused: there is not so much.
    """
    address = _Address()
    _call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(nbytes))
    return address.value


def export(address: int) -> tuple[bytes, int]:
    """Handle of the allocation that holds an address, for another process, and the address's place in it."""
    base, _ = extent(address)
    handle = _Handle()
    _call("cuIpcGetMemHandle", ctypes.byref(handle), _Address(base))
    return bytes(ctypes.string_at(ctypes.byref(handle), HANDLE_BYTES)), address - base


def extent(address: int) -> tuple[int, int]:
    """Start and size in bytes of the allocation that holds an address."""
    base, size = _Address(), ctypes.c_size_t()
    _call("cuMemGetAddressRange_v2", ctypes.byref(base), ctypes.byref(size), _Address(address))
    return base.value, size.value


def attach(handle: bytes) -> int:
    """Address here of another process's allocation.

    Raises:
        DriverRefused: no such allocation, or the system does not let processes share.
    """
    if len(handle) != HANDLE_BYTES:
        raise DriverRefused(f"a handle has {HANDLE_BYTES} bytes, this one {len(handle)}")
    passed = _Handle()
    ctypes.memmove(ctypes.byref(passed), handle, HANDLE_BYTES)
    address = _Address()
    _call("cuIpcOpenMemHandle_v2", ctypes.byref(address), passed, ctypes.c_uint(_LAZY_PEER_ACCESS))
    return address.value


def detach(address: int) -> None:
    """Unmap what `attach` has mapped."""
    _call("cuIpcCloseMemHandle", _Address(address))


def _call(name: str, *arguments: Any) -> None:
    torch.cuda.current_stream()
    status = int(getattr(_library(), name)(*arguments))
    if status:
        raise DriverRefused(f"{name}: {_reason(status)}")


def _reason(status: int) -> str:
    text = ctypes.c_char_p()
    _library().cuGetErrorString(ctypes.c_int(status), ctypes.byref(text))
    return f"{(text.value or b'unknown').decode()} ({status})"


@functools.cache
def _library() -> ctypes.CDLL:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise DriverRefused(f"no CUDA driver here: {error}") from error


class DeviceMemory:
    """The allocations of one worker that are mapped here."""

    def __init__(self) -> None:
        self._attached: dict[str, int] = {}
        self._used: set[str] = set()

    def view(self, claim: Any, like: torch.Tensor, stride: Any) -> torch.Tensor:
        """The worker's own memory as a tensor with the shape and dtype of `like`.

        Raises:
            BadClaim: no such tensor can be there.
        """
        if not isinstance(claim, Mapping) or not isinstance(claim.get("handle"), str):
            raise BadClaim("its place is none a tensor on the device can have")
        offset, span = claim.get("offset"), dense_extent(stride, like)
        base = self._attach(claim["handle"])
        _, size = extent(base)
        if not isinstance(offset, int) or offset < 0 or offset % like.itemsize or offset + span * like.itemsize > size:
            raise BadClaim("it does not lie inside the memory it names")
        return tensor_at(base + offset, (span,), like.dtype).as_strided(like.shape, stride)

    def forget(self) -> None:
        """Let go of what was not looked at since the last time: the worker may have given it back."""
        for handle in set(self._attached) - self._used:
            detach(self._attached.pop(handle))
        self._used.clear()

    def _attach(self, handle: str) -> int:
        self._used.add(handle)
        if handle not in self._attached:
            try:
                self._attached[handle] = attach(bytes.fromhex(handle))
            except (ValueError, DriverRefused) as error:
                self._used.discard(handle)
                raise BadClaim(f"the memory it names cannot be mapped: {error}") from error
        return self._attached[handle]
