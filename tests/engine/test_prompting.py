from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import PromptError
from engine.evaluator import tasks
from engine.evaluator.toolchains.cpu import CpuToolchain
from engine.search import prompting
from engine.search.actions import Ask
from engine.search.prompting import PROMPTS
from engine.search.steps.briefing import allowed, contract, fixed_slots
from storage.results.policy import PRECISIONS, Policy
from storage.results.profile_results import DISTURBED, ProfileResult
from storage.results.vocabulary import KernelClass
from storage.run import events as ev
from storage.run.settings import Switch
from tests.engine.contexts import add_candidate, open_context
from tests.engine.story import Step, resolved

FILES = sorted(path.relative_to(PROMPTS) for path in PROMPTS.rglob("*.md"))


@pytest.mark.parametrize("name", FILES, ids=str)
def test_every_prompt_renders_with_exactly_its_slots(name: Path) -> None:
    values = {slot: f"<{slot}>" for slot in prompting.slots(str(name))}
    rendered = prompting.fill(str(name), **values)
    assert "{{" not in rendered
    assert all(value in rendered for value in values.values())


def test_a_missing_or_unused_slot_is_an_error() -> None:
    with pytest.raises(PromptError, match="missing \\['hints'\\]"):
        prompting.fill("hint.md")
    with pytest.raises(PromptError, match="unused \\['other'\\]"):
        prompting.fill("hint.md", hints="x", other="y")


def test_braces_in_a_value_are_left_alone() -> None:
    assert "{{ listing }}" in prompting.fill("hint.md", hints="{{ listing }}")


@pytest.mark.parametrize("toolchain", ["cpu", "cuda"])
@pytest.mark.parametrize("kernel_class", KernelClass)
def test_every_class_has_a_guide_that_puts_structure_before_tuning(kernel_class: KernelClass, toolchain: str) -> None:
    guide = " ".join(prompting.text(f"guides/{toolchain}/{kernel_class}.md").split())
    assert -1 < guide.find("Structure before tuning") < guide.find(" 1. ") < guide.find(" Then tune")


@pytest.mark.parametrize("toolchain", ["cpu", "cuda"])
def test_the_system_text_carries_the_notes_of_its_toolchain(toolchain: str) -> None:
    told = fixed_slots(toolchain, tasks.find("softmax").task(toolchain), None)
    notes = prompting.in_language(f"toolchains/{toolchain}.md", "cute")
    assert told["toolchain"] == notes
    is_gpu = "cuda_sources" in notes
    assert is_gpu == (toolchain == "cuda") == ("L2 cache is overwritten" in told["contract"])
    for example in (PROMPTS / "examples" / toolchain).glob("*.py"):
        assert ("cuda_sources=" in example.read_text()) == is_gpu


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    ("operators", "said"),
    [((), "No `torch` operator"), (("conv2d", "mm"), "with PyTorch: `conv2d`, `mm`."), (("*",), "may do any part")],
)
def test_the_system_text_says_what_pytorch_may_do_and_how_exact_a_kernel_must_be(
    operators: tuple[str, ...], said: str, precision: str
) -> None:
    policy = Policy(library_operators=operators, precision=precision)
    rendered = contract("cpu", replace(tasks.find("softmax").task("cpu"), policy=policy))
    assert said in rendered
    assert ("round their operands to TF32" in rendered) == (precision == "tf32")


def test_a_run_of_before_with_another_precision_class_is_told_what_it_is_judged_by() -> None:
    assert allowed(Policy(precision="fp16")) == allowed(Policy(precision="fp32"))


def test_a_profile_goes_into_the_prompt_unless_it_was_disturbed(tmp_path: Path) -> None:
    context = open_context(tmp_path)
    name = add_candidate(context, speedup=1.0)
    context.record.steering = replace(context.record.steering, expose=Switch.ON)
    context.toolchain = CpuToolchain()
    quiet = ProfileResult("h", (), "memory", "Bound: memory.")
    disturbed = replace(quiet, evidence={DISTURBED: "the profiled call took 24.6 ms, the timed one 15 ms"})
    shown = []
    for profile in (quiet, disturbed):
        context.emit(ev.Profiled(1, name, profile, None))
        ask = resolved(context, Step("optimise", 1, name))
        assert isinstance(ask, Ask)
        shown.append((ask.shows_profile, "Bound: memory." in ask.prompt(context, ask)[1].text))
    assert shown == [(True, True), (False, False)]
