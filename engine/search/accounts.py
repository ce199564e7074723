"""On whose account devices are used: that of a run, of the suite that it is a cell of, or of a person's own command."""

from __future__ import annotations

from engine.evaluator.machine.turns import Share
from storage.home import home
from storage.run.record import Record

BY_HAND = Share(is_now=True)  # of this process alone


def of_run(record: Record) -> Share:
    """The share of a run in the machine, as the run stands.

    What a person has just steered goes first until a step index is concluded.
    """
    settings = record.settings
    account = f"suite {settings.suite}" if settings.suite else f"run {settings.run_id}"
    done = min(len(record.concluded) / (record.budget.depths + 1), 1.0)
    return Share(f"{account} of {home()}", settings.weight, record.human.is_steered, done)
