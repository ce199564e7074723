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
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("engine", "storage", "tests", "tasks", "prompts", "pyproject.toml")
LIMIT_S = 300
TESTS = "tests/engine/evaluation"


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change of one line that a check must not survive. `old` stands once in the file."""

    file: str
    old: str
    new: str
    tests: tuple[str, ...]


PROPERTIES = (f"{TESTS}/test_comparison_properties.py", f"{TESTS}/test_comparison.py")
PATTERNS = (f"{TESTS}/test_pattern.py",)
CHECKS = (f"{TESTS}/test_checking.py",)
VERDICTS = (f"{TESTS}/test_verdicts.py", "-k", "bad_candidate or positive or integer or located")
EVALUATION = "engine/evaluation"


def of(name: str, tests: tuple[str, ...], *changes: tuple[str, str]) -> list[Mutation]:
    """Several mutations of one module."""
    return [Mutation(f"{EVALUATION}/{name}.py", old, new, tests) for old, new in changes]


MUTATIONS = [
    *of(
        "comparison",
        PROPERTIES,
        ("if not float(excess.max()) <= 0.0:", "if float(excess.max()) > 0.0:"),
        ("        return torch.equal(out, own)\n", "        return True\n"),
        ("masks = [~(_distance(o, a, r, s)[0] <= tolerance)", "masks = [(_distance(o, a, r, s)[0] > tolerance * 20)"),
        ("torch.where(comparable | overflowed, relative, torch.inf)", "relative"),
        ("comparable = torch.isfinite(target) & torch.isfinite(wide)", "comparable = torch.isfinite(target)"),
        ("overflowed = is_same & ~torch.isfinite(own)", "overflowed = ~torch.isfinite(own)"),
        ("torch.where(out == own, 0.0, torch.inf)", "torch.where(absolute == 0, 0.0, torch.inf)"),
        ("nan=torch.inf, posinf=torch.inf", "nan=0.0, posinf=0.0"),
        ("clamp_(min=LEAST_ROW * whole)", "clamp_(min=whole)"),
        ("torch.view_as_real(tensor) if tensor.is_complex()", "tensor.real if tensor.is_complex()"),
    ),
    *of(
        "tolerance",
        PROPERTIES,
        ("        return 0.0\n    floor", "        return 1.0\n    floor"),
        ("OWN_ERROR_FACTOR * own_error) if math.isfinite(own_error) else floor", "OWN_ERROR_FACTOR * own_error)"),
        ("min(OWN_ERROR_FACTOR * _growth(depth) * change, most)", "OWN_ERROR_FACTOR * change"),
        ("if error <= FULL_PRECISION * _growth(depth):", "if True:"),
        ("math.sqrt(max(1.0, depth / 1000.0))", "max(1.0, depth / 1000.0)"),
        ("return not own_error <=", "return own_error <="),
    ),
    *of(
        "values",
        PROPERTIES,
        ("torch.where(tensor == 0, 0.0, fresh)", "fresh"),
        ("fresh = torch.triu(fresh) + torch.triu(fresh, 1).T", "pass"),
        ("tensor.numel() == 0 or _is_whole(tensor):", "tensor.numel() == 0:"),
    ),
    *of("pattern", PATTERNS, ("if step > 1:", "if step > 99:"), ("if factor == -1", "if factor == -2")),
    *of(
        "checking",
        CHECKS,
        ("            if failure := self._try(trial, trials.poison_of(number)):", "            if failure := None:"),
        ('return self._held("after all trials") or self._weights()', 'return self._held("after all trials")'),
        ('return self._held("after all trials") or self._weights()', "return self._weights()"),
    ),
    *of(
        "sides",
        CHECKS,
        ('if all(map(contract.is_same, bench.shared["own"], first)):', "if True:"),
        ("    if not changed:\n", "    if True:\n"),
        ("        if found.count:\n", "        if False:\n"),
        (
            "(failure, Standing.BROKEN, detail) if is_required else",
            "(None, Standing.BROKEN, detail) if is_required else",
        ),
    ),
    *of(
        "poison",
        CHECKS,
        ("        tensor.fill_(value(", "        value(value("),
    ),
    *of("callee", CHECKS, ("        poison.fill(blocks, poisoned)", "        pass")),
    *of("resizing", CHECKS, ("if found.verdict is not Verdict.PASSED:", "if False:")),
    *of(
        "contract",
        VERDICTS,
        ("if not is_same(after, before):", "if False:"),
        ('if leaf.get("type") != "torch.Tensor":', "if False:"),
        ('if leaf.get("shape") != list(own.shape):', "if False:"),
        ('if leaf.get("dtype") !=', 'if "" !='),
        ('    if leaf.get("is_input"):', "    if False:"),
        ('    if leaf.get("is_reused"):', "    if False:"),
    ),
    *of("weighing", VERDICTS, ("if not errors.relative <= allowed:", "if errors.relative > 1e9:")),
]


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
    """Name of the first test that fails, empty when all pass; a run that hangs has noticed too."""
    command = [sys.executable, "-B", "-m", "pytest", "-x", "-q", "-o", "addopts=", *tests]
    try:
        done = subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return "no end within the limit"
    if done.returncode == 0:
        return ""
    found = re.search(r"^(?:FAILED|ERROR) \S*?::?(\S+)", done.stdout, re.MULTILINE)
    return found.group(1) if found else done.stdout[-200:]


if __name__ == "__main__":
    main()
