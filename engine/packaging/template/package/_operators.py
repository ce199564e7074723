"""The kernels as operators of PyTorch: with sizes for tracing, gradients and vmap. Registered when imported."""

from __future__ import annotations

import functools
import importlib
import inspect
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import nn

from ._dispatch import is_misaligned
from ._entries import Entry
from ._table import ENTRIES, PACKAGE

_kept = threading.local()


def operator(entry: Entry) -> Any:
    """The operator of an entry, below `torch.ops`."""
    return _operators[entry.operator]


def arguments(entry: Entry, inputs: Sequence[Any], state: Sequence[torch.Tensor]) -> list[Any]:
    """What the operator is called with, for a call of the module."""
    if entry.how != "cpp":
        return [*inputs, *state]
    inputs_by_name = {wanted.name: value for wanted, value in zip(entry.inputs, inputs, strict=True)}
    state_by_name = {wanted.name: value for wanted, value in zip(entry.state, state, strict=True)}
    constants = _constants[entry.kernel, entry.reference]
    groups = {"input": inputs_by_name, "state": state_by_name, "constant": constants}
    return [groups[kind][name] for kind, name in entry.arguments]


def reference_of(entry: Entry) -> nn.Module:
    """The module that the entry's kernel replaces, with new weights."""
    made: nn.Module = module_of(entry).made()
    return made


def module_of(entry: Entry) -> Any:
    """The file with the entry's reference, as a module of Python."""
    return importlib.import_module(f"{__package__}.{entry.reference}")


def kernel_of(entry: Entry) -> nn.Module:
    """The module of the kernel's own file, with new weights."""
    module = importlib.import_module(f"{__package__}.{entry.kernel}")
    made: nn.Module = module.ModelNew(*module_of(entry).get_init_inputs())
    return made.train(entry.mode == "train") if entry.mode else made


def call(entry: Entry, name: str, inputs: Sequence[Any], state: Sequence[torch.Tensor]) -> Any:
    """Call one of this thread's own modules, `reference` or `kernel`, with other tensors in the place of its state."""
    modules = _kept.__dict__.setdefault("modules", {})
    if (entry, name) not in modules:
        modules[entry, name] = {"reference": reference_of, "kernel": kernel_of}[name](entry)
    module = modules[entry, name]
    places = [_place(module, wanted.name) for wanted in entry.state]
    before = [held[leaf] for held, leaf in places]
    try:
        for (held, leaf), value in zip(places, state, strict=True):
            held[leaf] = value
        by_place = len(inputs) - (entry.by_name if name == "kernel" else 0)
        names = [wanted.name for wanted in entry.inputs[by_place:]]
        return module(*inputs[:by_place], **dict(zip(names, inputs[by_place:], strict=True)))
    finally:
        for (held, leaf), value in zip(places, before, strict=True):
            held[leaf] = value


def _place(module: nn.Module, name: str) -> tuple[dict[str, Any], str]:
    """The dict that holds a parameter or buffer, and its name in there."""
    path, _, leaf = name.rpartition(".")
    owner = module.get_submodule(path)
    return (owner._parameters if leaf in owner._parameters else owner._buffers), leaf


def _given(entries: Sequence[Entry], values: Sequence[Any]) -> tuple[Entry, list[Any], list[Any]]:
    """The entry that an operator's arguments belong to, and the call of the module that they stand for."""
    for entry in entries:
        if entry.how != "cpp":
            inputs, state = list(values[: len(entry.inputs)]), list(values[len(entry.inputs) :])
        else:
            by_name = dict(zip(entry.arguments, values, strict=True))
            inputs = [by_name["input", wanted.name] for wanted in entry.inputs]
            state = [by_name["state", wanted.name] for wanted in entry.state]
        if all(tuple(value.shape) == wanted.shape for value, wanted in zip(state, entry.state, strict=True)):
            return entry, inputs, state
    return entries[0], inputs, state


def _shapes(entries: Sequence[Entry]) -> Callable[..., Any]:
    """Tensors like the kernel's results, without values: what the reference makes of such inputs."""

    def fake(*values: Any) -> Any:
        entry, inputs, state = _given(entries, values)
        with torch.no_grad():
            return _laid_out(call(entry, "reference", inputs, state), entry.output_strides, _fresh)

    return fake


def _fresh(tensor: torch.Tensor, stride: Sequence[int]) -> torch.Tensor:
    if not stride:
        return torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    return torch.empty_strided(tensor.shape, stride, dtype=tensor.dtype, device=tensor.device)


def _laid_out(
    result: Any, strides: Sequence[Sequence[int]], change: Callable[[torch.Tensor, Sequence[int]], torch.Tensor]
) -> Any:  # fmt: skip
    """Each result changed, with the strides that it is to have; none of one that is contiguous."""
    if isinstance(result, torch.Tensor):
        return change(result, strides[0] if strides else ())
    return tuple(change(output, strides[number] if strides else ()) for number, output in enumerate(result))


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*(value for value in inputs if isinstance(value, torch.Tensor)))
    ctx.plain = [None if isinstance(value, torch.Tensor) else value for value in inputs]


def _gradients(entries: Sequence[Entry], backward: Any) -> Callable[..., Any]:
    """The gradients of an operator: by the kernel's own backward where it has one, else PyTorch's, through the
    reference, which is called once more."""

    def gradients(context: Any, *given: Any) -> Any:
        tensors = iter(context.saved_tensors)
        values = [next(tensors) if plain is None else plain for plain in context.plain]
        wanted = [number for number, is_needed in enumerate(context.needs_input_grad) if is_needed]
        if backward is not None:
            found = iter(backward([gradient.contiguous() for gradient in given], wanted, *values))
        else:
            found = iter(differentiated(entries, "reference", given, wanted, values))
        return tuple(next(found) if number in wanted else None for number in range(len(values)))

    return gradients


def differentiated(
    entries: Sequence[Entry], name: str, given: Iterable[Any], wanted: Sequence[int], values: Sequence[Any]
) -> list[torch.Tensor]:
    """Gradients of those arguments whose numbers are `wanted`, by a call of the reference or the kernel's module."""
    with torch.enable_grad():
        own = [
            value.detach().requires_grad_(number in wanted) if isinstance(value, torch.Tensor) else value
            for number, value in enumerate(values)
        ]
        entry, inputs, state = _given(entries, own)
        result = call(entry, name, inputs, state)
    results = [result] if isinstance(result, torch.Tensor) else list(result)
    sought = [own[number] for number in wanted]
    pairs = [(output, gradient) for output, gradient in zip(results, given, strict=True) if output.requires_grad]
    if not pairs:
        return [torch.zeros_like(tensor) for tensor in sought]
    outputs, gradients = zip(*pairs, strict=True)
    found = torch.autograd.grad(outputs, sought, gradients, allow_unused=True)
    return [
        torch.zeros_like(tensor) if gradient is None else gradient
        for tensor, gradient in zip(sought, found, strict=True)
    ]


def _one_by_one(entry: Entry) -> Callable[..., Any]:
    """vmap: a call for each element of the batch."""

    def batched(info: Any, dimensions: Any, *values: Any) -> Any:
        if any(wanted.stride for wanted in (*entry.inputs, *entry.state)):
            raise NotImplementedError(
                f"{PACKAGE}: vmap over {entry.operator}, which was judged with tensors that are not contiguous"
            )
        rows = [
            operator(entry)(
                *(
                    value if dimension is None else value.select(dimension, number).contiguous()
                    for value, dimension in zip(values, dimensions, strict=True)
                )
            )
            for number in range(info.batch_size)
        ]
        if isinstance(rows[0], torch.Tensor):
            return torch.stack(rows), 0
        return tuple(map(torch.stack, zip(*rows, strict=True))), (0,) * len(rows[0])

    return batched


def _schema(entry: Entry, extra: str = "", result: str = "") -> str:
    parts = [f"{kind} {name}" for kind, name in _named(entry)]
    result = result or ("Tensor" if not entry.outputs else f"({', '.join(['Tensor'] * entry.outputs)})")
    return f"({', '.join([*([extra] if extra else []), *parts])}) -> {result}"


def _named(entry: Entry) -> list[tuple[str, str]]:
    """Type and name of each argument: inputs, then state."""
    groups = (("input", entry.inputs), ("state", entry.state))
    return [
        ("Tensor" if wanted.is_tensor else wanted.dtype, f"{kind}{number}")
        for kind, group in groups
        for number, wanted in enumerate(group)
    ]


def _spelled_out(entry: Entry, run: Callable[..., Any]) -> Callable[..., Any]:
    """The same function with each argument named and typed: `triton_op` reads its schema from that."""
    types = {"Tensor": torch.Tensor, "float": float, "int": int, "bool": bool}
    named = [(name, types[kind]) for kind, name in _named(entry)]
    result = torch.Tensor if not entry.outputs else tuple[(torch.Tensor,) * entry.outputs]  # type: ignore[misc]

    def spelled_out(*values: Any, **by_name: Any) -> Any:
        return run(*values, *by_name.values())

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kind, annotation=annotation) for name, annotation in named]
    spelled_out.__signature__ = inspect.Signature(parameters, return_annotation=result)  # type: ignore[attr-defined]
    spelled_out.__annotations__ = {**dict(named), "return": result}
    return spelled_out


def _in_python(entry: Entry, entries: Sequence[Entry]) -> Callable[..., Any]:
    def run(*values: Any) -> Any:
        chosen, inputs, state = _given(entries, list(map(_aligned, values)))
        result = call(chosen, "kernel", inputs, state)
        return _laid_out(result, chosen.output_strides, lambda output, stride: _own(output, values, stride))

    return run


def _aligned(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) and is_misaligned(value) else value


def _own(output: torch.Tensor, values: Sequence[Any], stride: Sequence[int] = ()) -> torch.Tensor:
    """An output in memory of its own, contiguous or with these strides, as tracing was told."""
    place = output.untyped_storage()._cdata
    is_shared = any(isinstance(value, torch.Tensor) and value.untyped_storage()._cdata == place for value in values)
    if not stride:
        return output.clone() if is_shared else output.contiguous()
    return output if output.stride() == stride and not is_shared else _fresh(output, stride).copy_(output)


def _register(name: str, entries: Sequence[Entry]) -> Any:
    """Define one operator, or complete the one that a library has defined; returns it."""
    entry, qualified = entries[0], f"{PACKAGE}::{name}"
    if entry.how == "cpp":
        importlib.import_module(f"{__package__}.{entry.kernel}")  # loads the library
    else:
        run = _in_python(entry, entries)
        if entry.how == "triton":
            torch.library.triton_op(qualified, _spelled_out(entry, run), mutates_args=())
        else:
            torch.library.custom_op(qualified, run, mutates_args=(), schema=_schema(entry))
    backward = _backward_operator(qualified, entry, entries) if entry.has_backward else None
    torch.library.register_fake(qualified, _shapes(entries))
    torch.library.register_autograd(qualified, _gradients(entries, backward), setup_context=_keep)
    torch.library.register_vmap(qualified, _one_by_one(entry))
    return getattr(getattr(torch.ops, PACKAGE), name).default


def _backward_operator(qualified: str, entry: Entry, entries: Sequence[Entry]) -> Any:
    """The kernel's own backward as an operator that tracing does not look into."""
    keys = [torch._C.DispatchKey.AutogradCPU, torch._C.DispatchKey.AutogradCUDA]

    def run(given: list[torch.Tensor], wanted: list[int], *values: Any) -> list[torch.Tensor]:
        included, excluded = torch._C._dispatch_tls_local_include_set(), torch._C._dispatch_tls_local_exclude_set()
        for key in (*keys, torch._C.DispatchKey.ADInplaceOrView):
            excluded = excluded.remove(key)
        with torch._C._ForceDispatchKeyGuard(included, excluded):  # an operator's own body records no gradients
            found = differentiated(entries, "kernel", given, wanted, values)
        told = (torch.empty_like(values[number], device="meta") for number in wanted)
        return [_own(gradient, [*given, *values], like.stride()) for gradient, like in zip(found, told, strict=True)]

    schema = _schema(entry, extra="Tensor[] given, int[] wanted", result="Tensor[]")
    defined = torch.library.custom_op(f"{qualified}_backward", run, mutates_args=(), schema=schema)
    defined.register_fake(lambda given, wanted, *values: [torch.empty_like(values[number]) for number in wanted])
    return defined


def _constant(entry: Entry) -> dict[str, Any]:
    """Plain numbers that the kernel's module hands to its operator."""
    paths = [path for kind, path in entry.arguments if kind == "constant"]
    if not paths:
        return {}
    module = kernel_of(entry)
    return {path: functools.reduce(getattr, path.split("."), module) for path in paths}


_groups: dict[str, list[Entry]] = {}
for _entry in ENTRIES:
    _groups.setdefault(_entry.operator, []).append(_entry)
_operators: dict[str, Any] = {}
for _name, _entries in _groups.items():
    _operators[_name] = _register(_name, _entries)
_constants = {(entry.kernel, entry.reference): _constant(entry) for entry in ENTRIES if entry.how == "cpp"}
