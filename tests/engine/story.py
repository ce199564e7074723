"""Histories told in a few words: each call appends the events a real step would journal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from engine.search import actions
from engine.search.actions import Action, Ask, Conclude, Expects, Finish, Wait, label
from engine.search.context import RunContext
from engine.search.loop import take_step
from engine.search.methods.cutegen.settings import CuteGenSettings
from engine.search.methods.cutegen.state import CuteGenState
from engine.search.methods.cutegen.strategy import CuteGen
from engine.search.methods.options import described
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult
from storage.results.profile_results import ProfileResult
from storage.results.vocabulary import KernelClass, Verdict
from storage.run import events as ev
from storage.run.record import Record
from storage.run.settings import Budget, DepthOutcome, Origin, RunSettings, StepKind
from storage.run.steering.verbs import Command, CommandKind

SETTINGS = RunSettings(
    run_id="story",
    task_name="square_matmul",
    task_source="",
    kernel_class=KernelClass.MATMUL,
    class_is_proposed=False,
    sizes={},
    toolchain="cpu",
    model="recorded",
)


def settings_with(**changes: Any) -> RunSettings:
    """The settings of every story with some changed; those of CuTeGen by their own names."""
    own = changes.pop("strategy_options", {})
    own |= {one.name: changes.pop(one.name) for one in described(CuteGenSettings) if one.name in changes}
    return replace(SETTINGS, strategy_options=own, **changes)


class Step(NamedTuple):
    """A step of the loop in the words of the journal: what it is called, at which step index, about which kernel."""

    kind: str
    depth: int
    candidate_id: str | None = None


def brief(action: Action) -> Step | Conclude | Wait | Finish:
    """A step in the words of the journal; another action as it is."""
    return action if isinstance(action, Conclude | Wait | Finish) else Step(label(action), action.index, action.about)


def resolved(context: RunContext, step: Step) -> actions.Step:
    """The step as the context's strategy asks for it."""
    return context.strategy.again(context.record, step.kind, step.candidate_id)


def asks(role: str, about: str | None = None) -> Ask:
    """A call of that role whose messages a test gives itself."""
    return Ask(role, 0, about, Expects.TEXT, lambda context, ask: [])


def state_of(record: Record) -> CuteGenState:
    """What CuTeGen remembers of a run."""
    return CuteGen().state(record)


def take(context: RunContext, step: Step) -> None:
    """Carry out a step of the context's strategy."""
    take_step(context, resolved(context, step))


class Story:
    """A record under construction."""

    def __init__(self, **changes: object) -> None:
        budget = changes.pop("budget", Budget(depths=10))
        self.settings = settings_with(budget=budget, **changes)
        self.record = Record.of(self.settings, [])
        self.step = 0

    def tell(self, event: ev.Event) -> Story:
        self.record.apply(event)
        return self

    def candidate(
        self, name: str, origin: Origin = Origin.SYNTHESIS, parent: str | None = None, summary: str = ""
    ) -> Story:
        record, made, said = self.record, self.record.candidates.get(parent or ""), summary or name
        repair = made.created.repair + 1 if origin is Origin.REPAIR and made else 0
        base = parent if origin is Origin.OPTIMISATION else made.created.base_id if made else None
        self.step += 1
        created = ev.CandidateCreated(
            self.step, name, parent, base, record.step_index, 0, repair, origin, f"blob-{name}", None, 1, 0, said
        )
        return self.tell(created)

    def compiles(self, name: str) -> Story:
        return self.tell(ev.Compiled(self.step, name, CompileResult(True, 1.0), None))

    def does_not_compile(self, name: str) -> Story:
        result = CompileResult(False, 1.0, "error: no", verdict=Verdict.COMPILE_ERROR)
        return self.tell(ev.Compiled(self.step, name, result, None))

    def checks(self, name: str, verdict: Verdict = Verdict.PASSED) -> Story:
        return self.tell(ev.Checked(self.step, name, CheckResult(verdict, 1.0)))

    def runs_at(self, name: str, speedup: float) -> Story:
        noise = (0.999, 1.0, 1.001) * 4
        return self.tell(ev.Timed(self.step, name, TimingResult(noise, tuple(speedup for _ in noise))))

    def is_profiled(self, name: str) -> Story:
        return self.tell(ev.Profiled(self.step, name, ProfileResult("h", (), "memory", "summary"), None))

    def passes(self, name: str, speedup: float) -> Story:
        return self.compiles(name).checks(name).runs_at(name, speedup)

    def is_diagnosed(self, name: str) -> Story:
        return self.tell(ev.DiagnosisWritten(self.step, name, "blob"))

    def settles(self, name: str | None, outcome: DepthOutcome = DepthOutcome.ACCEPTED) -> Story:
        record = self.record
        best = outcome is DepthOutcome.ACCEPTED and name is not None and name == record.best_id
        return self.tell(ev.DepthFinished(self.step, record.step_index, outcome, name, None, False, best, ""))

    def accepts(self, name: str, speedup: float, parent: str | None = None) -> Story:
        origin = Origin.OPTIMISATION if parent else Origin.SYNTHESIS
        return self.candidate(name, origin, parent).passes(name, speedup).settles(name)

    def fails_to_patch(self, kind: StepKind, name: str | None) -> Story:
        self.step += 1
        self.tell(ev.StepStarted(self.step, kind, self.record.step_index, name))
        return self.tell(ev.StepFinished(self.step, kind, 1.0, "patch_failed"))

    def calls(self, times: int, cost: float | None = 0.0) -> Story:
        for _ in range(times):
            self.step += 1
            self.tell(
                ev.ModelCalled(
                    self.step, 0, StepKind.OPTIMISE, 0, None, "m", "p", "r", 100, 50, 0, 0, cost, 1.0, "stop"
                )
            )
        return self

    def steers(self, kind: CommandKind, argument: str = "", settled: bool = True) -> Story:
        self.step += 1
        command = Command(f"k{self.step}", kind, argument, "someone", 0.0)
        self.tell(ev.CommandAcknowledged(command, self.step))
        return self.tell(ev.CommandEffective(command.command_id, self.step, "")) if settled else self
