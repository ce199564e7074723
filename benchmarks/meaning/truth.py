"""How far the answers of mutants are from their reference's, in float64, with the same weights and inputs.

Run as a program it reads a line of JSON `[reference, [candidate, ...]]` from standard input, and prints for each
candidate a line: `[largest difference, tolerance of the dtype]`, or a string that says how it fails. The weights are
drawn away from what constructors put there, since a kernel that leaves out a weight of ones changes nothing else.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from engine.evaluator.checks import comparison, distributions, tolerance
from engine.evaluator.checks.trials import Style

AWAY = 0.3
STYLES = (Style.OWN, Style.NORMAL)
Weights = dict[str, torch.Tensor]


class Truth:
    """A reference's answers on a few sets of inputs, in the widest dtype that it runs in."""

    def __init__(self, source: str) -> None:
        self._names = _names(source)
        self._init = list(self._names["get_init_inputs"]())
        torch.manual_seed(1)
        self._drawn = [self._names["get_inputs"]() for _ in STYLES]
        try:
            self._answer_in(torch.float64)
        except (RuntimeError, TypeError):
            self._answer_in(torch.float32)

    def of(self, source: str) -> list[float] | str:
        """The largest difference of a candidate's answer, and the tolerance; or how it fails."""
        try:
            model = self._made(_names(source)["ModelNew"])
            worst = max(
                _difference(self._called(model, number), answers) for number, answers in enumerate(self._answers)
            )
        except Exception as error:  # noqa: BLE001 - a mutant may do anything
            return f"{type(error).__name__}: {error}"[:200]
        return [worst, self._allowed]

    def _answer_in(self, dtype: torch.dtype) -> None:
        self._dtype = dtype
        model = self._made(self._names["Model"])
        self._weights = [_drawn_away(model.state_dict(), seed) for seed in range(len(STYLES))]
        self._items = [self._styled(items, style) for items, style in zip(self._drawn, STYLES, strict=True)]
        self._answers = [self._called(model, number) for number in range(len(STYLES))]
        self._allowed = tolerance.allowed("float32", 0.0, _summed(self._drawn[0], self._answers[0]))

    def _made(self, kind: Any) -> Any:
        torch.set_default_dtype(self._dtype)
        torch.manual_seed(2)
        try:
            return kind(*self._init).to(self._dtype)
        finally:
            torch.set_default_dtype(torch.float32)

    def _styled(self, items: Sequence[Any], style: Style) -> list[Any]:
        torch.manual_seed(3)
        tensors = (distributions.restyle(one, style) if isinstance(one, torch.Tensor) else one for one in items)
        return [
            one.detach().to(self._dtype) if isinstance(one, torch.Tensor) and one.is_floating_point() else one
            for one in tensors
        ]

    def _called(self, model: Any, number: int) -> list[torch.Tensor]:
        model.load_state_dict(self._weights[number])
        torch.set_default_dtype(self._dtype)
        torch.manual_seed(4)
        try:
            with torch.no_grad():
                made = model(*(one.clone() if isinstance(one, torch.Tensor) else one for one in self._items[number]))
        finally:
            torch.set_default_dtype(torch.float32)
        return [made] if isinstance(made, torch.Tensor) else list(made)


def _names(source: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "task"}
    exec(compile(source, "task.py", "exec"), names)
    return names


def _drawn_away(state: Mapping[str, torch.Tensor], seed: int) -> Weights:
    torch.manual_seed(seed)
    return {name: _away(name, value) if value.is_floating_point() else value for name, value in state.items()}


def _away(name: str, value: torch.Tensor) -> torch.Tensor:
    """Variances stay positive; other numbers move by a share of their own size, and zeros by that share of one."""
    if name.endswith("var"):
        return torch.rand_like(value) + 0.5
    size = float(value.std()) if value.numel() > 1 and float(value.std()) else 1.0
    return value + AWAY * size * torch.randn_like(value)


def _difference(found: Sequence[torch.Tensor], answers: Sequence[torch.Tensor]) -> float:
    if [one.shape for one in found] != [one.shape for one in answers]:
        return math.inf
    pairs = zip(found, answers, strict=True)
    return max(comparison.errors(one, answer, answer, comparison.scale_of(answer)).relative for one, answer in pairs)


def _summed(items: Sequence[Any], answers: Sequence[torch.Tensor]) -> float:
    """Numbers summed into an element of the answer, as far as the inputs' sizes tell."""
    tensors = [one for one in items if isinstance(one, torch.Tensor)]
    longest = max((size for one in tensors for size in one.shape), default=0)
    outputs = max(1, sum(one.numel() for one in answers))
    return max(sum(one.numel() for one in tensors) / outputs, longest)


def main() -> None:
    """Answer one question."""
    reference, candidates = json.loads(sys.stdin.readline())
    torch.set_num_threads(1)
    truth = Truth(reference)
    for candidate in candidates:
        print(json.dumps(truth.of(candidate)), flush=True)


if __name__ == "__main__":
    main()
