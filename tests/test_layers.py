"""Imports go down only, and the dashboard stays light."""

import ast
import functools
import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# From the seam that the loop uses down to the machine: each imports only what follows it.
BELOW_THE_LOOP = ("toolchains", "evaluator", "profiling", "evaluation", "languages", "build", "sandbox", "machine")
SHARED_BELOW = {"engine.errors", "engine.tasks", "engine.fitting"}
LIGHT_ENGINE = {
    "engine", "engine.supervisor", "engine.tasks", "engine.errors", "engine.doctor",
    "engine.suites", "engine.suites.definition", "engine.suites.tables", "engine.suites.formats",
    "engine.suites.exporting",
    "engine.strategies.options", "engine.languages", "engine.strategies.catalogue",
}  # fmt: skip
SHARED_STORAGE = {
    "storage", "storage.records", "storage.models", "storage.budgets",
    "storage.evaluation_results", "storage.profile_results", "storage.hardware_limit",
    "storage.policy", "storage.examination", "storage.check_records", "storage.relative", "storage.events",
    "storage.journal", "storage.commands", "storage.damage", "storage.blobs",
    "storage.command_arguments", "storage.verbs", "storage.steering_state", "storage.forks",
    "storage.codec", "storage.folder", "storage.liveness", "storage.remeasurements", "storage.labels", "storage.trash",
    "storage.counters", "storage.kernel_names", "storage.read_only", "storage.exposure", "storage.observed",
    "storage.method_words", "storage.timeline", "storage.device_use", "storage.untrusted",
    "storage.knowledge", "storage.knowledge.records", "storage.knowledge.figures", "storage.knowledge.base",
    "storage.knowledge.files", "storage.knowledge.seed", "storage.knowledge.exported", "storage.knowledge.merging",
    "storage.knowledge.changes", "storage.knowledge.choice", "storage.knowledge.graph",
    "storage.knowledge.failures",
    "storage.suites", "storage.suites.records", "storage.suites.files", "storage.suites.standing",
    "storage.suites.results", "storage.suites.statistics", "storage.suites.summary", "storage.suites.curves",
}  # fmt: skip


@functools.cache
def imports(path: Path) -> frozenset[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if _is_module(name) else node.module for name in names}
    return frozenset(found)


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


# What screens are made of, folder by folder: each imports what is named here, and its own files. "" is `pages/parts`.
SCREENS: dict[str, tuple[str, ...]] = {
    "client": (),
    "": (),
    "widgets": ("client",),
    "status": ("", "client", "widgets"),
    "steering": ("", "client", "widgets", "status"),
    "kernel": ("", "client", "widgets", "status", "steering"),
    "compare": ("", "widgets", "status"),
    "benchmark": ("", "widgets", "status", "compare"),
    "report": ("", "client", "widgets", "status", "kernel", "compare"),
    "run": ("", "client", "widgets", "status", "steering", "kernel", "report"),
    "overview": ("", "widgets", "status", "steering"),
    "models": ("", "widgets"),
    "new_run": ("", "widgets"),
    "knowledge": ("", "widgets", "status", "steering"),
    "system": ("", "widgets"),
    "api": ("", "status"),
}


def folder_of(module: str) -> str:
    """The folder of `pages/parts` that a module lies in, empty for a file beside the folders."""
    name = module.removeprefix("pages.parts").removeprefix(".").partition(".")[0]
    return name if (ROOT / "pages/parts" / name).is_dir() else ""


def modules(folder: str) -> dict[str, set[str]]:
    """What each module under a folder imports of that folder."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        found[name] = {other for other in imports(path) if within(other, folder)}
    return found


def in_circles(left: dict[str, set[str]]) -> list[str]:
    """The modules that import themselves by way of others, and those that cannot be had without them."""
    while free := [name for name, others in left.items() if not others & set(left)]:
        left = {name: others for name, others in left.items() if name not in free}
    return sorted(left)


def test_what_screens_are_made_of_is_imported_one_way_folder_by_folder() -> None:
    assert set(SCREENS) == {"", *(path.parent.name for path in (ROOT / "pages/parts").glob("*/__init__.py"))}
    order = list(SCREENS)
    assert all(order.index(other) < order.index(name) for name, others in SCREENS.items() for other in others)
    bad = [
        f"{name} imports {other}"
        for name, others in modules("pages").items()
        for other in sorted(others)
        if within(name, "pages.parts")
        and not (within(other, "pages.parts") and folder_of(other) in (folder_of(name), *SCREENS[folder_of(name)]))
    ]
    assert bad == []


def test_no_page_holds_sql_or_starts_a_process() -> None:
    bad = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sorted((ROOT / "pages").rglob("*.py"))
        for name in sorted(imports(path))
        if within(name, "duckdb", "sqlite3", "subprocess", "multiprocessing")
    ]
    assert bad == []


def test_screens_do_not_import_each_other() -> None:
    found = modules("pages")
    screens = {name for name in found if name.count(".") == 1 and name != "pages.parts"}
    assert {name: found[name] & screens for name in screens if found[name] & screens} == {}


@pytest.mark.parametrize("folder", ["pages", "engine", "storage"])
def test_no_module_imports_itself_by_way_of_others(folder: str) -> None:
    assert in_circles(modules(folder)) == []


def test_no_two_modules_of_the_pages_have_one_name() -> None:
    names = [path.stem for path in (ROOT / "pages").rglob("*.py") if path.stem != "__init__"]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("folder", BELOW_THE_LOOP)
def test_a_folder_below_the_loop_imports_only_those_after_it(folder: str) -> None:
    """From what the engine asks down to what the machine offers: none looks up, and none knows the loop."""
    after = [f"engine.{name}" for name in BELOW_THE_LOOP[BELOW_THE_LOOP.index(folder) :]]
    shared = (
        SHARED_BELOW if folder in ("toolchains", "evaluator") else SHARED_BELOW - {"engine.tasks", "engine.fitting"}
    )
    if folder == "languages":
        shared = shared | {"engine.toolchain_table"}
    assert offences(f"engine/{folder}", lambda name: within(name, *after, "storage") or name in shared) == []


def test_models_toolchains_and_patches_do_not_know_each_other() -> None:
    others = {"llm": (*BELOW_THE_LOOP, "steps"), "patching": ("llm", "toolchains", "steps")}
    for package, strangers in others.items():
        names = [f"engine.{stranger}" for stranger in strangers]
        assert offences(f"engine/{package}", lambda name, names=names: not within(name, *names)) == []


def test_only_the_command_line_chooses_concrete_classes() -> None:
    strategies = "engine.strategies.cutegen.strategy"
    concrete = ("engine.llm.endpoint", "engine.llm.recorded", "engine.toolchains.cpu", strategies)
    choosers = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "engine").rglob("*.py")
        if any(within(name, *concrete) or name == "engine.strategies.cutegen" for name in imports(path))
        and not {"strategies", "toolchains"} & set(path.parts)
    }
    assert choosers <= {"engine/__main__.py", "engine/doctor.py"}


def test_neither_dashboard_nor_engine_imports_torch_in_its_own_process() -> None:
    code = (
        "import sys, engine.supervisor, engine.tasks, engine.__main__, storage.queries, storage.ingest;"
        "from engine.strategies import catalogue; assert all(one.is_usable for one in catalogue.descriptions());"
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


def test_no_page_has_the_browser_ask_again_by_a_timer_of_streamlit() -> None:
    """It asks also while a click is leading to another page, which then stays blank; `now.watch` waits."""
    text = {path: path.read_text() for path in (ROOT / "pages").rglob("*.py")}
    assert text
    assert not [path for path, source in text.items() if re.search(r"run_every\s*=", source)]


def test_no_folder_of_tests_is_passed_over(request: pytest.FixtureRequest) -> None:
    names = {name for path in (ROOT / "tests").rglob("test_*.py") for name in path.relative_to(ROOT).parts[:-1]}
    assert "build" in names
    passed_over = request.config.getini("norecursedirs")
    assert not [name for name in names if any(fnmatch(name, pattern) for pattern in passed_over)]
