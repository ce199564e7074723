"""What models cost and how much they can read, from a file that people edit. Knows no price by itself.

`prices.toml` in the home folder has one table per model name. Prices are US dollars per million tokens:

    ["some-model"]
    input = 1.0
    cached_input = 0.1        # left out: as input
    output = 4.0              # reasoning included
    window = 200000           # tokens that prompt and reply may have together
    max_output = 32000
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import ModelError
from storage import untrusted
from storage.run.models import TokenUsage
from storage.untrusted import UntrustedError

FILE = "prices.toml"
MOST_PRICE = 1e12  # of a figure in the table
_NAMES = ("input", "cached_input", "output", "window", "max_output")


@dataclass(frozen=True, slots=True)
class Price:
    """One model. Prices are US dollars per million tokens; None is unknown, which is not free."""

    input: float | None = None
    cached_input: float | None = None
    output: float | None = None
    window: int | None = None
    max_output: int | None = None

    def cost(self, usage: TokenUsage) -> float | None:
        """US dollars for what an endpoint counted; None when a price or a count is missing."""
        if self.input is None or self.output is None or usage.input is None or usage.output is None:
            return None
        cached = min(usage.cached or 0, usage.input)
        cached_price = self.input if self.cached_input is None else self.cached_input
        return ((usage.input - cached) * self.input + cached * cached_price + usage.output * self.output) / 1e6


def read_prices(path: Path) -> Mapping[str, Price]:
    """Prices by model name; none when there is no such file.

    Raises:
        ModelError: no valid TOML, an unknown name, or a number that no price can be.
    """
    try:
        tables = untrusted.read_toml(path)
    except FileNotFoundError:
        return {}
    except UntrustedError as error:
        raise ModelError(f"cannot read prices: {error}") from error
    return {name: _price(path, name, table) for name, table in tables.items()}


def _price(path: Path, name: str, table: Any) -> Price:
    if not isinstance(table, dict) or (unknown := sorted(set(table) - set(_NAMES))):
        hint = f"unknown {unknown}" if isinstance(table, dict) else "expected a table"
        raise ModelError(f'{path}, ["{name}"]: {hint}; there are {", ".join(_NAMES)}. Quote a name with a dot in it')
    for key, value in table.items():
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        is_whole = key not in ("window", "max_output") or (isinstance(value, int) and value > 0)
        if not is_number or not is_whole or not 0 <= value <= MOST_PRICE:
            raise ModelError(f'{path}, ["{name}"]: {key} = {value!r} is not a {"price" if is_whole else "token count"}')
    return Price(**table)
