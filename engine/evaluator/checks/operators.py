"""Which of PyTorch's operators compute, and what of it a candidate may. Tables and one rule; runs nothing."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from engine.evaluator.checks.candidate_failures import Failure
from storage.results import observed
from storage.results.observed import ObservedOperator
from storage.results.policy import EVERYTHING, Policy
from storage.results.vocabulary import Verdict

MOST_ELEMENTS = 64
CHECK = "own computation"
MAX_TOLD = 6
MAX_ROWS = 40
HANDING = "aten::clone"


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


LAYOUT = words(
    """view view_as view_dtype reshape reshape_as contiguous transpose transpose_ permute flatten unflatten unsqueeze
    unsqueeze_ squeeze squeeze_ expand expand_as broadcast_to broadcast_tensors t t_ swapaxes swapdims movedim moveaxis
    narrow select slice unbind split split_with_sizes chunk tensor_split unsafe_split unsafe_chunk hsplit vsplit dsplit
    as_strided as_strided_ adjoint detach detach_ diagonal unfold view_as_real view_as_complex atleast_1d atleast_2d
    atleast_3d numpy_T matrix_H mH mT alias real imag requires_grad_ refine_names rename conj _conj resolve_conj
    resolve_neg _neg_view _reshape_alias _unsafe_view lift lift_fresh _reshape_copy swapaxes_ swapdims_ _fw_primal"""
)
ALLOCATION = words(
    """empty empty_like empty_strided empty_permuted zeros zeros_like ones ones_like full full_like arange eye
    scalar_tensor new_empty new_empty_strided new_zeros new_ones new_full zero zero_ fill fill_ resize resize_
    resize_as_ resize_output_ set_ _efficientzerotensor linspace"""
)
COPIES = words(
    """clone copy copy_ to _to_copy _to_cpu type_as to_dense pin_memory _pin_memory cat concat concatenate stack hstack
    vstack dstack column_stack repeat repeat_interleave tile pad constant_pad_nd index_select index gather take
    take_along_dim flip fliplr flipud roll rot90 narrow_copy block_diag pixel_shuffle pixel_unshuffle meshgrid
    permute_copy im2col col2im _pad_enum reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d"""
)
LOOKS = words(
    """size stride dim numel item _local_scalar_dense is_pinned is_same_size result_type can_cast promote_types
    storage_offset record_stream equal_shape output_nr _version sym_size sym_numel sym_stride data retain_grad
    set_data _has_compatible_shallow_copy_type has_names align_as is_set_to _is_zerotensor _assert_async"""
)
HARMLESS = LAYOUT | ALLOCATION | COPIES | LOOKS


def is_harmless(name: str) -> bool:
    """True for an operator, named without its namespace, that allocates, looks, fills, views or copies."""
    return name in HARMLESS or name.startswith("is_")


def _does(name: str) -> str:
    """What a harmless operator does, in one word."""
    groups = ((COPIES, "copies"), (ALLOCATION, "allocates"), (LAYOUT, "views"))
    return next((word for names, word in groups if name in names), "looks")


# What PyTorch's backward of an operator calls where the name does not tell.
PRODUCTS = words("linear matmul bmm mm addmm einsum bilinear")
CONVOLUTIONS = words("conv1d conv2d conv3d convtranspose1d convtranspose2d convtranspose3d")
OF_BACKWARD: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(PRODUCTS, words("mm bmm addmm matmul sum")),
    **dict.fromkeys(CONVOLUTIONS, words("convolution_backward mps_convolution_backward")),
    "lstm": words("_thnn_fused_lstm_cell_backward _cudnn_rnn_backward miopen_rnn_backward mkldnn_rnn_layer_backward"),
    **dict.fromkeys(words("gru rnntanh"), words("_thnn_fused_gru_cell_backward _cudnn_rnn_backward")),
    "embedding": words("embedding_dense_backward embedding_sparse_backward"),
    "rmsnorm": words("_fused_rms_norm_backward"),
    "batchnorm": words("_batch_norm_impl_index_backward"),
    "gridsample": words("grid_sampler_2d_backward grid_sampler_3d_backward"),
    "scaleddotproductattention": words(
        """_scaled_dot_product_flash_attention_backward _scaled_dot_product_flash_attention_for_cpu_backward
        _scaled_dot_product_efficient_attention_backward _scaled_dot_product_cudnn_attention_backward bmm mul
        _softmax_backward_data sum"""
    ),
}
_DIMENSIONS = re.compile(r"[123]d$")
_LIBRARIES = re.compile(r"^(native|cudnn|miopen|mkldnn|mps)")


def is_allowed_in_backward(name: str, operators: Collection[str]) -> bool:
    """True for what PyTorch's own backward of an operator calls that the task leaves to the library: `silu_backward`,
    `_softmax_backward_data`, `native_layer_norm_backward`, `max_pool2d_with_indices_backward`."""
    stem, is_backward, _ = _plain(name).partition("backward")
    stem = _LIBRARIES.sub("", stem).removesuffix("withindices") if is_backward else ""
    return any(name in OF_BACKWARD.get(plain, ()) or _is_of(stem, plain) for plain in map(_plain, operators))


def _is_of(stem: str, operator: str) -> bool:
    """Alike, or one of both names no number of dimensions."""
    operator = _LIBRARIES.sub("", operator)
    return bool(stem) and (operator in (stem, _DIMENSIONS.sub("", stem)) or _DIMENSIONS.sub("", operator) == stem)


def is_allowed(name: str, operators: Collection[str]) -> bool:
    """True when the task leaves this operator to the library, as a function, method or layer."""
    if EVERYTHING in operators:
        return True
    names = {_plain(name), _DIMENSIONS.sub("", _plain(name)), _plain(name).removesuffix("native")}
    return any(_plain(operator) in names for operator in operators)


def _plain(name: str) -> str:
    return name.lower().replace("_", "")


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator over one or more calls: elements of its largest inputs in all, -1 where they are not known."""

    name: str
    calls: int
    elements: int
    nanoseconds: int

    @property
    def leaf(self) -> str:
        """The operator's name without its namespace."""
        return self.name.partition("::")[2]

    def __add__(self, other: Operator) -> Operator:
        elements = -1 if self.elements < 0 or other.elements < 0 else self.elements + other.elements
        return Operator(self.name, self.calls + other.calls, elements, self.nanoseconds + other.nanoseconds)

    @property
    def size(self) -> str:
        """For a reader."""
        return "lists of tensors" if self.elements < 0 else f"{self.elements:,} elements"


def read(report: Any) -> list[Operator]:
    """The rows of a worker's summary.

    Raises:
        ValueError: it is malformed.
    """
    try:
        rows = [(str(name)[:100], int(calls), int(size), int(took)) for name, calls, size, took in report["operators"]]
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError("what the worker tells of the operators it saw is malformed") from error
    return [Operator(*row) for row in rows]


def at_work(rows: Iterable[Operator]) -> list[Operator]:
    """Those that compute or copy, the largest first."""
    working = [row for row in rows if row.leaf in COPIES or not is_harmless(row.leaf)]
    return sorted(working, key=lambda row: -row.elements)


@dataclass(slots=True)
class Observed:
    """What ran in a candidate's calls so far. `moves` says that the task itself only moves data, `written` where the
    candidate's file calls what: (`torch.min`, 40). `handed` are the elements of each gradient that the worker itself
    copies for backward in every call.
    """

    policy: Policy
    moves: bool = False
    written: Sequence[tuple[str, int]] = ()
    handed: Sequence[int] = ()
    calls: int = 0
    nanoseconds: int = 0
    totals: dict[str, Operator] = field(default_factory=dict)

    def add(self, report: Any, marks: Sequence[int], calls: int, during: str, took_ns: int = 0) -> Failure | None:
        """One more observation over `calls` calls that took so long; a Failure when what it shows is refused."""
        if not isinstance(report, Mapping) or report.get("marks") != list(marks):
            return Failure(
                Verdict.REFUSED, f"{during}: the candidate switched off the observer of PyTorch's operators; remove it"
            )
        try:
            rows = self._without_handed(read(report), calls)
        except ValueError as error:
            return Failure(Verdict.REFUSED, f"{during}: {error}")
        self.calls += calls
        self.nanoseconds += took_ns
        for row in rows:
            self.totals[row.name] = row + self.totals[row.name] if row.name in self.totals else row
        return self._refusal(rows, calls, during)

    def _without_handed(self, rows: Sequence[Operator], calls: int) -> list[Operator]:
        """The rows without the worker's own copies."""
        left = []
        for row in rows:
            if self.handed and row.name == HANDING:
                count, size = row.calls - calls * len(self.handed), row.elements - calls * sum(self.handed)
                row = replace(row, calls=max(0, count), elements=max(0, size))
            if row.calls:
                left.append(row)
        return left

    def computing(self, rows: Iterable[Operator]) -> list[Operator]:
        """The operators that do what the candidate's own kernels should, the largest first."""
        operators = [row for row in rows if self._computes(row) and not self._is_allowed(row.leaf)]
        return sorted(operators, key=lambda row: (row.elements >= 0, -row.elements))

    def _is_allowed(self, name: str) -> bool:
        left = self.policy.library_operators
        return is_allowed(name, left) or (self.policy.backward and is_allowed_in_backward(name, left))

    def _computes(self, row: Operator) -> bool:
        return not is_harmless(row.leaf) or (self.moves and row.leaf in COPIES)

    def _refusal(self, rows: Sequence[Operator], calls: int, during: str) -> Failure | None:
        refused = self.computing(rows)
        if all(row.elements >= 0 for row in refused) and sum(row.elements for row in refused) <= MOST_ELEMENTS * calls:
            return None
        operators = ", ".join(f"{row.name} on {row.size}{self._place(row)}" for row in refused[:MAX_TOLD])
        return Failure(
            Verdict.REFUSED,
            f"{during}: a library computed instead of the candidate's own kernel, a library fall-back: {operators}"
            f"{f' in {calls} calls' if calls > 1 else ''}. Do this work in the kernel that {self._where} launches",
        )

    @property
    def _where(self) -> str:
        return "forward or the backward of your torch.autograd.Function" if self.policy.backward else "forward"

    def _place(self, row: Operator) -> str:
        lines = [str(line) for name, line in self.written if name.rpartition(".")[2] == row.leaf]
        return f" (line {' or '.join(lines[:3])})" if lines else ""

    @property
    def unused(self) -> list[str]:
        """Fall-backs that the file writes and no call took, with their lines."""
        ran = {row.leaf for row in self.rows}
        return [f"{name} in line {line}" for name, line in self.written if name.rpartition(".")[2] not in ran]

    @property
    def left(self) -> list[str]:
        """What computed and the policy leaves to PyTorch."""
        few = [row.name for row in self.computing(self.rows)]
        return [row.name for row in self.rows if self._computes(row) and row.name not in few]

    @property
    def detail(self) -> str:
        """What the check that held has seen."""
        few, left = [row.name for row in self.computing(self.rows)], self.left
        others = [row.name for row in self.rows if not self._computes(row)]
        parts = [f"computed what the policy leaves to it ({', '.join(left[:MAX_TOLD])})"] if left else []
        parts += [f"computed on few elements ({', '.join(few[:MAX_TOLD])})"] if few else []
        parts += [f"only allocated, viewed or copied: {', '.join(others[:MAX_TOLD]) or 'nothing'}"]
        unused = f"; written, and not run at these sizes: {', '.join(self.unused[:MAX_TOLD])}" if self.unused else ""
        return f"in {self.calls} calls PyTorch {' and '.join(parts)}{unused}"

    @property
    def rows(self) -> list[Operator]:
        """All of them, what computes first, then by time."""
        return sorted(self.totals.values(), key=lambda row: (not self._computes(row), -row.nanoseconds))

    @property
    def table(self) -> tuple[ObservedOperator, ...]:
        """For a reader: each operator per call."""
        calls = max(1, self.calls)
        return tuple(
            ObservedOperator(
                row.name,
                "computes" if self._computes(row) else _does(row.leaf),
                row.calls / calls,
                row.elements / calls if row.elements >= 0 else None,
                row.nanoseconds / self.nanoseconds if self.nanoseconds else None,
            )
            for row in self.rows[:MAX_ROWS]
        )


def only_moves(rows: Iterable[Operator]) -> bool:
    """True when a reference with these operators computes nothing: moving data is the task then."""
    return not any(not is_harmless(row.leaf) and not 0 <= row.elements <= MOST_ELEMENTS for row in rows)


def shares_of_pytorch(evidence: Mapping[str, str]) -> dict[str, float] | None:
    """Shares of a call's time, on a GPU of the device's, by operator of PyTorch that computed, the largest first; None
    where a check could not tell."""
    operators, kernels = observed.of(evidence), observed.kernels_of(evidence)
    told: list[tuple[str, float | None]] = [(row.name, row.share) for row in operators or () if row.does == "computes"]
    if kernels is not None:
        told = [(row.by, row.share) for row in kernels if row.by and not is_harmless(row.by.partition("::")[2])]
    if operators is None and kernels is None:
        return None
    shares: dict[str, float] = {}
    for name, share in told:
        if share is None:
            return None
        shares[name.partition("::")[2]] = shares.get(name.partition("::")[2], 0.0) + share
    return dict(sorted(shares.items(), key=lambda pair: -pair[1]))
