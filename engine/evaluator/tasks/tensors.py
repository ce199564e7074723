"""Tensors that a problem's workloads take from safetensors files: found in its folder and described. Reads no contents
but for a hash.

Source: FlashInfer Trace's and SOL-ExecBench's docs/workload.md: `path`, relative to the data set, and `tensor_key`.
"""

from __future__ import annotations

import functools
import hashlib
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from safetensors import SafetensorError, safe_open

SUFFIX = ".safetensors"
DIGITS = 16
DTYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu", "I64": "int64", "I32": "int32", "I16": "int16",
    "I8": "int8", "BOOL": "bool",
}  # fmt: skip


class Unusable(Exception):
    """A tensor that cannot be taken; the message goes on after the input's name."""


@dataclass(frozen=True, slots=True)
class Stored:
    """One tensor of a file in `folder`, however deep, and its name there."""

    folder: Path
    file: Path
    key: str
    shape: tuple[int, ...]
    dtype: str


def find(given: Mapping[str, Any], folders: Sequence[Path]) -> Stored:
    """The tensor that a workload names, in the first of the folders that has its file.

    Raises:
        Unusable: it is not there, cannot be read, or lies outside.
    """
    path, key = given.get("path"), given.get("tensor_key")
    if not isinstance(path, str) or not isinstance(key, str):
        raise Unusable("is of type safetensors without a path and a tensor_key, which name its file and its tensor")
    inside = PurePosixPath(path)
    if inside.is_absolute() or ".." in inside.parts or inside.suffix != SUFFIX or not path.isprintable():
        raise Unusable(f"is in {path!r}: name a file {SUFFIX} by its path inside the problem's folder")
    folder = next((folder for folder in folders if (folder / inside).is_file()), None)
    if folder is None:
        raise Unusable(f"is in {folders[0] / inside}, which does not exist: put it there")
    if os.geteuid() == 0 and not (folder / inside).stat().st_mode & stat.S_IROTH:  # as safetensors writes them
        raise Unusable(f"is in {folder / inside}, which the sandbox's user may not read: chmod a+r it")
    try:
        with safe_open(folder / inside, framework="numpy") as file:
            if key not in file.keys():  # noqa: SIM118 - it is no mapping
                raise Unusable(f"is called {key!r} in {folder / inside}, which holds {', '.join(file.keys())}")
            tensor = file.get_slice(key)
            shape, dtype = tuple(tensor.get_shape()), str(tensor.get_dtype())
    except (SafetensorError, OSError) as error:
        raise Unusable(f"is in {folder / inside}, which cannot be read ({error}): copy the file again") from error
    return Stored(folder, folder / inside, key, shape, DTYPES.get(dtype, dtype))


def digest(path: Path) -> str:
    """The hash of a file's content, worked out once for what it is now."""
    now = path.stat()
    return _digest(path, now.st_size, now.st_mtime_ns)


@functools.lru_cache(maxsize=1024)
def _digest(path: Path, size: int, changed_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:DIGITS]
