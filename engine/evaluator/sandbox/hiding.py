"""Starts a program of this user's that cannot see some folders. Knows neither what is in them nor what runs.

    python -m engine.evaluator.sandbox.hiding --try FOLDER
    python -m engine.evaluator.sandbox.hiding [--guard PARENT FAILED SCRATCH] [--hide|--keep FOLDER ...] -- COMMAND

With `--guard` this process stays: it ends whatever the program leaves behind, and all of it, SCRATCH too, when PARENT
ends. FAILED is an open pipe that hears why the program could not be started.

Covered, by a mount namespace or else by Landlock: reading and writing below the folders that are hidden, writing below
those that are kept, and what stands of them in the memory of other processes. With a mount namespace, D-Bus too, behind
which a system's keyring is. Not covered: the network, and every other file of this user, which the program may read and
write as its own.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from engine.evaluator.machine import processes
from engine.evaluator.sandbox import filters, linux

GRACE_S = 2.0
TICK_S = 0.01
FAILED, MACHINE_LACKS = 127, 4


class Way(StrEnum):
    """By what a folder is hidden."""

    MOUNTS = "a mount namespace"
    LANDLOCK = "Landlock"


class HidingError(Exception):
    """This system offers no way to hide a folder from a program; the message says what was tried."""


def prefix(hidden: Sequence[Path]) -> list[str]:
    """What comes before a command that is to run without seeing these folders, in its own process."""
    words = [word for folder in hidden for word in ("--hide", str(folder))]
    return [sys.executable, "-m", "engine.evaluator.sandbox.hiding", *words, "--"]


def guarded(parent: int, failed: int, scratch: Path, hidden: Sequence[Path], kept: Sequence[Path] = ()) -> list[str]:
    """The same under a guard, in `scratch` as its folder; it can read the folders that are kept and not change them."""
    command, words = prefix(hidden), [word for folder in kept for word in ("--keep", str(folder))]
    return [*command[:3], "--guard", f"{parent}", f"{failed}", str(scratch), *words, *command[3:]]


def hide(folders: Sequence[Path], kept: Sequence[Path] = (), *, is_guarded: bool) -> Way:
    """Take the folders out of this process's sight, for good, and of all it starts, and let it change nothing in those
    that are kept. It must have one thread.

    Raises:
        HidingError: neither way holds here.
    """
    resolved = [folder.resolve() for folder in folders if folder.is_dir()]
    whole = sorted({folder.resolve() for folder in kept if folder.is_dir()})
    secrets = [path for folder in resolved for path in _one_file(folder)]
    tried = []
    for way, act in ((Way.MOUNTS, _by_mounts), (Way.LANDLOCK, _by_landlock)):
        try:
            act(resolved, whole)
        except OSError as error:
            tried.append(f"{way}: {error.strerror or error}")
            continue
        if any(_can_be_read(path) for path in secrets):
            tried.append(f"{way}: tried and did not hold")
            continue
        if is_guarded and way is Way.MOUNTS:
            _part_from_others()
        return way
    raise HidingError("; ".join(tried))


def _by_mounts(folders: Sequence[Path], kept: Sequence[Path] = ()) -> None:
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    _leave_mounts()
    linux.mount("none", Path("/"), None, linux.MS_REC | linux.MS_PRIVATE)
    for folder in kept:
        linux.mount(str(folder), folder, None, linux.MS_BIND | linux.MS_REC)
        linux.set_mount(folder, linux.ATTR_RDONLY, recursive=True)
    for folder in folders:
        linux.mount("tilewright", folder, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_RDONLY, "size=4k")
    if (bus := Path(f"/run/user/{os.getuid()}/bus")).exists():
        linux.mount("/dev/null", bus, None, linux.MS_BIND)
    linux.drop_capabilities()


def _leave_mounts() -> None:
    if os.getuid() == 0:
        with suppress(OSError):
            linux.unshare(linux.CLONE_NEWNS)
            return
    user, group = os.getuid(), os.getgid()
    linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWNS)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def _by_landlock(folders: Sequence[Path], kept: Sequence[Path] = ()) -> None:
    """Everything but the folders and those that they lie in stays open: a rule holds for all that is below it."""
    if not filters.landlock_version():
        raise OSError(0, "the kernel has none")
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    linux.drop_capabilities()  # with some of root's the memory of others can be read all the same
    filters.restrict_to(_beside(Path("/"), [*folders, *kept]), kept)


def _part_from_others() -> None:
    """No signals to other processes, no sight of their memory: beside a mount namespace, where there is Landlock."""
    if filters.landlock_version():
        filters.part_from_others()


def _beside(folder: Path, hidden: Sequence[Path]) -> Iterator[Path]:
    """What lies in a folder and its folders beside the hidden ones. A link is left to where it leads."""
    with suppress(OSError):
        for entry in sorted(folder.iterdir()):
            if entry in hidden or entry.is_symlink():
                continue
            if any(path.is_relative_to(entry) for path in hidden):
                yield from _beside(entry, hidden)
            else:
                yield entry


def _one_file(folder: Path) -> Iterator[Path]:
    """A file below a folder that can be read now, to be tried again afterwards."""
    for path in folder.rglob("*"):
        if path.is_file() and _can_be_read(path):
            yield path
            return


def _can_be_read(path: Path) -> bool:
    try:
        with open(path, "rb"):
            return True
    except OSError:
        return False


def tried(folder: Path) -> Way:
    """By what the folder, which holds a file, can be hidden here; tried by a child that then tries to read it.

    Raises:
        HidingError: by nothing.
    """
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            answer = hide([folder], is_guarded=True).name
        except BaseException as error:  # noqa: BLE001 - a forked child must not run its parent's code
            answer = f"{error}"
        os.write(write, answer.encode()[:4000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        answer = pipe.read().decode()
    os.waitpid(pid, 0)
    if answer not in Way.__members__:
        raise HidingError(answer)
    return Way[answer]


def _tried_in_words(folder: Path) -> str:
    try:
        return tried(folder).name
    except HidingError as error:
        return f"{error}"


def _guard(
    parent: int, failed: int, scratch: Path, hidden: Sequence[Path], kept: Sequence[Path], command: list[str]
) -> int:
    """Start the program, wait for it, and end what it leaves behind."""
    processes.adopt_orphans()
    me = os.getpid()
    program = os.fork()
    if program == 0:
        _become(me, failed, scratch, hidden, kept, command)
    os.close(failed)

    def end(number: int, frame: object) -> None:
        deadline = time.monotonic() + GRACE_S
        with suppress(ProcessLookupError):
            os.kill(program, signal.SIGTERM)
        while time.monotonic() < deadline and processes.children(me):
            with suppress(ChildProcessError):
                os.waitpid(-1, os.WNOHANG)
            time.sleep(TICK_S)
        processes.end_descendants()
        if os.getppid() != parent:  # nobody else is left to remove it
            shutil.rmtree(scratch, ignore_errors=True)
        os._exit(128 + number)

    signal.signal(signal.SIGTERM, end)
    processes.die_with(signal.SIGTERM)
    if os.getppid() != parent:
        end(signal.SIGTERM, None)
    _, status = os.waitpid(program, 0)
    processes.end_descendants()
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _become(
    guard: int, failed: int, scratch: Path, hidden: Sequence[Path], kept: Sequence[Path], command: list[str]
) -> None:
    """Never returns: becomes the program, or says why not."""
    try:
        processes.die_with_parent(guard)
        hide(hidden, kept, is_guarded=True)
        os.chdir(scratch)
        os.set_inheritable(failed, False)
        os.execvp(command[0], command)
    except BaseException as error:  # noqa: BLE001 - a forked child must not run its parent's code
        reason = error.strerror if isinstance(error, OSError) and error.strerror else f"{error}"
        with suppress(OSError):
            os.write(failed, reason.encode())
    finally:
        os._exit(FAILED)


def main(words: Sequence[str]) -> int:
    """Hide, then run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--guard", nargs=3)
    parser.add_argument("--hide", action="append", type=Path, default=[])
    parser.add_argument("--keep", action="append", type=Path, default=[])
    if words[0] == "--try":
        print(_tried_in_words(Path(words[1])))
        return 0
    ours, command = words[: words.index("--")], list(words[words.index("--") + 1 :])
    asked = parser.parse_args(ours)
    if asked.guard:
        parent, failed, scratch = asked.guard
        return _guard(int(parent), int(failed), Path(scratch), asked.hide, asked.keep, command)
    try:
        hide(asked.hide, asked.keep, is_guarded=False)
    except HidingError as error:
        print(f"tilewright: the saved keys cannot be hidden from your code here ({error}): remove them in Models",
              file=sys.stderr)  # fmt: skip
        return MACHINE_LACKS
    os.execvp(command[0], command)
    return FAILED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
