"""The few calls of the CUDA driver that torch does not hand out: memory that two processes see. Knows no worker.

Source: CUDA Driver API, sections Memory Management and Unified Addressing. A call needs a current context, which torch
makes on its first use of the device.
"""

from __future__ import annotations

import ctypes
import functools
import math
from typing import Any

import torch

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
    """End `attach`."""
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
