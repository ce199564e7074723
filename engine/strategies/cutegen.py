"""CuTeGen's loop as a decision: one evolving kernel, repaired until correct, one optimisation per depth. Pure.

Method: CuTeGen, sections 3.2 and 3.3. Beyond the paper: the last patch of a repair sequence is judged too, and the
base kernel follows a policy instead of always being the latest.
"""

from __future__ import annotations

from engine import limits
from engine.actions import Finish, Move, Settle, Step
from engine.record import Candidate, Record
from engine.strategies.base_policy import choose_base
from engine.strategies.schedule import is_collected, is_exposed
from storage.choices import Submission
from storage.records import CommandKind, DepthOutcome, RunState, StepKind, Switch


class CuteGen:
    """The default strategy."""

    name = "cutegen"

    def next_move(self, record: Record) -> Move:
        """What the loop does next."""
        if record.redo is not None:
            return Step(record.redo.kind, record.depth, record.redo.candidate_id)
        if (handed_in := record.pending(CommandKind.SUBMIT)) and not _is_being_judged(record.current):
            return Step(StepKind.SUBMIT, record.depth, Submission.parse(handed_in[0].argument).parent_id)
        if record.current is None or _is_beyond_repair(record, record.current):
            return _write(record)
        if record.current.has_failed:
            return _mend(record, record.current)
        return _judge(record, record.current)


def _is_being_judged(candidate: Candidate | None) -> bool:
    return candidate is not None and not candidate.has_failed


def _write(record: Record) -> Move:
    """A new kernel for this depth, unless the run or the depth is over."""
    if record.generations_used > record.settings.max_regenerations:
        return _give_up(record)
    if record.generations_used == 0 and (reason := limits.reason_to_stop(record)):
        return Finish(RunState.FINISHED, reason)
    if record.depth == 0 or not record.line:
        return Step(StepKind.SYNTHESISE, record.depth)
    base = record.candidates[choose_base(record)]
    wants_profile = is_exposed(record) and record.steering.collect is not Switch.OFF
    if wants_profile and not base.is_profile_tried:
        return Step(StepKind.PROFILE, record.depth, base.candidate_id)
    return Step(StepKind.OPTIMISE, record.depth, base.candidate_id)


def _give_up(record: Record) -> Move:
    tries = record.generations_used
    if not record.line:
        return Finish(RunState.FAILED, f"no correct kernel after {tries} generations with all their repairs")
    reason = f"no correct kernel after {tries} attempt{'s' if tries > 1 else ''} with their repairs"
    return Settle(record.depth, DepthOutcome.GIVEN_UP, _last_attempt(record), choose_base(record), reason)


def _last_attempt(record: Record) -> str | None:
    ids = [a.candidate_id for a in record.candidates.values() if a.created.depth == record.depth]
    return ids[-1] if ids else None


def _is_beyond_repair(record: Record, candidate: Candidate) -> bool:
    return candidate.has_failed and record.repairs_used >= record.settings.max_repairs


def _mend(record: Record, candidate: Candidate) -> Move:
    kind = StepKind.DIAGNOSE if candidate.diagnosis_blob is None else StepKind.REPAIR
    return Step(kind, record.depth, candidate.candidate_id)


def _judge(record: Record, candidate: Candidate) -> Move:
    name, depth = candidate.candidate_id, record.depth
    if candidate.compiled is None:
        return Step(StepKind.COMPILE, depth, name)
    if candidate.checked is None:
        return Step(StepKind.CHECK, depth, name)
    if candidate.timed is None:
        return Step(StepKind.TIME, depth, name)
    if is_collected(record) and not candidate.is_profile_tried:
        return Step(StepKind.PROFILE, depth, name)
    return Settle(depth, DepthOutcome.ACCEPTED, name, candidate.created.base_id, "correct and timed")
