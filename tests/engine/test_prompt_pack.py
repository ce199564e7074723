"""Prompt packs: which files may take the place of the shipped ones, and that a run keeps to the texts it began with."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import engine.__main__
from engine.errors import PromptError
from engine.search import prompt_pack, prompting
from engine.search.prompting import PROMPTS
from storage.run.folder import RunFolder
from tests.engine.swish_story import BROKEN
from tests.engine.test_cli import SET

START = ["run", "swish", "--model", "manual", "--until-waiting", "--json", *SET]


def laid_out(folder: Path, **files: str) -> Path:
    """A pack with these texts; `__` in a name stands for a slash."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_a_packs_texts_stand_in_place_of_the_shipped_ones_and_may_leave_slots_out(tmp_path: Path) -> None:
    pack = prompt_pack.read_pack(laid_out(tmp_path, hint="MINE {{ hints }}", guides__cpu__loss="", cutegen__diagnose=(
        "{{ failure }}\n{{ listing }}\n{{ task }}"
    ), cutegen__repair="{{ failure }}{{ diagnosis }}{{ listing }}{{ rules }}{{ hint }}", coder_judge__system_judge=(
        "{{ toolchain }}{{ precision }}"
    )))  # fmt: skip
    told = {slot: f"<{slot}>" for slot in prompting.slots("cutegen/diagnose.md")}
    with prompting.using(pack.files):
        assert prompting.fill("hint.md", hints="x") == "MINE x\n"
        assert prompting.for_class("guides/cpu", "loss", ".md") == ""
        assert prompting.fill("cutegen/diagnose.md", **told) == "<failure>\n<listing>\n<task>\n"
        with pytest.raises(PromptError, match="unused"):
            prompting.fill("rules.md", rules="x", more="y")
    assert prompting.fill("hint.md", hints="x") != "MINE x\n"
    assert "<change>" in prompting.fill("cutegen/diagnose.md", **told)


def test_the_same_prompts_have_the_same_hash_wherever_they_lie(tmp_path: Path) -> None:
    shutil.copytree(PROMPTS, tmp_path / "whole")
    shipped = prompt_pack.shipped()
    assert prompt_pack.read_pack(tmp_path / "whole").hash == shipped.hash == shipped.shipped
    other = prompt_pack.read_pack(laid_out(tmp_path / "other", debugging="Look closer."))
    assert other.hash != shipped.hash
    assert other.shipped == shipped.hash


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "hint",
            "{{ hints }} {{ tricks }}",
            "hint.md: nothing fills the slot {{ tricks }}; the slots of this file are",
        ),
        ("patch_format", "{{ task }}", "patch_format.md: nothing fills the slot {{ task }}; this file has no slots"),
        ("synthesise", "Write it.", "synthesise.md: the slot {{ task }} is missing"),
        ("cutegen__optimise", "{{ task }}", "cutegen/optimise.md: the slot {{ listing }} is missing"),
        ("cutegen__diagnose", "{{ task }}{{ listing }}", "cutegen/diagnose.md: the slot {{ failure }} is missing"),
        (
            "cutgen__optimise",
            "",
            "cutgen/optimise.md: Tilewright has no prompt file of this name; do you mean cutegen/",
        ),
        ("guides__norm", "", "guides/norm.md: Tilewright has no prompt file of this name"),
    ],
)
def test_a_pack_that_cannot_be_used_is_refused_before_a_run_is_made(
    home: Path, tmp_path: Path, name: str, text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pack = laid_out(tmp_path / "pack", **{name: text})
    assert engine.__main__.main([*START, "--prompts", str(pack)]) == 2
    assert said in capsys.readouterr().err
    assert not (home / "runs").exists()


def test_a_folder_that_is_no_pack_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PromptError, match="no prompt files in"):
        prompt_pack.read_pack(tmp_path)
    with pytest.raises(PromptError, match="there is no folder"):
        prompt_pack.read_pack(tmp_path / "none")
    (tmp_path / "hint.md").write_bytes(b"\xff")
    with pytest.raises(PromptError, match=r"hint\.md cannot be read"):
        prompt_pack.read_pack(tmp_path)


def test_what_is_no_file_is_told_and_not_left_out(tmp_path: Path) -> None:
    (tmp_path / "reask_reask.md").symlink_to("/dev/zero")
    with pytest.raises(PromptError, match=r"reask_reask\.md is a device, not a file"):
        prompt_pack.read_pack(tmp_path)


def test_braces_in_an_example_are_no_slots(tmp_path: Path) -> None:
    example = next(path.relative_to(PROMPTS) for path in sorted((PROMPTS / "examples").rglob("*.py")))
    (tmp_path / example).parent.mkdir(parents=True)
    (tmp_path / example).write_text("int a[1][1] = {{ 0 }};")
    with prompting.using(prompt_pack.read_pack(tmp_path).files):
        assert "{{ 0 }}" in prompting.text(str(example))


def test_a_run_keeps_to_the_pack_it_began_with_and_says_what_became_of_it(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask = "Find the fault.\n{{ failure }}\n{{ listing }}\n{{ task }}\nOURS"
    pack = laid_out(tmp_path / "terse", system="Be terse.\n{{ toolchain }}", cutegen__diagnose=ask)
    assert engine.__main__.main([*START, "--prompts", str(pack)]) == 0
    (one,) = json.loads(capsys.readouterr().out)
    assert one["prompt"]["messages"][0]["text"].startswith("Be terse.")
    folder = RunFolder(home / "runs" / one["run"])
    kept = folder.read_settings().prompts
    assert (kept.name, set(kept.files)) == ("terse", {"system.md", "cutegen/diagnose.md"})
    assert kept.hash == prompt_pack.read_pack(pack).hash
    assert engine.__main__.main(["show", one["run"]]) == 0
    assert f"prompts: terse, {kept.hash[:12]} (2 files in place of the shipped ones" in capsys.readouterr().out

    laid_out(pack, cutegen__diagnose=ask.replace("OURS", "THEIRS"))
    (home / "broken.py").write_text(BROKEN)
    assert engine.__main__.main(["answer", one["run"], str(home / "broken.py")]) == 0
    capsys.readouterr()
    assert engine.__main__.main(["advance", one["run"], "--json"]) == 0
    (after,) = json.loads(capsys.readouterr().out)
    assert after["prompt"]["messages"][-1]["text"].endswith("OURS\n")
    told = f"the prompt pack {pack} has changed since the run began: the run keeps the texts that it began with"
    assert after["notes"] == [told]
    assert f"note: {told}" in folder.log_file.read_text()

    shutil.rmtree(pack)
    assert "cannot be read any longer" in next(prompt_pack.changes(kept))
    (newer,) = prompt_pack.changes(replace(prompt_pack.shipped(), shipped="of before"))
    assert newer.endswith("it uses those of today")
