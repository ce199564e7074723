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
EVALUATOR = (
    "pool", "toolchains", "processes", "profiling", "checks", "languages", "build", "sandbox", "machine"
)  # fmt: skip
SHARED_BELOW = {"engine.errors", "engine.evaluator.toolchain_table"}
ASKS = {"engine.evaluator.tasks", "engine.evaluator.fitting", "engine.evaluator.request"}
LIGHT_ENGINE = {
    "engine.run_options",
    "engine", "engine.supervisor", "engine.evaluator.tasks", "engine.errors", "engine.doctor",
    "engine.suites", "engine.suites.definition", "engine.suites.tables", "engine.suites.formats",
    "engine.suites.exporting", "engine.suites.starting", "engine.networks.examples", "engine.networks.small",
    "engine.networks.starting",
    "engine.search.methods.options", "engine.evaluator.languages", "engine.search.methods.catalogue",
}  # fmt: skip
# What knows no run, as far as those who judge kernels may use it.
BASICS = ("codec", "files", "home", "locks", "untrusted", "device_use", "results")


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


def test_storage_without_its_index_does_not_know_the_index() -> None:
    known = [f"storage/{name}" for name in ("run", "results", "knowledge", "suites", "networks")]
    assert [offences(folder, lambda name: not within(name, "storage.index")) for folder in known] == [[]] * len(known)


def test_the_engine_does_not_know_the_index() -> None:
    assert (
        offences("engine", lambda name: within(name, "engine", "storage") and not within(name, "storage.index")) == []
    )


def test_only_the_command_line_knows_its_own_parts() -> None:
    bad = offences("engine", lambda name: not within(name, "engine.cli"))
    assert [line for line in bad if not line.startswith(("engine/cli/", "engine/__main__.py"))] == []


def test_the_evaluator_knows_no_run_no_method_and_nobody_who_asks_it() -> None:
    basics = [f"storage.{name}" for name in BASICS]
    allowed = ("engine.evaluator", "engine.errors", *basics)
    assert offences("engine/evaluator", lambda name: within(name, *allowed) or name in ("engine", "storage")) == []


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
    "new_run": ("", "widgets"),
    "benchmark": ("", "widgets", "status", "steering", "compare", "new_run"),
    "report": ("", "client", "widgets", "status", "kernel", "compare"),
    "run": ("", "client", "widgets", "status", "steering", "kernel", "report"),
    "overview": ("", "widgets", "status", "steering"),
    "film": ("", "client", "widgets", "status"),
    "models": ("", "widgets", "new_run"),
    "knowledge": ("", "widgets", "status", "steering"),
    "network": ("", "widgets", "status", "steering", "new_run"),
    "system": ("", "widgets", "status"),
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


@pytest.mark.parametrize("folder", EVALUATOR)
def test_a_folder_of_the_evaluator_imports_only_those_after_it(folder: str) -> None:
    """From what is asked down to what the machine offers: none looks up."""
    after = [f"engine.evaluator.{name}" for name in EVALUATOR[EVALUATOR.index(folder) :]]
    knows_tasks = folder in ("pool", "toolchains", "processes")
    shared = SHARED_BELOW | ASKS if knows_tasks else SHARED_BELOW
    assert offences(f"engine/evaluator/{folder}", lambda name: within(name, *after, "storage") or name in shared) == []


def test_models_and_patches_do_not_know_who_judges_and_patches_no_model() -> None:
    judging = [f"engine.evaluator.{name}" for name in EVALUATOR]
    for package, more in (("llm", []), ("patching", ["engine.search.llm"])):
        strangers = (*judging, "engine.search.steps", *more)
        assert offences(f"engine/search/{package}", lambda name, names=strangers: not within(name, *names)) == []


def test_only_the_command_line_chooses_concrete_classes() -> None:
    strategies = "engine.search.methods.cutegen.strategy"
    concrete = (
        "engine.search.llm.endpoint",
        "engine.search.llm.recorded",
        "engine.evaluator.toolchains.cpu",
        strategies,
    )
    choosers = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "engine").rglob("*.py")
        if any(within(name, *concrete) or name == "engine.search.methods.cutegen" for name in imports(path))
        and not {"strategies", "toolchains"} & set(path.parts)
    }
    assert choosers <= {"engine/__main__.py", "engine/doctor.py"}


def test_neither_dashboard_nor_engine_imports_torch_in_its_own_process() -> None:
    code = (
        "import sys, engine.supervisor, engine.evaluator.tasks, engine.__main__;"
        "import storage.index.queries, storage.index.ingest;"
        "from engine.search.methods import catalogue; assert all(one.is_usable for one in catalogue.descriptions());"
        "assert not {'torch', 'streamlit'} & set(sys.modules), sorted(set(sys.modules) & {'torch', 'streamlit'})"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_loop_can_be_read_in_one_sitting() -> None:
    assert len((ROOT / "engine/search/loop.py").read_text().splitlines()) < 200


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
