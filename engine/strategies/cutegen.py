"""CuTeGen's loop as a decision: one evolving kernel, repaired until correct, one optimisation per depth. Pure.

Method: CuTeGen, sections 3.2 and 3.3. Beyond the paper: the last patch of a repair sequence is judged too, and the
base kernel follows a policy instead of always being the latest.
"""

from __future__ import annotations

from engine import limits
from engine.history import Attempt, History
from engine.moves import Finish, Move, Settle, Step
from engine.strategies.base_policy import choose_base
from engine.strategies.schedule import is_collected, is_exposed
from storage.choices import Submission
from storage.records import CommandKind, DepthOutcome, RunState, StepKind, Switch


class CuteGen:
    """The default strategy."""

    name = "cutegen"

    def next_move(self, history: History) -> Move:
        """What the loop does next."""
        if history.redo is not None:
            return Step(history.redo.kind, history.depth, history.redo.candidate_id)
        if (handed_in := history.pending(CommandKind.SUBMIT)) and not _is_being_judged(history.current):
            return Step(StepKind.SUBMIT, history.depth, Submission.parse(handed_in[0].argument).parent_id)
        if history.current is None or _is_beyond_repair(history, history.current):
            return _write(history)
        if history.current.has_failed:
            return _mend(history, history.current)
        return _judge(history, history.current)


def _is_being_judged(attempt: Attempt | None) -> bool:
    return attempt is not None and not attempt.has_failed


def _write(history: History) -> Move:
    """A new kernel for this depth, unless the run or the depth is over."""
    if history.generations_used > history.settings.max_regenerations:
        return _give_up(history)
    if history.generations_used == 0 and (reason := limits.reason_to_stop(history)):
        return Finish(RunState.FINISHED, reason)
    if history.depth == 0 or not history.line:
        return Step(StepKind.SYNTHESISE, history.depth)
    base = history.attempts[choose_base(history)]
    wants_profile = is_exposed(history) and history.steering.collect is not Switch.OFF
    if wants_profile and not base.is_profile_tried:
        return Step(StepKind.PROFILE, history.depth, base.candidate_id)
    return Step(StepKind.OPTIMISE, history.depth, base.candidate_id)


def _give_up(history: History) -> Move:
    tries = history.generations_used
    if not history.line:
        return Finish(RunState.FAILED, f"no correct kernel after {tries} generations with all their repairs")
    reason = f"no correct kernel after {tries} attempt{'s' if tries > 1 else ''} with their repairs"
    return Settle(history.depth, DepthOutcome.GIVEN_UP, _last_attempt(history), choose_base(history), reason)


def _last_attempt(history: History) -> str | None:
    ids = [a.candidate_id for a in history.attempts.values() if a.created.depth == history.depth]
    return ids[-1] if ids else None


def _is_beyond_repair(history: History, attempt: Attempt) -> bool:
    return attempt.has_failed and history.repairs_used >= history.settings.max_repairs


def _mend(history: History, attempt: Attempt) -> Move:
    kind = StepKind.DIAGNOSE if attempt.diagnosis_blob is None else StepKind.REPAIR
    return Step(kind, history.depth, attempt.candidate_id)


def _judge(history: History, attempt: Attempt) -> Move:
    name, depth = attempt.candidate_id, history.depth
    if attempt.compiled is None:
        return Step(StepKind.COMPILE, depth, name)
    if attempt.checked is None:
        return Step(StepKind.CHECK, depth, name)
    if attempt.timed is None:
        return Step(StepKind.TIME, depth, name)
    if is_collected(history) and not attempt.is_profile_tried:
        return Step(StepKind.PROFILE, depth, name)
    return Settle(depth, DepthOutcome.ACCEPTED, name, attempt.created.base_id, "correct and timed")
