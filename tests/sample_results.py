"""Texts and check results that synthetic runs are made of."""

from __future__ import annotations

from storage.results import observed
from storage.results.evaluation_results import CheckResult, CompileResult, Mismatch, TimingResult
from storage.results.observed import ObservedOperator
from storage.results.timeline import Part, Timeline
from storage.results.vocabulary import Verdict
from storage.run.events import BaselineMeasured
from tests.sample_checks import AGREED, DISAGREED, FALL_BACK, ISOLATED, REFUSED, SCREENED

IDEAS = ("stage tiles in shared memory", "vectorise loads", "swizzle shared memory", "unroll the inner loop",
         "double-buffer the pipeline", "larger thread tile", "fuse the epilogue", "reorder the loop nest")  # fmt: skip
KERNEL = """import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r'''
#include <cute/tensor.hpp>
using namespace cute;

template <int BM, int BN, int BK>
__global__ void kernel(float const* A, float const* B, float* C, int n) {{
{body}
}}
'''


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return module.run(a, b)
"""
DIAGNOSTICS = """candidate.py:10: warning #177-D: variable "pad" was declared but never referenced
candidate.py:11: error: no instance of function template "cute::copy" matches the argument list
            argument types are: (cute::Tensor<...>, cute::Tensor<...>)
1 error detected in the compilation of "candidate.py"."""

COMPILED = BaselineMeasured(
    "torch.compile",
    TimingResult(tuple(2.0 / (1.28 + 0.004 * (i % 5 - 2)) for i in range(20)), (2.0,) * 20, "eager", 9.0),
)
NOT_COMPILED = BaselineMeasured("torch.compile", None, "its answers differ: 3 of 1024 values are wrong")

BUILT = CompileResult(
    True, 11.5, remarks=("96 registers", "34816 bytes of shared memory", "no spills"), proofs=(*SCREENED, *ISOLATED)
)
BROKEN = CompileResult(False, 11.5, DIAGNOSTICS, verdict=Verdict.COMPILE_ERROR, proofs=(*SCREENED[:4], *ISOLATED))
TURNED_AWAY = CompileResult(
    False,
    0.1,
    f"The candidate was refused before it ran, by what its text does:\n- {FALL_BACK}",
    verdict=Verdict.REFUSED,
    proofs=REFUSED,
)
RAN = (
    ObservedOperator("aten::copy_", "copies", 1.0, 1_048_576.0, 0.043),
    ObservedOperator("aten::empty_like", "allocates", 1.0, 1_048_576.0, 0.002),
)
RIGHT = CheckResult(
    Verdict.PASSED,
    seconds=2.5,
    trials=("normal", "large", "zeros"),
    max_error=3e-7,
    max_abs_error=2e-6,
    tolerance=1e-4,
    reference_error=2e-7,
    precision="fp32-exact",
    seed=7,
    evidence={"isolated": "yes", observed.KEY: observed.to_text(RAN)},
    proofs=(*ISOLATED, *AGREED),
    timeline=Timeline(4.0, parts={Part.REFERENCE: 1.5, Part.COMPARING: 1.0, "of a later version": 0.5}),
)
WRONG = CheckResult(
    Verdict.INCORRECT,
    seconds=2.5,
    trials=("normal",),
    max_error=0.9,
    max_abs_error=1.9,
    tolerance=1e-4,
    reference_error=2e-7,
    mismatch=Mismatch(
        index=(0, 96),
        expected=0.731,
        actual=0.0,
        wrong_count=262_144,
        total_count=1_048_576,
        max_abs_error=1.9,
        max_rel_error=1.0,
        shape=(1024, 1024),
        heat=tuple(tuple(1.0 if j > 11 else 0.25 * (i == j) for j in range(16)) for i in range(16)),
        trial="normal",
    ),
    message="262144 of 1048576 elements (25%) are wrong in trial 'normal': first at index (0, 96): expected 0.731, "
    "got 0. "
    "Largest error 1 relative to |expected| + rms, allowed 0.0001; largest absolute error 1.9. "
    "The wrong elements are all in the last 256 of 1024 columns.",
    precision="fp32-exact",
    seed=7,
    evidence={"isolated": "yes"},
    proofs=(*ISOLATED, *DISAGREED),
)
