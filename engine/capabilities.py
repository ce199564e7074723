"""What this machine and its configuration offer a run: models, toolchains, prices, the doctor's report. Starts none."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.errors import EngineError, ModelError
from engine.evaluator.pool import LOCAL, pool_name
from engine.evaluator.toolchain_table import GPU, TABLE, device_of
from engine.search import daily
from engine.search.daily import Ledger
from engine.search.llm.environment import configured_model, is_configured
from engine.search.llm.prices import FILE, read_prices
from storage import read_only
from storage.home import home
from storage.run import saved_models
from storage.run.models import ModelRole, TokenUsage, for_role
from storage.run.saved_models import RECORDED, Saved, SavedModelError
from storage.run.settings import RunSettings
from storage.run.steering.command_arguments import MANUAL

ROOT = Path(__file__).resolve().parent.parent
FREE_MODELS = (RECORDED, MANUAL)


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's report; `remedy` says what to do and is empty when all is well."""

    section: str
    name: str
    is_ok: bool
    detail: str
    remedy: str
    is_required: bool


def examine(limit_s: float = 240.0) -> list[Finding]:
    """What this machine has and lacks, found out by a child: it raises the sandbox and tries the profiler.

    Raises:
        EngineError: the doctor itself did not come to an end.
    """
    command = [sys.executable, "-m", "engine", "doctor", "--json"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=limit_s, check=False)
        return [Finding(**finding) for finding in json.loads(done.stdout)]
    except subprocess.TimeoutExpired as error:
        raise EngineError(f"the doctor did not finish within {limit_s:.0f} s") from error
    except (ValueError, TypeError, OSError) as error:
        lines = done.stderr.strip().splitlines()[-1:] if isinstance(error, ValueError) else [str(error)]
        raise EngineError(f"the doctor failed: {' '.join(lines) or 'no output'}") from error


def is_model_configured() -> bool:
    """Whether a model is saved, or the environment names an endpoint."""
    return is_configured() or bool(saved_models.readable())


def available_models() -> list[str]:
    """Model names that a run can use here, the default first."""
    of_environment = [configured_model()] if is_configured() else []
    return list(dict.fromkeys([*of_environment, *(entry.name for entry in saved_models.readable()), *FREE_MODELS]))


def price_note(model: str, before: Saved = ()) -> str:
    """What is wrong with the price of a model, as a sentence; empty when its cost will be known."""
    try:
        name = _priced_as(model, before)
        price = read_prices(home() / FILE).get(name)
    except ModelError as error:
        return str(error)
    if price is None or price.input is None or price.output is None:
        return (
            f"The price of {name} is not in {home() / FILE}: its cost is unknown, so a cost limit cannot be enforced."
        )
    return ""


def cost_of(model: str, input_tokens: float, output_tokens: float) -> float | None:
    """US dollars for so many tokens by the prices that people have written down; None where they have not."""
    if model in FREE_MODELS:
        return 0.0
    try:
        price = read_prices(home() / FILE).get(_priced_as(model))
    except ModelError:
        return None
    return price.cost(TokenUsage(round(input_tokens), round(output_tokens))) if price else None


def _priced_as(model: str, before: Saved = ()) -> str:
    """Under which name the table of prices has a model."""
    try:
        return next((entry.priced_as for entry in saved_models.used([model], before) if entry.name == model), model)
    except SavedModelError as error:
        raise ModelError(f"{error}") from error


def see_that_money_can_be_kept(settings: RunSettings) -> None:
    """See that a run with a money budget asks no model whose price is unknown.

    Raises:
        ModelError: one of them is; the message says where to state its price.
    """
    if settings.budget.cost_usd is None or settings.model in FREE_MODELS:
        return
    asked = {for_role(settings.model_options, role).model or settings.model for role in ModelRole}
    for model in sorted(asked):
        if note := price_note(model, settings.saved_models):
            raise ModelError(note)


def spent_today() -> list[tuple[str, float, float]]:
    """(words, used, allowed) of every limit that budget.toml sets for a day; none when it cannot be read."""
    try:
        return Ledger(home()).shares()
    except (ModelError, OSError):
        return []


def day_limits() -> dict[str, float]:
    """The limits of a day by name: calls, tokens, cost (US dollars). Empty when none are set.

    Raises:
        ModelError: budget.toml cannot be read.
    """
    return daily.read_limits(home() / daily.FILE)


def set_day_limits(limits: Mapping[str, float]) -> None:
    """Set the limits of a day for all runs under this home; a limit that is not named is none.

    Raises:
        EngineError: budget.toml holds something else than limits, or this server only shows runs.
    """
    read_only.guard(EngineError, "set limits")
    daily.write_limits(home() / daily.FILE, limits)


def available_toolchains() -> dict[str, str]:
    """Toolchain names with the reason why one is not available here (empty when it is).

    On a cluster its hosts count, which say so when they are asked.
    """
    return {name: entry.lacks() if pool_name() == LOCAL else "" for name, entry in TABLE.items()}


def has_gpu(toolchain: str) -> bool:
    """Whether kernels of a toolchain run on a GPU, which can be named."""
    return device_of(toolchain) == GPU
