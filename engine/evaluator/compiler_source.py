"""The kernels that torch.compile writes for a task's module, as text: Triton on a GPU, C++ on the processor. The
reference is the person's own program, so it runs without a sandbox; call it in a process of its own."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn

from engine.evaluation import dtypes, gradients
from storage.policy import Policy

MOST_CHARACTERS = 6000
_KERNEL = re.compile(r"= async_compile\.\w+\((?:(?!''').)*'''\n(.*?)'''", re.DOTALL)
_CALL = re.compile(r"^( *)def call\(.*?\):\n(.*?^ *return \(.*?\)$)", re.DOTALL | re.MULTILINE)
_NOISE = re.compile(r"^\s*(args\.clear\(\)|del \w+|assert_size_stride\(.*|# Topologically.*|)$")


def of_task(source: str, device: str, folder: Path, policy: Policy) -> str:
    """Kernels and the calls between them, shortened; compiles with the default settings and calls the module once,
    in the dtype and with the passes of the policy."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder)
    os.environ["TRITON_CACHE_DIR"] = str(folder / "triton")
    os.environ["TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS"] = "0"  # for two kernels in a new folder they cost more
    from torch._inductor import config
    from torch._inductor.utils import run_and_get_code

    config.compile_threads = 1
    take_first_instruction_set()
    dtypes.compute_within(policy.precision)
    names: dict[str, Any] = {"__name__": "task"}
    exec(compile(source, "task.py", "exec"), names)
    with torch.device(device), torch.no_grad():
        model = dtypes.model_in(policy.dtype, names["Model"](*names["get_init_inputs"]()).to(device))
        inputs, compiled = (
            dtypes.items_in(policy.dtype, names["get_inputs"](), device),
            cast(nn.Module, torch.compile(model)),
        )
        call = (lambda: gradients.planned(compiled, inputs)) if policy.backward else (lambda: compiled(*inputs))
        _, codes = run_and_get_code(call)
    return shortened("\n\n".join(map(kernels_and_calls, codes)))


def take_first_instruction_set() -> None:
    """Let Inductor settle on the processor's instructions with two small builds instead of six.

    It builds a probe for each set that the processor has, and then takes the widest: the narrower ones are left out
    here, as is the probe of what any compiler of ours can do.
    """
    from torch._inductor import config, cpu_vec_isa

    config.cpp.vec_isa_ok = True
    known = set(cpu_vec_isa.x86_isa_checker())
    for one in cpu_vec_isa.supported_vec_isa_list:
        if set(str(one).split()) <= known and one:
            cpu_vec_isa.supported_vec_isa_list[:] = [one]
            return


def kernels_and_calls(code: str) -> str:
    """The kernels in one of the files that the compiler writes, then the lines that call them."""
    kernels = [found.strip() for found in _KERNEL.findall(code)]
    calls = _CALL.search(code)
    lines = [line for line in calls[2].split("\n") if not _NOISE.match(line)] if calls else []
    return "\n\n".join([*kernels, "\n".join(["# in this order:", *(line.strip() for line in lines)])])


def shortened(text: str) -> str:
    """The first whole lines."""
    if len(text) <= MOST_CHARACTERS:
        return text
    kept = text[:MOST_CHARACTERS].rpartition("\n")[0]
    return f"{kept}\n# {len(text) - len(kept):,} more characters are left out here"
