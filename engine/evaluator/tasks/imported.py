"""What texts are beyond themselves: the modules that they import from outside the installed packages, as they are now.

Finds and reads files, and imports none: not even the packages around a module, which Python's own `find_spec` does.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.metadata
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from engine.errors import TaskError
from engine.evaluator.tasks.parsing import parse
from engine.evaluator.tasks.problems import tensor_files

# Of these a toolchain's fingerprint tells; safetensors reads files and computes nothing.
KNOWN = sys.stdlib_module_names | {"torch", "triton", "safetensors"}
_PACKAGES = ("site-packages", "dist-packages")
_STANDARD = [Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")]


def contents(*texts: str) -> dict[str, str]:
    """The modules that texts import, directly or not, by name: a hash of the file of one from outside the installed
    packages, the version of an installed package. Empty where they import PyTorch and the standard library alone."""
    return _followed(texts)[0]


def files(*texts: str) -> tuple[Path, ...]:
    """The files of those from outside the installed packages, and those of tensors of a problem."""
    return (*(path for path, _ in modules(*texts).values()), *(file for text in texts for file in tensor_files(text)))


def modules(*texts: str) -> dict[str, tuple[Path, str]]:
    """Those from outside the installed packages by name: file and text."""
    return _followed(texts)[1]


def trees(names: Sequence[str]) -> tuple[Path, ...]:
    """Where modules lie, installed or not: the folder of a package, the file of another, and the files of what they
    import from outside the installed packages."""
    known = sorted({top for name in names if (top := _top(name)).isidentifier() and top not in KNOWN})
    found = _Modules(sys.path)
    found.followed(known)
    return (*filter(None, map(found.tree, known)), *(path for path, _ in found.local.values()))


def _followed(texts: Sequence[str]) -> tuple[dict[str, str], dict[str, tuple[Path, str]]]:
    told = [_of_text(text) for text in texts]
    names = [name for imports, _ in told for name in imports]
    if all(_top(name) in KNOWN for name in names):
        return {}, {}
    found = _Modules([*(folder for _, added in told for folder in added), *sys.path])
    return found.followed(names), found.local


@functools.lru_cache(maxsize=256)  # a form that offers all shipped tasks asks for each of them whenever it is drawn
def _of_text(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The modules that it imports, and the folders that it puts into the search path."""
    nodes = _nodes(text)
    return tuple(_imports(nodes, "")), tuple(_added_paths(nodes))


class _Modules:
    """Modules as they are found on one search path; `local` are those that have been read, by name."""

    def __init__(self, path: Sequence[str]) -> None:
        self._path = path
        self.local: dict[str, tuple[Path, str]] = {}
        self._specs: dict[str, ModuleSpec | None] = {}

    def followed(self, names: Sequence[str]) -> dict[str, str]:
        """`contents`, beginning with these names."""
        hashes: dict[str, str] = {}
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name in hashes or _top(name) in KNOWN or (spec := self._spec(name)) is None:
                continue
            if _is_installed(spec):
                hashes[_top(name)] = _version(_top(name))
                continue
            content = _content(spec)
            text = content.decode("utf-8-sig", "replace")
            if spec.origin and content:
                self.local[name] = Path(spec.origin), text
            hashes[name] = hashlib.sha256(content).hexdigest()
            package = name if spec.submodule_search_locations is not None else name.rpartition(".")[0]
            waiting += _imports(_nodes(text), package)
        return dict(sorted(hashes.items()))

    def tree(self, name: str) -> Path | None:
        """The file of a module, or the folder that its file is in where it is a package."""
        spec = self._spec(name)
        if spec is None or not spec.has_location or spec.origin is None:
            return None
        return Path(spec.origin).parent if spec.submodule_search_locations is not None else Path(spec.origin)

    def _spec(self, name: str) -> ModuleSpec | None:
        """Where a module lies; one of a package lies in its folders."""
        if name not in self._specs:
            package = name.rpartition(".")[0]
            around = self._spec(package) if package else None
            folders = around.submodule_search_locations if around is not None else None
            is_nowhere = bool(package) and folders is None
            self._specs[name] = None if is_nowhere else self._asked(name, None if folders is None else list(folders))
        return self._specs[name]

    def _asked(self, name: str, folders: list[str] | None) -> ModuleSpec | None:
        """The spec that the first finder has, asked in turn as an import does; editable installations bring
        their own."""
        for finder in sys.meta_path:
            where = list(self._path) if finder is PathFinder and folders is None else folders
            with suppress(Exception):  # a finder of somebody else's
                if (spec := finder.find_spec(name, where)) is not None:
                    return spec
        # Python's finder of folders without __init__.py wants the package around them to be imported.
        inside = [str(path) for folder in folders or () if (path := Path(folder) / name.rpartition(".")[2]).is_dir()]
        return _folder(name, inside) if inside else None


def _folder(name: str, places: list[str]) -> ModuleSpec:
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = places
    return spec


def _top(name: str) -> str:
    return name.partition(".")[0]


def _is_installed(spec: ModuleSpec) -> bool:
    if spec.origin in ("built-in", "frozen"):
        return True
    path = Path(spec.origin or next(iter(spec.submodule_search_locations or ()), "")).resolve()
    return any(part in _PACKAGES for part in path.parts) or any(path.is_relative_to(folder) for folder in _STANDARD)


def _content(spec: ModuleSpec) -> bytes:
    """The content of a module's file; a package without one is a folder and says nothing."""
    read = getattr(spec.loader, "get_data", None)
    with suppress(OSError):
        return bytes(read(spec.origin)) if read and spec.origin else b""
    return b""


def _version(name: str) -> str:
    with suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(name)
    return ""


def _imports(nodes: Sequence[ast.AST], package: str) -> Iterator[str]:
    """Names of the modules that a text may import, with the packages around them; of `from a import b` also `a.b`."""
    for node in nodes:
        for name in filter(None, _named(node, package)):
            parts = name.split(".")
            yield from (".".join(parts[:length]) for length in range(1, len(parts) + 1))


def _named(node: ast.AST, package: str) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        parts = package.split(".") if node.level else []
        module = ".".join(filter(None, [*parts[: len(parts) - node.level + 1], node.module]))
        return [module, *(f"{module}.{alias.name}" for alias in node.names if module)]
    return _written(node) if _called(node) in ("import_module", "importlib.import_module", "__import__") else []


def _added_paths(nodes: Sequence[ast.AST]) -> list[str]:
    """Folders that a text puts into `sys.path`, as far as they are written out."""
    return [
        text for node in nodes if _called(node) in ("sys.path.append", "sys.path.insert") for text in _written(node)
    ]


def _called(node: ast.AST) -> str:
    return (
        ast.unparse(node.func) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute) else ""
    )


def _written(node: ast.AST) -> list[str]:
    """The strings among a call's arguments."""
    given = node.args if isinstance(node, ast.Call) else []
    return [
        argument.value for argument in given if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]


def _nodes(text: str) -> list[ast.AST]:
    try:
        return list(ast.walk(parse(text, "a module")))
    except TaskError:
        return []
