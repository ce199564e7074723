"""Where a network comes from: a function of the user's own file that makes it, or a transformers configuration.

Runs the user's code, which may import whatever the user's program imports.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from engine.errors import NetworkCaptureError

HUGGING_FACE = "hf:"
SHAPE = "make() returns a module and a list of workloads, each (name, weight, args, kwargs)"
EVAL, TRAIN = "eval", "train"


@dataclass(frozen=True, slots=True)
class Workload:
    """One way in which the network is called. `weight`: how often, against the others."""

    name: str
    weight: float
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A network on its device, in its mode. `weights` says where they come from."""

    module: nn.Module
    workloads: tuple[Workload, ...]
    weights: str
    again: Callable[[], nn.Module]
    """Makes it once more; the file that its function stands in is not run again."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a configuration alone does not say."""

    batch: int = 1
    tokens: int = 256


def load(entry: str, *, device: str, mode: str, seed: int, sizes: Sizes) -> Loaded:
    """Make the network that an entry names: `app.py:make`, `package.module:make`, or `hf:CONFIG`.

    Raises:
        NetworkCaptureError: it cannot be made, or is none; the message says what to do.
    """
    torch.manual_seed(seed)
    make: Callable[[], tuple[nn.Module, list[Workload], str]]
    if entry.startswith(HUGGING_FACE):
        make = functools.partial(_of_configuration, entry.removeprefix(HUGGING_FACE), sizes)
    else:
        make = functools.partial(_of_function, _function(entry), entry)

    def made() -> tuple[nn.Module, list[Workload], str]:
        torch.manual_seed(seed)
        module, workloads, weights = make()
        return module.to(device).train(mode == TRAIN), workloads, weights

    module, workloads, weights = made()
    moved = tuple(_moved(workload, device) for workload in workloads)
    return Loaded(module, moved, weights, lambda: made()[0])


def _of_function(function: Callable[[], Any], entry: str) -> tuple[nn.Module, list[Workload], str]:
    module, workloads = _read(see(function, entry))
    return module, workloads, f"made by {entry}"


def _function(entry: str) -> Callable[[], Any]:
    file, separator, name = entry.rpartition(":")
    if not separator or not name.isidentifier():
        raise NetworkCaptureError(f"{entry!r} names no function: write app.py:make, package.module:make or hf:CONFIG")
    module = _file_module(Path(file)) if file.endswith(".py") else _imported(file)
    function = getattr(module, name, None)
    if not callable(function):
        raise NetworkCaptureError(f"{file} defines no function {name}. {SHAPE[:1].upper()}{SHAPE[1:]}")
    return function  # type: ignore[no-any-return]


def _file_module(path: Path) -> ModuleType:
    if not path.is_file():
        raise NetworkCaptureError(
            f"there is no file {path}: give the path of a Python file, then a colon and a function"
        )
    sys.path.insert(0, str(path.resolve().parent))  # as `python app.py` does
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    see(functools.partial(spec.loader.exec_module, module), f"{path}")
    return module


def _imported(name: str) -> ModuleType:
    sys.path.insert(0, "")
    module: ModuleType = see(lambda: importlib.import_module(name), name)
    return module


def see(work: Callable[[], Any], what: str) -> Any:
    """What the user's code returns.

    Raises:
        NetworkCaptureError: it fails; the message says how.
    """
    try:
        return work()
    except Exception as error:  # the user's code may raise anything
        raise NetworkCaptureError(
            f"{what} failed with {type(error).__name__}: {error}. It runs as your program does: with this Python "
            f"({sys.executable}) and from this folder"
        ) from error


def _read(made: Any) -> tuple[nn.Module, list[Workload]]:
    """What `make` returned.

    Raises:
        NetworkCaptureError: it is something else.
    """
    if not (isinstance(made, Sequence) and len(made) == 2 and isinstance(made[0], nn.Module)):
        raise NetworkCaptureError(f"make() returned a {type(made).__name__}: {SHAPE}")
    module, workloads = made
    if not (isinstance(workloads, Sequence) and workloads):
        raise NetworkCaptureError(f"make() returned no workloads: {SHAPE}")
    read = [_workload(workload, number) for number, workload in enumerate(workloads, 1)]
    if len({workload.name for workload in read}) < len(read):
        raise NetworkCaptureError("two workloads have the same name: give each its own")
    return module, read


def _workload(given: Any, number: int) -> Workload:
    if not (isinstance(given, Sequence) and len(given) == 4):
        raise NetworkCaptureError(f"workload {number} is no (name, weight, args, kwargs): {SHAPE}")
    name, weight, args, kwargs = given
    if not isinstance(name, str) or not name or not isinstance(weight, (int, float)) or not weight > 0:
        raise NetworkCaptureError(f"workload {number}: its name is a text and its weight a number above zero")
    if not isinstance(args, (tuple, list)) or not isinstance(kwargs, Mapping):
        raise NetworkCaptureError(f"workload {name}: its args are a tuple and its kwargs a dict by name")
    return Workload(name, float(weight), tuple(args), dict(kwargs))


def _moved(workload: Workload, device: str) -> Workload:
    args, kwargs = pytree.tree_map_only(
        torch.Tensor, lambda tensor: tensor.to(device), (workload.args, workload.kwargs)
    )
    return Workload(workload.name, workload.weight, args, kwargs)


def _of_configuration(name: str, sizes: Sizes) -> tuple[nn.Module, list[Workload], str]:
    """A transformers model: a folder with config.json, or that file; with its weights where they lie beside it."""
    try:
        transformers: Any = importlib.import_module("transformers")  # it is the user's, and takes seconds
    except ImportError:
        raise NetworkCaptureError(
            "hf: needs the package transformers, which is not installed with this Python: pip install transformers, "
            "or give a function of your own (app.py:make)"
        ) from None
    folder = Path(name)
    folder = folder.parent if folder.is_file() else folder
    if not (folder / "config.json").is_file():
        raise NetworkCaptureError(
            f"there is no {folder / 'config.json'}: give a folder that holds one, downloaded before"
        )
    config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
    kind = getattr(transformers, (config.architectures or ["AutoModel"])[0], transformers.AutoModel)
    has_weights = any(folder.glob("*.safetensors")) or any(folder.glob("pytorch_model*.bin"))
    if has_weights:
        module = see(lambda: kind.from_pretrained(folder, local_files_only=True), name)
    else:
        make = kind.from_config if kind is transformers.AutoModel else kind
        module = see(lambda: make(config), name)
        if (dtype := getattr(config, "dtype", None)) is not None:
            module = module.to(dtype)
    weights = f"{folder.resolve()}" if has_weights else "random"
    return module, [Workload("call", 1.0, (), _arguments(module, config, sizes))], weights


def _arguments(module: Any, config: Any, sizes: Sizes) -> dict[str, Any]:
    """Inputs of the configuration's own sizes for the model's main input.

    Raises:
        NetworkCaptureError: what it takes is not known here.
    """
    dtype = next((parameter.dtype for parameter in module.parameters()), torch.float32)
    tokens = min(sizes.tokens, getattr(config, "max_position_embeddings", None) or sizes.tokens)
    match getattr(module, "main_input_name", ""):
        case "input_ids":
            drawn = torch.randint(0, config.vocab_size, (sizes.batch, tokens))
            return {"input_ids": drawn, **({"use_cache": False} if getattr(config, "use_cache", False) else {})}
        case "pixel_values":
            side = getattr(config, "image_size", None) or 224
            height, width = side if isinstance(side, (tuple, list)) else (side, side)
            channels = getattr(config, "num_channels", 3)
            return {"pixel_values": torch.randn(sizes.batch, channels, height, width, dtype=dtype)}
        case "input_features" if hasattr(config, "num_mel_bins"):
            frames = 2 * getattr(config, "max_source_positions", 1500)
            features = torch.randn(sizes.batch, config.num_mel_bins, frames, dtype=dtype)
            ids = {"decoder_input_ids": torch.ones(sizes.batch, 4, dtype=torch.long), "use_cache": False}
            return {"input_features": features, **(ids if getattr(config, "is_encoder_decoder", False) else {})}
    raise NetworkCaptureError(
        f"what {type(module).__name__} is called with cannot be told from its configuration: write a file with make(), "
        f"and give it as app.py:make. {SHAPE[:1].upper()}{SHAPE[1:]}"
    )
