"""A short optimisation of swish with every kind of mishap in it, as recorded replies about real kernels."""

from __future__ import annotations

import json
from collections.abc import Sequence

BROKEN = """\
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r'''
#include <torch/extension.h>
#include <cute/tensor.hpp>
#include <cmath>
using namespace cute;

static float value(float x) { return x / (1.f + std::exp(-x)); }

torch::Tensor swish(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int const n = x.numel();
  Tensor X = make_tensor(static_cast<float const*>(x.data_ptr<float>()), make_layout(n));
  Tensor Y = make_tensor(y.data_ptr<float>(), make_layout(n));
  for (int i = 0; i < n; ++i) Y(i) = value(X(i))
  return y;
}
'''

extension = load_inline(name="swish", cpp_sources=source, functions=["swish"])


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.swish(x)
"""
LOOP = "  for (int i = 0; i < n; ++i) Y(i) = value(X(i))"
FIRST = BROKEN.replace(LOOP, LOOP + ";")
WRONG = FIRST.replace("for (int i = 0; i < n; ++i)", "for (int i = 0; i < n - 1; ++i)")
SECOND = FIRST.replace("static float", "static inline float")
THIRD = SECOND.replace("std::exp(-x)", "::expf(-x)")


def edits(old: str, new: str) -> str:
    """The reply that turns one text into another of as many lines."""
    pairs = zip(old.splitlines(), new.splitlines(), strict=True)
    changed = [
        {"action": "replace", "line_number": n, "old_code": [a], "new_code": [b], "why": "as told"}
        for n, (a, b) in enumerate(pairs, 1)
        if a != b
    ]
    return f"```json\n{json.dumps(changed)}\n```\n"


REPLIES: Sequence[tuple[str, str | None, str]] = (
    ("synthesise", None, f"Kernel class: activation\nApproach: one pass\n```python\n{BROKEN}```\n"),
    ("diagnose", BROKEN, "A semicolon is missing."),
    ("repair", BROKEN, edits(SECOND, THIRD)),  # does not fit: the ladder asks again
    ("repair", BROKEN, "Fix: end the statement\n" + edits(BROKEN, FIRST)),
    ("optimise", FIRST, "Optimisation: stop early\n" + edits(FIRST, WRONG)),
    ("diagnose", WRONG, "The last element is left out."),
    ("repair", WRONG, "Fix: whole range, inline\n" + edits(WRONG, SECOND)),
    ("optimise", SECOND, "Optimisation: single precision exponential\n" + edits(SECOND, THIRD)),
)
