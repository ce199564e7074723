"""What an engine does before its run's first step: of that the journal tells nothing until the machine is measured, but
the claim tells that the evaluator makes of the device."""

from __future__ import annotations

from pages.parts import index, run_state
from storage import device_use
from storage.device_use import Claimed, Stage
from storage.index import queries
from storage.run.folder import run_at

MEASURED_BYTES = 600  # of a journal: one that is shorter holds no measured limit yet
LOADING = "Loading PyTorch, then running the reference once"
MEASURING = "Measuring how fast this machine is"


def claim_of(run_id: str) -> Claimed | None:
    """The claim that its evaluator makes now; None before the engine has asked it, and between two questions."""
    return next((claim for claim in device_use.claims() if _is_of(claim, run_id)), None)


def sentence(run_id: str) -> str:
    """What is being done, for the line of the run's state."""
    claim = claim_of(run_id)
    if claim is None:
        return "Starting the engine"
    if claim.stage is Stage.WAITING:
        return wait(claim)
    return MEASURING if claim.stage is Stage.HOLDING else LOADING


def wait(claim: Claimed) -> str:
    """What a run waits for before it can be measured: another one that has the device, by name where it has one."""
    others = [o for o in device_use.claims() if o.stage is Stage.HOLDING and o.device in (claim.device, "")]
    holder = next((other for other in others if other.run_id != claim.run_id), None)
    if holder is None:
        return "Waiting for the device, which something else holds"
    title = queries.titles(index.current(), [holder.run_id]).get(holder.run_id, "something else")
    return f"Waiting for the device: {title} is {holder.words}"


def sign(run_id: str) -> str:
    """Changes with what is being done before the first step; empty afterwards, and where no engine is at work."""
    try:
        is_early = run_at(run_id).journal_file.stat().st_size < MEASURED_BYTES
    except OSError:
        is_early = True
    if not is_early or not run_state.has_engine(run_id):
        return ""
    claim = claim_of(run_id)
    return "starting" if claim is None else str(claim.stage)


def _is_of(claim: Claimed, run_id: str) -> bool:
    return claim.run_id == run_id and claim.stage is not Stage.SETTLED
