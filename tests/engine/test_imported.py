"""What a task imports from outside the installed packages is part of what it is. Nothing of it is executed to tell."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from numpy import __file__ as numpy_file

from engine.evaluator import fitting
from engine.evaluator.tasks import imported

DEEP = "raise SystemExit('executed')\nX = 1\n"


def module(folder: Path, name: str, text: str) -> Path:
    path = folder.joinpath(*name.split(".")).with_suffix(".py")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """On the search path: packages that import one another, and would end this process if they were executed."""
    monkeypatch.syspath_prepend(str(tmp_path))
    module(tmp_path, "mynet.__init__", "raise SystemExit('executed')\n")
    module(tmp_path, "mynet.block", "from . import parts\nfrom .sub.deep import X\n" + DEEP)
    module(tmp_path, "mynet.parts", DEEP)
    module(tmp_path, "mynet.sub.deep", "from ..other import Y\n" + DEEP)  # of a folder without __init__.py
    module(tmp_path, "mynet.other", "import lone\n" + DEEP)
    module(tmp_path, "mynet.unused", DEEP)
    module(tmp_path, "lone", "import mynet.block\n" + DEEP)
    return tmp_path


IMPORTS = {
    "from a module": "import torch\nfrom mynet.block import Block\n",
    "of a name": "import mynet.block as b\n",
    "from the package": "from mynet import block\n",
    "in a function": "def get_inputs():\n    from mynet.block import *\n",
    "when it may be missing": "try:\n    import mynet.block\nexcept ImportError:\n    pass\n",
    "by call": "import importlib\nblock = importlib.import_module('mynet.block')\n",
    "by its own call": "block = __import__('mynet.block')\n",
}


@pytest.mark.parametrize("source", IMPORTS.values(), ids=IMPORTS)
@pytest.mark.parametrize(
    "changed", ["mynet.__init__", "mynet.block", "mynet.parts", "mynet.sub.deep", "mynet.other", "lone"]
)
def test_a_change_of_any_module_on_the_way_changes_it(folder: Path, source: str, changed: str) -> None:
    before = imported.contents(source)
    assert imported.contents(source) == before
    module(folder, changed, "import mynet\n# changed\n")
    assert imported.contents(source) != before


def test_what_is_not_imported_does_not_count(folder: Path) -> None:
    before = imported.contents(IMPORTS["of a name"])
    assert "mynet.unused" not in before
    module(folder, "mynet.unused", "X = 2\n")
    assert imported.contents(IMPORTS["of a name"]) == before
    assert imported.contents("import torch, math\nfrom torch.nn import functional as F\n") == {}
    assert imported.contents("def f(:\n") == imported.contents("import no_such_module\n") == {}


def test_a_module_that_appears_or_goes_changes_it(folder: Path) -> None:
    source = "try:\n    import late\nexcept ImportError:\n    late = None\n"
    assert imported.contents(source) == {}
    path = module(folder, "late", "X = 1\n")
    assert set(imported.contents(source)) == {"late"}
    path.unlink()
    assert imported.contents(source) == {}


def test_an_installed_package_counts_by_its_version() -> None:
    assert set(imported.contents("import numpy.linalg\n")) == {"numpy"}
    assert imported.contents("import numpy\n")["numpy"][0].isdigit()


def test_a_folder_that_the_text_adds_is_searched(tmp_path: Path) -> None:
    module(tmp_path, "added", DEEP)
    source = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nimport added\n"
    before = imported.contents(source)
    module(tmp_path, "added", "X = 2\n")
    assert set(before) == {"added"}
    assert imported.contents(source) != before


def test_what_a_kernel_may_import_lies_in_the_trees_that_are_told(folder: Path) -> None:
    numpy = Path(numpy_file)
    assert imported.trees(("lone",))[0] == folder / "lone.py"
    assert {folder / "mynet" / "block.py", folder / "mynet" / "sub" / "deep.py"} <= set(imported.trees(("lone",)))
    assert imported.trees(("numpy.linalg", "torch.nn")) == (numpy.parent,)
    assert imported.trees(("mynet",))[0] == folder / "mynet"
    assert imported.trees(("no_such_module", "not a name", "math")) == ()


def test_a_module_in_an_archive_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.writestr("packed.py", DEEP)
    monkeypatch.syspath_prepend(str(tmp_path / "packed.zip"))
    assert len(imported.contents("import packed\n")["packed"]) == 64


@pytest.mark.parametrize("by", ["path file", "finder"])
def test_an_editable_installation_counts_as_outside(tmp_path: Path, by: str) -> None:
    """Both ways in which pip makes one: a folder in a .pth file, and a finder of the package's own."""
    path = module(tmp_path / "checkout" / "src", "editable.core", DEEP)
    module(tmp_path / "checkout" / "src", "editable.__init__", DEEP)
    packages = tmp_path / "site-packages"
    packages.mkdir()
    finder = f"""
import sys
from importlib.util import spec_from_file_location
class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        where = {str(path.parent)!r}
        if name == "editable":
            return spec_from_file_location(name, where + "/__init__.py", submodule_search_locations=[where])
sys.meta_path.append(Finder)
"""
    (packages / "the_finder.py").write_text(finder)
    (packages / "it.pth").write_text("import the_finder\n" if by == "finder" else f"{path.parent.parent}\n")
    code = (
        f"import site; site.addsitedir({str(packages)!r})\nfrom engine.evaluator.tasks import imported\n"
        "print(imported.contents('from editable.core import X'))"
    )

    def told() -> str:
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    before = told()
    assert "editable.core" in before
    path.write_text("X = 2\n")
    assert told() != before


def test_a_mark_a_cycle_and_a_file_that_cannot_be_read_do_no_harm(folder: Path) -> None:
    (folder / "lone.py").write_bytes(b"\xef\xbb\xbfimport mynet.block, broken\n")
    (folder / "broken.py").write_bytes(b"\xff\xfe def (\n")
    assert {"lone", "broken", "mynet.block"} <= set(imported.contents("import lone\n"))


def test_an_estimate_is_made_anew_when_a_module_changes(home: Path, folder: Path) -> None:
    made = iter((1 << 30, 2 << 30))
    estimate: Callable[[], int] = lambda: next(made)  # noqa: E731
    source = IMPORTS["from a module"]
    assert fitting.remembered(source, estimate) == fitting.remembered(source, estimate) == 1 << 30
    module(folder, "lone", "X = 2\n")
    assert fitting.remembered(source, estimate) == 2 << 30


def test_nothing_of_torch_is_imported_to_tell() -> None:
    asked = "from engine.evaluator.tasks import imported; imported.contents('import torch, numpy')"
    code = f"import sys; {asked}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
