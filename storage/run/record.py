"""A run's state, folded from its journal alone. Decides nothing and touches no file.

A journal with holes can be folded too, so that people can look at what is left; no engine goes on with one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from operator import itemgetter

from storage.knowledge.choice import OFF
from storage.results import relative
from storage.results.check_records import StagedCheck, StandingChecks
from storage.results.deployment import Deployment
from storage.results.evaluation_results import (
    TAKEN,
    CheckResult,
    CompileResult,
    TimingFigures,
    TimingResult,
    headline,
)
from storage.results.hardware_limit import HardwareLimit
from storage.results.profile_results import ProfileResult, executed_share
from storage.results.vocabulary import KernelClass, Verdict
from storage.run import events as ev
from storage.run.cut_off import EVALUATED, CutOff
from storage.run.journal import Entry
from storage.run.owners import in_turn
from storage.run.settings import EVALUATIONS, Budget, DepthOutcome, Origin, RunSettings, RunState, StepKind, of_suite
from storage.run.steering.command_arguments import BEGIN, MANUAL, TUNE, AskFirst, Hand, ModelChoice, Retry, is_call
from storage.run.steering.human_state import HumanState
from storage.run.steering.steering_state import SteeringState
from storage.run.steering.verbs import Command, CommandKind
from storage.run.tuning import Sweep

# Why older engines ended a run. A trajectory has several step indexes.
_ALL_DONE = re.compile(
    r"all (?P<count>\d+) (?!trajectories)(?P<word>\w+)s are done"
    r"|(?P<one>its one|the) (?!trajectory)(?P<word_of_one>\w+) is done"
)
WRITTEN = (Origin.SYNTHESIS, Origin.REPAIR, Origin.OPTIMISATION)
"""What a model writes."""
STAGES: Mapping[type, str] = {ev.Compiled: "compile", ev.Checked: "check", ev.Timed: "time", ev.Profiled: "profile"}


@dataclass(slots=True)
class Usage:
    """What a run has spent. `cost_usd` is None once any call's cost is unknown.

    `assumed_tokens` are an estimate for calls whose tokens nobody counted, `uncounted` of them: budgets take them for
    spent.
    """

    model_calls: int = 0
    tokens: int = 0
    uncounted: int = 0
    assumed_tokens: int = 0
    cost_usd: float | None = 0.0
    engine_s: float = 0.0
    """In steps that ended, and in others until they were cut off."""
    in_step_s: float = 0.0
    """What is known so far to have gone into the steps in flight; their end tells it better."""
    device_s: float = 0.0
    """How long its evaluations have held the device, also those of baselines, a sweep's variants, and deployment."""

    def take(self, event: ev.Event) -> None:
        """Add what was spent by a call that may have cost something, the time of a step, and that on the device."""
        if isinstance(event, ev.StepFinished):
            self.engine_s += event.seconds or 0.0
        elif isinstance(event, EVALUATED):
            timeline = event.result.timeline if event.result else None
            self.device_s += timeline.lease_s if timeline else 0.0
        elif isinstance(event, ev.ModelCalled) or (isinstance(event, ev.CallFailed) and event.is_charged):
            self._count(event)

    def _count(self, event: ev.ModelCalled | ev.CallFailed) -> None:
        self.model_calls += 1
        self.tokens += (event.input_tokens or 0) + (event.output_tokens or 0)
        self.uncounted += None in (event.input_tokens, event.output_tokens)
        self.assumed_tokens += event.assumed_tokens if isinstance(event, ev.ModelCalled) else 0
        is_cost_known = self.cost_usd is not None and event.cost_usd is not None
        self.cost_usd = (self.cost_usd or 0.0) + (event.cost_usd or 0.0) if is_cost_known else None

    def follow(self, cut_off: CutOff, entry: Entry) -> tuple[int, float]:
        """Add the time of work that the next line of a journal shows to be cut off; see `CutOff.take`."""
        step, seconds = cut_off.take(entry.event, entry.time)
        self.engine_s, self.in_step_s = self.engine_s + seconds, cut_off.known_s
        return step, seconds

    @property
    def worked_s(self) -> float:
        """For how long engines have worked on steps, as far as it is known."""
        return self.engine_s + self.in_step_s

    @property
    def counted_tokens(self) -> int | None:
        """All tokens; None once those of any call are unknown."""
        return None if self.uncounted else self.tokens


@dataclass(frozen=True, slots=True)
class Redo:
    """A step of the model that is to be done again by the model chosen."""

    kind: str
    candidate_id: str | None
    choice: ModelChoice


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate and everything known about it so far."""

    created: ev.CandidateCreated
    compiled: CompileResult | None = None
    checked: CheckResult | None = None
    timed: TimingResult | None = None
    figures: TimingFigures | None = None
    """Those of `timed`, where they decide something; a thin record keeps them alone."""
    timings: int = 0
    """How often it was timed."""
    spent: Usage | None = field(default=None, compare=False)
    """What the run had spent when it first had figures. It follows the order in which things came, which one step index
    of several at work does not know."""
    profiled: ProfileResult | None = None
    is_profile_tried: bool = False
    """Whether a profile was collected, or could not be had."""
    executed_share: float | None = None
    """Operations that it executed, by those of the task; None where no profile counts them."""
    diagnosis_blob: str | None = None
    """The model's explanation of its failure."""
    diagnosis_step: int | None = None

    @property
    def candidate_id(self) -> str:
        """Id of the candidate."""
        return self.created.candidate_id

    @property
    def written_as(self) -> str | None:
        """The kernel that was written: its parent where the tuner changed its numbers alone."""
        return self.created.parent_id if self.created.origin is Origin.TUNED else self.candidate_id

    @property
    def verdict(self) -> Verdict | None:
        """None until compile and check have spoken."""
        if self.compiled is not None and not self.compiled.is_ok:
            return self.compiled.verdict
        return self.checked.verdict if self.checked else None

    @property
    def next_stage(self) -> StepKind | None:
        """The first of compile, check and time that has not been done; None when all have."""
        done = zip(EVALUATIONS, (self.compiled, self.checked, self.timed), strict=False)
        return next((stage for stage, result in done if result is None), None)

    @property
    def failure(self) -> str:
        """Why it failed, in one line; empty unless it has."""
        if self.compiled is not None and not self.compiled.is_ok:
            return headline(self.compiled)
        return headline(self.checked) if self.checked is not None and self.has_failed else ""

    @property
    def standing(self) -> TimingFigures | None:
        """The figures of a kernel that stands as correct: a timing counts no longer than that."""
        return self.figures if self.verdict is Verdict.PASSED else None

    @property
    def trusted(self) -> TimingResult | None:
        """Its timing, where something may be decided by it."""
        return None if self.timed is None or self.timed.untrusted else self.timed

    @property
    def has_failed(self) -> bool:
        """True once a verdict other than passed stands."""
        return self.verdict not in (None, Verdict.PASSED)

    @property
    def is_try(self) -> bool:
        """Whether the model has written it and it was judged; a kernel that a person brought is no try."""
        return self.created.origin in WRITTEN and self.verdict is not None


@dataclass(slots=True)
class Record:
    """The fold: what any method can be told of a run. What one method alone remembers is its own state, folded from
    `events`.

    A view (`storage.run.lanes`) is a record of the same run as one step index sees it; what was spent is counted by the
    record of the whole run, which a view only reads.

    A thin record is one for the index: it keeps neither events and ended step indexes nor what methods alone look up,
    and of results no more than their verdicts and figures.
    """

    settings: RunSettings
    budget: Budget = field(default_factory=Budget)
    """The limits in force: those of the settings, or what a person has made of them."""
    kernel_class: KernelClass = KernelClass.OTHER
    is_class_known: bool = False
    """Whether the task, the model or a person has named the kernel class."""
    candidates: dict[str, Candidate] = field(default_factory=dict)
    """All kernels by id, in the order in which they were made."""
    concluded: list[ev.DepthFinished] = field(default_factory=list)
    """How each step index ended."""
    without_kernel: list[int] = field(default_factory=list)
    """The step indexes that ended without having made a kernel."""
    best_id: str | None = None
    """The fastest correct kernel of the whole run, whether or not it was accepted; of equals the first."""
    redo: Redo | None = None
    """A step that a person wants done again."""
    model_steps: dict[int, ev.StepStarted] = field(default_factory=dict)
    """Steps in which the model was asked, by number."""
    is_profile_shown: bool = False
    """Whether the model has seen a profile in the current step index."""
    steering: SteeringState = field(default_factory=SteeringState)
    usage: Usage = field(default_factory=Usage)
    cut_off: CutOff = field(default_factory=CutOff)
    limit: HardwareLimit | None = None
    baselines: dict[str, ev.BaselineMeasured] = field(default_factory=dict)
    deployments: dict[str, Deployment] = field(default_factory=dict)
    """What is told of the deployment of kernels with which an engine ended the run, by kernel."""
    compiler: ev.CompilerShown | None = None
    steps_finished: int = 0
    """How many steps are over."""
    open_steps: dict[int, ev.StepStarted] = field(default_factory=dict)
    """Steps in flight, by number: several only in a run with a width."""
    commands: dict[str, ev.CommandAcknowledged] = field(default_factory=dict)
    """Acknowledged commands by id."""
    settled_commands: set[str] = field(default_factory=set)
    """Ids of commands that took effect or were refused."""
    calls: dict[tuple[int, int], ev.ModelCalled] = field(default_factory=dict)
    """Replies by step and call."""
    open_calls: dict[tuple[int, int], ev.CallSent] = field(default_factory=dict)
    """Calls that were sent and have not ended, by step and call: several only in a run with a width."""
    sent: dict[tuple[int, int], int] = field(default_factory=dict)
    """How often a call was sent, by step and call."""
    cut_offs: dict[tuple[int, int], int] = field(default_factory=dict)
    """How many replies to a call ended at the output limit, by step and call."""
    counted: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Characters and tokens of prompts by model, where the endpoint counted."""
    patches: set[tuple[int, int]] = field(default_factory=set)
    """Step and call of replies whose patch was tried, applied or not."""
    failed_attempts: set[int] = field(default_factory=set)
    """Steps in which a chosen technique brought no kernel."""
    reviews: dict[tuple[int, int], ev.ReviewWritten] = field(default_factory=dict)
    """Replies about a kernel that are no kernel, by step and call."""
    consulted: dict[tuple[int, str], ev.Consulted] = field(default_factory=dict)
    """The last answer of the knowledge base by step index and kernel."""
    taught: dict[int, ev.Taught] = field(default_factory=dict)
    """What the knowledge base was taught, by step."""
    tools: dict[tuple[int, int, int], ev.ToolAnswered] = field(default_factory=dict)
    """Answers to the model's tool calls, by step, call and number."""
    ranked: dict[int, ev.Ranked] = field(default_factory=dict)
    """The order in which drawn kernels are evaluated, by step index."""
    failure_rules: list[ev.RulesTold] = field(default_factory=list)
    """Those that writers were told; the last of them hold."""
    is_quiet: bool = True
    """Whether the last timing could be trusted."""
    is_begun: bool = False
    """Whether the step that takes the compiler's kernel as the first one is over, or was not wanted."""
    sweeps: dict[str, Sweep] = field(default_factory=dict)
    """Sweeps over the numbers that a kernel declares open to tuning, by kernel."""
    swept: set[str] = field(default_factory=set)
    """Kernels whose sweep is over, or was not wanted."""
    warned: set[str] = field(default_factory=set)
    """Limits of which four fifths are used, by name."""
    human: HumanState = field(default_factory=HumanState)
    state: RunState = RunState.STARTING
    ended: ev.RunEnded | None = None
    """How the run ended; None while it has not, and again once an engine takes it up."""
    events: list[ev.Event] = field(default_factory=list)
    places: dict[int, str] = field(default_factory=dict)
    """What step indexes have taken for themselves."""
    index: int | None = None
    """The step index of a view; None in the record of the whole run."""
    is_view: bool = False
    is_thin: bool = False
    beside: dict[int, str] = field(default_factory=dict)
    """The same as `places` for step indexes whose end a view does not know: at work beside it, or ended since."""

    @classmethod
    def of(cls, settings: RunSettings, entries: list[Entry]) -> Record:
        """Fold a whole journal."""
        record = cls.at_start(settings)
        if settings.width == 1:
            for entry in entries:
                record.take(entry)
            return record
        for entry in entries:
            record.usage.follow(record.cut_off, entry)  # the time of work goes by when things came
        for event in in_turn([entry.event for entry in entries]):
            record.apply(event)
        return record

    @classmethod
    def at_start(cls, settings: RunSettings, is_thin: bool = False) -> Record:
        """Before the first event."""
        record = cls(settings, settings.budget, settings.kernel_class, not settings.class_is_proposed, is_thin=is_thin)
        record.steering = SteeringState(collect=settings.collect)
        return record

    @property
    def step_index(self) -> int:
        """The step index being worked on: as many as have been concluded; of a view its own."""
        return len(self.concluded) if self.index is None else self.index

    @property
    def in_flight(self) -> ev.StepStarted | None:
        """The step in flight, of several the one begun last."""
        return next(reversed(self.open_steps.values()), None)

    @property
    def open_call(self) -> ev.CallSent | None:
        """The call that was sent and has not ended, of several the one sent last."""
        return next(reversed(self.open_calls.values()), None)

    @property
    def next_step(self) -> int:
        """The number of the step that is begun next."""
        return self.steps_finished + len(self.open_steps) + 1

    @property
    def step_of_command(self) -> int:
        """From which step on a command taken now is in force. With one step at a time the one in flight, which is then
        taken once more."""
        return self.next_step if self.settings.width > 1 else self.steps_finished + 1

    @property
    def index_in_flight(self) -> int:
        """The step index of the step in flight, which may look back at the one just concluded."""
        return self.in_flight.depth if self.in_flight else self.step_index

    @property
    def asks_base(self) -> bool:
        """Whether the run has a knowledge base to ask."""
        return self.settings.knowledge != OFF

    @property
    def best(self) -> Candidate | None:
        """The incumbent: the fastest correct kernel of the run by measured speed-up, abandoned branches included."""
        return self.candidates.get(self.best_id or "")

    @property
    def alternatives(self) -> dict[str, ev.BaselineMeasured]:
        """The baselines beside eager, each as it counts beside the best kernel."""
        best = self.best.standing if self.best and self.settings.toolchain != "cpu" else None
        eager_ms = relative.baseline_ms(best.speedup, best.latency_ms) if best else None
        return {
            name: replace(measured, result=measured.result.beside(eager_ms)) if measured.result else measured
            for name, measured in self.baselines.items()
        }

    @property
    def baseline(self) -> ev.BaselineMeasured | None:
        """The fastest of the alternatives; where none could be timed, the first of them."""
        told = list(self.alternatives.values())
        return max(told, key=lambda measured: measured.result.speedup if measured.result else 0.0, default=None)

    def number(self, candidate_id: str) -> int:
        """A kernel's number: that of its id, which stays right where an earlier kernel cannot be read."""
        named = re.fullmatch(r"c([0-9]{1,18})", candidate_id)
        return int(named[1]) if named else list(self.candidates).index(candidate_id) + 1

    def take(self, entry: Entry) -> tuple[int, float]:
        """Take the next line of the journal; returns which step it shows to have been cut off, and after how many
        seconds of work (0: none)."""
        cut = self.usage.follow(self.cut_off, entry)
        self.apply(entry.event)
        return cut

    def apply(self, event: ev.Event) -> None:
        """Take one event into account, but for the time of work that was cut off."""
        if not self.is_thin:
            self.events.append(event)
        self.human.apply(event)
        self.steering = self.steering.after_event(event)
        if isinstance(event, EVALUATED) and not self.is_view:
            self.usage.take(event)
        match event:
            case ev.EngineStarted():
                self.state, self.ended = RunState.RUNNING, None
                if (
                    event.is_resumed and not self.settings.suite
                ):  # by a person: the cells of a suite resume by themselves
                    self.human.is_steered = True
            case ev.StateChanged(state=state):
                self.state = state
            case ev.RunEnded(state=state):
                self.state, self.ended = state, replace(event, reason=self._told(event.reason))
            case ev.LimitMeasured(limit=limit):
                self.limit = limit.after(self.limit).of_source(self.settings.task_source)
                self._weigh_limit()
            case ev.BaselineMeasured():
                self.baselines[event.name] = event
            case ev.CompilerShown():
                self.compiler = event
            case ev.ClassProposed(kernel_class=kernel_class):
                self.kernel_class, self.is_class_known = kernel_class, True
            case ev.BudgetWarned(limit=name):
                self.warned.add(name)
            case ev.PlaceTaken(depth=index, place=place):
                self.places[index] = place
            case ev.StepStarted():
                self._begin_step(event)
            case ev.StepFinished():
                self._finish_step(event)
            case ev.ModelCalled() | ev.CallSent() | ev.CallFailed():
                self._follow_call(event)
            case ev.BudgetChanged(budget=budget):
                self.budget, self.warned = budget, set()
            case ev.CommandAcknowledged() | ev.CommandEffective() | ev.CommandRefused():
                self._steer(event)
            case ev.DepthFinished():
                if not self.is_thin:
                    self.concluded.append(event)
                if event.outcome is DepthOutcome.GIVEN_UP and event.candidate_id is None:
                    self.without_kernel.append(event.depth)
                self.is_profile_shown = False
            case _:
                self._learn(event)

    def all_done(self, count: int, word: str, one: str = "the") -> str:
        """Why a run ends in which all so many step indexes are done that were asked for, and which of them made no
        kernel; `word` is what the method calls one, `one` what stands before a single one."""
        missing = self.without_kernel if self.best else []
        if count == 1:
            return f"{one} {word} is done{'; it made no kernel' if missing else ''}"
        if not missing:
            return f"all {count} {word}s are done"
        which = f"{len(missing)} of them" if len(missing) > 1 else f"{word} {missing[0]}"
        return f"{count} {word}s are done; {which} made no kernel"

    def _told(self, reason: str) -> str:
        """Why the run has ended, as engines write it today: older ones did not say what made no kernel."""
        done = _ALL_DONE.fullmatch(reason)
        if done is None or not self.without_kernel:
            return reason
        return self.all_done(int(done["count"] or 1), done["word"] or done["word_of_one"], done["one"] or "its one")

    def _learn(self, event: ev.Event) -> None:
        match event:
            case ev.CandidateCreated(candidate_id=name):
                self.candidates[name] = Candidate(event)
            case ev.Compiled(candidate_id=name, result=compiled):
                self._judge(name, compiled=compiled.brief() if self.is_thin else compiled)
            case ev.Checked(candidate_id=name, result=checked):
                self._judge(name, checked=checked.brief() if self.is_thin else checked)
            case ev.Timed(candidate_id=name, result=timed):
                kept = replace(TAKEN, untrusted=timed.untrusted) if self.is_thin else timed
                figures, spent = None if timed.untrusted else timed.figures, None if self.is_view else self.usage
                earlier = self.candidates.get(name)
                if spent is not None:
                    spent = earlier.spent if earlier and earlier.figures else replace(spent)
                timings = earlier.timings + 1 if earlier else 1
                self._judge(name, timed=kept, figures=figures, spent=spent, timings=timings)
                self.is_quiet = not timed.untrusted
            case _:
                if isinstance(event, ev.Profiled):
                    self._count_executed(event)
                if not self.is_thin:
                    self._remember(event)

    def _remember(self, event: ev.Event) -> None:
        match event:
            case ev.PatchTried(step=step, call=call):
                self.patches.add((step, call))
            case ev.AttemptFailed(step=step):
                self.failed_attempts.add(step)
            case ev.ReviewWritten(step=step, call=call):
                self.reviews[step, call] = event
            case ev.Consulted(depth=index, candidate_id=name):
                self.consulted[index, name] = event
            case ev.ToolAnswered(step=step, call=call, number=number):
                self.tools[step, call, number] = event
            case ev.Ranked(depth=index):
                self.ranked[index] = event
            case ev.RulesTold():
                self.failure_rules.append(event)
            case ev.Taught(step=step):
                self.taught[step] = event
            case ev.DiagnosisWritten(candidate_id=name, text_blob=blob):
                self._update(name, diagnosis_blob=blob, diagnosis_step=event.step)
            case ev.Profiled(candidate_id=name, result=profiled):
                self._update(name, profiled=profiled, is_profile_tried=True)
            case ev.ProfileFailed(candidate_id=name):
                self._update(name, is_profile_tried=True)
            case ev.DeploymentSeen(candidate_id=name):
                self.deployments[name] = event.result
            case ev.SweepStarted(candidate_id=name) if name in self.candidates:
                if (written := self.candidates[name].timed) is not None:
                    self.sweeps[name] = Sweep(event.tunables, event.most, written)
            case ev.VariantCompiled() | ev.VariantChecked() | ev.VariantTimed() if event.candidate_id in self.sweeps:
                self.sweeps[event.candidate_id].apply(event)
            case _:
                pass

    def _count_executed(self, event: ev.Profiled) -> None:
        """A limit of several workloads is none of the call that is profiled."""
        if self.limit is not None and not self.settings.policy.workloads:
            self._update(event.candidate_id, executed_share=executed_share(event.result, self.limit.min_flop))
            self._weigh_limit()

    def _weigh_limit(self) -> None:
        """Hold the limit against the least that a correct kernel executed."""
        kernels = (kernel for kernel in self.candidates.values() if kernel.verdict is Verdict.PASSED)
        shares = [kernel.executed_share for kernel in kernels if kernel.executed_share is not None]
        if self.limit is not None:
            self.limit = replace(self.limit, executed_share=min(shares, default=None))

    def _judge(self, name: str, **result: object) -> None:
        self._update(name, **result)
        self._rank(name)
        if (kernel := self.candidates.get(name)) is not None and kernel.executed_share is not None:
            self._weigh_limit()

    def _update(self, name: str, **changes: object) -> None:
        if name in self.candidates:
            self.candidates[name] = replace(self.candidates[name], **changes)  # type: ignore[arg-type]

    def _rank(self, name: str) -> None:
        """The best after news of one kernel; where the best itself has news, all are looked at again."""
        rivals = (
            self.candidates.values() if name == self.best_id else filter(None, (self.best, self.candidates.get(name)))
        )
        ranked = [(a.standing.speedup, a.candidate_id) for a in rivals if a.standing]
        self.best_id = max(ranked, key=itemgetter(0))[1] if ranked else None

    def _begin_step(self, event: ev.StepStarted) -> None:
        if self.settings.width == 1:
            self.open_steps.clear()
        self.open_steps[event.step] = event
        if is_call(event.kind) and not self.is_thin:
            self.model_steps[event.step] = event

    def _finish_step(self, event: ev.StepFinished) -> None:
        last = self.in_flight
        started = self.open_steps.pop(event.step, None)
        if self.settings.width == 1:
            started = last
            self.open_steps.clear()
        if started and self.redo and (started.kind, started.candidate_id) == (self.redo.kind, self.redo.candidate_id):
            self.redo = None
        self.is_begun = self.is_begun or event.kind == BEGIN
        if event.kind == TUNE and started and started.candidate_id:
            self.swept.add(started.candidate_id)
        self.steps_finished += 1
        if not self.is_view:
            self.usage.take(event)

    def _follow_call(self, event: ev.ModelCalled | ev.CallSent | ev.CallFailed) -> None:
        key = event.step, event.call
        if isinstance(event, ev.CallSent):
            self.open_calls[key] = event
            if not self.is_thin:
                self.sent[key] = self.sent.get(key, 0) + 1
            return
        if self.settings.width == 1:
            self.open_calls.clear()
        self.open_calls.pop(key, None)
        if isinstance(event, ev.ModelCalled):
            self.is_profile_shown = self.is_profile_shown or event.is_profile_exposed
            if not self.is_thin:
                self._keep_call(key, event)
        if not self.is_view:
            self.usage.take(event)

    def _keep_call(self, key: tuple[int, int], event: ev.ModelCalled) -> None:
        self.calls[key] = event
        self.cut_offs[key] = self.cut_offs.get(key, 0) + (event.finish_reason == "length")
        if event.prompt_characters and event.input_tokens:
            characters, tokens = self.counted.get(event.model, (0, 0))
            self.counted[event.model] = characters + event.prompt_characters, tokens + event.input_tokens

    def _steer(self, event: ev.CommandAcknowledged | ev.CommandEffective | ev.CommandRefused) -> None:
        if isinstance(event, ev.CommandAcknowledged):
            self.commands[event.command.command_id] = event
            return
        self.settled_commands.add(event.command_id)
        if isinstance(event, ev.CommandRefused) or event.command_id not in self.commands:
            return
        command = self.commands[event.command_id].command
        self.steering = self.steering.after(command)
        if command.asked_by != of_suite(self.settings.suite):
            self.human.obey(command)
        if command.kind is CommandKind.SET_CLASS:
            self.kernel_class, self.is_class_known = KernelClass(command.argument), True
        if command.kind is CommandKind.RETRY:
            self._redo(Retry.parse(command.argument))

    def _redo(self, retry: Retry) -> None:
        step = self.model_step(retry.step)
        if step is not None:
            self.redo = Redo(step.kind, step.candidate_id, retry.choice)

    def model_step(self, number: int | None) -> ev.StepStarted | None:
        """A step in which the model was asked: the one of this number, or the last; None when there is none."""
        if number is not None:
            return self.model_steps.get(number)
        return self.model_steps[max(self.model_steps)] if self.model_steps else None

    @property
    def model_choice(self) -> ModelChoice | None:
        """The model a person has chosen for the next call; None for the run's own."""
        choice = self.redo.choice if self.redo else self.steering.model
        return None if choice == ModelChoice(self.settings.model) else choice

    @property
    def is_by_hand(self) -> bool:
        """Whether a person answers the next call."""
        return self.redo is None and (self.is_manual or self.steering.hand is not Hand.OFF)

    @property
    def is_manual(self) -> bool:
        """Whether a person answers every call, in the place of a model."""
        return (self.steering.model.model if self.steering.model else self.settings.model) == MANUAL

    @property
    def approval_rule(self) -> AskFirst:
        """Which steps wait for a person's yes."""
        return self.steering.ask_first or self.settings.ask_first

    @property
    def pending_hints(self) -> list[Command]:
        """Acknowledged hints that no prompt has carried yet, oldest first."""
        return self.pending(CommandKind.HINT)

    def pending(self, kind: CommandKind) -> list[Command]:
        """Acknowledged commands of a kind that are neither in effect nor refused, oldest first."""
        commands = (acknowledged.command for acknowledged in self.commands.values())
        return [c for c in commands if c.kind is kind and c.command_id not in self.settled_commands]


def is_wasted(finished: ev.StepFinished, has_kernel: bool) -> bool:
    """Whether the step is a try without a kernel: its reply could not be used."""
    return finished.outcome == "patch_failed" and not has_kernel


def take_checks(checks: StandingChecks, event: ev.Event) -> None:
    """What an event about a kernel says of its checks."""
    match event:
        case ev.CandidateCreated():
            checks.take_edit(event.flags)
        case ev.ReviewWritten(problem=""):
            checks.take_review(event.label, event.flags)
        case ev.Compiled() | ev.Checked() | ev.Timed():
            checks.take(STAGES[type(event)], event.result.proofs)


def checks_of(
    events: Iterable[ev.Event], candidate: Candidate, limit: HardwareLimit | None = None
) -> list[StagedCheck]:
    """What stands of a candidate's checks, one per check, by group, the worst first: those that the evaluator made,
    what was noted about its edit, and what a judge said of the kernel as it was written. `limit` is the run's."""
    checks = StandingChecks(limit_ms=limit.as_measured_ms if limit else None)
    for event in events:
        about = candidate.written_as if isinstance(event, ev.ReviewWritten) else candidate.candidate_id
        if getattr(event, "candidate_id", None) == about:
            take_checks(checks, event)
    return checks.worst()


def named(record: Record, candidate_id: str) -> str:
    """A kernel as people call it: "kernel 3"; the id itself for one that this run has not."""
    return f"kernel {record.number(candidate_id) if candidate_id in record.candidates else candidate_id}"
