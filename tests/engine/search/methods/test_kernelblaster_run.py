"""A whole run of KernelBlaster with the real compiler, evaluator and knowledge base; only the replies are given."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from engine.evaluator import tasks
from engine.evaluator.request import Evaluator
from engine.search import loop
from engine.search.context import RunContext
from engine.search.human.inbox import Inbox
from engine.search.llm import Completion, Message, OnText, Purpose
from engine.search.methods.kernelblaster.strategy import KernelBlaster
from storage.knowledge import files
from storage.results.vocabulary import KernelClass, Verdict
from storage.run import events as ev
from storage.run import journal
from storage.run.blobs import text_hash
from storage.run.settings import Budget, DepthOutcome, RunState, Switch
from tests.engine.contexts import open_context
from tests.engine.real_toolchain import toolchain
from tests.engine.swish_story import FIRST, SECOND, THIRD, WRONG, edits

__all__ = ["toolchain"]

SIZES = {"batch_size": 4, "dim": 1024}
NAMES = {"inlining": 0.9, "single precision": 0.8, "shorter loops": 0.85}


def new(name: str) -> dict[str, object]:
    """A technique that a plan proposes; it promises more than all that the base knows, so it is drawn from."""
    words = {"category": "compute", "about": "does it", "helps": "here", "hurts": "there"}
    return {"technique": name, "predicted_gain": 4.0, "relevance": NAMES[name]} | words


class Answers:
    """A model that answers by role and by the kernel it is asked about; keeps its prompts by role."""

    name = "answers"

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def terms(self, purpose: Purpose) -> None:
        """Free, and without limits."""

    def complete(self, messages: list[Message], purpose: Purpose, on_text: OnText) -> Completion:
        """The reply."""
        self.asked.append((purpose.role, messages[-1].text))
        return Completion(self._reply(purpose, messages[-1].text), self.name, "stop", 0.1, 100, 50, cost_usd=0.0)

    def _reply(self, purpose: Purpose, prompt: str) -> str:
        times = sum(role == purpose.role for role, _ in self.asked)
        match purpose.role:
            case "synthesise":
                return f"Kernel class: activation\nApproach: one pass\n```python\n{FIRST}```\n"
            case "classify":
                return told({"state": first_state(prompt)[0], "confidence": 0.4, "why": "no counters here"})
            case "plan":
                offered = [name for name in NAMES if f"- {name} (" in prompt]
                ratings = {name: NAMES[name] for name in offered} | dict.fromkeys(listed(prompt), 0.0)
                added = [new(name) for name in NAMES if name not in offered]
                return told({"reading": "it waits", "relevance": ratings, "new": added})
            case "optimise":
                old, made = {
                    text_hash(FIRST): (FIRST, WRONG if times == 1 else SECOND),
                    text_hash(SECOND): (SECOND, THIRD),
                }[purpose.source_hash or ""]
                return f"Optimisation: as told\n{edits(old, made)}"
            case "repair":
                return "Fix: the whole range\n" + edits(WRONG, SECOND)
            case "judge":
                claims = dict.fromkeys(("work_dropped", "library_called", "constant_folded"), False)
                return told(claims | {"evidence": "the loop computes each element"})
            case "analyse":
                return told({"assumption": "that it waits", "cause": "it is tiny", "lesson": "expect less"})
            case _:
                if times == 1:
                    return told({"edits": [{"edit": "prediction", "state": "magic", "technique": "inlining"}]})
                return told({"edits": [edit_of(prompt_of(self.asked, "revise"))]})


def prompt_of(asked: list[tuple[str, str]], role: str) -> str:
    return next(text for name, text in asked if name == role)


def edit_of(prompt: str) -> dict[str, object]:
    """An edit of the first attempt that the prompt tells."""
    lines = prompt.split("\n")
    at = next(n for n, line in enumerate(lines) if "(trajectory 1, step 1)" in line)
    state, name = lines[at - 1].partition(":")[0], lines[at].removeprefix("- ").partition(" (")[0]
    change = {"edit": "prediction", "state": state, "technique": name, "gain": 1.01, "confidence": 0.2}
    return change | {"why": "kernel 3 was no faster"}


def listed(prompt: str) -> list[str]:
    """The techniques that a plan is asked to rate."""
    lines = prompt.partition("What is known for this state")[2].partition("\n\n")[0].split("\n")
    return [
        line[2:].partition(" (")[0] for line in lines if line.startswith("- ") and " (" in line and "Expected" in line
    ]


def first_state(prompt: str) -> tuple[str, str]:
    """The first state that the model may choose, and its bottleneck."""
    line = prompt.partition("how it is recognised:\n- ")[2].partition("\n")[0]
    return line.partition(" (")[0], line.partition(" (")[2].partition(")")[0]


def told(value: object) -> str:
    return f"So:\n```json\n{json.dumps(value)}\n```\n"


def context_at(folder: Path, toolchain: Evaluator, model: Answers, **options: object) -> RunContext:
    context = open_context(
        folder, (), toolchain, task_name="swish", kernel_class=KernelClass.ACTIVATION, strategy="kernelblaster",
        collect=Switch.OFF, budget=Budget(depths=20), knowledge="on",
        strategy_options={"trajectories": 2, "steps": 2} | options,
    )  # fmt: skip
    context.task = tasks.find("swish").task("cpu", SIZES)
    context.strategy, context.model, context.knowledge = KernelBlaster(), model, folder / "knowledge"
    return context


def work(context: RunContext) -> ev.RunEnded:
    inbox = Inbox(context)
    context.interrupt = inbox.interrupt
    return loop.run(context, inbox)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, toolchain: Evaluator) -> tuple[Path, Answers]:
    """The folder of an undisturbed run, and what was asked in it."""
    folder, model = tmp_path_factory.mktemp("finished"), Answers()
    ended = work(context_at(folder, toolchain, model))
    assert ended.state is RunState.FINISHED
    return folder, model


def test_two_trajectories_start_at_the_first_kernel_and_every_attempt_is_evidence(
    finished: tuple[Path, Answers], toolchain: Evaluator
) -> None:
    folder, _ = finished
    record = context_at(folder, toolchain, Answers()).record
    kernels = list(record.candidates.values())
    assert [one.created.trajectory for one in kernels] == [0, 1, 1, 1, 2, 2]
    assert [one.verdict for one in kernels].count(Verdict.INCORRECT) == 1
    assert [one.outcome for one in record.concluded] == [DepthOutcome.ACCEPTED] * 5
    first = kernels[0].candidate_id
    assert [done.base_id for done in record.concluded] == [None, first, "c003", first, "c005"]
    assert record.ended is not None
    assert record.ended.reason == "all 2 trajectories are done"
    rows = files.load(folder / "knowledge").rows
    assert [row.technique for row in rows] == [kernels[n].created.technique for n in (1, 3, 4, 5)]
    assert all(row.state and row.predicted_gain and row.gain for row in rows)
    assert all(done.reward is not None and "reward" in done.reason for done in record.concluded[1:])


def test_what_is_new_is_taught_and_the_round_ends_with_an_edit_that_a_first_refusal_mended(
    finished: tuple[Path, Answers], toolchain: Evaluator
) -> None:
    folder, model = finished
    record = context_at(folder, toolchain, Answers()).record
    base = files.load(folder / "knowledge")
    drawn = {one.created.technique for one in record.candidates.values()} - {""}
    assert drawn <= set(base.techniques)
    assert drawn <= set(NAMES)
    assert len({row.state for row in base.rows}) < len(base.rows), "a kernel keeps its state"
    discovered = [one.name for one in base.states.values() if one.is_discovered]
    nearest, bottleneck = first_state(prompt_of(model.asked, "classify"))
    assert discovered[0] == f"discovered_{bottleneck}_1"
    assert base.states[discovered[0]].inherits == nearest
    refused, kept = [one for one in record.reviews.values() if one.label == "revise"]
    assert '"state" must be one of' in refused.problem
    assert kept.problem == ""
    assert "kernel 3 was no faster" in base.revisions[-1].why
    (prior,) = base.revisions[-1].priors
    assert (prior.gain, prior.confidence) == (1.01, 0.2)
    figures = base.figures(prior.technique, prior.state)
    assert figures.mean_gain is not None
    measured = figures.mean_gain**figures.attempts  # whatever it was: other work on this machine moves it
    assert figures.expected_gain == pytest.approx((measured * 1.01**2) ** (1 / (figures.attempts + 2)), rel=1e-3)


def test_each_prompt_has_what_its_answer_rests_on(finished: tuple[Path, Answers]) -> None:
    _, model = finished
    roles = [role for role, _ in model.asked]
    assert roles.count("judge") == 5
    assert roles[-3:] == ["analyse", "revise", "revise"]
    written = [text for role, text in model.asked if role == "optimise"]
    assert "The technique:\n" in written[0]
    assert "Expected 4x, confidence 0.5; not tried in this state yet." in written[0]
    assert "State of this kernel: discovered_" in written[0]
    analysed = prompt_of(model.asked, "analyse")
    assert "predicted 4x, measured" in analysed
    revised = prompt_of(model.asked, "revise")
    assert '"cause":"it is tiny"' in revised


def events_of(folder: Path) -> list[ev.Event]:
    return [entry.event for entry in journal.read(folder / "run/journal.jsonl")]


def copy_knowledge(folder: Path, there: Path) -> None:
    """What a run had taught and shown by the time that its journal there ends."""
    done, base = events_of(there), files.load(folder / "knowledge", seeded=False)
    taught = {event.revision_id for event in done if isinstance(event, ev.Taught)}
    ended = {event.candidate_id for event in done if isinstance(event, ev.DepthFinished)}
    for revision in base.revisions:
        if revision.revision_id in taught:
            files.append_revision(revision, there / "knowledge")
    made = {event.candidate_id: event for event in done if isinstance(event, ev.CandidateCreated)}
    first = {made[name].parent_id if made[name].repair else name for name in ended if name}
    files.append_evidence([row for row in base.rows if row.candidate_id in first], there / "knowledge")


@pytest.mark.parametrize("share", [0.2, 0.45, 0.7, 0.9])
def test_a_run_that_was_killed_goes_on_with_the_same_draws(
    finished: tuple[Path, Answers], toolchain: Evaluator, tmp_path: Path, share: float
) -> None:
    folder, _ = finished
    shutil.copytree(folder / "run", tmp_path / "run")
    lines = (tmp_path / "run/journal.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "run/journal.jsonl").write_bytes(b"".join(lines[: int(share * len(lines))]))
    copy_knowledge(folder, tmp_path)
    model = Answers()
    model.asked = [(event.role, "") for event in events_of(tmp_path) if isinstance(event, ev.ModelCalled)]
    assert work(context_at(tmp_path, toolchain, model)).state is RunState.FINISHED

    def drawn(events: list[ev.Event]) -> list[tuple[str, int, str]]:
        made = (event for event in events if isinstance(event, ev.CandidateCreated))
        return [(one.source_blob, one.trajectory, one.technique) for one in made]

    assert drawn(events_of(tmp_path)) == drawn(events_of(folder))
