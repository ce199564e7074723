"""Outputs of modules inside a network, beside those of the whole: each is judged on the inputs that it had.

Runs in both workers, so both pay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from engine.evaluator.checks.arguments import Arguments, Kinds, flattened
from engine.evaluator.checks.structure import leaves_of

MOST = 256


class WithInnerOutputs:
    """A network as a function that returns its result, and after it the outputs of the modules named.

    With `forced` outputs, one for each name, a module answers for itself and what is called after it goes on from the
    forced one: an error made in one place is not carried into the next.
    """

    def __init__(
        self,
        forward: Callable[..., Any],
        model: nn.Module,
        names: Sequence[str],
        forced: Sequence[torch.Tensor] = (),
    ) -> None:
        self._forward = forward
        modules = dict(model.named_modules())
        self._modules = {name: modules[name] for name in names}
        self._forced = dict(zip(names, forced, strict=True)) if forced else {}

    def __call__(self, *arguments: Any, **named: Any) -> tuple[Any, ...]:
        """One call.

        Raises:
            TypeError: a module named is not called exactly once.
        """
        seen: dict[str, list[Any]] = {name: [] for name in self._modules}

        def note(name: str, output: Any) -> Any:
            seen[name].append(output)
            return self._forced.get(name)

        with _hooked(self._modules, note):
            result = self._forward(*arguments, **named)
        if other := [name for name, outputs in seen.items() if len(outputs) != 1]:
            raise TypeError(
                f"the module {other[0]!r} of ModelNew was called {len(seen[other[0]])} times: its output is compared, "
                "so call it once in every forward, as a module (self.name(x))"
            )
        return (result, *(outputs[0] for outputs in seen.values()))


@contextmanager
def _hooked(modules: dict[str, nn.Module], note: Callable[[str, Any], Any]) -> Iterator[None]:
    """While inside, `note` is given each module's name and output; what it returns, unless None, goes on instead."""
    hooks = [
        module.register_forward_hook(lambda _, __, output, name=name: note(name, output))
        for name, module in modules.items()
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def comparable(model: nn.Module, arguments: Arguments, depth: int) -> list[str]:
    """Modules whose outputs can be compared, up to `depth` names deep, in the order of their calls.

    Each is called once and returns one floating-point tensor of its own that nothing changes afterwards.
    """
    modules = {name: module for name, module in model.named_modules() if name and name.count(".") < depth}
    calls: list[tuple[str, Any, int]] = []

    def note(name: str, output: Any) -> None:
        calls.append((name, output, output._version if isinstance(output, torch.Tensor) else 0))

    with _hooked(modules, note):
        result = arguments.passed_to(model)
    taken = {_storage(leaf) for leaf in (*flattened(arguments, Kinds())[0], *leaves_of(result))}
    names = [name for name, _, _ in calls]
    usable = set[str]()
    for name, output, version in sorted(calls, key=lambda call: call[0].count(".")):
        is_plain = type(output) is torch.Tensor and output.is_floating_point() and output.layout is torch.strided
        if is_plain and names.count(name) == 1 and output._version == version and _storage(output) not in taken:
            taken.add(_storage(output))
            usable.add(name)
    return [name for name in names if name in usable][:MOST]


def _storage(leaf: Any) -> int:
    is_plain = isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided
    return int(leaf.untyped_storage().data_ptr()) if is_plain else 0
