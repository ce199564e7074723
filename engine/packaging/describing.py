"""Run by itself, in a sandbox: what a reference's `forward` takes and returns, and what its module holds, as JSON on
standard output. Reads the reference's text from the file that is named, and the mode; knows PyTorch only."""

import inspect
import json
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

AS_A_FILE = "export the kernel as a file (python -m engine export)"


def main() -> None:
    """Describe one reference, without values where it can be called without."""
    print(json.dumps(answer(Path(sys.argv[1]).read_text(encoding="utf-8"), sys.argv[2])))


def answer(source: str, mode: str = "") -> dict[str, Any]:
    """Inputs and state with their sizes; `fault` says why a package cannot take the module. `mode` is eval or train,
    or empty for a module as its constructor leaves it."""
    try:
        with FakeTensorMode():  # a convolution on the device meta says nothing of how its result lies in memory
            return described(source, mode)
    except Exception:  # noqa: BLE001 - whatever a module does that needs values
        return described(source, mode)


def described(source: str, mode: str) -> dict[str, Any]:
    """The same, in the mode of tensors that is set."""
    module = sys.modules["reference"] = types.ModuleType("reference")  # dataclasses look for it
    names = module.__dict__
    exec(compile(source, "reference.py", "exec"), names)
    model = names["Model"](*names["get_init_inputs"]())
    if mode:
        model.train(mode == "train")
    inputs, named = _given(names["get_inputs"]())
    arguments = list(inspect.signature(model.forward).parameters)
    if named and (fault := _fault_of_names(model, len(inputs), named)):
        return {"fault": fault}
    by_name = arguments[len(inputs) : len(inputs) + len(named)]
    inputs += [named[name] for name in by_name]
    listed = []
    for number, value in enumerate(inputs):
        name = arguments[number] if number < len(arguments) else f"input_{number}"
        if isinstance(value, torch.Tensor):
            listed.append([name, str(value.dtype)[6:], list(value.shape), _strides(value)])
        elif isinstance(value, (bool, int, float)):
            listed.append([name, type(value).__name__, [], []])
        else:
            return {"fault": f"its input {name} is a {type(value).__name__}, no tensor or number: {AS_A_FILE}"}
    if kept := sorted(_beside_state(model)):
        return {
            "fault": f"its module keeps tensors beside its state_dict ({', '.join(kept[:3])}): register them as buffers"
        }
    result, changed = _called(model, inputs)
    if changed:
        fault = f"a call changes {', '.join(changed[:3])}"
        if _called(model.eval(), inputs)[1]:
            return {"fault": f"{fault}, and no operator may: {AS_A_FILE}"}
        return {
            "fault": f"{fault}, as batch norm in training mode does, and no operator may: "
            "package a run in evaluation mode (`--mode eval`)",
            "is_mended_by_evaluation_mode": True,
        }
    is_single = isinstance(result, torch.Tensor)
    if not is_single and not (isinstance(result, tuple) and all(isinstance(part, torch.Tensor) for part in result)):
        return {"fault": f"its forward returns a {type(result).__name__}, not a tensor or a tuple of tensors alone: "
                f"{AS_A_FILE}"}  # fmt: skip
    children = [name for name, child in model.named_children()]
    has_own = any(True for _ in model.parameters(recurse=False)) or any(True for _ in model.buffers(recurse=False))
    return {
        "inputs": listed,
        "by_name": len(by_name),
        "state": [
            [name, str(value.dtype)[6:], list(value.shape), _strides(value)]
            for name, value in model.state_dict().items()
        ],
        "outputs": 0 if is_single else len(result),
        "output_strides": [_strides(part) for part in ([result] if is_single else result)],
        "only_child": children[0] if len(children) == 1 and not has_own else "",
    }


def _called(model: torch.nn.Module, inputs: list[Any]) -> tuple[Any, list[str]]:
    """What a call returns, and what of the module's state it changes."""
    before = {name: value._version for name, value in model.state_dict().items()}
    with torch.no_grad():
        result = model(*inputs)
    return result, [name for name, value in model.state_dict().items() if value._version != before[name]]


def _strides(tensor: torch.Tensor) -> list[int]:
    """None of a contiguous one."""
    return [] if tensor.is_contiguous() else list(tensor.stride())


def _given(returned: Any) -> tuple[list[Any], dict[str, Any]]:
    """What a call is given by place and by name, as the evaluator reads what `get_inputs` returned."""
    match returned:
        case (list() | tuple() as given, Mapping() as named) if type(returned) is tuple:
            if all(isinstance(name, str) for name in named):
                return list(given), dict(named)
    return list(returned), {}


def _fault_of_names(model: torch.nn.Module, count: int, named: dict[str, Any]) -> str:
    """Why what is given by name has no place of its own among the arguments of an operator; empty where it has."""
    parameters = list(inspect.signature(model.forward).parameters.values())[count : count + len(named)]
    if all(each.name in named and each.kind is each.POSITIONAL_OR_KEYWORD for each in parameters):
        return "" if len(parameters) == len(named) else f"its forward has no places for {', '.join(named)}"
    return (
        f"its forward is given {', '.join(named)} by name, and they are not its next arguments that may be given by "
        f"place too: order them so, or {AS_A_FILE}"
    )


def _beside_state(model: torch.nn.Module) -> list[str]:
    """Names of tensors that a module keeps and its state_dict does not have: a package could not hand them over."""
    state = set(model.state_dict())
    names = [name for name, _ in model.named_buffers() if name not in state]
    for path, module in model.named_modules():
        names += [f"{path}.{name}" for name, value in vars(module).items() if isinstance(value, torch.Tensor)]
    return [name.removeprefix(".") for name in names]


if __name__ == "__main__":
    main()
