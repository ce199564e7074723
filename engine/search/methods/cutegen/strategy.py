"""CuTeGen's loop as a decision: one evolving kernel, repaired until correct, one optimisation per depth. Pure.

Method: CuTeGen, sections 3.2 and 3.3. Beyond the paper: the last patch of a repair sequence is judged too, and the
base kernel follows a policy instead of always being the latest. A step index is called depth here.
"""

from __future__ import annotations

from engine.errors import EngineError
from engine.search import limits
from engine.search.actions import (
    Action,
    Ask,
    Conclude,
    Consult,
    Evaluate,
    Expects,
    Finish,
    NewCandidate,
    Step,
    TakeSubmission,
)
from engine.search.methods import Fold, accepted_line, evaluation_again
from engine.search.methods.cutegen import prompts
from engine.search.methods.cutegen.base_policy import choose_base
from engine.search.methods.cutegen.schedule import is_collected, is_exposed
from engine.search.methods.cutegen.settings import CuteGenSettings, settings_of
from engine.search.methods.cutegen.state import DIAGNOSE, OPTIMISE, REPAIR, SYNTHESISE, CuteGenState
from engine.search.steps.conversation import synthesise
from storage.run.method_words import MethodWords
from storage.run.record import Candidate, Record
from storage.run.settings import DepthOutcome, Origin, RunState, StepKind, Switch
from storage.run.steering.command_arguments import Submission
from storage.run.steering.verbs import Command, CommandKind


class CuteGen:
    """CuTeGen: one evolving kernel, repaired until it is correct, one optimisation per depth."""

    name = "cutegen"
    options = CuteGenSettings
    words = MethodWords(
        "depth", "depths", "completed optimisation steps",
        "A depth is one completed optimisation step: it starts from a correct kernel, changes one thing, and ends when "
        "the result is correct and timed, or is given up. Depth 0 is the first correct kernel. The next depth starts "
        "from the kernel that the base policy chooses. A failed kernel is first diagnosed in words and then patched by "
        "line edits.",
    )  # fmt: skip

    def __init__(self) -> None:
        self._fold = Fold(CuteGenState.new)

    def state(self, record: Record) -> CuteGenState:
        """What the method remembers of a run."""
        return self._fold.of(record)

    def next(self, record: Record) -> Action:
        """What the loop does next."""
        state = self.state(record)
        if record.redo is not None:
            return self.again(record, record.redo.kind, record.redo.candidate_id)
        current = record.candidates.get(state.current_id or "")
        is_being_judged = current is not None and not current.has_failed
        if (submitted := record.pending(CommandKind.SUBMIT)) and not is_being_judged:
            return _take(record, state, Submission.parse(submitted[0].argument).parent_id)
        if current is None or _is_beyond_repair(record, state, current):
            return _write(record, state)
        if current.has_failed:
            return _diagnose(record, current) if current.diagnosis_blob is None else _repair(record, state, current)
        return _evaluate(record, state, current)

    def again(self, record: Record, label: str, about: str | None) -> Step:
        """A step to be taken once more.

        Raises:
            EngineError: CuTeGen has no such step, or the run no such kernel.
        """
        state = self.state(record)
        if label == SYNTHESISE:
            return _synthesise(record, state)
        if label == StepKind.SUBMIT:
            return _take(record, state, about)
        if (evaluation := evaluation_again(record, label, about)) is not None:
            return evaluation
        candidate = record.candidates[about or ""]
        match label:
            case "consult":
                return Consult(record.step_index, candidate.candidate_id)
            case "diagnose":
                return _diagnose(record, candidate)
            case "repair":
                return _repair(record, state, candidate)
            case "optimise":
                return _optimise(record, state, candidate)
            case _:
                raise EngineError(f"CuTeGen has no step {label!r}")

    def abandon(self, record: Record, reason: str) -> Conclude | None:
        """The depth is given up; what it has tried stays."""
        state = self.state(record)
        if not state.has_begun and record.in_flight is None:
            return None
        base = state.line[-1] if state.line else None
        return Conclude(record.step_index, DepthOutcome.GIVEN_UP, state.current_id, base, reason)

    def refusal(self, record: Record, command: Command) -> str | None:
        """CuTeGen honours every verb."""
        return None

    def note(self, record: Record, command: Command) -> str | None:
        """From which depth on a choice of the base kernel, or of what the model is shown, holds."""
        state = self.state(record)
        upcoming = record.step_index + (state.base_id is not None or state.current_id is not None)
        policy = settings_of(record.settings).base_policy
        return accepted_line.note(record, command, word="depth", upcoming=upcoming, policy=policy)


def _write(record: Record, state: CuteGenState) -> Action:
    """A new kernel for this depth, unless the run or the depth is over."""
    if state.generations_used > settings_of(record.settings).max_regenerations:
        return _give_up(record, state)
    if state.generations_used == 0 and (reason := limits.reason_to_stop(record, state.fruitless, "depth")):
        return Finish(RunState.FINISHED, reason)
    if record.step_index == 0 or not state.line:
        return _synthesise(record, state)
    base = record.candidates[choose_base(record, state)]
    asks_base = record.asks_base
    wants_profile = (is_exposed(record, state) or asks_base) and record.steering.collect is not Switch.OFF
    if wants_profile and not base.is_profile_tried:
        return Evaluate(StepKind.PROFILE, record.step_index, base.candidate_id)
    if asks_base and (record.step_index, base.candidate_id) not in record.consulted:
        return Consult(record.step_index, base.candidate_id)
    return _optimise(record, state, base)


def _give_up(record: Record, state: CuteGenState) -> Action:
    tries, depth = state.generations_used, record.step_index
    if not state.line:
        return Finish(RunState.FAILED, f"no correct kernel after {tries} generations with all their repairs")
    reason = f"no correct kernel after {tries} attempt{'s' if tries > 1 else ''} with their repairs"
    ids = [candidate.candidate_id for candidate in record.candidates.values() if candidate.created.depth == depth]
    base = choose_base(record, state)
    return Conclude(depth, DepthOutcome.GIVEN_UP, ids[-1] if ids else None, base, reason)


def _is_beyond_repair(record: Record, state: CuteGenState, candidate: Candidate) -> bool:
    return candidate.has_failed and state.repairs_used >= settings_of(record.settings).max_repairs


def _evaluate(record: Record, state: CuteGenState, candidate: Candidate) -> Action:
    name, depth = candidate.candidate_id, record.step_index
    stage = candidate.next_stage
    if stage is None and is_collected(record, state) and not candidate.is_profile_tried:
        stage = StepKind.PROFILE
    if stage is not None:
        return Evaluate(stage, depth, name)
    return Conclude(depth, DepthOutcome.ACCEPTED, name, candidate.created.base_id, "correct and timed")


def _synthesise(record: Record, state: CuteGenState) -> Ask:
    makes = NewCandidate(Origin.SYNTHESIS, None, state.generations_used, "Approach", "first kernel")
    return Ask(SYNTHESISE, record.step_index, None, Expects.SOURCE, synthesise, makes)


def _diagnose(record: Record, candidate: Candidate) -> Ask:
    return Ask(DIAGNOSE, record.step_index, candidate.candidate_id, Expects.TEXT, prompts.diagnose)


def _repair(record: Record, state: CuteGenState, candidate: Candidate) -> Ask:
    created = candidate.created
    makes = NewCandidate(
        Origin.REPAIR, created.base_id, state.generations_used - 1, "Fix", "repair", created.repair + 1
    )
    return Ask(REPAIR, record.step_index, candidate.candidate_id, Expects.PATCH, prompts.repair, makes)


def _optimise(record: Record, state: CuteGenState, base: Candidate) -> Ask:
    name = base.candidate_id
    makes = NewCandidate(Origin.OPTIMISATION, name, state.generations_used, "Optimi[sz]ation", "optimisation")
    has_profile = base.profiled is not None and not base.profiled.disturbance
    shows_profile = is_exposed(record, state) and has_profile
    return Ask(OPTIMISE, record.step_index, name, Expects.PATCH, prompts.optimise, makes, shows_profile)


def _take(record: Record, state: CuteGenState, parent_id: str | None) -> TakeSubmission:
    """A submission starts from its parent where that is correct and timed, else from where any kernel would."""
    parent, base = record.candidates.get(parent_id or ""), None
    if state.base_id is None and parent is not None and parent.timed is not None:
        base = parent.candidate_id
    elif state.line:
        base = choose_base(record, state)
    return TakeSubmission(record.step_index, parent_id, base, state.generations_used)
