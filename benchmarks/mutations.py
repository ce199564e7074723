"""Break each check of the evaluator on purpose, in a copy of the tree, and see that a test notices.

python -m benchmarks.mutations            all of them
python -m benchmarks.mutations comparison only those whose file name holds a word

Prints which test failed for each. Exits 1 when a mutation survives, or no longer applies to the code.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import mutations_of_guards, mutations_of_results
from benchmarks.mutation import Mutation

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("engine", "storage", "tests", "tasks", "prompts", "pyproject.toml")
LIMIT_S = 300
MUTATIONS = [*mutations_of_results.MUTATIONS, *mutations_of_guards.MUTATIONS]


def main() -> None:
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    chosen = [mutation for mutation in MUTATIONS if word in mutation.file]
    with tempfile.TemporaryDirectory(prefix="mutations.") as folder:
        tree = Path(folder)
        _copy(tree)
        survivors = sum(not _is_noticed(tree, mutation) for mutation in chosen)
    print(f"{len(chosen) - survivors} of {len(chosen)} mutations noticed")
    sys.exit(1 if survivors else 0)


def _copy(tree: Path) -> None:
    for name in FOLDERS:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tree / name)


def _is_noticed(tree: Path, mutation: Mutation) -> bool:
    file = tree / mutation.file
    text = file.read_text()
    if text.count(mutation.old) != 1:
        print(f"STALE     {mutation.file}: {mutation.old.strip()!r} stands {text.count(mutation.old)} times")
        return False
    file.write_text(text.replace(mutation.old, mutation.new))
    try:
        failed = _failing_test(tree, mutation.tests)
    finally:
        file.write_text(text)
    print(f"{'noticed ' if failed else 'SURVIVED'}  {mutation.file}: {mutation.old.strip()!r}  {failed}", flush=True)
    return bool(failed)


def _failing_test(tree: Path, tests: tuple[str, ...]) -> str:
    """Name of the first test that fails, empty when all pass; a run that hangs has noticed too.

    Raises:
        RuntimeError: no test ran, which says nothing about the mutation.
    """
    command = [sys.executable, "-B", "-m", "pytest", "-x", "-q", "-o", "addopts=", *tests]
    try:
        done = subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return "no end within the limit"
    if done.returncode == 0:
        return ""
    if not done.stdout:
        raise RuntimeError(f"the tests did not start: {done.stderr[-500:]}")
    found = re.search(r"^(?:FAILED|ERROR) \S*?::?(\S+)", done.stdout, re.MULTILINE)
    return found.group(1) if found else done.stdout[-200:]


if __name__ == "__main__":
    main()
