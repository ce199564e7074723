"""What C++ does with PyTorch's tensors: functions, methods and operators that compute. Says what, judges nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from engine.evaluation.screening import operators
from engine.evaluation.screening.cpp.names import COMPUTING_NAMESPACES
from engine.evaluation.screening.cpp.view import Named, View
from engine.evaluation.screening.operators import words

TENSOR_TYPES = frozenset(
    {"torch::Tensor", "at::Tensor", "torch::autograd::Variable", "torch::stable::Tensor", "at::TensorBase"}
)
FREE_FUNCTIONS = words(
    """parallel_for get_num_threads get_thread_num in_parallel_region divup ceil_div dtype device options requires_grad
    elementSize str toString globalContext warn library def impl arg isFloatingType isIntegralType isComplexType
    toOpMathType intraop_default_num_threads get_parallel_info init_num_threads hasCUDA detail getCPUAllocator
    IntArrayRef typeMetaToScalarType optional nullopt make_optional scalarTypeToTypeMeta cppTypeToScalarType
    from_blob make_generator with_dtype grad_mode memory_format layout pinned_memory maybe_owned nullptr cuda philox"""
)
FREE_CPP_METHODS = words(
    """options sizes strides scalar_type defined const_data_ptr mutable_data_ptr data_ptr_impl packed_accessor32
    packed_accessor64 packed_accessor accessor generic_packed_accessor use_count unsafeGetTensorImpl toType value
    has_value value_or get reset suggest_memory_format variable_data tensor_data key_set expect_contiguous sym_sizes
    sym_numel sym_strides optional_type_id unsafeReleaseTensorImpl toBackend set_requires_grad get_deleter opt
    has_storage set_data swap begin end front back size empty push_back emplace_back at reserve operator"""
)
# at::cuda holds PyTorch's operators, all in lower case, beside what tells and sets the device and its current stream.
_ON_DEVICE = re.compile(r"(?:at|torch)::cuda::(\w+)")
_DEVICE_WORDS = words(
    """current_device device_count set_device device_synchronize stream_synchronize synchronize warp_size is_available
    memcpy_and_sync warn_or_error_on_sync sleep flush_icache manual_seed manual_seed_all detail"""
)
LAST_OF_CHAIN = (operators.LOOKS | FREE_CPP_METHODS) - {"value", "value_or", "variable_data", "tensor_data", "toType"}


def remembered(view: View) -> Iterator[tuple[str, int]]:
    """Tensors that outlive a call: static or global variables. (name, line)."""
    for start, end in view.parts():
        for place in range(start, end):
            if view.text(place) in ("static", "thread_local"):
                name = _declared_tensor(view, place + 1, end)
                if name is not None and view.text(name + 1) in ("=", ";", "{"):
                    yield view.at(name).text, view.at(name).line
        first = _declared_tensor(view, start, end)
        if first is not None and view.text(first + 1) in (";", "="):
            yield view.at(first).text, view.at(first).line


def is_computing_function(name: str) -> bool:
    """True for the full name of a function of PyTorch's C++ interface that computes."""
    leaf = name.rpartition("::")[2]
    if on_device := _ON_DEVICE.fullmatch(name):
        return not (is_about_device(name) or operators.is_free_method(on_device[1]))
    if COMPUTING_NAMESPACES.match(name):
        return not (name.startswith("torch::stable::") and (operators.is_free_method(leaf) or leaf in FREE_FUNCTIONS))
    if not re.fullmatch(r"(at|torch)::[a-z_]\w*", name):
        return False
    return not (operators.is_free_method(leaf) or leaf in FREE_FUNCTIONS or re.match(r"k[A-Z]|is_|get_", leaf))


def is_about_device(name: str) -> bool:
    """True for the full name of a function that gives or sets a device, its properties or its current stream."""
    on_device = _ON_DEVICE.fullmatch(name)
    return on_device is not None and (on_device[1] in _DEVICE_WORDS or not on_device[1].islower())


def is_tensor_type(view: View, named: Named) -> bool:
    """True for PyTorch's tensor, not CuTe's."""
    if named.name in TENSOR_TYPES:
        return True
    is_torch = bool(view.opened & {"at", "torch"}) and "cute" not in view.opened
    return named.name == "Tensor" and is_torch


def _declared_tensor(view: View, start: int, end: int) -> int | None:
    """Place of the variable that a declaration starting here gives a tensor type, if it does."""
    place = start
    while view.text(place) in ("const", "static", "thread_local", "inline", "constexpr", "mutable", "c10"):
        place += 1
    parts = []
    while place < end and view.at(place).is_name:
        parts.append(view.at(place).text)
        if view.text(place + 1) != "::":
            break
        place += 2
    if not parts or not is_tensor_type(view, Named(view.resolved(parts), start, place)):
        is_inside = "Tensor" in [view.text(i) for i in range(start, min(start + 24, end))]
        return _declared_container(view, start, end) if is_inside else None
    place += 1
    while view.text(place) in ("const", "&", "*", "&&"):
        place += 1
    return place if view.at(place).is_name else None


def _declared_container(view: View, start: int, end: int) -> int | None:
    """`std::vector<at::Tensor> kept`: the name after the closing angle bracket."""
    place = start
    while place < end and view.text(place) not in (";", "{", "(", "="):
        if view.text(place) == ">" and view.at(place + 1).is_name and view.text(place + 2) in (";", "=", "{"):
            return place + 1
        place += 1
    return None


def tensors_in(view: View, start: int, end: int) -> frozenset[str]:
    """Names of the tensor variables in one top-level part."""
    found: set[str] = set()
    for named in view.names_between(start, end):
        if is_tensor_type(view, named):
            name = _declared_tensor(view, named.first, end)
            if name is not None and _is_variable(view, name, start):
                found.add(view.at(name).text)
        elif _is_auto(view, named) and _gives_tensor(view, named.last + 2, found):
            found.add(named.name)
    return frozenset(found)


def _is_variable(view: View, name: int, start: int) -> bool:
    following = view.text(name + 1)
    is_inside = name - start > 4
    return following in (",", ")", ";", "=", "{", ":") or (following == "(" and is_inside)


def _is_auto(view: View, named: Named) -> bool:
    """True for `auto name =`."""
    if view.text(named.last + 1) != "=" or not named.is_plain:
        return False
    place = named.first - 1
    while view.text(place) in ("&", "&&", "const"):
        place -= 1
    return view.text(place) == "auto"


def _gives_tensor(view: View, place: int, known: set[str]) -> bool:
    named = view.named_at(place)
    if named is None:
        return False
    following = view.text(named.last + 1)
    if re.match(r"(at|torch)::[a-z]", named.name) and following == "(":
        leaf = named.leaf
        is_made = (operators.is_free_method(leaf) and leaf not in operators.LOOKS) or is_computing_function(named.name)
        return is_made and chain_end(view, view.after(named.last + 1)) is None
    return named.name in known and chain_end(view, named.last + 1) is None and following in (".", "->", ";")


def chain_end(view: View, place: int) -> str | None:
    """The method in a chain of calls after which there is no tensor any more, or None."""
    for method, _ in chain(view, place):
        if method in LAST_OF_CHAIN or method.startswith("is_"):
            return method
    return None


def chain(view: View, place: int) -> Iterator[tuple[str, int]]:
    """(method, place) for `.a().b<c>()...` from here on."""
    while True:
        while view.text(place) == "[":
            place = view.after(place)
        if view.text(place) not in (".", "->"):
            return
        place += 1 + (view.text(place + 1) == "template")
        method, at = view.at(place).text, place
        place += 1
        if view.text(place) == "<":
            depth = 0
            while place < len(view.tokens):
                depth += {"<": 1, ">": -1, ">>": -2}.get(view.text(place), 0)
                place += 1
                if depth <= 0 or view.text(place) in (";", "{"):
                    break
        if view.text(place) != "(":
            return
        yield method, at
        place = view.after(place)


def global_tensors(view: View) -> frozenset[str]:
    """Names of tensors outside all functions."""
    return frozenset(name for name, _ in remembered(view))
