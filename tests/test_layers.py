"""Imports go down only, and the dashboard stays light."""

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIGHT_ENGINE = {"engine", "engine.supervisor", "engine.tasks", "engine.errors", "engine.doctor"}
SHARED_STORAGE = {
    "storage", "storage.records", "storage.models", "storage.budgets",
    "storage.policy", "storage.proof", "storage.relative", "storage.events",
    "storage.journal", "storage.commands", "storage.damage", "storage.blobs",
    "storage.attendance", "storage.verbs", "storage.choices", "storage.forks",
    "storage.codec", "storage.folder", "storage.liveness", "storage.remeasurements",
    "storage.counters", "storage.kernel_names", "storage.read_only", "storage.exposure",
}  # fmt: skip


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if _is_module(name) else node.module for name in names}
    return found


def _is_module(name: str) -> bool:
    path = ROOT / name.replace(".", "/")
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def offences(folder: str, is_allowed: object) -> list[str]:
    bad = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        for name in sorted(imports(path)):
            if name.split(".")[0] in ("app", "pages", "engine", "storage", "tests") and not is_allowed(name):  # type: ignore[operator]
                bad.append(f"{path.relative_to(ROOT)} imports {name}")
    return bad


def within(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(package + ".") for package in packages)


def test_storage_imports_nothing_of_ours_but_itself() -> None:
    assert offences("storage", lambda name: within(name, "storage")) == []


def test_the_engine_imports_only_the_records_side_of_storage() -> None:
    assert offences("engine", lambda name: within(name, "engine") or name in SHARED_STORAGE) == []


def test_pages_import_storage_and_the_light_part_of_the_engine() -> None:
    assert offences("pages", lambda name: within(name, "pages", "storage") or name in LIGHT_ENGINE) == []


def test_models_toolchains_and_patches_do_not_know_each_other() -> None:
    others = {"llm": ("toolchains", "evaluation", "profiling", "steps"), "patching": ("llm", "toolchains", "steps")}
    others |= dict.fromkeys(("toolchains", "evaluation", "profiling"), ("llm", "steps", "strategies", "patching"))
    for package, strangers in others.items():
        names = [f"engine.{stranger}" for stranger in strangers]
        assert offences(f"engine/{package}", lambda name, names=names: not within(name, *names)) == []


def test_only_the_command_line_chooses_concrete_classes() -> None:
    concrete = ("engine.llm.endpoint", "engine.llm.recorded", "engine.toolchains.cpu", "engine.strategies.cutegen")
    choosers = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "engine").rglob("*.py")
        if any(within(name, *concrete) for name in imports(path))
    }
    assert choosers <= {"engine/__main__.py", "engine/doctor.py"}


def test_neither_dashboard_nor_engine_imports_torch_in_its_own_process() -> None:
    code = (
        "import sys, engine.supervisor, engine.tasks, engine.__main__, storage.queries, storage.ingest;"
        "assert not {'torch', 'streamlit'} & set(sys.modules), sorted(set(sys.modules) & {'torch', 'streamlit'})"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_loop_can_be_read_in_one_sitting() -> None:
    assert len((ROOT / "engine/loop.py").read_text().splitlines()) < 200


def test_each_component_of_the_pages_has_a_name_of_its_own() -> None:
    text = "\n".join(path.read_text() for path in (ROOT / "pages").rglob("*.py"))
    names = re.findall(r'v2\.component\(\s*"(\w+)"', text)
    assert names
    assert sorted(names) == sorted(set(names))
