"""README, the guides under docs/ and the maps of packages name what is on disk and what the command line takes."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from engine.cli import arguments
from engine.search.methods.loading import TABLE, options_of

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
TEXTS = [
    README,
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "tasks").rglob("*.md")),
]
FOLDERS = ("benchmarks", "docs", "engine", "pages", "prompts", "storage", "tasks", "tests")
PATH = re.compile(rf"(?<![\w./~-])(?:{'|'.join(FOLDERS)})/[\w./-]*[\w/]")
# A line of a block, or a piece of code in a sentence.
COMMAND = re.compile(r"(?:^|`)(?:\$ )?(?:\.venv/bin/)?python -m ([\w.]+) ?([^\n#`]*)", re.MULTILINE)


def packages() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", "*__init__.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).exists()]


@pytest.mark.parametrize("file", TEXTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_path_it_names_is_on_disk(file: Path) -> None:
    text = file.read_text()
    links = [link for link in re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", text) if not (file.parent / link).exists()]
    assert links == []
    assert [path for path in PATH.findall(text) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("file", TEXTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_command_it_shows_is_taken(file: Path) -> None:
    for module, rest in COMMAND.findall(file.read_text()):
        if module == "engine":
            words = shlex.split(rest.split("   ")[0].replace("…", ""))
            assert not words or arguments.parse(words).verb == words[0]
        else:
            place = ROOT.joinpath(*module.split("."))
            assert module in ("pip", "pytest") or place.with_suffix(".py").exists(), module


def test_the_readme_is_short_and_its_map_too() -> None:
    text = README.read_text()
    assert len(text.splitlines()) < 200
    block = text.split("## Map of the code")[1].split("```")[1].strip().splitlines()
    assert len(block) <= 40
    stack: list[str] = []
    for line in block[: block.index("")]:
        names = line.strip().split("  ")[0].split()
        stack = stack[: (len(line) - len(line.lstrip())) // 2]
        assert [name for name in names if not ROOT.joinpath(*stack, name).exists()] == []
        stack.append(names[0])


@pytest.mark.parametrize("package", packages(), ids=lambda file: str(file.parent.relative_to(ROOT)))
def test_the_map_of_a_package_names_what_is_in_it(package: Path) -> None:
    doc = ast.get_docstring(ast.parse(package.read_text())) or ""
    lines = re.findall(r"^ *((?:[\w.]+(?:\.\w+|/)(?:, |  +| |$))+)", doc, re.MULTILINE)
    names = re.findall(r"[\w.]+(?:\.\w+|/)", "\n".join(lines))
    assert [name for name in names if not (package.parent / name).exists()] == []
    files = {file.name for file in package.parent.glob("*.py")} - {"__init__.py", "__main__.py"}
    assert not names or sorted(files - set(re.findall(r"\w+\.py", doc))) == []


def test_nothing_in_the_tree_names_a_path_of_the_machine_it_was_written_on() -> None:
    pattern = re.compile(r"/(?:work|root|home/\w+|opt/pypi)\S*/")
    texts = (p for p in ROOT.rglob("*") if p.suffix in (".py", ".md", ".toml", ".jsonl", ".js", ".css", ".txt"))
    mine = [p for p in texts if not {".venv", ".git", "static"} & set(p.relative_to(ROOT).parts)]
    found = [
        str(p.relative_to(ROOT)) for p in mine if p != Path(__file__) and pattern.search(p.read_text(errors="replace"))
    ]
    assert found == []


@pytest.mark.parametrize("name", TABLE)
def test_every_method_is_described_with_its_options(name: str) -> None:
    text = (ROOT / "docs" / "methods.md").read_text()
    assert f"## `{name}`" in text
    described = text.partition(f"## `{name}`")[2].partition("\n## ")[0]
    assert [one.name for one in options_of(name) if f"`{one.name}`" not in described] == []
