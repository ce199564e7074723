"""Which base a run asks and what it answers; the steps that ask and teach, also broken off; and the prompt."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import EngineError
from engine.forking import fork_settings
from engine.knowledge import consulting
from engine.knowledge.consulting import Need
from engine.run_settings import new_settings
from engine.search import loop, prompting
from engine.search.actions import Conclude, Consult, Teach, label
from engine.search.context import RunContext
from engine.search.methods.cutegen.strategy import CuteGen
from engine.search.steps import guidance
from engine.search.steps.candidates import conclude
from engine.search.steps.knowledge import consult, keep_evidence, lessons, need_of, open_base, teach
from storage.knowledge import exported, files, seed
from storage.knowledge.records import (
    Advised,
    Bottleneck,
    Category,
    Evidence,
    Outcome,
    Prior,
    Revision,
    State,
    Technique,
)
from storage.results.profile_results import Metric, ProfileResult
from storage.run import events as ev
from storage.run.folder import RunFolder
from storage.run.journal import Journal
from storage.run.settings import DepthOutcome
from tests.engine.contexts import add_candidate, open_context

SATURATED = "memory_bandwidth_saturated"
TAUGHT = Revision(
    "new", 0.0, "", "fusion helps streams",
    states=(State(SATURATED, Bottleneck.MEMORY, "busy memory"),),
    techniques=(
        Technique("fusion", Category.MEMORY, "Join passes.", "Helps streams.", "Hurts registers."),
        Technique("convolution only", Category.MEMORY, "For convolutions.", classes=("convolution",)),
    ),
    priors=(Prior(SATURATED, "fusion", 1.5, 0.6), Prior(SATURATED, "convolution only", 3.0, 0.9)),
)  # fmt: skip


def a_row(candidate: str, technique: str = "fusion", outcome: Outcome = Outcome.FASTER, gain: float = 1.4) -> Evidence:
    timed = gain if outcome.is_timed else None
    return Evidence("earlier", candidate, technique, outcome, 1.0, SATURATED, gain=timed)


def stream(context: RunContext) -> str:
    """A correct kernel whose profile shows a saturated memory."""
    name = add_candidate(context, speedup=1.0)
    found = {"latency": 0.01, "memory throughput share": 0.9, "working threads": 2.0, "processors available": 2.0}
    metrics = tuple(Metric(one, "1", value) for one, value in found.items())
    context.emit(ev.Profiled(1, name, ProfileResult("h", metrics, "memory", "the summary"), None))
    return name


def opened(tmp_path: Path, knowledge: str = "on") -> RunContext:
    context = open_context(tmp_path, knowledge=knowledge)
    context.knowledge = tmp_path / "knowledge"
    return context


def reopened(context: RunContext, tmp_path: Path) -> RunContext:
    """As another engine finds the run."""
    context.journal.close()
    return opened(tmp_path)


@pytest.mark.parametrize("knowledge", ["off", "on", "seed", "empty"])
def test_a_word_is_a_choice(knowledge: str) -> None:
    assert consulting.check(knowledge) == knowledge


def test_a_path_must_hold_a_base_that_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EngineError, match=r"no knowledge base at .*/missing'.*off, on, seed, empty"):
        consulting.check(str(tmp_path / "missing"))
    with pytest.raises(EngineError, match=r"neither evidence\.jsonl nor revisions\.jsonl"):
        consulting.check(str(tmp_path))
    with pytest.raises(EngineError, match="no knowledge base"):
        consulting.check("")
    files.append_evidence([a_row("c001")], tmp_path)
    monkeypatch.chdir(tmp_path.parent)
    assert consulting.check(tmp_path.name) == str(tmp_path), "as the engine will find it from elsewhere"


def test_a_run_keeps_the_choice_and_a_fork_takes_it_over(tmp_path: Path) -> None:
    assert new_settings("swish", model="manual").knowledge == "off"
    settings = new_settings("swish", model="manual", knowledge="seed")
    assert settings.knowledge == "seed"
    with pytest.raises(EngineError, match="no knowledge base"):
        new_settings("swish", model="manual", knowledge="/no/such/base")
    context = opened(tmp_path, "empty")
    name = add_candidate(context, speedup=1.0)
    assert fork_settings(RunFolder(tmp_path / "run"), name).knowledge == "empty"
    assert fork_settings(RunFolder(tmp_path / "run"), name, knowledge="seed").knowledge == "seed"
    with pytest.raises(EngineError, match="no knowledge base"):
        fork_settings(RunFolder(tmp_path / "run"), name, knowledge="/no/such/base")


def test_each_choice_reads_its_own_base(tmp_path: Path) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    files.append_revision(replace(TAUGHT, revision_id="r1", by="a person"), home)
    files.append_evidence([a_row("c001")], home)
    files.append_evidence([a_row("c001"), a_row("c002")], other)
    lesson, own = replace(TAUGHT, revision_id="r2"), [a_row("c009")]

    def asked(knowledge: str) -> tuple[bool, int, bool]:
        base = consulting.base_of(knowledge, home, [lesson], own)
        assert base is not None
        return "fusion" in base.techniques, len(base.rows), bool(set(base.revisions) & {seed.revision()})

    assert consulting.base_of("off", home, [lesson], own) is None
    assert asked("on") == (True, 1, True), "what the run has learned is written there"
    assert asked("seed") == (True, 1, True)
    assert asked("empty") == (True, 1, False)
    assert asked(str(other)) == (True, 3, True)
    assert asked(f"frozen:{other}") == (False, 2, True)
    assert asked("frozen:seed") == (False, 0, True)
    assert len(files.load(other).rows) == 2, "another base is only read"
    for word in ("on", "off", "empty"):
        with pytest.raises(EngineError, match="cannot be frozen"):
            consulting.check(f"frozen:{word}")
    assert consulting.check(f"frozen:{other}") == f"frozen:{other}"


def test_techniques_that_apply_are_found_that_which_promises_most_first() -> None:
    more = replace(
        TAUGHT,
        techniques=(
            *TAUGHT.techniques,
            Technique("for Hopper", Category.COMPUTE, "…", architectures=("sm_9",)),
            Technique("in another language", Category.COMPUTE, "…", languages=("triton",)),
            Technique("disabled", Category.COMPUTE, "…", is_disabled=True),
        ),
        priors=(
            *TAUGHT.priors, Prior(SATURATED, "for Hopper", 2.0, 0.9), Prior(SATURATED, "disabled", 9.0, 0.9),
            Prior(SATURATED, "in another language", 9.0, 0.9),
        ),
    )  # fmt: skip
    base = consulting.base_of("empty", None, [replace(more, revision_id="r1")], [])
    assert base is not None

    def names(need: Need, state: str = SATURATED) -> list[str]:
        return [one.technique for one in consulting.advise(base, state, need)]

    assert names(Need("matmul", "cute", "sm_90a")) == ["for Hopper", "fusion"]
    assert names(Need("convolution", "cute", "avx512")) == ["convolution only", "fusion"]
    assert set(names(Need(), "")) == {"for Hopper", "convolution only", "fusion", "in another language"}
    assert names(Need(), "a state that nobody knows") == []


def test_a_technique_under_a_models_own_name_is_found_for_its_class_and_language_and_state() -> None:
    row = replace(a_row("c001", "packed rows"), kernel_class="matmul", language="cute")
    base = consulting.base_of("empty", None, [], [row])
    assert base is not None
    (found,) = consulting.advise(base, SATURATED, Need("matmul", "cute"))
    assert (found.technique, found.category, found.attempts, found.faster) == ("packed rows", "general", 1, 1)
    assert consulting.advise(base, "", Need("matmul", "cute")) == (found,)
    assert consulting.advise(base, SATURATED, Need("reduction", "cute")) == ()
    here = replace(row, device="NVIDIA H200", parent_hash="a", child_hash="b")
    twice = consulting.base_of("empty", None, [], [here, replace(here, run_id="another")])
    assert twice is not None
    assert consulting.advise(twice, SATURATED, Need("matmul", "cute")) == (found,), "one change, told by two runs"
    assert consulting.advise(base, SATURATED, Need("matmul", "triton")) == ()
    assert consulting.advise(base, "cache_inefficient", Need("matmul", "cute")) == ()
    many = [replace(row, technique=f"word {n}", candidate_id=f"c{n}") for n in range(40)]
    again = [replace(row, technique="word 39", candidate_id="again")]
    base = consulting.base_of("empty", None, [], [*many, *again])
    assert base is not None
    shown = [one.technique for one in consulting.advise(base, SATURATED, Need("matmul", "cute"))]
    assert len(shown) == consulting.MOST_UNNAMED
    assert shown[0] == "word 39", "what was tried most often is there"


def test_an_exported_file_is_a_base(tmp_path: Path) -> None:
    files.append_evidence([a_row("c001"), a_row("c002")], tmp_path / "there")
    exported.write(tmp_path / "base.jsonl", files.load(tmp_path / "there"), "another GPU")
    path = consulting.check(str(tmp_path / "base.jsonl"))
    base = consulting.base_of(path, None, [], [a_row("c003")])
    assert base is not None
    assert len(base.rows) == 3
    (tmp_path / "no_base.jsonl").write_text("{}\n")
    with pytest.raises(EngineError, match="cannot be read"):
        consulting.check(str(tmp_path / "no_base.jsonl"))


def test_evidence_of_failures_makes_a_technique_negative(tmp_path: Path) -> None:
    files.append_revision(replace(TAUGHT, revision_id="r1"), tmp_path)
    need = Need("matmul")
    (before,) = consulting.advise(files.load(tmp_path, seeded=False), SATURATED, need)
    assert (before.is_negative, before.attempts, before.inherited_from) == (False, 0, "")
    outcomes = (Outcome.SLOWER, Outcome.INCORRECT, Outcome.PATCH_FAILED)
    files.append_evidence([a_row(f"c{n}", outcome=one, gain=0.8) for n, one in enumerate(outcomes)], tmp_path)
    (after,) = consulting.advise(files.load(tmp_path, seeded=False), SATURATED, need)
    assert (after.is_negative, after.attempts, after.faster, after.slower, after.failed) == (True, 3, 0, 1, 2)
    assert after.expected_gain < before.expected_gain
    assert after.confidence < before.confidence


def test_an_answer_is_journaled_and_a_base_that_has_moved_on_does_not_change_it(tmp_path: Path) -> None:
    files.append_revision(replace(TAUGHT, revision_id="r1"), tmp_path / "knowledge")
    context = opened(tmp_path)
    name = stream(context)
    loop.take_step(context, Consult(1, name))
    told = context.record.consulted[1, name]
    assert (told.state, told.bottleneck) == (SATURATED, Bottleneck.MEMORY)
    assert told.state_confidence > 0.9
    assert "fusion" in [one.technique for one in told.found]
    assert "convolution only" not in [one.technique for one in told.found], "the task is a product"
    assert told.states == (), "the rules have spoken"
    last = context.record.events[-1]
    assert isinstance(last, ev.StepFinished)
    assert (last.kind, last.outcome) == ("consult", "answered")
    files.append_evidence([a_row("c001")], tmp_path / "knowledge")
    again = reopened(context, tmp_path)
    assert again.record.consulted[1, name] == told
    loop.take_step(again, Consult(2, name))
    assert again.record.consulted[2, name].mark != told.mark


def test_a_run_killed_within_a_consultation_goes_on_with_what_it_was_told(tmp_path: Path) -> None:
    context = opened(tmp_path)
    name = stream(context)
    number = context.record.steps_finished + 1
    context.emit(ev.StepStarted(number, label(Consult(1, name)), 1, name))
    context.step = number
    consult(context, Consult(1, name))
    told = context.record.consulted[1, name]
    files.append_revision(replace(TAUGHT, revision_id="r1"), tmp_path / "knowledge")
    again = reopened(context, tmp_path)
    step = loop.next_action(again)
    assert step == Consult(1, name)
    loop.take_step(again, step)
    assert [e.event for e in again.journal.entries if isinstance(e.event, ev.Consulted)] == [told]
    assert again.record.in_flight is None


def test_a_state_that_the_method_settled_is_the_one_that_is_looked_up(tmp_path: Path) -> None:
    context = opened(tmp_path, "empty")
    name = stream(context)
    discovered = State("discovered_memory_1", Bottleneck.MEMORY, "…", is_discovered=True, inherits=SATURATED)
    loop.take_step(context, Teach(1, TAUGHT, name))
    loop.take_step(context, Teach(1, Revision("new", 0.0, "", "a state", states=(discovered,)), name))
    loop.take_step(context, Consult(1, name, discovered.name))
    told = context.record.consulted[1, name]
    assert (told.state, told.state_confidence, told.bottleneck) == (discovered.name, 1.0, Bottleneck.MEMORY)
    (fusion,) = told.found
    assert fusion.inherited_from == SATURATED
    assert fusion.expected_gain == pytest.approx(1.4)


def test_without_a_profile_nothing_is_known_of_the_state_and_the_known_states_are_told(tmp_path: Path) -> None:
    context = opened(tmp_path, "seed")
    name = add_candidate(context, speedup=1.0)
    loop.take_step(context, Consult(1, name))
    told = context.record.consulted[1, name]
    assert (told.state, told.bottleneck, told.state_confidence) == ("", None, 0.0)
    assert "no profile" in told.why
    assert len(told.states) == len(seed.revision().states)


def test_a_run_that_asks_no_base_is_told_of_the_state_alone(tmp_path: Path) -> None:
    context = opened(tmp_path, "off")
    name = stream(context)
    loop.take_step(context, Consult(1, name))
    told = context.record.consulted[1, name]
    assert (told.state, told.found, told.mark) == (SATURATED, (), "")
    assert open_base(context) is None


def test_what_is_taught_is_journaled_with_the_runs_name_and_kept_for_all_runs(tmp_path: Path) -> None:
    context = opened(tmp_path)
    name = stream(context)
    loop.take_step(context, Teach(1, TAUGHT, name))
    (kept,) = files.load(tmp_path / "knowledge", seeded=False).revisions
    (told,) = context.record.taught.values()
    assert (kept.revision_id, kept.by, kept.priors) == (told.revision_id, "story", TAUGHT.priors)
    assert (told.summary, told.depth) == ("fusion helps streams", 1)
    assert kept.at > 0
    assert lessons(context) == [kept]


@pytest.mark.parametrize("knowledge", ["off", "seed", "empty"])
def test_what_a_run_teaches_stays_in_it_unless_it_asks_the_base_of_all_runs(tmp_path: Path, knowledge: str) -> None:
    context = opened(tmp_path, knowledge)
    loop.take_step(context, Teach(0, TAUGHT))
    assert not (tmp_path / "knowledge").exists()
    assert [one.why for one in lessons(context)] == [TAUGHT.why]
    base = open_base(context)
    assert (base is None) is (knowledge == "off")
    assert base is None or "fusion" in base.techniques


def test_a_base_of_its_own_begins_empty_and_holds_what_runs_that_name_it_have_learned(tmp_path: Path) -> None:
    place = tmp_path / "knowledge"
    files.append_evidence([a_row("c001")], place)
    context = opened(tmp_path, consulting.check("own:arm"))
    base = open_base(context)
    assert base is not None
    assert (base.rows, list(base.revisions)) == ([], [])
    loop.take_step(context, Teach(0, TAUGHT))
    parent = add_candidate(context, speedup=1.0)
    name = add_candidate(context, parent=parent, speedup=1.5)
    created = context.record.candidates[name].created
    context.record.events[context.record.events.index(created)] = replace(created, technique="fusion")
    keep_evidence(context)
    assert {row.candidate_id for row in files.load(place).rows} == {"c001", name}, "all runs' base has it too"
    later = consulting.base_of("own:arm", place, [], [])
    other = consulting.base_of("own:another", place, [], [])
    assert later is not None
    assert other is not None
    assert ([row.candidate_id for row in later.rows], "fusion" in later.techniques) == ([name], True)
    assert (list(other.rows), "fusion" in other.techniques) == ([], False)
    assert not files.load(place, seeded=False).revisions
    with pytest.raises(EngineError, match="'own:../x' names no base: after own: use letters"):
        consulting.check("own:../x")


@pytest.mark.parametrize("is_written", [False, True])
def test_a_run_killed_while_it_teaches_teaches_once(tmp_path: Path, is_written: bool) -> None:
    context = opened(tmp_path)
    number = context.record.steps_finished + 1
    context.emit(ev.StepStarted(number, "teach", 0, None))
    context.step = number
    teach(context, Teach(0, TAUGHT))
    place = tmp_path / "knowledge"
    (kept,) = files.load(place, seeded=False).revisions
    if not is_written:
        (place / files.REVISIONS).unlink()
    again = reopened(context, tmp_path)
    loop.take_step(again, Teach(0, replace(TAUGHT, why="the strategy says it in other words now")))
    assert files.load(place, seeded=False).revisions == (kept,)
    assert len(again.record.taught) == 1
    assert again.record.in_flight is None


def test_no_evidence_is_lost_to_a_kill_between_the_conclusion_and_the_row(tmp_path: Path) -> None:
    context = opened(tmp_path)
    parent = add_candidate(context, speedup=1.0)
    name = add_candidate(context, parent=parent, speedup=1.5)
    created = context.record.candidates[name].created
    context.record.events[context.record.events.index(created)] = replace(created, technique="fusion")
    place = tmp_path / "knowledge"
    assert not place.exists()
    keep_evidence(context)
    keep_evidence(context)
    assert [row.candidate_id for row in files.load(place, seeded=False).rows] == [name]


def test_a_text_that_is_lost_costs_an_attempts_name_and_a_lost_lesson_is_told(tmp_path: Path) -> None:
    context = opened(tmp_path, "empty")
    name = add_candidate(context, speedup=1.0)
    context.emit(ev.StepStarted(1, "optimise", 1, name))
    call = ev.ModelCalled(1, 0, "optimise", 1, name, "m", "p", "0" * 64, 9, 9, 0, 0, 0.0, 1.0, "stop")
    for event in (call, ev.StepFinished(1, "optimise", 1.0, "patch_failed")):
        context.emit(event)
    conclude(context, Conclude(1, DepthOutcome.GIVEN_UP, None, None, "nothing"))
    keep_evidence(context)
    assert not (tmp_path / "knowledge").exists()
    context.emit(ev.Taught(2, 1, "r", "a lesson", "0" * 64))
    with pytest.raises(EngineError, match="revision 000000000000 of this run cannot be read"):
        open_base(context)


def advised(name: str, *, is_negative: bool = False, attempts: int = 4) -> Advised:
    return Advised(
        name, Category.MEMORY, "It does this.", "Helps here.", "Hurts there.", 1.25, 0.6, attempts=attempts,
        faster=0 if is_negative else attempts, slower=attempts - 1 if is_negative else 0,
        failed=1 if is_negative else 0, is_negative=is_negative,
    )  # fmt: skip


def test_a_prompt_shows_five_techniques_at_most_and_what_went_wrong_first() -> None:
    found = [advised(f"good {n}") for n in range(6)] + [advised(f"bad {n}", is_negative=True) for n in range(3)]
    shown = [one.technique for one in guidance.chosen(found)]
    assert shown == ["bad 0", "bad 1", "good 0", "good 1", "good 2"]


def test_the_section_of_known_techniques_has_their_counts_and_is_not_there_without_any(tmp_path: Path) -> None:
    context = opened(tmp_path)
    name = stream(context)
    kernel = context.record.candidates[name]
    assert guidance.known(context, kernel, "Technique:") == ""
    found = advised("good"), advised("new", attempts=0), advised("bad", is_negative=True)
    context.emit(ev.Consulted(1, 1, name, SATURATED, Bottleneck.MEMORY, 0.9, found, "mark"))
    text = guidance.known(context, kernel, "Technique:")
    assert "in the state of this one, memory bandwidth saturated" in text
    lines = [line for line in text.splitlines() if line.startswith("- ")]
    assert lines == [
        "- Rather not `bad`: of 4 attempts 0 faster, 3 slower, 1 without a correct kernel. Hurts there.",
        "- `good`: expected 1.25x, 4 of 4 attempts faster. It does this. Helps here. Hurts there.",
        "- `new`: expected 1.25x, not tried yet. It does this. Helps here. Hurts there.",
    ]


@pytest.mark.parametrize("name", ["cutegen/optimise.md", "coder_judge/judge_correct.md"])
def test_a_prompt_without_known_techniques_is_as_if_there_were_no_place_for_them(name: str) -> None:
    template = prompting.text(name)
    values = {slot: f"<{slot}>" for slot in prompting.slots(name)} | {"known": ""}
    without = template.replace("{{ known? }}\n\n", "")
    assert without.count("{{") == template.count("{{") - 1
    with prompting.using({name: without}):
        wanted = prompting.message("user", name, **values)
    assert prompting.message("user", name, **values) == wanted
    filled = prompting.message("user", name, **values | {"known": "- `fusion`"})
    assert ("Known techniques", len("- `fusion`\n\n")) in [(one.name, one.length) for one in filled.sections]


def test_cutegen_profiles_and_asks_before_an_optimisation_where_it_has_a_base(tmp_path: Path) -> None:
    context = opened(tmp_path)
    name = add_candidate(context, speedup=1.0)
    assert label_of(context) == ("profile", name)
    context.emit(ev.ProfileFailed(1, name, "not here"))
    assert label_of(context) == ("consult", name)
    loop.take_step(context, Consult(1, name))
    assert label_of(context) == ("optimise", name)
    off = open_context(tmp_path / "off")
    name = add_candidate(off, speedup=1.0)
    assert label_of(off) == ("optimise", name)


def label_of(context: RunContext) -> tuple[str, str | None]:
    action = CuteGen().next(context.record)
    return label(action), action.about  # type: ignore[arg-type, union-attr]


def test_what_a_technique_must_apply_to_is_told_as_far_as_it_is_known(tmp_path: Path) -> None:
    context = opened(tmp_path)
    assert need_of(context.record) == Need("matmul", "cute", "")
    assert isinstance(context.journal, Journal)
    assert json.loads((tmp_path / "run/run.json").read_text())["knowledge"] == "on"
    conclude(context, Conclude(0, DepthOutcome.GIVEN_UP, None, None, "left"))
