"""README.md says what is on disk."""

import re
from pathlib import Path

from engine.cli import arguments
from tests.readme_tree import ROOT, with_map

README = ROOT / "README.md"


def test_the_map_of_the_code_matches_the_disk() -> None:
    text = README.read_text()
    assert text == with_map(text), "bring the map up to date with: python -m tests.readme_tree"


def test_every_picture_and_file_it_links_to_is_there() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", README.read_text())
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_command_it_shows_parses() -> None:
    shown = re.findall(r"^(?:\$ )?python -m engine ([^\n#]+)", README.read_text(), re.MULTILINE)
    assert shown
    for line in shown:
        words = re.findall(r"\"[^\"]*\"|\S+", line)
        assert arguments.parse([word.strip('"') for word in words]).verb == words[0]


def test_nothing_in_the_tree_names_a_path_of_the_machine_it_was_written_on() -> None:
    pattern = re.compile(r"/(?:work|root|home/\w+|opt/pypi)\S*/")
    texts = (p for p in ROOT.rglob("*") if p.suffix in (".py", ".md", ".toml", ".jsonl", ".js", ".css", ".txt"))
    mine = [p for p in texts if not {".venv", ".git", "static"} & set(p.relative_to(ROOT).parts)]
    found = [
        str(p.relative_to(ROOT)) for p in mine if p != Path(__file__) and pattern.search(p.read_text(errors="replace"))
    ]
    assert found == []
