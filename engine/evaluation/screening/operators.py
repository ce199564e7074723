"""Which names of PyTorch compute, which only allocate, look or rearrange. Tables of plain words; knows no syntax."""

from __future__ import annotations

import re
from collections.abc import Iterable


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


LAYOUT = words(
    """view view_as view_dtype reshape reshape_as contiguous transpose transpose_ permute flatten unflatten unsqueeze
    unsqueeze_ squeeze squeeze_ expand expand_as broadcast_to broadcast_tensors t t_ swapaxes swapdims movedim
    moveaxis narrow select unbind split split_with_sizes chunk tensor_split hsplit vsplit dsplit as_strided adjoint
    detach detach_ diagonal unfold ravel view_as_real view_as_complex atleast_1d atleast_2d atleast_3d T mT H mH
    data real requires_grad_ clone copy_ alias refine_names rename to_dense permute_copy mkldnn channels_last"""
)
ALLOCATION = words(
    """empty empty_like empty_strided empty_permuted zeros zeros_like ones ones_like full full_like tensor as_tensor
    from_numpy from_dlpack frombuffer arange eye scalar_tensor new_empty new_empty_strided new_zeros new_ones
    new_full new_tensor zero_ fill_ resize_ resize_as_ set_ blackman_window"""
)
CASTS = words("""to cuda cpu type type_as float double half bfloat16 int long short char byte bool numpy __array__""")
LOOKS = words(
    """size stride dim ndimension numel nelement element_size itemsize nbytes storage_offset data_ptr get_device item
    tolist untyped_storage storage record_stream pin_memory share_memory_ shape dtype device layout ndim is_cuda
    grad grad_fn requires_grad names sym_size register_hook retain_grad backward __len__ __getitem__ __setitem__
    __repr__ __str__ __format__ __hash__ __dlpack__ __dlpack_device__ has_names __class__ __init__ equal_shape
    version _version dense_dim _is_view _base is_ accumulate_grad grad_dtype"""
)
COPIES = words(
    """cat concat concatenate stack hstack vstack dstack column_stack repeat repeat_interleave tile pad constant_pad_nd
    index_select gather take take_along_dim flip fliplr flipud roll rot90 index_copy_ narrow_copy block_diag
    pixel_shuffle pixel_unshuffle scatter_ meshgrid"""
)
FREE_METHODS = LAYOUT | ALLOCATION | CASTS | LOOKS

NEUTRAL = words(
    """Tensor device Size dtype layout memory_format strided contiguous_format channels_last channels_last_3d
    preserve_format Generator finfo iinfo no_grad inference_mode enable_grad set_grad_enabled is_grad_enabled
    typename get_default_dtype get_default_device get_num_threads get_num_interop_threads get_device_module numel
    result_type promote_types can_cast broadcast_shapes Storage UntypedStorage TypedStorage FloatTensor IntTensor
    LongTensor DoubleTensor HalfTensor BoolTensor __version__ float float32 float64 double half float16 bfloat16 int
    int8 int16 int32 int64 short long uint8 uint16 uint32 uint64 bool complex32 complex64 complex128 cfloat cdouble
    float8_e4m3fn float8_e5m2 inf nan pi e newaxis SymInt classes _assert _check tensor_split"""
)
NEUTRAL_PACKAGES = ("cuda", "version", "utils", "autograd", "backends", "types", "testing", "cpu", "accelerator")
MODULE_METHODS = "torch.nn.Module."
FREE_LAYERS = words(
    """Module Parameter ParameterList ParameterDict ModuleList ModuleDict Sequential Identity Flatten Unflatten Buffer
    UninitializedParameter"""
)
OWN_NAMESPACE = re.compile(
    r"torch\.ops\.(?!aten\b|prim\w*\b|quantized\w*\b|mkl\w*\b|xnnpack\b|_c10d\w*\b|inductor\b|c10d\w*\b|onednn\b|"
    r"sparse\b|torchvision\b|profiler\b|higher_order\b|_\w+\b)(?:load_library|\w+(?:\.\w+)*)"
)
ARITHMETIC = words(
    """matmul imatmul mul imul add iadd sub isub truediv itruediv floordiv mod pow ipow neg pos abs invert lt le gt ge
    eq ne and_ or_ xor lshift rshift concat"""
)

METHOD_OF = dict(
    zip(
        "Add Sub Mult MatMult Div FloorDiv Mod Pow LShift RShift BitOr BitXor BitAnd".split(),  # noqa: SIM905
        "add sub mul matmul truediv floordiv mod pow lshift rshift or xor and".split(),  # noqa: SIM905
        strict=True,
    )
)
"""The special method behind each operator of Python's syntax tree."""


def leaf(name: str) -> str:
    """The last part of a dotted name."""
    return name.rpartition(".")[2]


def is_computing(name: str) -> bool:
    """True when calling this full name does arithmetic that a kernel should do."""
    if name.startswith("operator."):
        return leaf(name).strip("_") in {word.strip("_") for word in ARITHMETIC}
    if name.startswith("numpy."):
        return leaf(name) not in ALLOCATION | LAYOUT and not re.match(
            r"u?int|float|dtype|ndarray|prod$|ceil", leaf(name)
        )
    if not name.startswith("torch."):
        return name in ("itertools.accumulate", "math.fsum", "math.sumprod") or name.startswith("statistics.")
    if name.startswith(("torch.cuda.comm.", "torch.cuda.nccl.", "torch.nn.parallel.", "torch.nn.utils.parametriz")):
        return True
    parts = name.split(".")
    if name.startswith("torch.Tensor."):
        return not is_free_method(parts[2])
    if name.startswith("torch.nn.functional."):
        return leaf(name) not in COPIES
    if name.startswith("torch.nn."):
        return _is_layer_at_work(name, parts)
    if OWN_NAMESPACE.fullmatch(name) or parts[1] in NEUTRAL_PACKAGES:
        return False
    if len(parts) == 2:
        return not (parts[1] in NEUTRAL or is_free_method(parts[1]))
    return parts[1] not in NEUTRAL and not name.startswith("torch.ops.load_library")


def is_free_method(name: str) -> bool:
    """True for a method of a tensor that allocates, looks, casts or rearranges."""
    return name in FREE_METHODS or name in COPIES or name.startswith(("is_", "new_"))


def is_copying(name: str) -> bool:
    """True for operators that move values and could be a task of their own."""
    return name.startswith("torch.") and leaf(name) in COPIES


def is_allowed(name: str, operators: Iterable[str]) -> bool:
    """True when the task leaves this operator to the library, as a function, method or layer."""
    plain = name.removesuffix(".__call__").removesuffix(".forward")
    mine = {_plain(leaf(plain)), re.sub(r"[123]d$", "", _plain(leaf(plain)))}
    return any(_plain(operator) in mine for operator in operators)


def _plain(name: str) -> str:
    return name.lower().replace("_", "")


def _is_layer_at_work(name: str, parts: list[str]) -> bool:
    """A layer that is called, or one of its methods; making one computes nothing."""
    if name.startswith((MODULE_METHODS, "torch.nn.init.", "torch.nn.utils.", "torch.nn.parameter.")):
        return False
    classes = [part for part in parts[2:] if part[:1].isupper()]
    if not classes or classes[0] in FREE_LAYERS:
        return False
    return leaf(name) in ("__call__",) or leaf(name).startswith(("forward", "_"))
