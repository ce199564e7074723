"""Candidates around one honest kernel: other forwards, other C++, other lines at the top."""

from __future__ import annotations

from engine.evaluator.checks.screening import Finding, Rule, screen
from storage.results.policy import Policy
from tests.engine.evaluator.toolchains.kernels import LOOP as LOOP
from tests.engine.evaluator.toolchains.kernels import SWISH as SWISH
from tests.engine.evaluator.toolchains.kernels import forward as forward
from tests.engine.evaluator.toolchains.kernels import swish

REFERENCE = '''
import torch
import torch.nn as nn


class Model(nn.Module):
    """Swish."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.sigmoid(x)
'''
CALL = "return ext.swish(x)"


def with_top(*lines: str) -> str:
    """The honest kernel with more lines before its class."""
    return SWISH.replace("class ModelNew", "\n".join(lines) + "\n\n\nclass ModelNew")


def with_top_and_forward(top: str, *lines: str) -> str:
    """More lines before the class, and another forward."""
    return forward(*lines).replace("class ModelNew", top + "\n\n\nclass ModelNew")


def with_cpp(body: str = "", top: str = "") -> str:
    """The honest kernel with more C++ inside its function and before it."""
    source = swish(loop=LOOP + body)
    return source.replace("torch::Tensor swish(", top + "\ntorch::Tensor swish(")


def with_init(*lines: str) -> str:
    """The honest kernel with a constructor."""
    init = "".join(f"        {line}\n" for line in lines)
    return SWISH.replace(
        "    def forward", f"    def __init__(self):\n        super().__init__()\n{init}\n    def forward"
    )


def found(source: str, policy: Policy | None = None) -> list[Finding]:
    """All findings about a candidate."""
    return screen(source, policy or Policy())


def refused(source: str, policy: Policy | None = None) -> set[Rule]:
    """The rules by which a candidate is refused."""
    return {finding.rule for finding in found(source, policy) if finding.is_refusal}


def flagged(source: str, policy: Policy | None = None) -> set[Rule]:
    """The rules by which a candidate is only flagged."""
    return {finding.rule for finding in found(source, policy) if not finding.is_refusal}
