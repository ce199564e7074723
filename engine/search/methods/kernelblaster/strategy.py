"""KernelBlaster as a decision: trajectories of steps from the first kernel, each a technique drawn from what is known
of the kernel's state; after a round the knowledge base is corrected. Pure.

Method: KernelBlaster (arXiv 2602.14293), algorithm 2. Beyond its released code: failed attempts count, a state is known
at every step, the update after a round is really made, and a draw can be repeated. A step index is called step here:
step 0 is the first kernel, each later one a step of a trajectory.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping

from engine.errors import EngineError
from engine.knowledge.states import SURE
from engine.search import actions, limits
from engine.search.actions import (
    Action,
    Ask,
    Conclude,
    Consult,
    Evaluate,
    Expects,
    Finish,
    NewCandidate,
    Refuse,
    Step,
    Teach,
    Wait,
)
from engine.search.methods.kernelblaster import lessons, prompts, replies
from engine.search.methods.kernelblaster.rewards import evaluation
from engine.search.methods.kernelblaster.settings import FULL, MINIMAL, KernelBlasterSettings
from engine.search.methods.kernelblaster.state import (
    ANALYSE,
    CLASSIFY,
    JUDGE,
    PLAN,
    REVISE,
    KernelBlasterState,
    known_states,
)
from engine.search.methods.options import Value
from engine.search.methods.steered import CORRECT, shows_profile, wants_profile
from engine.search.methods.technique_in_work import OPTIMISE, TechniquePerIndex
from storage.knowledge.records import Revision
from storage.results.check_records import CheckOutcome, CheckRecord
from storage.run import events as ev
from storage.run.method_words import CallWords, MethodWords
from storage.run.record import Candidate, Record
from storage.run.settings import DepthOutcome, Origin, RunState, StepKind
from storage.run.steering.command_arguments import CONSULT, TEACH, Retry
from storage.run.steering.verbs import Command, CommandKind

# The evaluator's checks whose flag bears a claim out, by name: the evaluator itself needs torch, which no engine loads.
# A flag says that a person should look; what is certain is refused by its check.
TOO_FAST = ("re-measured", "nothing finishes later")  # faster than the device allows, or than can be told
UNSEEN = ("task varies", "fresh inputs")  # the task or the timing could not have shown it
COUNTS: Mapping[str, Collection[str]] = {
    "work_dropped": {*TOO_FAST, *UNSEEN, "special values"},
    "library_called": {"no library fall-back", "no hidden code", "own computation", "device time"},
    "constant_folded": {*TOO_FAST, *UNSEEN},
}
NOTHING_KNOWN = "no technique is known for this kernel's state, and the plan brought none"


class KernelBlaster(TechniquePerIndex[KernelBlasterState]):
    """KernelBlaster: trajectories of steps, each a technique drawn from a knowledge base that learns from them."""

    name, title = "kernelblaster", "KernelBlaster"
    options = KernelBlasterSettings
    knowledge = "on"
    independent: Mapping[str, Value] = {}
    words = MethodWords(
        "step", "steps", "techniques tried, over all trajectories",
        "A step is one technique, drawn from what is known of the kernel's state, written and repaired: it starts from "
        "the last correct kernel of its trajectory and ends when the result is correct and timed, or has failed. Each "
        "trajectory starts from the first kernel, which is step 0.",
        collected="for every correct kernel", shown="in every plan and with every technique", names_others=True,
        own_calls={
            JUDGE: CallWords("judge the kernel", "Ask the judge about", "The model is judging {kernel}"),
            CLASSIFY: CallWords(
                "name the kernel's state", "Ask the model to name the state of",
                "The model is naming the state of {kernel}", can_show_profile=True,
            ),
            PLAN: CallWords(
                "plan the next change", "Ask the model to plan a change of",
                "The model is planning a change of {kernel}", has_rules=True, can_show_profile=True,
            ),
            ANALYSE: CallWords(
                "compare predictions with measurements", "Ask the model to compare predictions with measurements after",
                "The model is comparing predictions with measurements",
            ),
            REVISE: CallWords(
                "correct the knowledge base", "Ask the model to correct the knowledge base after",
                "The model is correcting the knowledge base",
            ),
        },
    )  # fmt: skip
    refuses: Mapping[CommandKind, str] = {
        CommandKind.PIN: "every step goes on from the kernel before it, and every trajectory from the first one: use "
        "roll back or set base for the present trajectory",
        CommandKind.UNPIN: "no kernel can be pinned in this method",
    }

    repair_prompt = staticmethod(prompts.repair)

    def __init__(self) -> None:
        super().__init__(KernelBlasterState.new)

    def state(self, record: Record) -> KernelBlasterState:
        """What the method remembers of a run."""
        state = super().state(record)
        state.beside = [json.loads(place or "{}") for place in record.beside.values()]
        return state

    def tries(self, state: KernelBlasterState) -> KernelBlasterSettings:
        """As its settings say."""
        return state.settings

    def go_on(self, record: Record, state: KernelBlasterState) -> Action:
        """A look back at the round, the first kernel, or the step's next move."""
        if (stop := self._look_back(record, state)) is not None:
            return stop
        return self.first(record, state) if state.first_id is None else self._work_on(record, state)

    def _look_back(self, record: Record, state: KernelBlasterState) -> Action | None:
        """Before a step begins: what the round has taught, and whether the run is over. Both wait for the steps
        at work, and so does a step for which the round has no trajectory left or the run no first kernel yet."""
        now = state.present
        if now.place or now.subject_id is not None or now.generations:
            return None
        reason = _reason_to_stop(record, state)
        if record.beside and (reason or not state.trajectory):
            return Wait()
        is_due = state.settings.learns and not state.is_frozen and state.attempts and (state.is_round_over or reason)
        if is_due and limits.exhausted(record) is None:
            return self.again(record, _lesson_step(state), _looked_at(record, state))
        return Finish(RunState.FINISHED, reason) if reason else None

    def _work_on(self, record: Record, state: KernelBlasterState) -> Action:
        """The step's next move: profile, ask the base, name the state, plan, teach what is new, write."""
        now, index = state.present, record.step_index
        name = now.subject_id or record.steering.next_base or state.start_id or ""
        if _wants_profile(record, state, record.candidates[name]):
            return Evaluate(StepKind.PROFILE, index, name)
        if state.settings.agent == MINIMAL:
            return self.again(record, OPTIMISE, name)
        if now.consulted is None:
            return self.again(record, CONSULT, name)
        if not now.is_classified and now.consulted.state_confidence < SURE:
            return self.again(record, CLASSIFY, name)
        if _lesson(state) is not None:
            return self.again(record, TEACH, name)
        if now.settled is not None and now.consulted is now.ruled:
            return self.again(record, CONSULT, name)
        if not now.is_planned:
            return self.again(record, PLAN, name)
        if state.drawn() is None:
            return self.conclude(record, state, DepthOutcome.GIVEN_UP, None, NOTHING_KNOWN)
        return self.again(record, OPTIMISE, name)

    def place(self, record: Record, step: Step) -> str:
        """The trajectory that the step goes on with, and from the draw on the technique that it tries there."""
        state = self.state(record)
        if step.index != record.step_index or state.first_id is None:
            return ""
        taken: dict[str, object] = {**state.present.place, "trajectory": state.trajectory}
        is_drawn = state.present.is_planned and actions.label(step) in (TEACH, OPTIMISE)
        if is_drawn and (drawn := state.drawn()) is not None:
            taken |= {"technique": drawn.technique, "kernel": state.present.subject_id}
        return json.dumps(taken)

    def step(self, record: Record, state: KernelBlasterState, label: str, kernel: Candidate) -> Step | None:
        """What base and model are asked about a kernel."""
        match label:
            case "consult":
                name = kernel.candidate_id
                return Consult(record.step_index, name, state.settled_of.get(name, ""))
            case "teach":
                return _teach(record, state, kernel)
            case "refuse":
                return Refuse(record.step_index, kernel.candidate_id, _objection(state, kernel))
            case _:
                return super().step(record, state, label, kernel) or _question(record, state, label, kernel)

    def consults(self, record: Record) -> bool:
        """Whether it asks the knowledge base under its settings."""
        return self.state(record).settings.agent != MINIMAL

    def refusal(self, record: Record, command: Command) -> str | None:
        """What a round has taught is taken back by reverting its revision, not by asking again."""
        if command.kind is not CommandKind.RETRY or self.state(record).attempts:
            return None
        step = record.model_step(Retry.parse(command.argument).step)
        if step is None or step.kind not in (ANALYSE, REVISE):
            return None
        return "this round has been learned from already: revert its revision in the knowledge base instead"

    def note(self, record: Record, command: Command) -> str | None:
        """A choice of the kernel to go on from is the present trajectory's."""
        words = super().note(record, command)
        is_moved = command.kind in (CommandKind.ROLL_BACK, CommandKind.SET_BASE)
        return f"{words}; later trajectories from the first kernel" if words and is_moved else words

    def evaluate(self, record: Record, state: KernelBlasterState, kernel: Candidate) -> Action:
        """Compile, check, soft verification, time, profile; a claim may end in a refusal after each measurement."""
        name, index, stage = kernel.candidate_id, record.step_index, kernel.next_stage
        is_correct = stage in (StepKind.TIME, None)
        if is_correct and state.settings.verifies and name not in state.judged:
            return self.again(record, JUDGE, name)
        if is_correct and (reason := _objection(state, kernel)):
            return Refuse(index, name, reason)
        if stage is None and _wants_profile(record, state, kernel):
            stage = StepKind.PROFILE
        if stage is not None:
            return Evaluate(stage, index, name)
        return self.conclude(record, state, DepthOutcome.ACCEPTED, name, CORRECT)

    def conclude(
        self, record: Record, state: KernelBlasterState, outcome: DepthOutcome, name: str | None, reason: str
    ) -> Conclude:
        """The step's end, with its reward where it says something of a technique."""
        attempt, base_id = state.attempt(name), state.base_of(record, name)
        if attempt is None:
            return Conclude(record.step_index, outcome, name, base_id, reason)
        summary = f"{reason}; {attempt.technique}: {attempt}"
        return Conclude(record.step_index, outcome, name, base_id, summary, round(attempt.reward, 6))


def _reason_to_stop(record: Record, state: KernelBlasterState) -> str | None:
    if state.is_over:
        count = state.settings.rounds * state.settings.trajectories
        return f"all {count} trajectories are done" if count > 1 else "the trajectory is done"
    return limits.reason_to_stop(record, state.fruitless, "step")


def _lesson_step(state: KernelBlasterState) -> str:
    """What comes next in looking back at a round."""
    learning = state.learning
    return TEACH if learning.is_revised else REVISE if learning.is_analysed else ANALYSE


def _ended(record: Record) -> int:
    """The step index that a look back belongs to: the one that has just ended."""
    return max(0, record.step_index - 1)


def _looked_at(record: Record, state: KernelBlasterState) -> str | None:
    """The kernel that a look back is about: the best of the run."""
    return record.best_id or state.first_id


def _lesson(state: KernelBlasterState) -> Revision | None:
    """What the step has found that the base does not know yet: a state first, then the technique that was drawn."""
    now, revisions = state.present, list[Revision]()
    if state.is_frozen:
        return None
    if now.settled is not None and now.settled.new is not None:
        revisions.append(lessons.of_state(now.settled.new))
    drawn = state.drawn() if now.is_planned else None
    if drawn is not None and drawn in state.proposed():
        where, is_known = now.consulted.state if now.consulted else "", state.is_known(drawn.technique)
        revisions += filter(None, [lessons.of_technique(drawn, where, is_known=is_known)])
    return revisions[now.taught] if len(revisions) > now.taught else None


def _teach(record: Record, state: KernelBlasterState, candidate: Candidate) -> Teach:
    name, index = candidate.candidate_id, record.step_index
    if state.learning.is_revised:
        return Teach(_ended(record), lessons.of_round(state.learning.edits, state.expected), name)
    revision = _lesson(state)
    if revision is None:
        raise EngineError("KernelBlaster has nothing to teach")
    return Teach(index, revision, name)


def _question(record: Record, state: KernelBlasterState, label: str, candidate: Candidate) -> Ask | None:
    """What the model is asked about a correct kernel."""
    index, name = record.step_index, candidate.candidate_id
    if label == JUDGE:
        fields, reads = replies.JUDGE_FIELDS, replies.read_verification
        return Ask(JUDGE, index, name, Expects.JSON, prompts.judge, fields=fields, reads=reads)
    if label == OPTIMISE:
        return _optimise(record, state, candidate)
    if label in (CLASSIFY, PLAN):
        consulted = _consulted(record, name)
        if label == CLASSIFY:
            choices = tuple(known_states(consulted))
            return Ask(
                CLASSIFY, index, name, Expects.JSON, prompts.Classify(consulted), None,
                _shows(record, state, candidate),
                replies.CLASSIFY_FIELDS, replies.ReadState(choices),
            )  # fmt: skip
        offered = tuple(advice.technique for advice in prompts.shown(consulted.found))
        return Ask(
            PLAN, index, name, Expects.JSON, prompts.Plan(consulted), None, _shows(record, state, candidate),
            replies.PLAN_FIELDS, replies.ReadPlan(offered, consulted.others),
        )  # fmt: skip
    attempts = "\n".join(evaluation(state.attempts)) or "- nothing was tried since the last correction"
    if label == ANALYSE:
        fields = ("assumption", "cause", "lesson")
        return Ask(ANALYSE, _ended(record), name, Expects.JSON, prompts.Analyse(attempts), fields=fields)
    if label == REVISE:
        named = [attempt.state for attempt in state.attempts] + [name for name, _ in state.expected]
        states = tuple(dict.fromkeys([*filter(None, named), *state.known]))
        techniques = tuple(dict.fromkeys([*(technique for _, technique in state.expected), *state.others]))
        tried = dict.fromkeys(attempt.technique for attempt in state.attempts)
        proposed = tuple(technique for technique in tried if technique in state.brought)
        return Ask(
            REVISE, _ended(record), name, Expects.JSON, prompts.Revise(attempts, _expected(state)),
            fields=replies.REVISE_FIELDS, reads=replies.ReadEdits(states, techniques, proposed),
        )  # fmt: skip
    return None


def _expected(state: KernelBlasterState) -> str:
    """What the base last said of the techniques of the round's states."""
    tried_states = {attempt.state for attempt in state.attempts}
    lines = list[str]()
    for name in dict.fromkeys(state for state, _ in state.expected if state in tried_states):
        advised = [advice for (state, _), advice in state.expected.items() if state == name]
        lines += [f"{name or '(state not known)'}:", prompts.listed(advised)]
    return "\n".join(lines) or "- nothing but what the plans of this round predicted, above"


def _consulted(record: Record, name: str) -> ev.Consulted:
    """What the base last answered about a kernel."""
    answers = [answer for (_, about), answer in record.consulted.items() if about == name]
    if not answers:
        raise EngineError(f"the knowledge base was never asked about {name}")
    return max(answers, key=lambda answer: answer.step)


def _shows(record: Record, state: KernelBlasterState, candidate: Candidate) -> bool:
    """Whether a prompt about a kernel carries its profile."""
    return state.settings.agent == FULL and shows_profile(record, candidate)


def _wants_profile(record: Record, state: KernelBlasterState, candidate: Candidate) -> bool:
    return state.settings.agent == FULL and wants_profile(record, candidate)


def _optimise(record: Record, state: KernelBlasterState, base: Candidate) -> Ask:
    name = base.candidate_id
    drawn = state.drawn() or state.last_drawn(name)
    if state.settings.agent == MINIMAL:
        makes = NewCandidate(Origin.OPTIMISATION, name, 0, "Optimi[sz]ation", "optimisation", 0, state.trajectory)
        return Ask(OPTIMISE, record.step_index, name, Expects.PATCH, prompts.Optimise(None, None), makes)
    if drawn is None:
        raise EngineError(f"no technique was drawn for {name}")
    makes = NewCandidate(
        Origin.OPTIMISATION, name, 0, "Optimi[sz]ation", drawn.technique, 0, state.trajectory, drawn.technique,
        drawn.expected_gain,
    )  # fmt: skip
    prompt = prompts.Optimise(drawn, state.present.consulted)
    return Ask(OPTIMISE, record.step_index, name, Expects.PATCH, prompt, makes, _shows(record, state, base))


def _objection(state: KernelBlasterState, candidate: Candidate) -> str:
    name = candidate.candidate_id
    return objection(candidate, state.judged.get(name, ()), state.evidence.get(name, ""))


def objection(candidate: Candidate, claims: Collection[str], evidence: str) -> str:
    """Why a kernel is refused: what is claimed of it, and the finding that bears it out; empty where none does.

    Method: soft verification of KernelBlaster (section 4.4). A claim alone is a flag for a person.
    """
    for claim in claims:
        for check in _flagged(candidate):
            if check.check in COUNTS.get(claim, ()):
                claimed = claim.replace("_", " ")
                return f"Soft verification: {claimed}: {evidence}\nMeasured beside it, {check.check}: {check.detail}"
    return ""


def _flagged(candidate: Candidate) -> Iterator[CheckRecord]:
    for result in (candidate.compiled, candidate.checked, candidate.timed):
        yield from (check for check in (result.proofs if result else ()) if check.standing is CheckOutcome.FLAGGED)
