"""Why a candidate that is right with constructed weights is wrong with others: which it does not read, or misuses.

Asks both workers again, with one tensor of the state changed at a time. Decides no verdict.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine.evaluator.checks import comparison
from engine.evaluator.checks.comparison import is_rounded
from engine.evaluator.processes.worker_pair import WorkerPair, call_candidate

MOST = 32
SHOWN = 4
NOTICED = 4.0  # of what is allowed, that the reference's answer moves at least by one tensor


def explained(workers: WorkerPair, leaves: object, seed: int, allowed: Sequence[float]) -> str:
    """A sentence that names the tensors; empty where no single one explains it. The inputs are those now shared."""
    before, own_before = _answers(workers, leaves, None, ())
    if not _is_right(workers, own_before, before, allowed):
        return ""
    unread, misused = [], []
    for name in list(workers.varied)[:MOST]:
        after, own_after = _answers(workers, leaves, seed, (name,))
        if not _moves(before, after, allowed):
            continue
        if _is_right(workers, own_before, own_after, allowed):
            unread.append(name)
        elif not _is_right(workers, own_after, after, allowed):
            misused.append(name)
    if unread:
        return (
            f"The answer does not depend on {_named(unread)}, and the reference's does: a trained model has other "
            "values there than the constructor's. Read them in every call, or pack them anew whenever load_state_dict "
            "or a change in place (Tensor._version) brings new ones."
        )
    if misused:
        return f"It is right with the weights that the constructor makes, and wrong with another {_named(misused)}."
    return ""


def _answers(workers: WorkerPair, leaves: object, seed: int | None, only: tuple[str, ...]) -> list[list[torch.Tensor]]:
    """The reference's float64 answers and the candidate's outputs."""
    workers.set_weights(seed, only)
    workers.ask_reference("answer", leaves=leaves, seed=workers.call_seed)
    call_candidate(workers, leaves, "with other weights")
    return [[tensor.clone() for tensor in group] for group in (workers.trusted["answer"], workers.shared["own"])]


def _moves(before: Sequence[torch.Tensor], after: Sequence[torch.Tensor], allowed: Sequence[float]) -> bool:
    return any(_apart(a, b) > NOTICED * limit for a, b, limit in zip(after, before, allowed, strict=True))


def _is_right(
    workers: WorkerPair, outputs: Sequence[torch.Tensor], answers: Sequence[torch.Tensor], allowed: Sequence[float]
) -> bool:
    pairs = zip(outputs, answers, allowed, strict=True)
    return all(_apart(out, answer) <= limit for out, answer, limit in pairs)


def _apart(out: torch.Tensor, answer: torch.Tensor) -> float:
    if not is_rounded(answer):
        return 0.0 if torch.equal(out.to(answer.dtype), answer) else float("inf")
    return comparison.errors(out, answer, answer, comparison.scale_of(answer)).relative


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(f"`{name}`" for name in names[:SHOWN]) + more
