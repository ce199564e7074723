"""The object file behind the light headers, compiled once per machine and linked into every extension."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from engine import sandbox
from engine.build import light_headers
from engine.machine import lease

FLAGS = ("-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-ffunction-sections", "-fdata-sections", "-w")
LIMIT_S = 300.0


def object_file(compiler: str, compiler_version: str, cache: Path) -> Path:
    """The runtime for this compiler, built if it is not there yet.

    Raises:
        OwnFailure: it does not compile here.
    """
    key = hashlib.sha256(
        "\n".join([compiler, compiler_version, light_headers.shim_version(), *FLAGS]).encode()
    ).hexdigest()
    folder = cache / "headers" / f"runtime.{key[:24]}"
    ready = folder / "runtime.o"
    if ready.exists():
        return ready
    folder.mkdir(parents=True, exist_ok=True)
    with lease.hold(folder / "lock"):
        if not ready.exists():
            _compile(compiler, folder, ready)
    return ready


def _compile(compiler: str, folder: Path, ready: Path) -> None:
    draft = folder / f"draft.{os.getpid()}.o"
    command = [compiler, *FLAGS, f"-I{light_headers.SHIM}", "-c", str(light_headers.RUNTIME), "-o", str(draft)]
    done = sandbox.run(command, cwd=folder, limit_s=LIMIT_S, readable=(light_headers.SHIM,))
    if done.status != 0:
        draft.unlink(missing_ok=True)
        raise sandbox.OwnFailure(f"the runtime of the light headers does not compile here:\n{done.output[:4000]}")
    draft.replace(ready)
