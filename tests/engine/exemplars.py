"""The example kernels shown to the model, and the references that they must agree with, which no prompt shows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from engine.evaluator.languages import DEFAULT
from engine.evaluator.tasks import Task
from engine.search.prompting import PROMPTS, for_language
from storage.results.policy import Policy

HEAD = """import torch


class Model(torch.nn.Module):
    def __init__(self, *settings):
        super().__init__()
        self.settings = settings

    def forward(self, {arguments}):
        return {value}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return [{settings}]
"""
# By problem: arguments, the value, the inputs (sizes that no tile divides), and what the constructor takes.
PROBLEMS: Mapping[str, tuple[str, str, str, str]] = {
    "scaled_add": ("x, y", "self.settings[0] * x + y", "torch.randn(301, 333), torch.randn(301, 333)", "1.7"),
    "pairwise_distance": (
        "a, b",
        "(a.unsqueeze(1) - b.unsqueeze(0)).square().sum(-1)",
        "torch.randn(130, 37), torch.randn(71, 37)",
        "",
    ),
    "peak_scale": ("x", "x / (1 + x.abs().amax(1, keepdim=True))", "torch.randn(37, 2500)", ""),
    "centred_scale": (
        "x, g",
        "g * (x - x.mean(1, keepdim=True)) / (1 + (x - x.mean(1, keepdim=True)).abs().mean(1, keepdim=True))",
        "torch.randn(37, 2500), torch.randn(2500)",
        "",
    ),
    "deviation": ("x, centre", "(x - centre).abs().sum(0)", "torch.randn(131, 260), torch.randn(260)", ""),
    "update": (
        "c, u, v",
        "torch.addmm(c, u, v.T)",
        "torch.randn(150, 140), torch.randn(150, 300), torch.randn(140, 300)",
        "",
    ),
    "pseudo_huber": (
        "x, y",
        "((x - y).square() / (1 + (1 + (x - y).square()).sqrt())).mean()",
        "torch.randn(301, 3333), torch.randn(301, 3333)",
        "",
    ),
    # log(sum of exp(x)) of each row, which a language model's training keeps near 0 (Chowdhery et al., PaLM, 2022)
    "z_loss": ("x", "x.logsumexp(1).square().mean()", "torch.randn(301, 3332)", ""),
    "shared_filter": (
        "x, filter",
        "torch.nn.functional.conv2d(x.flatten(0, 1)[:, None], filter[None, None])[:, 0].unflatten(0, x.shape[:2])",
        "torch.randn(2, 3, 45, 70), torch.randn(5, 5)",
        "",
    ),
    "score_total": (
        "q, k",
        "torch.logsumexp(self.settings[0] * (q @ k.transpose(1, 2)), dim=-1)",
        "torch.randn(3, 101, 64), torch.randn(3, 101, 64)",
        "0.125",
    ),
    "channel_filter": (
        "x, w",
        "torch.nn.functional.conv1d(x, w)",
        "torch.randn(2, 24, 203), torch.randn(70, 24, 3)",
        "",
    ),
    # one step of a Hopfield network with continuous states (Ramsauer et al., 2020)
    "soft_lookup": (
        "q, k",
        "torch.softmax(self.settings[0] * (q @ k.transpose(1, 2)), dim=-1) @ k",
        "torch.randn(3, 101, 64), torch.randn(3, 90, 64)",
        "0.125",
    ),
}
SOLVES: Mapping[str, str] = {
    "row_in_registers": "peak_scale",
    "row_in_cluster": "peak_scale",
    "row_at_once": "peak_scale",
    "update_tiles": "update",
    "split_tuned": "update",
    "row_in_cache": "peak_scale",
    "async_stages": "deviation",
    "tensor_cores": "update",
    "tma_wgmma": "update",
    "tcgen05": "update",
    "packed_panels": "update",
}


def files(folder: str, language: str = DEFAULT) -> list[Path]:
    """The examples of a language for a device, by name."""
    return sorted((PROMPTS / for_language(f"examples/{folder}", language)).glob("*.py"))


def task_of(path: Path, precision: str = "fp32") -> Task:
    """What an example solves."""
    problem = SOLVES.get(path.stem, path.stem)
    arguments, value, inputs, settings = PROBLEMS[problem]
    source = HEAD.format(arguments=arguments, value=value, inputs=inputs, settings=settings)
    return Task(problem, source, {}, policy=Policy(precision=precision))
