"""What pages and routes ask of the index stays cheap for a run of 20,000 iterations among 1,000 others.

The functions are found by what the pages call, so that a new one is asked too, whatever the schema is by then.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from storage.index import queries
from storage.index.database import SCHEMA, Database, index_file, open_database
from storage.index.memory import Memory
from storage.index.queries import KernelFilter, RunFilter
from storage.knowledge import files
from storage.results.vocabulary import KernelClass
from storage.run.settings import StepKind
from tests.storage import large_index
from tests.storage.large_index import LONG
from tests.test_layers import ROOT

ITERATIONS, OTHERS = 20_000, 1_000
MOST_BYTES, MOST_S = 200 << 20, 2.0

KERNEL = "c15007"
# What is given for a parameter of this name; where there are several, one after the other.
GIVEN: dict[str, list[Any]] = {
    "run_id": [LONG],
    "candidate_id": [KERNEL, "c001"],
    "candidate_ids": [[KERNEL, "c001"]],
    "selected_id": [KERNEL],
    "run_ids": [[LONG, *(f"{large_index.OTHER}-{n % 2}-{n}" for n in range(1, 50))]],
    "kernel_filter": [KernelFilter(), KernelFilter(text="tile")],
    "step": [60_000],
    "after_seq": [0],
    "depths": [list(range(0, 2_000, 40))],
    "limit": [50],
    "eager_ms": [4.0],
    "kind": [StepKind.COMPILE],
    "kernel_class": [KernelClass.MATMUL],
    "toolchain": ["cpu"],
    "model": ["recorded-replies"],
    "since": [0.0],
    "until": [2e9],
    "by": list(queries.GroupBy),
}
# Other values than the default where those are harder to answer.
HARDER: dict[str, dict[str, Any]] = {
    "storage.index.queries.listing.listing": {"chosen": RunFilter(text="soft"), "sort": queries.RunSort.BEST},
    "storage.index.queries.calls.model_calls": {"candidate_id": KERNEL},
    "storage.index.queries.profiles.metric_changes": {"against": "c001"},
    "storage.index.queries.steps.steps": {"after_seq": 300_000},
}


def asked_by_pages() -> list[Callable[..., Any]]:
    """Every function of `storage.index.queries` that a page, a part of one or a route names."""
    names: set[tuple[str, str]] = set()
    for path in (ROOT / "app.py", *sorted((ROOT / "pages").rglob("*.py"))):
        tree = ast.parse(path.read_text())
        known: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                known |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
                names |= {(node.module, one.name) for one in node.names}
        names |= {
            (known[node.value.id], node.attr)
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in known
        }
    modules = {name: importlib.import_module(name) for name, _ in names if name.startswith("storage.index.queries")
               and importlib.util.find_spec(name)}  # fmt: skip
    found = {getattr(modules[module], name, None) for module, name in names if module in modules}
    asked = [one for one in found if inspect.isfunction(one) and "db" in inspect.signature(one).parameters]
    return sorted(asked, key=_name)


def _name(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__name__}"


def calls_of(function: Callable[..., Any], known: dict[str, list[Any]]) -> Iterator[dict[str, Any]]:
    """The arguments of each call: those that have to be given, with each value once."""
    needed = [
        name for name, one in inspect.signature(function).parameters.items()
        if name != "db" and one.default is inspect.Parameter.empty
    ]  # fmt: skip
    plain = {name: known[name][0] for name in needed}
    yield plain
    yield from (plain | {name: value} for name in needed for value in known[name][1:])
    if harder := HARDER.get(_name(function)):
        yield plain | harder


def memory_now(word: str) -> int:
    """Bytes of this process: `VmRSS` now, `VmHWM` at most since `forget_the_most`."""
    found = re.search(rf"{word}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) << 10


def forget_the_most() -> None:
    """From now on VmHWM counts anew."""
    Path("/proc/self/clear_refs").write_text("5")


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    home = tmp_path_factory.mktemp("large")
    (home / "runs").mkdir()
    with open_database(index_file(home)) as db:
        large_index.fill(db, home / "runs", ITERATIONS, OTHERS)
        assert 0.99 * ITERATIONS < queries.count_kernels(db, LONG, KernelFilter()) <= ITERATIONS
        assert queries.finished_steps(db, LONG) > 4 * ITERATIONS
        assert queries.count_runs(db) == OTHERS + 1
        yield db


def test_every_query_of_a_page_stays_within_200_megabytes_and_two_seconds(large: Database) -> None:
    base = files.load(large.path.parent / "knowledge")
    known = GIVEN | {"base": [base], "prompt": [queries.last_prompt(large, LONG)]}
    too_dear = []
    for function in asked_by_pages():
        for arguments in calls_of(function, known):
            large.memory = Memory(SCHEMA)
            forget_the_most()
            before, began = memory_now("VmRSS"), time.process_time()
            function(large, **arguments)
            seconds, grown = time.process_time() - began, memory_now("VmHWM") - before
            if seconds > MOST_S or grown > MOST_BYTES:
                too_dear.append(f"{_name(function)}{arguments}: {seconds:.1f} s, {grown >> 20} MB")
    assert too_dear == []


def test_the_functions_that_pages_call_are_found() -> None:
    names = {_name(one) for one in asked_by_pages()}
    assert {"storage.index.queries.calls.last_prompt", "storage.index.queries.suites.run_results"} <= names
    assert len(names) > 100
