"""The reward loop as a decision: each attempt writes the last kernel again, told its graded reward. Pure.

Method: the loop of TritonGym's design; `engine/knowledge/rewards.py` has the reward. A step index is called attempt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from engine.knowledge.rewards import reward
from engine.search.actions import Ask, Conclude, Consult, Evaluate, Expects, NewCandidate, Step, TakeSubmission
from engine.search.methods.kernel_in_work import KernelInWork, KernelPerIndex, all_done, draws_option
from engine.search.methods.options import Choice, Value, option, read
from engine.search.methods.reward_loop.prompts import Refine
from engine.search.methods.steered import ask_first, base_of, shows_profile, submission, wants_profile
from engine.search.steps.conversation import sample
from storage.run.method_words import CallWords, MethodWords
from storage.run.record import Candidate, Record
from storage.run.settings import DepthOutcome, Origin, StepKind
from storage.run.steering.command_arguments import CONSULT

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


class RewardLoop(KernelPerIndex):
    """A reward loop: each attempt has a graded reward, and the next one is told of it; TritonGym's design."""

    name, title, policy = "reward_loop", "the reward loop", "latest"
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

    def draws(self, record: Record) -> int:
        """As its settings say."""
        return _settings(record).draws

    def profiles(self, record: Record) -> bool:
        """A refinement is shown the profile of what it refines."""
        return _settings(record).refines

    def reason_to_stop(self, record: Record, state: KernelInWork) -> str | None:
        """No more attempts than are set, and the limits of the run."""
        return all_done(record, _settings(record).attempts, "attempt") or super().reason_to_stop(record, state)

    def draw(self, record: Record, state: KernelInWork) -> Step:
        """The call of a kernel, after what it has to know."""
        chosen = record.steering.next_base or record.steering.pinned
        subject = record.candidates.get(chosen or (state.subject_id() if _settings(record).refines else None) or "")
        if subject is None:
            return self.first_kernel(record, state)
        name, index = subject.candidate_id, record.step_index
        if subject.has_failed:
            return self.again(record, REFINE, name)
        if wants_profile(record, subject):
            return Evaluate(StepKind.PROFILE, index, name)
        is_advised = not record.asks_base or (index, name) in record.consulted
        return self.again(record, REFINE if is_advised else CONSULT, name)

    def first_kernel(self, record: Record, state: KernelInWork) -> Ask:
        """The call of an attempt from the task alone."""
        return ask_first(record, sample, tools=_tools(record))

    def step(self, record: Record, state: KernelInWork, label: str, kernel: Candidate) -> Step | None:
        """What is asked about the kernel that is refined."""
        if label == CONSULT:
            return Consult(record.step_index, kernel.candidate_id)
        return _refine(record, kernel) if label == REFINE else None

    def take(self, record: Record, state: KernelInWork, parent_id: str | None) -> TakeSubmission:
        """A person's kernel; it starts from where its parent did, where that is not timed."""
        return submission(record, parent_id, base_of(record.candidates.get(parent_id or "")))

    def abandon(self, record: Record, reason: str) -> Conclude | None:
        """The attempt is given up, with the reward that its kernel has by then."""
        end = super().abandon(record, reason)
        kernel = record.candidates.get(end.candidate_id or "") if end is not None else None
        return replace(end, reward=reward(kernel)) if end is not None and kernel is not None else end

    def conclude(self, record: Record, outcome: DepthOutcome, kernel: Candidate | None, reason: str) -> Conclude:
        """The attempt's end with its reward, which stands in the reason too."""
        gain = reward(kernel)
        words = reason if gain is None else f"{reason}; reward {gain:.3g}"
        return replace(super().conclude(record, outcome, kernel, words), reward=gain)


def _settings(record: Record) -> RewardLoopSettings:
    return read(RewardLoopSettings, record.settings.strategy_options)


def _tools(record: Record) -> int:
    return _settings(record).max_tools if _settings(record).tools == AUTO else 0


def _refine(record: Record, candidate: Candidate) -> Ask:
    created, name = candidate.created, candidate.candidate_id
    origin, base = (Origin.REPAIR, created.base_id) if candidate.has_failed else (Origin.OPTIMISATION, name)
    makes = NewCandidate(origin, base, 0, "Change", "refinement")
    shows = shows_profile(record, candidate) and not candidate.has_failed
    prompt = Refine(_settings(record).shown)
    return Ask(REFINE, record.step_index, name, Expects.SOURCE, prompt, makes, shows, tools=_tools(record))
