"""The reward loop as a decision: each attempt writes the last kernel again, told its graded reward. Pure.

Method: the loop of TritonGym's design; the reward is in `rewards.py`. A step index is called attempt here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
    Rank,
    Step,
    TakeSubmission,
)
from engine.search.methods import Fold, accepted_line, evaluation_again
from engine.search.methods.kernel_in_work import SYNTHESISE, KernelInWork, all_done, draws_option, next_evaluation
from engine.search.methods.options import Choice, Value, option, read
from engine.search.methods.reward_loop.prompts import Refine
from engine.search.methods.reward_loop.rewards import reward
from engine.search.steps.conversation import sample
from storage.results.vocabulary import FAILED
from storage.run.method_words import CallWords, MethodWords
from storage.run.record import Candidate, Record
from storage.run.settings import DepthOutcome, Origin, RunState, StepKind, Switch
from storage.run.steering.command_arguments import CONSULT, RANK, Submission
from storage.run.steering.verbs import Command, CommandKind

REFINE = "refine"
OFF, AUTO = "off", "auto"


@dataclass(frozen=True, slots=True)
class RewardLoopSettings:
    """Settings of the method. The run's limit of attempts holds beside them."""

    attempts: int = option(
        10, "kernels that are written, 1 for one-shot; no more than the run's limit of attempts and one",
        label="Attempts", least=1,
    )  # fmt: skip
    shown: int = option(
        3, "last attempts that the model is shown with kernel and reward when it refines one", label="Attempts shown",
        least=0,
    )  # fmt: skip
    refines: bool = option(
        True, "each attempt refines the kernel before it; without this each is written from the task alone",
        label="Refine with feedback",
    )  # fmt: skip
    tools: str = option(
        OFF, "whether the model may compile, check and profile kernels of its own within a turn; each reply that does "
        "so is a further call", label="Tool calls",
        choices=(Choice(OFF, "the loop alone judges kernels"), Choice(AUTO, "where the endpoint has them")),
    )  # fmt: skip
    max_tools: int = option(4, "tool calls of one attempt at most, with `tools` `auto`", label="Tool calls per attempt",
                            least=1)  # fmt: skip
    draws: int = draws_option("attempt")


class RewardLoop:
    """A reward loop: each attempt has a graded reward, and the next one is told of it; TritonGym's design."""

    name = "reward_loop"
    options = RewardLoopSettings
    independent: Mapping[str, Value] = {"refines": False, "tools": OFF}
    words = MethodWords(
        "attempt", "attempts", "kernels written, each with its reward",
        "An attempt is one kernel with its reward: it refines the kernel before it, whatever became of that, and ends "
        "when it is correct and timed, or has failed. Attempt 0 is the first kernel.",
        collected="for every correct kernel", shown="whenever a correct kernel is refined",
        counts_first=True,
        own_calls={
            REFINE: CallWords(
                "refine the kernel", "Ask the model to refine", "The model is refining {kernel}", "Refined",
                has_rules=True, can_show_profile=True,
            ),
        },
    )  # fmt: skip

    def __init__(self) -> None:
        self._fold = Fold(KernelInWork.new)

    def next(self, record: Record) -> Action:
        """What the loop does next."""
        state = self._fold.of(record)
        if record.redo is not None:
            return self.again(record, record.redo.kind, record.redo.candidate_id)
        current, most = state.current(record), _settings(record).draws
        is_being_judged = current is not None and not current.has_failed
        if (submitted := record.pending(CommandKind.SUBMIT)) and not is_being_judged:
            return _take(record, Submission.parse(submitted[0].argument).parent_id)
        if state.wants_draw(record, most):
            return self._draw(record, state)
        if (step := state.wants_order(record, most)) is not None:
            return step
        if current is None and not state.spent:
            return self._begin(record, state)
        if current is None or current.has_failed:
            return _conclude(record, DepthOutcome.GIVEN_UP, current, state.spent)
        accepted = _conclude(record, DepthOutcome.ACCEPTED, current, "correct and timed")
        return next_evaluation(record, current, profiles=_settings(record).refines) or accepted

    def _begin(self, record: Record, state: KernelInWork) -> Action:
        """The attempt's call, after what it has to know; or the end."""
        done = all_done(record, _settings(record).attempts, "attempt")
        if reason := done or limits.reason_to_stop(record, state.fruitless, "attempt"):
            return Finish(RunState.FINISHED if record.best else RunState.FAILED, reason)
        return self._draw(record, state)

    def _draw(self, record: Record, state: KernelInWork) -> Step:
        """The call of a kernel, after what it has to know."""
        chosen = record.steering.next_base or record.steering.pinned
        subject = record.candidates.get(chosen or (state.subject_id() if _settings(record).refines else None) or "")
        if subject is None:
            return self.again(record, SYNTHESISE, None)
        name, index = subject.candidate_id, record.step_index
        if subject.has_failed:
            return self.again(record, REFINE, name)
        if not subject.is_profile_tried and record.steering.collect is not Switch.OFF:
            return Evaluate(StepKind.PROFILE, index, name)
        is_advised = not record.asks_base or (index, name) in record.consulted
        return self.again(record, REFINE if is_advised else CONSULT, name)

    def again(self, record: Record, label: str, about: str | None) -> Step:
        """A step to be taken once more.

        Raises:
            EngineError: the reward loop has no such step, or the run no such kernel.
        """
        index = record.step_index
        if label == SYNTHESISE:
            makes = NewCandidate(Origin.SYNTHESIS, None, 0, "Approach", "first kernel")
            return Ask(SYNTHESISE, index, None, Expects.SOURCE, sample, makes, tools=_tools(record))
        if label == StepKind.SUBMIT:
            return _take(record, about)
        if label == RANK:
            return Rank(index, tuple(self._fold.of(record).drawn))
        if (evaluation := evaluation_again(record, label, about)) is not None:
            return evaluation
        if label == CONSULT:
            return Consult(index, about or "")
        if label != REFINE:
            raise EngineError(f"the reward loop has no step {label!r}")
        return _refine(record, record.candidates[about or ""])

    def abandon(self, record: Record, reason: str) -> Conclude | None:
        """The attempt is given up, with the reward that it has by then."""
        state = self._fold.of(record)
        if not state.has_begun and record.in_flight is None:
            return None
        current = record.candidates.get(state.current_id or "")
        gain = reward(current) if current is not None else None
        return Conclude(record.step_index, DepthOutcome.GIVEN_UP, state.current_id, _base(current), reason, gain)

    def refusal(self, record: Record, command: Command) -> str | None:
        """The reward loop honours every verb."""
        return None

    def note(self, record: Record, command: Command) -> str | None:
        """From which attempt on a choice of the kernel to refine, or of what the model is shown, holds."""
        upcoming = record.step_index + self._fold.of(record).has_begun
        return accepted_line.note(record, command, word="attempt", upcoming=upcoming, policy="latest")


def _settings(record: Record) -> RewardLoopSettings:
    return read(RewardLoopSettings, record.settings.strategy_options)


def _tools(record: Record) -> int:
    return _settings(record).max_tools if _settings(record).tools == AUTO else 0


def _base(candidate: Candidate | None) -> str | None:
    return candidate.created.base_id if candidate is not None else None


def _take(record: Record, parent_id: str | None) -> TakeSubmission:
    """A submission starts from its parent where that is correct and timed."""
    parent = record.candidates.get(parent_id or "")
    base = parent.candidate_id if parent is not None and parent.timed is not None else _base(parent)
    return TakeSubmission(record.step_index, parent_id, base, 0)


def _refine(record: Record, candidate: Candidate) -> Ask:
    created, name = candidate.created, candidate.candidate_id
    origin, base = (Origin.REPAIR, created.base_id) if candidate.has_failed else (Origin.OPTIMISATION, name)
    makes = NewCandidate(origin, base, 0, "Change", "refinement")
    has_profile = candidate.profiled is not None and not candidate.profiled.disturbance
    shows = has_profile and not candidate.has_failed and record.steering.expose is not Switch.OFF
    prompt = Refine(_settings(record).shown)
    return Ask(REFINE, record.step_index, name, Expects.SOURCE, prompt, makes, shows, tools=_tools(record))


def _conclude(record: Record, outcome: DepthOutcome, candidate: Candidate | None, reason: str) -> Conclude:
    """The attempt's end with its reward, which stands in the reason too."""
    gain, name = reward(candidate), candidate.candidate_id if candidate is not None else None
    if candidate is not None and candidate.verdict is not None and candidate.has_failed:
        reason = f"the kernel {FAILED[candidate.verdict]}"
    summary = reason if gain is None else f"{reason}; reward {gain:.3g}"
    return Conclude(record.step_index, outcome, name, _base(candidate), summary, gain)
