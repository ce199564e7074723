"""Run by itself, in a sandbox: what a reference's `forward` takes and returns, and what its module holds, as JSON on
standard output. Reads the reference's text from the file that is named; knows PyTorch only."""

import inspect
import json
import sys
from pathlib import Path
from typing import Any

import torch


def main() -> None:
    """Describe one reference, without values where it can be called without."""
    source = Path(sys.argv[1]).read_text(encoding="utf-8")
    try:
        with torch.device("meta"):
            answer = described(source)
    except Exception:  # noqa: BLE001 - whatever a module does that needs values
        answer = described(source)
    print(json.dumps(answer))


def described(source: str) -> dict[str, Any]:
    """Inputs and state with their sizes; `fault` says why a package cannot take the module."""
    names: dict[str, Any] = {"__name__": "reference"}
    exec(compile(source, "reference.py", "exec"), names)
    model = names["Model"](*names["get_init_inputs"]())
    inputs = list(names["get_inputs"]())
    arguments = list(inspect.signature(model.forward).parameters)
    listed = []
    for number, value in enumerate(inputs):
        name = arguments[number] if number < len(arguments) else f"input_{number}"
        if isinstance(value, torch.Tensor):
            if not value.is_contiguous():
                return {"fault": f"its input {name} is not contiguous"}
            listed.append([name, str(value.dtype)[6:], list(value.shape)])
        elif isinstance(value, (bool, int, float)):
            listed.append([name, type(value).__name__, []])
        else:
            return {"fault": f"its input {name} is a {type(value).__name__}"}
    if kept := sorted(_beside_state(model)):
        return {
            "fault": f"its module keeps tensors beside its state_dict ({', '.join(kept[:3])}): register them as buffers"
        }
    before = {name: value._version for name, value in model.state_dict().items()}
    with torch.no_grad():
        result = model(*inputs)
    if changed := [name for name, value in model.state_dict().items() if value._version != before[name]]:
        return {"fault": f"a call changes {', '.join(changed[:3])}: package a run with --mode eval"}
    is_single = isinstance(result, torch.Tensor)
    if not is_single and not (isinstance(result, tuple) and all(isinstance(part, torch.Tensor) for part in result)):
        return {"fault": f"its forward returns a {type(result).__name__}, not a tensor or a tuple of tensors"}
    children = [name for name, child in model.named_children()]
    has_own = any(True for _ in model.parameters(recurse=False)) or any(True for _ in model.buffers(recurse=False))
    return {
        "inputs": listed,
        "state": [[name, str(value.dtype)[6:], list(value.shape)] for name, value in model.state_dict().items()],
        "outputs": 0 if is_single else len(result),
        "only_child": children[0] if len(children) == 1 and not has_own else "",
    }


def _beside_state(model: torch.nn.Module) -> list[str]:
    """Names of tensors that a module keeps and its state_dict does not have: a package could not hand them over."""
    state = set(model.state_dict())
    names = [name for name, _ in model.named_buffers() if name not in state]
    for path, module in model.named_modules():
        names += [f"{path}.{name}" for name, value in vars(module).items() if isinstance(value, torch.Tensor)]
    return [name.removeprefix(".") for name in names]


if __name__ == "__main__":
    main()
