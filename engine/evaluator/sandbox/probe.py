"""Finds the strongest isolation this system offers, by putting a child in it that then tries to get out."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from engine.evaluator.machine.worker_limits import Limits
from engine.evaluator.sandbox import filters, linux
from engine.evaluator.sandbox.child import TICK_S, ChildSpec, OwnFailure, start
from engine.evaluator.sandbox.filesystem import SandboxFilesystem
from engine.evaluator.sandbox.isolation import CALLS, FILES, NETWORK, PROCESSES, USER, Isolation
from storage import codec

DEMANDED = "TILEWRIGHT_ISOLATION"
TRIAL_S = 20.0  # a child takes milliseconds


def probe() -> Isolation:
    """The strongest set that stands and holds here.

    Raises:
        OwnFailure: `TILEWRIGHT_ISOLATION=full` demands isolation that this system does not offer.
    """
    missing: dict[str, str] = {}
    isolation = Isolation(missing={FILES: "not Linux on x86-64 or arm64"})
    if sys.platform == "linux" and linux.is_known_machine():
        isolation = next((isolation for isolation in _candidates() if _holds(isolation, missing)), Isolation())
        isolation = replace(isolation, missing={**missing} if not isolation.is_full else {})
    if os.environ.get(DEMANDED) == "full" and not isolation.is_full:
        raise OwnFailure(
            f"{DEMANDED}=full, but not every wall stands here: "
            + "; ".join(f"{name}: {why}" for name, why in isolation.missing.items())
        )
    return isolation


def _candidates() -> Iterator[Isolation]:
    """From strong to weak. Root needs no user namespace; where it may not use namespaces it may still filter."""
    version = filters.landlock_version()
    is_root = os.getuid() == 0
    for has_seccomp in (True, False):
        if is_root:
            yield Isolation(True, False, True, version, has_seccomp)
        yield Isolation(True, True, False, version, has_seccomp)
        if is_root:
            yield Isolation(True, False, False, version, has_seccomp)
            yield Isolation(False, False, True, version, has_seccomp)
        yield Isolation(False, False, False, version, has_seccomp)


def _holds(isolation: Isolation, missing: dict[str, str]) -> bool:
    """Set this isolation up and see what a child can do in it."""
    try:
        escapes = _escapes(isolation)
    except (OwnFailure, OSError) as error:
        reason = str(error).strip().splitlines()[-1][:200]
        names = (
            [FILES, PROCESSES, NETWORK] if isolation.has_namespaces else [CALLS] if isolation.has_seccomp else [FILES]
        )
        for name in [*names, *([USER] if isolation.has_own_user or isolation.needs_user_namespace else [])]:
            missing.setdefault(name, reason)
        return False
    promised = dict.fromkeys(("python",), USER)
    promised |= dict.fromkeys(("write", "read"), FILES) if isolation.has_namespaces or isolation.landlock else {}
    promised |= {"signal": PROCESSES} if isolation.has_namespaces or isolation.has_seccomp else {}
    promised |= {"socket": NETWORK} if isolation.has_namespaces or isolation.has_seccomp else {}
    broken = {what: wall for what, wall in promised.items() if escapes.get(what)}
    for what, wall in broken.items():
        missing.setdefault(wall, f"tried and did not hold: {escapes[what]}")
    return not broken


def _escapes(isolation: Isolation) -> Mapping[str, str]:
    """What a child in a sandbox managed to do that it should not; empty texts for what it could not."""
    with tempfile.TemporaryDirectory(prefix="tilewright.probe.") as name, tempfile.TemporaryFile() as output:
        folder = Path(name)
        folder.chmod(0o755)
        outside = folder / "outside"
        outside.write_text("secret")
        outside.chmod(0o666)
        me = os.getpid()
        packages = [Path(os.__file__), *_origins("torch", "numpy")]
        filesystem = SandboxFilesystem(folder / "room")
        spec = ChildSpec(isolation, filesystem, Limits(), folder / "scratch", output.fileno())
        child = start(spec, lambda: _try_everything(outside, me, packages))
        deadline = time.monotonic() + TRIAL_S
        while not child.is_over():
            if time.monotonic() > deadline:
                child.kill()
                raise OwnFailure(f"a child process in the sandbox did not end within {TRIAL_S:g} s")
            time.sleep(TICK_S)
        output.seek(0)
        text = output.read(65536)
    with suppress(ValueError):
        escapes: dict[str, str] = json.loads(text)
        return escapes
    raise OwnFailure(f"a child process in the sandbox died: {child.status} {text[-300:].decode(errors='replace')}")


def _try_everything(outside: Path, parent: int, packages: list[Path]) -> None:
    """Runs inside; writes one text per attempt."""
    escapes = {"python": "", "write": "", "read": "", "signal": "", "socket": ""}
    for path in packages:
        try:
            path.read_bytes()
        except OSError as error:
            escapes["python"] = f"cannot read {path}: {error.strerror}"
    with suppress(OSError):
        outside.write_text("changed")
        escapes["write"] = "a file outside was written"
    with suppress(OSError):
        outside.read_text()
        escapes["read"] = "a file outside was read"
    with suppress(OSError):
        os.kill(parent, 0)
        escapes["signal"] = "the parent can be signalled"
    with suppress(OSError):
        # A sandbox without devices may still hold sockets: what counts is that none reaches out.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
            line.connect(("192.0.2.1", 9))
        escapes["socket"] = "a socket reaches out"
    os.write(1, json.dumps(escapes).encode())  # not print: a caller may have put something else in stdout's place


def main() -> None:
    """Print the isolation as one line of JSON; for callers with threads of their own, who must not fork."""
    print(json.dumps(codec.to_plain(probe())))


def _origins(*names: str) -> list[Path]:
    specs = [importlib.util.find_spec(name) for name in names]
    return [Path(spec.origin) for spec in specs if spec is not None and spec.origin is not None]


if __name__ == "__main__":
    main()
