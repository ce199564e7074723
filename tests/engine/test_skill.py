"""The skill for coding agents: what is written, that nothing is overwritten, and that what it tells works."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from engine.__main__ import main
from engine.cli import arguments
from engine.skill import installing
from storage.results.vocabulary import Verdict
from tests.engine.swish_story import BROKEN, FIRST

LINK = re.compile(r"\]\(([^)#]+)\)")
MODULE = """
import torch

rows, columns = 8, 512


class Model(torch.nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
"""


def test_it_writes_a_folder_once_and_overwrites_no_other_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["skill", "install", str(tmp_path / "skill")]) == 0
    written = {path.relative_to(tmp_path / "skill").as_posix() for path in (tmp_path / "skill").rglob("*.*")}
    assert {"SKILL.md", "AGENTS.md", "scripts/judge.py", "references/verdicts.md"} <= written
    assert f"wrote {tmp_path}/skill/SKILL.md" in capsys.readouterr().out
    assert main(["skill", "install", str(tmp_path / "skill")]) == 0
    assert "already" in capsys.readouterr().out
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/AGENTS.md").write_text("mine")
    assert main(["skill", "install", str(tmp_path / "mine")]) != 0
    assert "AGENTS.md would be overwritten" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["AGENTS.md"]


def test_it_has_what_the_open_format_asks_for_and_is_short() -> None:
    head, _, body = installing.texts()["SKILL.md"].removeprefix("---\n").partition("\n---\n")
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    assert fields["name"] == "tilewright"
    assert 0 < len(fields["description"]) <= 1024
    assert len(body.splitlines()) < 150


@pytest.mark.parametrize("name", sorted(name for name in installing.texts() if name.endswith(".md")))
def test_every_command_it_names_is_taken_and_every_link_leads_somewhere(name: str) -> None:
    texts = installing.texts()
    for verb, words in re.findall(r"(scripts/tilewright|python3 scripts/judge\.py) ([^\n`]*)", texts[name]):
        asked = shlex.split(words.rstrip(",.:;)"))
        if "--help" not in asked:
            arguments.parse(asked if verb == "scripts/tilewright" else ["evaluate", *asked])
    links = [(Path(name).parent / link).as_posix() for link in LINK.findall(texts[name])]
    assert [link for link in links if link not in texts] == []


def test_it_explains_every_verdict() -> None:
    text = installing.texts()["references/verdicts.md"]
    assert [str(verdict) for verdict in Verdict if f"| `{verdict}` |" not in text] == []


def test_its_script_judges_a_right_and_a_wrong_kernel(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "skill"
    installing.install(folder)
    (tmp_path / "module.py").write_text(MODULE)
    said = {}
    for name, text in (("right", FIRST), ("wrong", BROKEN)):
        (tmp_path / f"{name}.py").write_text(text)
        command = [sys.executable, "scripts/judge.py", str(tmp_path / "module.py"), str(tmp_path / f"{name}.py")]
        done = subprocess.run([*command], cwd=folder, capture_output=True, text=True, check=False)
        said[name] = (done.returncode, done.stdout.splitlines())
    code, lines = said["right"]
    assert (code, lines[0]) == (0, "verdict: passed"), lines
    is_timed = any(line.startswith("speed-up: ") for line in lines)
    assert is_timed or any(line.startswith("not timed: ") for line in lines), lines  # a machine that is busy
    assert lines[-1].startswith("next: keep a copy: it is correct" if is_timed else "next: judge it again")
    code, lines = said["wrong"]
    assert (code, lines[0]) == (1, "verdict: compile_error"), lines
    assert lines[-1].startswith("next: mend what the message names")
