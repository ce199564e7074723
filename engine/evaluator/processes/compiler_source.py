"""The kernels that torch.compile writes for a task's module, as text: Triton on a GPU, C++ on the processor; and a
candidate made of them. The reference is the person's own program, so it runs without a sandbox; call it in a process of
its own. The one module that knows private names of Inductor, those of PyTorch 2.11 and 2.13."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast
from unittest import mock

import torch
from torch import nn

from engine.evaluator import tasks
from engine.evaluator.checks import dtypes, gradients
from engine.evaluator.checks.arguments import Arguments
from engine.evaluator.checks.executed import executed
from engine.evaluator.processes import compiled_start
from engine.evaluator.processes.compiled_start import Generated, Launch, NoStart
from storage.results.policy import Policy

MOST_CHARACTERS = 6000
_KERNEL = re.compile(r"= async_compile\.\w+\((?:(?!''').)*'''\n(.*?)'''", re.DOTALL)
_CALL = re.compile(r"^( *)def call\(.*?\):\n(.*?^ *return \(.*?\)$)", re.DOTALL | re.MULTILINE)
_NOISE = re.compile(r"^\s*(args\.clear\(\)|del \w+|assert_size_stride\(.*|# Topologically.*|)$")


def of_task(source: str, device: str, folder: Path, policy: Policy) -> str:
    """Kernels and the calls between them, shortened; compiles with the default settings and calls the module once,
    in the dtype and with the passes of the policy."""
    _prepare(device, folder, policy)
    model, inputs = _made(source, device, policy)
    compiled = cast(nn.Module, torch.compile(model))
    call = (lambda: gradients.planned(compiled, inputs)) if policy.backward else (lambda: inputs.passed_to(compiled))
    return shortened("\n\n".join(map(kernels_and_calls, _written_by(call, device)[1])))


def start_of_task(source: str, device: str, folder: Path, policy: Policy) -> dict[str, str]:
    """The same text as `source`, with a candidate out of it as `kernel`, or in `no_start` why there is none.

    The task is compiled at its own sizes and at all others at which a candidate has to be right.
    """
    if policy.backward:
        return {
            "source": of_task(source, device, folder, policy),
            "no_start": "PyTorch's autograd calls its backward pass, which no candidate may leave to it",
        }
    _prepare(device, folder, policy)
    others = (*policy.other_sizes, *tasks.workloads.others(source, policy))
    programs, first = list[Generated](), ""
    try:
        for text in (source, *(tasks.set_constants(source, sizes) for sizes in others)):
            codes, generated = _generated(text, device, policy)
            first = first or "\n\n".join(map(kernels_and_calls, codes))
            if isinstance(generated, str):
                raise NoStart(generated)
            compiled_start.refuse_libraries(generated.code)
            programs.append(generated)
        kernel = compiled_start.standalone(source, programs, _helpers(), torch.__version__)
    except NoStart as error:
        return {"source": shortened(first), "no_start": str(error)}
    return {"source": shortened(first), "kernel": kernel}


def _prepare(device: str, folder: Path, policy: Policy) -> None:
    """Before Inductor is imported."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder)
    os.environ["TRITON_CACHE_DIR"] = str(folder / "triton")
    os.environ["TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS"] = "0"  # for two kernels in a new folder they cost more
    from torch._inductor import config

    config.compile_threads = 1
    if device == "cpu":
        from torch._functorch import config as of_passes

        # What is kept of a call without kernels would serve the one with them.
        config.fx_graph_cache = of_passes.enable_autograd_cache = False
        take_first_instruction_set()
    dtypes.compute_within(policy.precision)


def _made(source: str, device: str, policy: Policy) -> tuple[nn.Module, Arguments]:
    """The module and its inputs, as the evaluator makes them."""
    names = executed(source)
    with torch.device(device), torch.no_grad():
        model = dtypes.model_in(policy.dtype, names["Model"](*names["get_init_inputs"]()).to(device))
        return model, dtypes.arguments_in(policy.dtype, Arguments.of(names["get_inputs"]()), device)


def _written_by(call: Callable[[], Any], device: str) -> tuple[Any, list[str]]:
    """What a first call of a compiled module returns, None where no kernel ran, and the files that Inductor wrote."""
    from torch._inductor.utils import run_and_get_code

    with torch.device(device), torch.no_grad():
        if device == "cpu" and (codes := _written_alone(call)):
            return None, codes
        result, codes = run_and_get_code(call)
    return result, codes


def _written_alone(call: Callable[[], Any]) -> list[str]:
    """The files, with no kernel built: g++ takes over two seconds for each, and their text is all that is shown.

    None where values that were not computed may have decided what was written: in parts, or not to the end.
    """
    from torch._dynamo.utils import counters
    from torch._inductor.async_compile import AsyncCompile
    from torch._inductor.codecache import PyCodeCache
    from torch._inductor.utils import run_and_get_code

    counters.clear()
    does_nothing = mock.Mock(return_value=lambda *_: None)
    with suppress(Exception), mock.patch.object(AsyncCompile, "cpp_pybinding", does_nothing):
        codes: list[str] = run_and_get_code(call)[1]
        if counters["frames"]["total"] == 1:  # a module that goes on by a value is compiled function by function
            return codes
    PyCodeCache.cache_clear()
    return []


def _generated(source: str, device: str, policy: Policy) -> tuple[list[str], Generated | str]:
    """The files that Inductor writes for a task, and what a candidate is made of; or why there can be none."""
    from torch._inductor.codecache import PyCodeCache
    from torch._inductor.compile_fx import compile_fx

    model, inputs = _made(source, device, policy)
    handed = list[tuple[Any, ...]]()

    def backend(graph: Any, examples: Any) -> Any:
        compiled: Any = compile_fx(graph, examples)

        def called(*arguments: Any) -> Any:
            handed.append(arguments)
            return compiled(*arguments)

        return called

    PyCodeCache.cache_clear()
    compiled = cast(nn.Module, torch.compile(model, backend=backend))
    result, codes = _written_by(lambda: inputs.passed_to(compiled), device)
    if device == "cpu":
        return codes, "on the processor it writes C++, not Triton"
    if len(codes) != 1 or len(handed) != 1:
        return codes, f"it splits the module into {max(len(codes), len(handed))} parts"
    returns = _kind(result)
    tensors = inputs.positional
    if not returns or inputs.named or not all(isinstance(value, torch.Tensor) for value in tensors):
        return codes, "the module takes or returns something else than tensors, or takes them by name"
    try:
        expressions = _expressions(model, tensors, compiled_start.inputs_of(source))
        arguments = tuple(_expression(argument, expressions) for argument in handed[0])
    except NoStart as error:
        return codes, str(error)
    shapes = tuple(tuple(tensor.shape) for tensor in tensors)
    return codes, Generated(codes[0], _launches(PyCodeCache.modules), arguments, shapes, returns)


def _kind(result: Any) -> str:
    if isinstance(result, torch.Tensor):
        return "tensor"
    is_plain = type(result) in (tuple, list) and all(isinstance(value, torch.Tensor) for value in result)
    return type(result).__name__ if is_plain else ""


def _expressions(model: nn.Module, inputs: Sequence[Any], names: Sequence[str]) -> list[tuple[torch.Tensor, str]]:
    """Every tensor of a call with what stands for it in the module's forward."""
    expressions = [(tensor, name) for tensor, name in zip(inputs, names, strict=False)]
    for what, tensors in (("parameter", model.named_parameters()), ("buffer", model.named_buffers())):
        for name, tensor in tensors:
            is_plain = all(part.isidentifier() for part in name.split("."))
            expressions.append((tensor, f"self.{name}" if is_plain else f"self.get_{what}({name!r})"))
    expressions += [
        (attribute, f"self.{name}") for name, attribute in vars(model).items() if isinstance(attribute, torch.Tensor)
    ]
    return expressions


def _expression(argument: Any, expressions: Sequence[tuple[torch.Tensor, str]]) -> str:
    """Raises NoStart where the module's text does not say what an argument of the generated call is."""
    for tensor, expression in expressions:
        if argument is tensor:
            return expression
    for tensor, expression in expressions:
        if isinstance(argument, torch.Tensor) and (argument.data_ptr(), argument.shape, argument.stride()) == (
            tensor.data_ptr(), tensor.shape, tensor.stride(),
        ):  # fmt: skip
            return expression
    raise NoStart("it hands its kernels a value that is neither an input nor a parameter of the module")


def _launches(modules: Sequence[Any]) -> Mapping[str, Launch]:
    """Of each kernel that was launched, the configuration that Inductor's own autotuner has settled on."""
    launches = dict[str, Launch]()
    for module in modules:
        for name, kernel in vars(module).items():
            launchers = getattr(kernel, "launchers", None)
            if isinstance(launchers, list) and len(launchers) == 1:
                config = launchers[0].config
                options = {option: getattr(config, option, None) for option in ("num_warps", "num_stages", "maxnreg")}
                given = {option: int(value) for option, value in options.items() if value is not None}
                launches[name] = Launch({block: int(size) for block, size in config.kwargs.items()}, given)
    return launches


def _helpers() -> str:
    """The text of the functions that Inductor's kernels call."""
    from torch._inductor.runtime import triton_helpers

    return inspect.getsource(triton_helpers)


def take_first_instruction_set() -> None:
    """Let Inductor settle on the processor's instructions with two small builds instead of six.

    It builds a probe for each set that the processor has, and then takes the widest: the narrower ones are left out
    here, as is the probe of what any compiler of ours can do.
    """
    from torch._inductor import config, cpu_vec_isa, exc

    config.cpp.vec_isa_ok = True
    try:
        supported = set(cpu_vec_isa.x86_isa_checker())
        for instruction_set in cpu_vec_isa.supported_vec_isa_list:
            if set(str(instruction_set).split()) <= supported and instruction_set:
                cpu_vec_isa.supported_vec_isa_list[:] = [instruction_set]
                return
    except exc.InvalidCxxCompiler:  # a sandbox on a GPU machine may not reach it, and what is for the GPU needs none
        return


def kernels_and_calls(code: str) -> str:
    """The kernels in one of the files that the compiler writes, then the lines that call them."""
    kernels = [kernel.strip() for kernel in _KERNEL.findall(code)]
    calls = _CALL.search(code)
    lines = [line for line in calls[2].split("\n") if not _NOISE.match(line)] if calls else []
    return "\n\n".join([*kernels, "\n".join(["# in this order:", *(line.strip() for line in lines)])])


def shortened(text: str) -> str:
    """The first whole lines."""
    if len(text) <= MOST_CHARACTERS:
        return text
    kept = text[:MOST_CHARACTERS].rpartition("\n")[0]
    return f"{kept}\n# {len(text) - len(kept):,} more characters are left out here"
