"""CuTeGen's loop as a decision: one evolving kernel, repaired until correct, one optimisation per depth. Pure.

Method: CuTeGen, sections 3.2 and 3.3. Beyond the paper: the last patch of a repair sequence is judged too, and the
base kernel follows a policy instead of always being the latest. A step index is called depth here.
"""

from __future__ import annotations

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
from engine.search.methods import accepted_line
from engine.search.methods.cutegen import prompts
from engine.search.methods.cutegen.settings import CuteGenSettings, settings_of
from engine.search.methods.cutegen.state import DIAGNOSE, OPTIMISE, CuteGenState
from engine.search.methods.steered import (
    CORRECT,
    Steered,
    ask_first,
    ask_repair,
    end_with,
    has_profile,
    next_evaluation,
    none_correct,
    submission,
    wants_profile,
)
from storage.run import exposure
from storage.run.method_words import MethodWords
from storage.run.record import Candidate, Record
from storage.run.settings import DepthOutcome, Origin, RunState, StepKind, Switch
from storage.run.steering.verbs import Command


class CuteGen(Steered[CuteGenState]):
    """CuTeGen: one evolving kernel, repaired until it is correct, one optimisation per depth."""

    name, title = "cutegen", "CuTeGen"
    options = CuteGenSettings
    words = MethodWords(
        "depth", "depths", "completed optimisation steps",
        "A depth is one completed optimisation step: it starts from a correct kernel, changes one thing, and ends when "
        "the result is correct and timed, or is given up. Depth 0 is the first correct kernel. The next depth starts "
        "from the kernel that the base policy chooses. A failed kernel is first diagnosed in words and then patched by "
        "line edits.",
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__(CuteGenState.new)

    def decide(self, record: Record, state: CuteGenState, current: Candidate | None) -> Action:
        """The depth's kernel is evaluated, and diagnosed and repaired where it fails; without one it is written."""
        if current is None or _is_beyond_repair(record, state, current):
            return _write(record, state)
        if current.has_failed:
            return _diagnose(record, current) if current.diagnosis_blob is None else _repair(record, state, current)
        accepted = end_with(record, DepthOutcome.ACCEPTED, current, CORRECT)
        return next_evaluation(record, current, profiles=is_collected(record, state)) or accepted

    def first_kernel(self, record: Record, state: CuteGenState) -> Ask:
        """The call for depth 0, or for another try at it."""
        return ask_first(record, generation=state.generations_used)

    def step(self, record: Record, state: CuteGenState, label: str, kernel: Candidate) -> Step | None:
        """What is asked about a kernel."""
        match label:
            case "consult":
                return Consult(record.step_index, kernel.candidate_id)
            case "diagnose":
                return _diagnose(record, kernel)
            case "repair":
                return _repair(record, state, kernel)
            case "optimise":
                return _optimise(record, state, kernel)
            case _:
                return None

    def take(self, record: Record, state: CuteGenState, parent_id: str | None) -> TakeSubmission:
        """A person's kernel; it starts from where any kernel would, where its parent is not timed."""
        base, generation = choose_base(record, state) if state.line else None, state.generations_used
        return submission(record, parent_id, base, has_base=state.base_id is not None, generation=generation)

    def base_left(self, record: Record, state: CuteGenState) -> str | None:
        """The latest kernel that was accepted."""
        return state.line[-1] if state.line else None

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
        return ask_first(record, generation=state.generations_used)
    base = record.candidates[choose_base(record, state)]
    asks_base = record.asks_base
    if (is_exposed(record, state) or asks_base) and wants_profile(record, base):
        return Evaluate(StepKind.PROFILE, record.step_index, base.candidate_id)
    if asks_base and (record.step_index, base.candidate_id) not in record.consulted:
        return Consult(record.step_index, base.candidate_id)
    return _optimise(record, state, base)


def _give_up(record: Record, state: CuteGenState) -> Action:
    tries, depth = state.generations_used, record.step_index
    if not state.line:
        return Finish(RunState.FAILED, none_correct(record))
    ids = [candidate.candidate_id for candidate in record.candidates.values() if candidate.created.depth == depth]
    reason = f"no correct kernel in {tries} attempt{'s' if tries > 1 else ''}"
    base = choose_base(record, state)
    return Conclude(depth, DepthOutcome.GIVEN_UP, ids[-1] if ids else None, base, reason)


def _is_beyond_repair(record: Record, state: CuteGenState, candidate: Candidate) -> bool:
    return candidate.has_failed and state.repairs_used >= settings_of(record.settings).max_repairs


def _diagnose(record: Record, candidate: Candidate) -> Ask:
    return Ask(DIAGNOSE, record.step_index, candidate.candidate_id, Expects.TEXT, prompts.diagnose)


def _repair(record: Record, state: CuteGenState, candidate: Candidate) -> Ask:
    return ask_repair(record, candidate, Expects.PATCH, prompts.repair, state.generations_used - 1)


def _optimise(record: Record, state: CuteGenState, base: Candidate) -> Ask:
    name = base.candidate_id
    makes = NewCandidate(Origin.OPTIMISATION, name, state.generations_used, "Optimi[sz]ation", "optimisation")
    shows_profile = is_exposed(record, state) and has_profile(base)
    return Ask(OPTIMISE, record.step_index, name, Expects.PATCH, prompts.optimise, makes, shows_profile)


def choose_base(record: Record, state: CuteGenState) -> str:
    """Candidate id of the next base kernel. The line must hold at least one kernel.

    A depth that has begun keeps its base. A person's choice for the next depth outranks a pin, a pin the policy.
    """
    if state.base_id is not None:
        return state.base_id
    if chosen := record.steering.next_base or record.steering.pinned:
        return chosen
    return _by_policy(settings_of(record.settings).base_policy, state)


def _by_policy(policy: str, state: CuteGenState) -> str:
    latest = state.line[-1]
    best = state.line_best_id or latest
    if policy == "latest":
        return latest
    if policy == "best":
        return best
    patience = int(policy.partition("=")[2])
    # After each return to the best the count starts again, so a two-step detour from it stays possible.
    return best if state.fruitless and state.fruitless % patience == 0 else latest


def is_exposed(record: Record, state: CuteGenState) -> bool:
    """Whether the next optimisation prompt carries the base kernel's profile."""
    match record.steering.expose:
        case Switch.ON:
            return True
        case Switch.OFF:
            return False
        case Switch.AUTO:
            return _is_due(record, state, ahead=0)


def is_collected(record: Record, state: CuteGenState) -> bool:
    """Whether a kernel that just passed is profiled at once, for the person who watches.

    On auto the starting point is, and every kernel after which the next depth could be exposed; the base of an exposed
    depth is profiled later in any case.
    """
    match record.steering.collect:
        case Switch.ON:
            return True
        case Switch.OFF:
            return False
        case Switch.AUTO:
            return record.step_index == 0 or _is_due(record, state, ahead=1)


def _is_due(record: Record, state: CuteGenState, ahead: int) -> bool:
    """Whether a profile is shown so many depths from now, provided that none of them brings a gain."""
    planned = exposure.of_run(record.settings, record.kernel_class)
    is_stuck = planned.patience is None or state.fruitless + ahead >= planned.patience
    return is_stuck and record.step_index + ahead >= planned.first
