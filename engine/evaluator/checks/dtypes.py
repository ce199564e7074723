"""A module and its inputs in the dtype that a task's variant is about, and PyTorch's precision. Decides nothing."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn

from engine.evaluator.checks.arguments import Arguments
from engine.evaluator.checks.float8 import is_float8

NAMES: Mapping[str, torch.dtype] = {"bf16": torch.bfloat16, "fp16": torch.float16}


def compute_within(precision: str) -> None:
    """Let this process and those forked from it round float32 products as the precision class allows.

    A speed-up holds within one class: reference, baselines and what a candidate may leave to PyTorch compute alike.
    PyTorch by itself rounds the operands of a GPU's float32 convolutions to TF32.
    """
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision in ("tf32", "half")


def model_in(dtype: str, model: nn.Module) -> nn.Module:
    """The model with every floating-point parameter and buffer in that dtype, but for those of 8 bits; as it is where
    none is named."""
    if not dtype:
        return model
    for module in model.modules():
        # Not `module.to`, which would make complex numbers real.
        for parameter in module.parameters(recurse=False):
            if _is_converted(parameter):
                parameter.data = parameter.data.to(NAMES[dtype])
        for name, value in module.named_buffers(recurse=False):
            if _is_converted(value):
                setattr(module, name, value.to(NAMES[dtype]))
    return model


def in_mode(mode: str, model: nn.Module) -> nn.Module:
    """The model in training or evaluation mode; as its constructor leaves it where none is named."""
    return model.train(mode == "train") if mode else model


def arguments_in(dtype: str, arguments: Arguments, device: str) -> Arguments:
    """Arguments on a device, floating-point tensors in that dtype; as they are where none is named."""
    return arguments.mapped(lambda tensor: _item_in(dtype, tensor, device))


def _item_in(dtype: str, item: torch.Tensor, device: str) -> torch.Tensor:
    if not dtype or not _is_converted(item):
        return item.to(device)
    return item.detach().to(device, NAMES[dtype]).requires_grad_(item.requires_grad)


def _is_converted(tensor: torch.Tensor) -> bool:
    """Numbers of 8 bits stay: their format is what the task is about."""
    return tensor.is_floating_point() and not is_float8(tensor)
