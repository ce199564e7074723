"""What the table of this package says: which kernel takes which inputs. Values alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Input:
    """One argument of the module's `forward`; a tensor where `dtype` names one, else a Python number."""

    name: str
    dtype: str
    """`float32` and the like, or `float`, `int`, `bool` of a plain number."""
    shape: Shape = ()
    stride: Shape = ()
    """Of a tensor that was judged with gaps or in another order in memory; empty for a contiguous one."""

    @property
    def is_tensor(self) -> bool:
        """Whether it is a tensor, not a plain number."""
        return self.dtype not in ("float", "int", "bool")


@dataclass(frozen=True)
class Entry:
    """One kernel at the sizes that it was judged at."""

    kernel: str
    """Module of this package with the kernel's own file; `reference` is the one with the module it replaces."""
    reference: str
    operator: str
    """Its name below `torch.ops.<package>`."""
    how: str
    """`cpp`: the operator is C++. `triton`: PyTorch's compiler sees through it. `python`: a call that it does not see
    into."""
    device: str
    """`cpu` or `cuda`."""
    inputs: tuple[Input, ...]
    state: tuple[Input, ...]
    """Parameters and buffers of the module, by the names that they have in its `state_dict`."""
    outputs: int
    """How many tensors come back; 0 for one that stands alone."""
    output_strides: tuple[Shape, ...] = ()
    """Of results where the reference's are not contiguous: of each its strides, or nothing if it is contiguous."""
    arguments: tuple[tuple[str, str], ...] = ()
    """Of a C++ operator, in its order: `("input", name)`, `("state", name)` or `("constant", path)`, which is read of
    the kernel's module once."""
    capabilities: tuple[tuple[int, int], ...] = ()
    """Of GPUs that it is built for; empty on a processor."""
    sizes: str = "exact"
    """`exact`: the shapes above. `batch`: any length of the first dimension. `any`: any lengths, as many dimensions."""
    mode: str = ""
    """`eval` or `train`, where the kernel was judged with modules in that mode alone."""
    has_backward: bool = False
    """Whether the kernel's own backward was judged too."""
    by_name: int = 0
    """How many of the last inputs the kernel was given by name."""
    is_capturable: bool | None = None
    """Whether a CUDA graph may hold a call; None where nobody tried."""
    follows_stream: bool | None = None
    """Whether its work waits for the current stream where that is not the default one; None where nobody tried."""


@dataclass(frozen=True)
class Region:
    """Equal places of a network, and the kernels for them."""

    name: str
    entries: tuple[int, ...]
    """Numbers in the table, in the order in which they are tried."""
    places: tuple[str, ...] = ()
    """Paths of its modules; empty for operators of the network's graph that a module's border cuts."""
    kind: str = ""
    """Class of its modules."""
    takes: Any = None
    """Form of (args, kwargs) of a module's call; its tensors are numbered as the kernel's inputs are."""
    gives: Any = None
    """Form of what the call returns: tensors of the kernel first, then those that it was given."""
