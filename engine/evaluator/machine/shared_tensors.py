"""Memory of fixed size that two processes share, on the host or on a GPU, seen as tensors. Knows no meaning."""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import prod
from typing import Any

import torch

from engine.evaluator.machine import device_memory
from engine.evaluator.machine.process_memory import extent_of

ALIGNMENT = 4096


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One tensor: shape, dtype by name, stride of the private copy. The shared copy is always contiguous.

    The private copy may have gaps, as a slice has, and dimensions of stride 0, as an expanded tensor has.
    """

    shape: tuple[int, ...]
    dtype: str
    stride: tuple[int, ...]

    @classmethod
    def of(cls, tensor: torch.Tensor) -> TensorSpec:
        """Spec of a tensor; strides of windows that overlap become contiguous ones."""
        stride = tensor.stride() if _has_places_of_its_own(tensor) else torch.empty_like(tensor, device="meta").stride()
        return cls(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), tuple(stride))

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> TensorSpec:
        """Read what `asdict` wrote."""
        return cls(tuple(plain["shape"]), str(plain["dtype"]), tuple(plain["stride"]))

    @property
    def torch_dtype(self) -> torch.dtype:
        """The dtype as PyTorch's own object."""
        dtype = getattr(torch, self.dtype)
        assert isinstance(dtype, torch.dtype)
        return dtype

    @property
    def numel(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the dense tensor."""
        return self.numel * self.torch_dtype.itemsize

    @property
    def extent(self) -> int:
        """Elements from the first to the last of the private copy, gaps included."""
        return extent_of(self.shape, self.stride)

    @property
    def is_dense(self) -> bool:
        """Whether the private copy fills its memory, each place once."""
        return self.extent == self.numel

    @property
    def is_contiguous(self) -> bool:
        """Whether the private copy lies in the usual order, each place once."""
        return torch.empty_strided(self.shape, self.stride, device="meta").is_contiguous()

    def as_dtype(self, dtype: str) -> TensorSpec:
        """The spec of the same shape in another dtype."""
        return TensorSpec(self.shape, dtype, self.stride)


def _has_places_of_its_own(tensor: torch.Tensor) -> bool:
    """False where two different indices lie at one place, other than along a dimension of stride 0."""
    reach = 0
    for step, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size < 2 or not step:
            continue
        if step <= reach:
            return False
        reach += step * (size - 1)
    return tensor.numel() > 0


Layout = Mapping[str, Sequence[TensorSpec]]


class SharedTensors:
    """Named groups of tensors in one anonymous file. Created empty, sized once, then sealed against resizing.

    Without the seals a worker could shrink the file and crash the evaluator at its next read.
    """

    device = "cpu"

    def __init__(self, name: str) -> None:
        self.file = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        self._map: mmap.mmap | None = None
        self._groups: dict[str, list[torch.Tensor]] = {}

    @property
    def inherited(self) -> list[int]:
        """Descriptors that a worker must keep open to map it."""
        return [self.file]

    @property
    def place(self) -> str:
        """What a worker must be told to map it, once it has been sized."""
        return ""

    def size_to(self, layout: Layout) -> None:
        """Fix the size for a layout and map it here."""
        total = sum(padded(spec) for specs in layout.values() for spec in specs)
        os.ftruncate(self.file, max(total, ALIGNMENT))
        fcntl.fcntl(self.file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        self.map(layout)

    def map(self, layout: Layout, place: str = "") -> None:
        """Map what the evaluator has sized, in a worker with its `place`."""
        self._map = mmap.mmap(self.file, 0)
        offset = 0
        for name, specs in layout.items():
            self._groups[name] = []
            for spec in specs:
                self._groups[name].append(_view(self._map, spec, offset))
                offset += padded(spec)

    def __getitem__(self, group: str) -> list[torch.Tensor]:
        return self._groups[group]


def to_plain(layout: Layout) -> dict[str, list[dict[str, Any]]]:
    """A layout as JSON."""
    return {name: [asdict(spec) for spec in specs] for name, specs in layout.items()}


def from_plain(plain: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, list[TensorSpec]]:
    """A layout from JSON."""
    return {name: [TensorSpec.from_plain(spec) for spec in specs] for name, specs in plain.items()}


def private_copy(spec: TensorSpec, device: str) -> torch.Tensor:
    """A tensor of this process's own memory with the spec's strides, content undefined; what lies in gaps is zero."""
    tensor = torch.empty_strided(spec.shape, spec.stride, dtype=spec.torch_dtype, device=device)
    if not spec.is_dense:
        whole(tensor).zero_()
    return tensor


def strided_like(tensor: torch.Tensor) -> torch.Tensor:
    """Memory of its own that lies otherwise: channels last where there are four dimensions, else with gaps between
    elements; content undefined. What has no dimension stays as it is."""
    if not tensor.dim():
        return torch.empty_like(tensor)
    if tensor.dim() == 4 and tensor.is_contiguous() and tensor.shape[1] > 1:
        return torch.empty_like(tensor, memory_format=torch.channels_last)
    wide = torch.zeros((*tensor.shape[:-1], 2 * tensor.shape[-1]), dtype=tensor.dtype, device=tensor.device)
    return wide[..., ::2]


def laid_out(spec: TensorSpec, values: torch.Tensor, device: str) -> torch.Tensor:
    """A private copy that holds these values."""
    tensor = private_copy(spec, device)
    put(tensor, values)
    return tensor


def put(target: torch.Tensor, values: torch.Tensor) -> None:
    """Copy into a tensor that may have dimensions of stride 0: of the values along those the first counts."""
    for axis, (step, size) in enumerate(zip(target.stride(), target.shape, strict=True)):
        if not step and size > 1:
            target, values = target.narrow(axis, 0, 1), values.narrow(axis, 0, 1)
    target.copy_(values)


def whole(tensor: torch.Tensor) -> torch.Tensor:
    """All memory from the first element to the last, gaps included, as one flat tensor."""
    return tensor.as_strided((extent_of(tensor.shape, tensor.stride()),), (1,))


def _view(memory: mmap.mmap, spec: TensorSpec, offset: int) -> torch.Tensor:
    if spec.numel == 0:
        return torch.empty(spec.shape, dtype=spec.torch_dtype)
    return torch.frombuffer(memory, dtype=spec.torch_dtype, count=spec.numel, offset=offset).view(spec.shape)


def padded(spec: TensorSpec) -> int:
    """Bytes that a tensor takes up in shared memory."""
    return -(-max(spec.nbytes, 1) // ALIGNMENT) * ALIGNMENT


class DeviceSharedTensors(SharedTensors):
    """One allocation of the evaluator's, mapped by a worker through its handle. Lives as long as the evaluator."""

    device = "cuda"

    def __init__(self, name: str) -> None:
        self._address = 0
        self._groups = {}

    @property
    def inherited(self) -> list[int]:
        """None: the driver's handle says it all."""
        return []

    @property
    def place(self) -> str:
        """The handle, in hexadecimal, by which another process maps the allocation."""
        handle, _ = device_memory.export(self._address)
        return handle.hex()

    def size_to(self, layout: Layout) -> None:
        """Allocate for a layout and map it here.

        Raises:
            DriverRefused: the device has not so much memory free.
        """
        self._address = device_memory.allocate(max(1, sum(padded(spec) for specs in layout.values() for spec in specs)))
        self._lay_out(layout)

    def map(self, layout: Layout, place: str = "") -> None:
        """Map what the evaluator has sized."""
        self._address = device_memory.attach(bytes.fromhex(place))
        self._lay_out(layout)

    def _lay_out(self, layout: Layout) -> None:
        offset = self._address
        for name, specs in layout.items():
            self._groups[name] = []
            for spec in specs:
                self._groups[name].append(device_memory.tensor_at(offset, spec.shape, spec.torch_dtype))
                offset += padded(spec)


def new(name: str, device: str) -> SharedTensors:
    """Shared memory that has not been sized. Touches no GPU: a process forked afterwards could not use it."""
    return SharedTensors(name) if device == "cpu" else DeviceSharedTensors(name)
