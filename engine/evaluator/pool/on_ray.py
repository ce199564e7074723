"""A Ray cluster as a place for workers. Imports ray when it is asked for, and knows no evaluation.

Each device has one actor: with a GPU of its own, or beside the processors of a host. It is named and detached, so that
all engines of this host ask the same one, and it ends with its host or with the cluster. The code goes along
and is unpacked once a host; what Python needs beside it (requirements.txt) must be there.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import io
import os
import socket
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import ToolchainError
from engine.evaluator.machine import lease
from engine.evaluator.pool.remote import RemoteWorker, WorkerLost, lock_of
from engine.evaluator.toolchain_table import GPU, device_of
from storage import codec, device_use
from storage.device_use import KnownDevice

ROOT = Path(__file__).resolve().parents[3]
NAMESPACE = "tilewright"
TRAVELS = ("engine", "storage", "prompts")  # folders of the code that a worker needs
LOOK_S = 0.2  # how often an answer is looked for: between, a person's stop is heard
START_S = 60.0  # how long workers that start are waited for together; one that takes longer is used once it is there
REASON = 300
LOST_S = 40.0  # a cluster takes up to half a minute to see that a node is gone
HEAD_S = 20.0  # how long a head may be silent
SEE_S = 2.0  # how often its port is tried
ANSWER_S = 2.0
# Ray ends the process of whoever lost the head, without a word, after this time; we say it first.
PATIENCE = {"RAY_gcs_rpc_server_reconnect_timeout_s": "86400"}
AT_ONCE = 4  # what one worker does at a time: a build beside a check beside what waits for the device
NOT_INSTALLED = (
    "--pool ray://… needs Ray, which is not installed: .venv/bin/python -m pip install -r requirements-ray.txt"
)


def see_that_it_is_installed() -> None:
    """Raises ToolchainError where it is not."""
    if importlib.util.find_spec("ray") is None:
        raise ToolchainError(NOT_INSTALLED)


class Head:
    """The cluster's head, by the port that it listens at; `address` is HOST:PORT."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._seen_at, self._silent_since = 0.0, 0.0

    def see(self) -> bool:
        """Whether it answers, tried every SEE_S.

        Raises:
            ToolchainError: it has not answered for HEAD_S.
        """
        now = time.monotonic()
        if now - self._seen_at >= SEE_S:
            self._seen_at = now
            host, _, port = self._address.rpartition(":")
            try:
                socket.create_connection((host.strip("[]"), int(port)), ANSWER_S).close()
                self._silent_since = 0.0
            except OSError as error:
                self._silent_since = self._silent_since or now
                if now - self._silent_since > HEAD_S:
                    raise self.lost(str(error)) from error
        return not self._silent_since

    def lost(self, why: str) -> ToolchainError:
        """The failure of whoever needs it."""
        return ToolchainError(
            f"the head of the Ray cluster at {self._address} does not answer any more ({why}). Start it again, with a "
            "worker, and resume: what was finished is kept"
        )


class RayWorker:
    """A worker that is an actor of a Ray cluster."""

    def __init__(self, ray: Any, head: Head, actor: Any, device: KnownDevice) -> None:
        self._ray, self._head, self._actor, self._device = ray, head, actor, device

    @property
    def device(self) -> KnownDevice:
        """The worker's device as the actor told it."""
        return self._device

    def ask(self, request: str) -> str:
        """What the actor answers to a request."""
        return str(_got(self._ray, self._head, lambda: self._actor.ask.remote(request), self._device.device))


@dataclass(frozen=True, slots=True)
class Starting:
    """An actor that has been asked for its device."""

    actor: Any
    told: Any
    since: float


@dataclass(frozen=True, slots=True)
class Lost:
    """When a worker was lost or did not come to be, and why."""

    at: float
    why: str


class RayCluster:
    """The cluster at an address: `ray://HOST:PORT` of its client server, or `ray` for the one of this host.

    Raises:
        ToolchainError: Ray is not installed, or no cluster answers.
    """

    def __init__(self, address: str) -> None:
        see_that_it_is_installed()
        self._ray: Any = importlib.import_module("ray")
        self._known: dict[str, RayWorker] = {}
        self._starting: dict[str, Starting] = {}
        self._lost: dict[str, Lost] = {}
        self._code: tuple[str, Any] | None = None
        where = "auto" if address == "ray" else address
        os.environ.update(PATIENCE)
        try:
            self._ray.init(address=where, namespace=NAMESPACE, log_to_driver=False, configure_logging=False)
            at = self._ray.get_runtime_context().gcs_address if address == "ray" else address.removeprefix("ray://")
            self._head = Head(at)
        except Exception as error:  # Ray raises of many kinds here; each means the same
            raise ToolchainError(f"no Ray cluster answers at {where}: {error}") from error

    def workers(self, toolchain: str) -> Sequence[RemoteWorker]:
        """One for each GPU of each living node, or one for each node."""
        now = time.monotonic()
        gone = {name for name, lost in self._lost.items() if now - lost.at < LOST_S}
        places = {name: node for name, node in self._places(toolchain).items() if name not in gone}
        self._known = {name: worker for name, worker in self._known.items() if name in places}
        self._starting = {name: starting for name, starting in self._starting.items() if name in places}
        missing = {name: node for name, node in places.items() if name not in {*self._known, *self._starting}}
        there = self._named() if missing else []
        for name, node in missing.items():
            with self._losing(name):
                actor = self._actor(name, toolchain, node, there, has_gpu=device_of(toolchain) == GPU)
                self._starting[name] = Starting(actor, actor.device.remote(), now)
        while self._starting:
            self._look()
            if all(time.monotonic() - starting.since > START_S for starting in self._starting.values()):
                break
        return list(self._known.values())

    def troubles(self) -> Sequence[str]:
        """The troubles of workers that have not started, or ended not long ago."""
        slow = [f"{name} has not started yet: is its GPU used by others?" for name in self._starting]
        return [*slow, *(lost.why for name, lost in self._lost.items() if name not in self._known)]

    def forget(self, worker: RemoteWorker) -> None:
        """It is looked for again after LOST_S, on a node that is still there."""
        for name in [name for name, known_worker in self._known.items() if known_worker is worker]:
            del self._known[name]
            self._lost[name] = Lost(time.monotonic(), f"{name} was lost")

    def close(self) -> None:
        """Leave the cluster."""
        self._ray.shutdown()

    def _look(self) -> None:
        """Which of those that start are there by now; those whose node ended are lost."""
        self._head.see()
        waiting = {starting.told: name for name, starting in self._starting.items()}
        with _translated(self._ray, self._head):
            ready, _ = self._ray.wait(list(waiting), num_returns=len(waiting), timeout=LOOK_S)
        for reference in ready:
            name = waiting[reference]
            started = self._starting.pop(name)
            with self._losing(name):
                device = codec.read_line(KnownDevice, str(self._ray.get(reference)).encode())
                self._known[name] = RayWorker(self._ray, self._head, started.actor, device)

    @contextmanager
    def _losing(self, name: str) -> Iterator[None]:
        """A worker that is lost in here is kept with the reason."""
        try:
            with _translated(self._ray, self._head, name):
                yield
        except WorkerLost as why:
            self._lost[name] = Lost(time.monotonic(), str(why))

    def _places(self, toolchain: str) -> dict[str, str]:
        """The node of each worker there should be, by the worker's name."""
        alive = [node for node in self._nodes() if node["Alive"]]
        if device_of(toolchain) != GPU:
            return {f"{toolchain}-{node['NodeID']}": node["NodeID"] for node in alive if node["Resources"].get("CPU")}
        return {
            f"{toolchain}-{node['NodeID']}-{number}": node["NodeID"]
            for node in alive
            for number in range(int(node["Resources"].get("GPU", 0)))
        }

    def _nodes(self) -> list[dict[str, Any]]:
        while not self._head.see():  # Ray would wait for it without an end
            time.sleep(LOOK_S)
        try:
            nodes: list[dict[str, Any]] = self._ray.nodes()
        except Exception as error:  # as above
            raise self._head.lost(str(error)) from error
        return nodes

    def _named(self) -> list[str]:
        """The names of all actors of ours that live."""
        with _translated(self._ray, self._head):
            return list(importlib.import_module("ray.util").list_named_actors())

    def _actor(self, name: str, toolchain: str, node: str, there: Sequence[str], *, has_gpu: bool) -> Any:
        strategies = importlib.import_module("ray.util.scheduling_strategies")
        if self._code is None:
            code = _packed()
            self._code = hashlib.sha256(code).hexdigest()[:12], self._ray.put(code)
        version, code_there = self._code
        ours = f"{name}-{version}"
        others = [
            actor_name
            for actor_name in there
            if actor_name != ours and (actor_name == name or actor_name.startswith(f"{name}-"))
        ]
        self._end(others, has_gpu=has_gpu)
        kept = self._ray.remote(_side()).options(
            name=ours, get_if_exists=True, lifetime="detached", max_concurrency=AT_ONCE,
            num_cpus=0, num_gpus=1 if has_gpu else 0,
            scheduling_strategy=strategies.NodeAffinitySchedulingStrategy(node, soft=False),
        )  # fmt: skip
        return kept.remote(code_there, toolchain, name.removeprefix(f"{toolchain}-")[:6])

    def _end(self, others: Sequence[str], *, has_gpu: bool) -> None:
        """End the actors of other versions of the code in one place that no engine works with.

        Raises:
            WorkerLost: one is at work, and has the place's GPU.
        """
        for other in others:
            try:
                actor = self._ray.get_actor(other)
                reply = _got(self._ray, self._head, actor.device.remote, other, START_S)
            except (ValueError, WorkerLost):  # another engine that starts has ended it
                continue
            device = codec.read_line(KnownDevice, str(reply).encode()).device
            with ExitStack() as held:
                is_free = held.enter_context(lease.held_if_free(*lock_of(device)))
                if is_free and not any(claim.device == device for claim in device_use.claims()):
                    self._ray.kill(actor)
                elif has_gpu:
                    raise WorkerLost(f"{device} is at work for an engine of another version of the code")


def _packed() -> bytes:
    """The code as an archive, the same bytes for the same code."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(path for folder in TRAVELS for path in (ROOT / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                packed.writestr(zipfile.ZipInfo(str(path.relative_to(ROOT))), path.read_bytes())
    return archive.getvalue()


@functools.cache
def _side() -> Any:
    """The actor's class. It imports the code that came along, and nothing of this process travels with it.

    The code lies in a folder of ours: one that Ray unpacks is removed while workers of another engine still use it.
    """

    class Actor:
        def __init__(self, code: bytes, toolchain: str, place: str) -> None:
            import hashlib
            import io
            import os
            import re
            import sys
            import tempfile
            import zipfile
            from contextlib import suppress
            from pathlib import Path

            home = os.environ.get("TILEWRIGHT_WORKER_HOME", "")
            if not home:
                folder = Path(tempfile.gettempdir()) / f"tilewright-worker-{os.getuid()}"
                folder.mkdir(mode=0o700, exist_ok=True)
                if folder.lstat().st_uid != os.getuid():  # whoever made it could put code of theirs into it
                    raise PermissionError(f"{folder} is somebody else's: remove it, or set TILEWRIGHT_WORKER_HOME")
                folder.chmod(0o700)
                home = str(folder)
            os.environ["TILEWRIGHT_HOME"] = home
            secret = re.compile("KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
            for name in [
                variable for variable in os.environ if secret.search(variable) and not variable.startswith("RAY_")
            ]:
                del os.environ[name]  # whatever `ray start` was given, no key is for those who judge
            there = Path(home) / "code" / hashlib.sha256(code).hexdigest()[:16]
            if not there.exists():
                there.parent.mkdir(parents=True, exist_ok=True)
                draft = tempfile.mkdtemp(dir=there.parent)
                zipfile.ZipFile(io.BytesIO(code)).extractall(draft)
                with suppress(OSError):  # another worker of this host was first
                    Path(draft).rename(there)
            sys.path.insert(0, str(there))
            from engine.evaluator.pool.worker_side import WorkerSide

            self._side = WorkerSide(toolchain, place)

        def device(self) -> str:
            return self._side.device()

        def ask(self, request: str) -> str:
            return self._side.ask(request)

    return Actor


def _got(ray: Any, head: Head, ask: Callable[[], Any], name: str, limit_s: float | None = None) -> Any:
    """What an actor answers.

    Raises:
        WorkerLost: it ended, it took too long, or something there failed that is no answer (a full disk, say).
        ToolchainError: the head was lost.
    """
    waited_s = 0.0
    reference: Any = None
    while True:
        head.see()
        with _translated(ray, head, name):
            reference = reference if reference is not None else ask()
            ready, _ = ray.wait([reference], timeout=LOOK_S)
            if ready:
                return ray.get(reference)
        waited_s += LOOK_S
        if limit_s is not None and waited_s > limit_s:
            raise WorkerLost(f"{name}: it did not answer within {limit_s:.0f} s")


@contextmanager
def _translated(ray: Any, head: Head, name: str = "") -> Iterator[None]:
    """What Ray raises, as what it means here: of the worker of that name, else of the cluster."""
    try:
        yield
    except ray.exceptions.RayError as error:
        reason = _short(str(error))
        raise (WorkerLost(f"{name}: {reason}") if name else head.lost(reason)) from error
    except ConnectionError as error:  # of Ray's client, which has tried for half a minute
        raise head.lost(str(error)) from error


def _short(text: str) -> str:
    """One line; of a traceback the end says most."""
    line = " ".join(text.split())
    return line if len(line) <= REASON else f"{line[:80]} … {line[80 - REASON :]}"
