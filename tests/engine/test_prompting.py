from pathlib import Path

import pytest

from engine import prompting
from engine.errors import PromptError
from engine.prompting import PROMPTS
from storage.records import KernelClass

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


@pytest.mark.parametrize("kernel_class", KernelClass)
def test_every_class_has_a_guide_and_an_example(kernel_class: KernelClass) -> None:
    assert prompting.text(f"guides/{kernel_class}.md")
    assert "class ModelNew" in prompting.for_class("examples/cpu", kernel_class, ".py")
