"""Runs that work on several kernels at once: real threads and a real HTTP server, a toolchain of known results."""

from __future__ import annotations

import json
import re
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from engine.errors import EngineError, PersonNeeded, ToolchainError
from engine.evaluator.request import Evaluator
from engine.evaluator.tasks import Task
from engine.run_settings import new_settings
from engine.search import abreast, loop
from engine.search.context import RunContext
from engine.search.daily import Ledger, write_limits
from engine.search.human.inbox import Inbox
from engine.search.llm.endpoint import EndpointModel
from engine.search.llm.prices import Price
from engine.search.methods.loading import open_strategy
from storage.results.deployment import Deployment, Trait
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult
from storage.results.hardware_limit import HardwareLimit
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.journal import Entry
from storage.run.models import CallFailure, ModelOptions
from storage.run.record import Record
from storage.run.settings import Budget, DepthOutcome, RunState, Switch
from storage.run.steering import commands
from storage.run.steering.command_arguments import AskFirst
from storage.run.steering.verbs import CommandKind
from tests.chat_server import ChatServer, Handler, fails, serving
from tests.engine import object_answers
from tests.engine.contexts import open_context

OPTIONS = ModelOptions(model="tester", silence_s=5.0)
PRICE = Price(1.0, 0.1, 10.0)
USAGE = {"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500}
SAMPLES = 6
# Methods whose step indexes build on each other in part.
IN_PART: Mapping[str, dict[str, Any]] = {
    "kernelblaster": {"trajectories": 3, "steps": 2, "max_repairs": 1},
    "graph_search": {"expansions": SAMPLES, "outlines": 1, "max_repairs": 1},
}


@dataclass
class Known:
    """A toolchain whose answers follow from the number in a kernel; counts what it was asked for."""

    name: str = "cpu"
    asked: Counter[tuple[str, str]] = field(default_factory=Counter)
    act: Callable[[str], None] = lambda what: None
    closed: threading.Event = field(default_factory=threading.Event)

    def close(self) -> None:
        self.closed.set()

    def _number(self, what: str, source: str) -> int:
        self.asked[what, source] += 1
        self.act(what)
        return int(re.findall(r"number (-?\d+)", source)[0])  # below 0 where others were told meanwhile

    def compile(self, task: Task, source: str) -> CompileResult:
        is_good = self._number("compile", source) % 4 != 3
        return CompileResult(is_good, 0.1, verdict=Verdict.PASSED if is_good else Verdict.COMPILE_ERROR)

    def check(self, task: Task, source: str) -> CheckResult:
        return CheckResult(Verdict.INCORRECT if self._number("check", source) % 4 == 2 else Verdict.PASSED, 0.1)

    def time(self, task: Task, source: str) -> TimingResult:
        return TimingResult((1.1 / (1.0 + self._number("time", source)),) * 9, (1.1,) * 9)

    def baseline(self, task: Task, how: str, source: str) -> TimingResult:
        return TimingResult((1.0,) * 9, (1.1,) * 9)

    def deploy(self, task: Task, source: str) -> Deployment:
        self._number("deploy", source)
        return Deployment(Trait.NOT_TRIED)

    def limit(self, task: Task) -> HardwareLimit:
        return HardwareLimit("a processor", 1e9, 1e9, 1, 1)


@dataclass
class Desk:
    """Answers each request with a kernel of the next number, or with the object that it asks for, when so many wait at
    once or `most_s` are over."""

    together: int = 1
    most_s: float = 0.5
    taken: int = 0
    told: int = 0
    at_once: int = 0
    waiting: int = 0
    refuses: set[int] = field(default_factory=set)
    news: threading.Condition = field(default_factory=threading.Condition)

    def __call__(self, handler: Handler) -> None:
        with self.news:
            number, self.taken, self.waiting = self.taken, self.taken + 1, self.waiting + 1
            self.at_once = max(self.at_once, self.waiting)
            self.news.notify_all()
            self.news.wait_for(lambda: self.waiting >= self.together, self.most_s)
        if number in self.refuses:
            fails(404, "no such model")(handler)
            with self.news:
                self.waiting -= 1
            return
        told = object_answers.answer("\n".join(message["content"] for message in handler.asked["messages"]), number)
        self.told += told is not None
        kernel = f"Approach: this\n```python\nclass ModelNew:\n    'number {number - self.told}'\n```\n"
        handler.begin()
        handler.piece(content=told or kernel)
        handler.end("stop", USAGE)
        with self.news:
            self.waiting -= 1


Open = Callable[..., RunContext]


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def server(desk: Desk) -> Iterator[ChatServer]:
    with serving(desk) as chat:
        yield chat


@pytest.fixture
def opened(server: ChatServer, tmp_path: Path) -> Iterator[Open]:
    """Open a run's context, again and again, as a new engine would."""
    models: list[EndpointModel] = []
    (tmp_path / "knowledge").mkdir()

    def opening(folder: str = "home", *, toolchain: Known | None = None, **settings: Any) -> RunContext:
        fields = {"width": 3, "strategy": "best_of", "strategy_options": {"samples": SAMPLES}, "collect": Switch.OFF}
        context = open_context(tmp_path / folder, (), cast(Evaluator, toolchain or Known()), **(fields | settings))
        models.append(EndpointModel(OPTIONS, server.address, "sk-planted-key", PRICE))
        context.model, context.ledger = models[-1], Ledger(tmp_path / folder)
        context.strategy = open_strategy(context.record.settings.strategy)
        context.knowledge = tmp_path / "knowledge"
        return context

    (tmp_path / "home").mkdir()
    yield opening
    for model in models:
        model.close()


def work(context: RunContext, *, is_patient: bool = True) -> ev.RunEnded:
    inbox = Inbox(context, is_patient=is_patient)
    context.interrupt, context.interruptible = inbox.interrupt, inbox.interruptible
    return loop.run(context, inbox) if context.record.settings.width == 1 else abreast.run(context, inbox)


def events(context: RunContext, *kinds: type) -> list[Any]:
    return [entry.event for entry in context.journal.entries if isinstance(entry.event, kinds)]


def trajectories(context: RunContext) -> dict[int, int | None]:
    """By step index: the one that it has taken."""
    return {index: json.loads(place).get("trajectory") for index, place in context.whole.places.items()}


def verdicts(context: RunContext) -> dict[str, tuple[str, float | None]]:
    """By source: what became of every kernel."""
    kernels = context.whole.candidates.values()
    return {context.source(k): (str(k.verdict), k.timed.speedup if k.timed else None) for k in kernels}


@pytest.mark.parametrize("runs_on", ["cpu", "cuda"])
def test_several_kernels_are_written_at_once_and_become_what_they_become_one_after_the_other(
    opened: Open, desk: Desk, runs_on: str
) -> None:
    desk.together = 3
    wide = opened("wide", toolchain=Known(runs_on))
    ended = work(wide)
    assert (ended.state, ended.reason) == (RunState.FINISHED, f"all {SAMPLES} samples are done")
    assert desk.at_once == 3
    desk.taken, desk.together, desk.at_once = 0, 1, 0
    one = opened("one", width=1)
    work(one)
    assert desk.at_once == 1
    assert verdicts(wide) == verdicts(one)
    assert ended.best_id == wide.whole.best_id
    assert sorted(done.depth for done in wide.whole.concluded) == list(range(SAMPLES))
    outcomes = [Counter(d.outcome for d in run.whole.concluded) for run in (wide, one)]
    assert outcomes[0] == outcomes[1] == {DepthOutcome.ACCEPTED: 4, DepthOutcome.GIVEN_UP: 2}
    assert wide.whole.usage.model_calls == SAMPLES
    steps = [step.step for step in events(wide, ev.StepStarted)]
    assert steps == list(range(1, len(steps) + 1))
    assert len({k.created.candidate_id for k in wide.whole.candidates.values()}) == SAMPLES


@pytest.mark.parametrize("runs_on", ["cpu", "cuda"])
def test_a_run_cut_off_at_any_time_asks_and_judges_nothing_twice(
    opened: Open, desk: Desk, tmp_path: Path, runs_on: str
) -> None:
    desk.together, desk.most_s = 3, 0.05
    work(opened("whole", toolchain=Known(runs_on)))
    lines = (tmp_path / "whole/run/journal.jsonl").read_text().splitlines(keepends=True)
    for kept in range(1, len(lines), 3):
        name = f"cut-{kept}"
        shutil.copytree(tmp_path / "whole", tmp_path / name)
        (tmp_path / name / "run/journal.jsonl").write_text("".join(lines[:kept]))
        toolchain, desk.taken = Known(runs_on), 100
        again = opened(name, toolchain=toolchain)
        known = len(events(again, ev.ModelCalled))
        judged = {kind: {e.candidate_id for e in events(again, kind)} for kind in (ev.Compiled, ev.Checked, ev.Timed)}
        lost = len(again.record.open_calls)
        work(again)
        assert again.whole.ended is not None, kept
        assert len(again.whole.concluded) == SAMPLES, kept
        assert desk.taken - 100 == SAMPLES - known, f"cut off after line {kept}: {lines[kept - 1][:120]}"
        assert [call.failure for call in events(again, ev.CallFailed)] == [CallFailure.LOST] * lost
        assert len(events(again, ev.ModelCalled)) == len({(c.step, c.call) for c in events(again, ev.ModelCalled)})
        for kind, act in ((ev.Compiled, "compile"), (ev.Checked, "check"), (ev.Timed, "time")):
            done = [e.candidate_id for e in events(again, kind)]
            assert len(done) == len(set(done)), (kept, act)
            asked = {source for what, source in toolchain.asked if what == act}
            assert not asked & {again.source(again.whole.candidates[one]) for one in judged[kind]}, (kept, act)


@pytest.mark.parametrize(
    ("limit", "most"),
    [({"model_calls": 4}, 4), ({"tokens": 6200}, 4), ({"cost_usd": 0.025}, 4)],
)
def test_limits_hold_for_all_calls_at_work_together(opened: Open, desk: Desk, limit: dict[str, Any], most: int) -> None:
    desk.together, desk.most_s = 3, 0.2
    one = opened("one", width=1, budget=Budget(**limit))
    assert work(one).reason.startswith("limit reached")
    alone = desk.taken
    wide = opened("wide", budget=Budget(**limit))
    assert work(wide).reason.startswith("limit reached")
    assert desk.taken - alone <= alone <= most + 1
    assert (wide.whole.usage.cost_usd or 0) <= (one.whole.usage.cost_usd or 0)
    assert wide.whole.usage.tokens <= one.whole.usage.tokens
    assert not wide.whole.open_calls


def test_the_limit_of_a_day_holds_too_and_what_was_reserved_is_settled(
    opened: Open, desk: Desk, tmp_path: Path
) -> None:
    desk.together, desk.most_s = 3, 0.2
    write_limits(tmp_path / "home" / "budget.toml", {"calls": 4})
    context = opened()
    assert "daily limit reached" in work(context).reason
    assert desk.taken == 4
    spent = context.ledger.spent()
    assert (spent.calls, spent.tokens) == (4, context.whole.usage.tokens)
    assert spent.cost == pytest.approx(context.whole.usage.cost_usd)


def test_a_pause_breaks_off_every_reply_and_what_was_broken_off_is_asked_again(opened: Open, desk: Desk) -> None:
    desk.together, desk.most_s = 3, 0.2
    context = opened()
    seen = list[RunState]()

    def person() -> None:
        with desk.news:
            desk.news.wait_for(lambda: desk.waiting == 3, 10)
        commands.send(context.folder.commands_file, CommandKind.PAUSE)
        while context.whole.state is not RunState.PAUSED or context.company.listening:
            pause.wait(0.02)
        seen.append(context.whole.state)
        commands.send(context.folder.commands_file, CommandKind.HINT, "mind the tail")
        commands.send(context.folder.commands_file, CommandKind.RESUME)

    desk.together, desk.most_s, pause = 99, 1.0, threading.Event()
    thread = threading.Thread(target=person)
    thread.start()
    ended = work(context)
    thread.join()
    assert (seen, ended.state) == ([RunState.PAUSED], RunState.FINISHED)
    failed = [call.failure for call in events(context, ev.CallFailed)]
    assert failed == [CallFailure.CANCELLED] * 3
    assert context.whole.usage.model_calls == desk.taken == SAMPLES + 3
    told = [context.blobs.get(call.prompt_blob) for call in events(context, ev.ModelCalled)]
    assert any("mind the tail" in prompt for prompt in told)


def test_a_stop_ends_every_reply_and_a_resume_goes_on_with_each(opened: Open, desk: Desk) -> None:
    desk.together, desk.most_s = 99, 3.0
    context = opened()

    def person() -> None:
        with desk.news:
            desk.news.wait_for(lambda: desk.waiting == 3, 10)
        commands.send(context.folder.commands_file, CommandKind.STOP)

    thread = threading.Thread(target=person)
    thread.start()
    assert work(context).state is RunState.STOPPED
    thread.join()
    assert isinstance(context.journal.entries[-1].event, ev.RunEnded)
    assert len(context.whole.open_steps) == 3
    desk.together, desk.taken = 1, 0
    again = opened()
    assert len(again.record.open_steps) == 3
    again.emit(ev.EngineStarted(1, True))
    assert work(again).reason == f"all {SAMPLES} samples are done"
    assert desk.taken == SAMPLES


def test_a_kernel_for_a_gpu_is_built_while_another_one_is_judged(opened: Open, desk: Desk) -> None:
    """On processors a build would disturb what is timed beside it."""
    at_work, beside = Counter[str](), Counter[str]()
    both, patience_s = {"compile beside check", "check beside compile"}, 3.0

    def act(what: str) -> None:
        at_work[what] += 1
        beside.update(f"{what} beside {other}" for other, count in at_work.items() if count > (other == what))
        until = time.monotonic() + (0.05 if what != "check" or both & set(beside) else patience_s)
        while time.monotonic() < until and not (what == "check" and at_work["compile"]):
            time.sleep(0.01)
        at_work[what] -= 1

    desk.together = 3
    assert work(opened("gpu", toolchain=Known("cuda", act=act))).state is RunState.FINISHED
    assert both & set(beside)
    assert not {f"{one} beside {other}" for one in ("check", "time") for other in ("check", "time")} & set(beside)
    beside.clear()
    patience_s = 0.05
    assert work(opened("processors", toolchain=Known(act=act))).state is RunState.FINISHED
    assert not beside


def test_a_stop_ends_what_is_built_beside_and_a_resume_builds_it(opened: Open, desk: Desk) -> None:
    toolchain, stops = Known("cuda"), iter([CommandKind.STOP])
    context = opened(toolchain=toolchain)

    def act(what: str) -> None:
        if what == "compile":
            for stop in stops:  # one: a second would be read by who resumes
                commands.send(context.folder.commands_file, stop)
            assert toolchain.closed.wait(10)
            raise ToolchainError("the toolchain was closed during an evaluation")

    desk.together, toolchain.act = 3, act
    assert work(context).state is RunState.STOPPED
    assert not events(context, ev.Compiled)
    known = len(events(context, ev.ModelCalled))
    assert known
    desk.taken = 0
    again = opened(toolchain=Known("cuda"))
    again.emit(ev.EngineStarted(1, True))
    assert work(again).reason == f"all {SAMPLES} samples are done"
    assert desk.taken == SAMPLES - known
    assert Counter(e.candidate_id for e in events(again, ev.Compiled)).most_common(1)[0][1] == 1


def test_steps_are_approved_one_at_a_time_and_a_rejected_one_ends_its_sample(opened: Open, desk: Desk) -> None:
    context = opened(ask_first=AskFirst.parse("calls"))
    answers = iter([CommandKind.APPROVE, CommandKind.SKIP, *[CommandKind.APPROVE] * SAMPLES])
    asked = list[int]()

    def person(seconds: float) -> None:
        waiting = context.whole.human.asked
        if waiting is not None and context.whole.human.is_approved is None and waiting.step not in asked:
            asked.append(waiting.step)
            commands.send(context.folder.commands_file, next(answers), str(waiting.step))
        threading.Event().wait(0.01)

    inbox = Inbox(context, person)
    context.interrupt, context.interruptible = inbox.interrupt, inbox.interruptible
    abreast.run(context, inbox)
    assert not events(context, ev.CommandRefused)
    assert len(asked) == SAMPLES
    assert desk.taken == SAMPLES - 1
    assert "skipped by a person" in next(d.reason for d in context.whole.concluded if d.depth == 1)


def test_a_call_that_fails_leaves_the_others_at_work_and_then_the_run_waits_for_a_person(
    opened: Open, desk: Desk
) -> None:
    desk.refuses, context = {1}, opened()
    with pytest.raises(PersonNeeded, match="no such model"):
        work(context, is_patient=False)
    assert len(context.whole.concluded) == SAMPLES - 1
    assert len(context.whole.open_steps) == 1
    assert work(opened()).reason == f"all {SAMPLES} samples are done"
    assert desk.taken == SAMPLES + 1


def test_our_own_failure_beside_a_reply_ends_the_run_and_breaks_off_the_others(opened: Open, desk: Desk) -> None:
    class Broken(RuntimeError):
        pass

    def breaks(*_: object) -> Any:
        with desk.news:
            desk.news.wait_for(lambda: desk.waiting == 3, 10)
        raise Broken

    desk.together, desk.most_s = 99, 5.0
    context = opened(width=4)
    model, calls = context.model, iter([context.model.complete] * 3)
    context.model = cast(Any, SimpleNamespace(terms=model.terms, complete=lambda *asked: next(calls, breaks)(*asked)))
    with pytest.raises(Broken):
        work(context)
    assert [call.failure for call in events(context, ev.CallFailed)] == [CallFailure.CANCELLED] * 3


def test_each_sample_gets_its_own_recorded_reply_whichever_are_left_without_a_call(tmp_path: Path) -> None:
    replies = [
        ("synthesise", None, f"Approach: a\n```python\nclass ModelNew:\n    'number {number}'\n```\n")
        for number in range(SAMPLES)
    ]
    context = open_context(
        tmp_path, replies, cast(Evaluator, Known()), width=3, strategy="best_of",
        strategy_options={"samples": SAMPLES}, budget=Budget(model_calls=5),
    )  # fmt: skip
    context.strategy = open_strategy("best_of")
    assert work(context).reason == "limit reached: 5 of 5 model calls"
    kernels = context.whole.candidates.values()
    written = {kernel.created.depth: context.source(kernel).split("number ")[1][0] for kernel in kernels}
    assert len(written) == 5
    assert written == {index: f"{index}" for index in written}


@pytest.mark.parametrize(
    ("strategy", "options"),
    [
        ("evolve", {"founders": 3, "population": 2, "survivors": 1}),
        ("reward_loop", {"refines": False}),
        *IN_PART.items(),
    ],
)
def test_every_strategy_with_independent_step_indexes_works_on_several(
    opened: Open, desk: Desk, strategy: str, options: dict[str, Any]
) -> None:
    desk.together = 3
    context = opened(strategy=strategy, strategy_options=options, budget=Budget(depths=SAMPLES), knowledge="seed")
    assert work(context).state is RunState.FINISHED
    assert desk.at_once == 3
    assert sorted(done.depth for done in context.whole.concluded) == list(range(SAMPLES + 1))
    again = Record.of(context.record.settings, context.journal.entries)
    assert (again.best_id, again.usage) == (context.whole.best_id, context.whole.usage)
    assert again.events == context.record.events


@pytest.mark.parametrize("strategy", IN_PART)
def test_a_method_that_builds_on_what_was_goes_on_after_any_cut_and_buys_and_judges_nothing_twice(
    opened: Open, desk: Desk, tmp_path: Path, strategy: str
) -> None:
    desk.together, desk.most_s = 3, 0.05
    fields = {"strategy": strategy, "strategy_options": IN_PART[strategy], "budget": Budget(), "knowledge": "on"}
    work(opened("whole", **fields))
    lines = (tmp_path / "whole/run/journal.jsonl").read_text().splitlines(keepends=True)
    for kept in range(5, len(lines), 67):
        name = f"cut-{kept}"
        shutil.copytree(tmp_path / "whole", tmp_path / name)
        (tmp_path / name / "run/journal.jsonl").write_text("".join(lines[:kept]))
        again = opened(name, **fields)
        lost = len(again.record.open_calls)
        assert work(again).state is RunState.FINISHED
        assert len(again.whole.concluded) == SAMPLES + 1, kept
        assert [call.failure for call in events(again, ev.CallFailed)] == [CallFailure.LOST] * lost
        for kind in (ev.ModelCalled, ev.Compiled, ev.Checked, ev.Timed, ev.Consulted, ev.Taught):
            done = [(e.step, getattr(e, "call", 0)) for e in events(again, kind)]
            assert len(done) == len(set(done)), (kept, kind)


@pytest.mark.parametrize("limit", [{"model_calls": 9}, {"tokens": 14000}, {"cost_usd": 0.06}])
@pytest.mark.parametrize("strategy", IN_PART)
def test_limits_hold_where_a_method_builds_on_what_was(
    opened: Open, desk: Desk, strategy: str, limit: dict[str, Any]
) -> None:
    desk.together, desk.most_s = 3, 0.05
    options = IN_PART[strategy]
    context = opened(strategy=strategy, strategy_options=options, budget=Budget(**limit), knowledge="on")
    assert work(context).reason.startswith("limit reached")
    usage = context.whole.usage
    assert desk.taken == usage.model_calls <= limit.get("model_calls", 99)
    assert usage.tokens <= limit.get("tokens", 10**6) + 1500
    assert (usage.cost_usd or 0) <= limit.get("cost_usd", 9.0) + 0.006
    assert not context.whole.open_calls


@pytest.mark.parametrize("strategy", IN_PART)
def test_a_method_that_builds_on_what_was_is_paused_and_stopped_with_every_reply_and_goes_on_with_each(
    opened: Open, desk: Desk, strategy: str
) -> None:
    desk.together, desk.most_s = 99, 0.2
    fields = {"strategy": strategy, "strategy_options": IN_PART[strategy], "budget": Budget(), "knowledge": "on"}
    context = opened(**fields)
    todo = [CommandKind.PAUSE, CommandKind.STOP]

    def person(entry: Entry) -> None:
        if isinstance(entry.event, ev.CallSent) and len(context.whole.open_calls) == 3 and todo:
            commands.send(context.folder.commands_file, todo.pop(0))
        elif isinstance(entry.event, ev.StateChanged) and entry.event.state is RunState.PAUSED:
            commands.send(context.folder.commands_file, CommandKind.RESUME)

    context.listeners.append(person)
    assert work(context).state is RunState.STOPPED
    assert [call.failure for call in events(context, ev.CallFailed)][:3] == [CallFailure.CANCELLED] * 3
    assert len(context.whole.open_steps) == 3
    desk.together = 3
    again = opened(**fields)
    again.emit(ev.EngineStarted(1, True))
    assert work(again).state is RunState.FINISHED
    assert len(again.whole.concluded) == SAMPLES + 1
    assert trajectories(again).items() >= trajectories(context).items()


@pytest.mark.parametrize("strategy", IN_PART)
def test_every_call_of_a_method_that_builds_on_what_was_is_approved_and_a_rejected_one_ends_its_step_index(
    opened: Open, desk: Desk, strategy: str
) -> None:
    desk.together, desk.most_s = 3, 0.02
    context = opened(
        strategy=strategy, strategy_options=IN_PART[strategy], budget=Budget(), knowledge="on",
        ask_first=AskFirst.parse("calls"),
    )  # fmt: skip
    asked = list[int]()

    def person(seconds: float) -> None:
        waiting = context.whole.human.asked
        if waiting is not None and context.whole.human.is_approved is None and waiting.step not in asked:
            asked.append(waiting.step)
            is_first = waiting.kind == "optimise" and not rejected
            rejected.extend([waiting.depth] * is_first)
            answer = CommandKind.SKIP if is_first else CommandKind.APPROVE
            commands.send(context.folder.commands_file, answer, str(waiting.step))
        threading.Event().wait(0.01)

    rejected = list[int]()
    inbox = Inbox(context, person)
    context.interrupt, context.interruptible = inbox.interrupt, inbox.interruptible
    assert abreast.run(context, inbox).state is RunState.FINISHED
    assert not events(context, ev.CommandRefused)
    assert set(asked) >= {step for step, _ in context.whole.calls}
    left = next(done for done in context.whole.concluded if done.depth in rejected)
    assert (left.outcome, left.reason) == (DepthOutcome.GIVEN_UP, "optimise skipped by a person")


def test_verbs_that_speak_of_the_one_kernel_at_work_are_refused_with_the_reason(opened: Open, desk: Desk) -> None:
    context = opened()
    for kind, argument in (
        (CommandKind.TAKE_OVER, "next"),
        (CommandKind.RETRY, "tester"),
        (CommandKind.SET_MODEL, "manual"),
    ):
        commands.send(context.folder.commands_file, kind, argument)
    work(context)
    reasons = [refused.reason for refused in events(context, ev.CommandRefused)]
    assert ["several kernels at once" in reason for reason in reasons] == [True] * 3


@pytest.mark.parametrize(
    ("strategy", "options", "said"),
    [
        ("cutegen", {}, "one kernel after the other"),
        ("coder_judge", {}, "one kernel after the other"),
        ("reward_loop", {}, "only with refines=false"),
        ("best_of", {"model": "manual"}, "with the model manual the width is 1"),
    ],
)
def test_a_width_is_refused_where_kernels_build_on_each_other(
    strategy: str, options: dict[str, Any], said: str
) -> None:
    fields = {"model": "tester"} | options
    with pytest.raises(EngineError, match=said):
        new_settings("swish", strategy=strategy, width=2, **fields)
    assert new_settings("swish", strategy="reward_loop", model="tester", width=2, refines=False).width == 2


class Drifting(Known):
    """Kernels of a higher number are faster; beside kernel number 1, when it was timed first, eager took longer."""

    def time(self, task: Task, source: str) -> TimingResult:
        number = self._number("time", source)
        return self._timed(number, 9.0 if number == 1 else 4.0)

    def time_again(self, task: Task, source: str) -> TimingResult:
        return self._timed(self._number("time_again", source), 4.0)

    def _timed(self, number: int, eager_ms: float) -> TimingResult:
        return TimingResult((2.0 / (1 + 0.1 * max(number, 0)),) * 9, (eager_ms,) * 9)


@pytest.mark.parametrize(
    ("strategy", "options"),
    [("best_of", {"samples": SAMPLES}), ("reward_loop", {"refines": False}), *IN_PART.items()],
)
def test_a_run_in_doubt_of_its_best_kernel_times_two_once_more_and_ends_alike_after_any_cut(
    opened: Open, desk: Desk, tmp_path: Path, strategy: str, options: dict[str, Any]
) -> None:
    knowledge = "on" if strategy in IN_PART else "off"
    settings = {"width": 1, "strategy": strategy, "strategy_options": options, "knowledge": knowledge}
    desk.most_s = 0.0
    toolchain = Drifting()
    whole = opened("whole", toolchain=toolchain, **settings)
    ended = work(whole)
    assert (ended.state, ended.best_id) == (RunState.FINISHED, whole.whole.best_id)
    again = [source for what, source in toolchain.asked if what == "time_again"]
    assert len(again) == 2
    assert "number 1'" in again[0]
    assert whole.source(whole.whole.candidates[ended.best_id or ""]) == again[1]
    lines = (tmp_path / "whole/run/journal.jsonl").read_text().splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines) if "timed again beside" in line)
    for kept in range(first - 1, len(lines)):
        shutil.copytree(tmp_path / "whole", tmp_path / f"cut-{kept}")
        (tmp_path / f"cut-{kept}/run/journal.jsonl").write_text("".join(lines[:kept]))
        resumed = opened(f"cut-{kept}", toolchain=Drifting(), **settings)
        work(resumed)
        assert [(k.timings, k.candidate_id) for k in resumed.whole.candidates.values()] == [
            (k.timings, k.candidate_id) for k in whole.whole.candidates.values()
        ], kept
        assert resumed.whole.best_id == ended.best_id
