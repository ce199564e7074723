"""A file system of its own for one child: what it needs, read-only, and small memory-backed folders to write in.

The rest of the disk, home folders and runs with it, is not there. Vanishes with the last process inside.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from engine.evaluator.sandbox import linux

SYSTEM = tuple(
    Path(word)
    for word in (
        "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/sys", "/etc/alternatives", "/etc/ld.so.cache",
        "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime",
    )
)  # fmt: skip
DEVICES = ("null", "zero", "full", "random", "urandom")
LISTED = (
    "cpuinfo",
    "meminfo",
    "stat",
    "loadavg",
    "filesystems",
    "self",
    "sys/vm",
    "sys/kernel/osrelease",
    "driver",
    "devices",
)
SCRATCH = Path("/tmp")


@dataclass(frozen=True, slots=True)
class SandboxFilesystem:
    """What one child may see.

    Attributes:
        mount_point: an empty folder of ours; the file system is mounted there before it becomes the root.
        readable: trees beyond the system's and Python's own; they appear under their own paths.
        writable: trees that the child may change.
        bytes_writable: size of both memory-backed folders together (scratch, /dev/shm).
        devices: device nodes that the child may open, a GPU's.
    """

    mount_point: Path
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    bytes_writable: int = 1 << 30
    devices: tuple[Path, ...] = ()

    @property
    def visible(self) -> list[Path]:
        """Every tree to read, parents before children, none inside another."""
        return _outermost([*SYSTEM, *python_trees(), *self.readable])


def bytes_written(pid: int) -> int:
    """What a process that has such a file system holds in its memory-backed folders; nothing where it cannot be told.

    No process of the sandbox counts it as its own memory.
    """
    written = 0
    for folder in (SCRATCH, Path("/dev/shm")):
        with suppress(OSError):
            seen = os.statvfs(f"/proc/{pid}/root{folder}")
            written += (seen.f_blocks - seen.f_bfree) * seen.f_frsize
    return written


def python_trees() -> list[Path]:
    """Where this interpreter and its packages live."""
    return [Path(sys.prefix), Path(sys.base_prefix), *(Path(word) for word in sys.path if "site-packages" in word)]


def build(filesystem: SandboxFilesystem, owner: int) -> None:
    """Mount the file system and enter it. Needs a mount namespace, and to be the first process of a pid namespace."""
    root = filesystem.mount_point
    linux.mount("none", Path("/"), None, linux.MS_REC | linux.MS_PRIVATE)
    linux.mount("tilewright", root, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "size=1m,mode=0755")
    size = f"size={filesystem.bytes_writable // 2},nr_inodes=65536,mode=0700,uid={owner},gid={owner}"
    for folder in (SCRATCH, Path("/dev/shm")):
        _mount_new(root, folder, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, size)
    for path in filesystem.visible:
        _show(root, path, linux.ATTR_RDONLY | linux.ATTR_NOSUID | linux.ATTR_NODEV)
    for path in _outermost(filesystem.writable):
        _show(root, path, linux.ATTR_NOSUID | linux.ATTR_NODEV)
    for name in DEVICES:
        _bind(root, Path("/dev") / name)
    for path in filesystem.devices:
        _bind(root, path)
    _mount_new(root, Path("/proc"), "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC, None)
    linux.set_mount(root, linux.ATTR_RDONLY, recursive=False)
    linux.enter_root(root)


def readable_in(filesystem: SandboxFilesystem, is_entered: bool) -> list[Path]:
    """What an allow-list of files must hold: the whole file system, or its trees where there is no room."""
    if is_entered:
        return [Path("/")]
    system = [path for path in SYSTEM if path.exists()]
    return [
        *system,
        *python_trees(),
        *filesystem.readable,
        Path("/dev/urandom"),
        *(Path("/proc") / name for name in LISTED),
    ]


def writable_in(filesystem: SandboxFilesystem, scratch: Path, is_entered: bool) -> list[Path]:
    """What an allow-list of files must hold for writing."""
    folders = [SCRATCH, Path("/dev/shm")] if is_entered else [scratch]
    # A GPU's driver names its threads; the sandbox's /proc holds no process but those inside, a profiler's too.
    threads = [Path("/proc") if is_entered else Path("/proc/self")] if filesystem.devices else []
    return [
        *folders,
        *filesystem.writable,
        *filesystem.devices,
        *threads,
        Path("/dev/null"),
        Path("/dev/zero"),
        Path("/dev/full"),
    ]


def _show(root: Path, path: Path, attributes: int) -> None:
    """Bind a tree under its own path; a symbolic link of the system (`/lib` to `usr/lib`) stays one."""
    if _is_link(path):
        _inside(root, path).symlink_to(path.readlink())
        return
    if _bind(root, path):
        linux.set_mount(_inside(root, path), attributes, recursive=True)


def _bind(root: Path, path: Path) -> bool:
    if not path.exists():
        return False
    target = _inside(root, path)
    if path.is_dir():
        target.mkdir(mode=0o755, parents=True, exist_ok=True)
    else:
        target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        target.touch(mode=0o644)
    linux.mount(str(path), target, None, linux.MS_BIND | linux.MS_REC)
    return True


def _mount_new(root: Path, folder: Path, kind: str, flags: int, data: str | None) -> None:
    target = _inside(root, folder)
    target.mkdir(mode=0o755, parents=True, exist_ok=True)
    linux.mount(kind, target, kind, flags, data)


def _is_link(path: Path) -> bool:
    return path in SYSTEM and path.is_symlink()


def _inside(root: Path, path: Path) -> Path:
    return root / path.relative_to("/")


def _outermost(paths: Iterable[Path]) -> list[Path]:
    """The paths that no other one shows already; a path through symbolic links is shown under both its names."""
    outermost: list[Path] = []
    all_paths = {path for named in paths for path in (named, Path(os.path.realpath(named)))}
    for path in sorted(all_paths, key=lambda path: (len(path.parts), str(path))):
        if path in SYSTEM or not any(path.is_relative_to(other) for other in outermost if not _is_link(other)):
            outermost.append(path)
    return outermost
