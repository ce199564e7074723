"""The map of the code in README.md, made from the first sentence of each module. Run it to bring the map up to date."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- map: begin -->", "<!-- map: end -->"
MAPPED = ("app.py", "pages", "engine", "storage", "prompts", "tasks", "benchmarks")
FOLDERS = {
    "prompts": "text with named slots, one file per call; guides and examples per kernel class",
    "tasks": "reference modules by class in the KernelBench convention; recordings/ holds recorded replies",
    "benchmarks": "the programs behind the measured figures",
}


def phrase(path: Path) -> str:
    """First sentence of a module's docstring."""
    text = " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").split())
    return re.split(r"(?<=[a-z0-9)`])[.:](?: |$)", text, maxsplit=1)[0].rstrip(".")


def tree() -> str:
    """The map: one line a Python file, one line for folders of texts."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *MAPPED],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = sorted(Path(name) for name in set(listed.stdout.splitlines()) if (ROOT / name).exists())
    lines, seen = list[str](), set[Path]()
    for path in paths:
        if path.parts[0] in FOLDERS:
            if (folder := Path(path.parts[0])) not in seen:
                lines.append(f"{path.parts[0] + '/':32} {FOLDERS[path.parts[0]]}")
            seen.add(folder)
        elif path.suffix == ".py":
            lines += _folders(path, seen)
            if path.name != "__init__.py":
                lines.append(f"{'  ' * (len(path.parts) - 1) + path.name:32} {phrase(ROOT / path)}")
    return "\n".join(line.rstrip() for line in lines)


def _folders(path: Path, seen: set[Path]) -> list[str]:
    lines = []
    for folder in reversed(path.parents):
        if folder != Path() and folder not in seen:
            seen.add(folder)
            package = ROOT / folder / "__init__.py"
            about = phrase(package) if package.exists() else ""
            lines.append(f"{'  ' * (len(folder.parts) - 1) + folder.name + '/':32} {about}".rstrip())
    return lines


def with_map(readme: str) -> str:
    """The README text with its map brought up to date."""
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n```\n{tree()}\n```\n{END}{after}"


if __name__ == "__main__":
    file = ROOT / "README.md"
    file.write_text(with_map(file.read_text()))
