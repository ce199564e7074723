"""The kernels that one server has judged, by the hash of their source: what resources show and later calls refer to.
The last ones are kept, in memory alone."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, replace

from engine.errors import EngineError
from engine.mcp_server.stages import Judged
from storage.results.evaluation_results import TimingResult, is_improvement

MOST = 500
NAME = 12


@dataclass(frozen=True, slots=True)
class Kernel:
    """`task` names task and sizes; kernels of two are not compared."""

    name: str
    task: str
    source: str
    judged: Judged


class Shelf:
    """Kernels in the order in which they were judged last."""

    def __init__(self) -> None:
        self._kernels: OrderedDict[tuple[str, str], Kernel] = OrderedDict()

    def put(self, task: str, source: str, judged: Judged) -> Kernel:
        """Keep a kernel. What an earlier call has shown beyond this one stays."""
        name = hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()[:NAME]
        kernel = Kernel(name, task, source, _together(self._kernels.pop((task, name), None), judged))
        self._kernels[task, name] = kernel
        while len(self._kernels) > MOST:
            self._kernels.popitem(last=False)
        return kernel

    def find(self, name: str) -> Kernel:
        """A kernel by its name; of several tasks the one judged last.

        Raises:
            EngineError: this server has judged none of that name.
        """
        for (_, known), kernel in reversed(list(self._kernels.items())):
            if known == name:
                return kernel
        raise EngineError(f"this server has judged no kernel {name!r}: evaluate it again, or read kernels of runs")

    def best(self, task: str) -> list[Kernel]:
        """The kernels of a task that were timed, fastest first."""
        timed = [kernel for kernel in list(self._kernels.values()) if kernel.task == task and kernel.judged.timed]
        return sorted(timed, key=lambda kernel: -_speedup(kernel.judged.timed))

    def beats(self, kernel: Kernel) -> bool | None:
        """Whether a kernel is faster, beyond the noise, than every other of its task; None where there is none."""
        others = [other for other in self.best(kernel.task) if other.name != kernel.name]
        new, old = kernel.judged.timed, others[0].judged.timed if others else None
        return is_improvement(new, old) if new and old else None


def _speedup(timed: TimingResult | None) -> float:
    return timed.speedup if timed else 0.0


def _together(earlier: Kernel | None, judged: Judged) -> Judged:
    if earlier is None:
        return judged
    before = earlier.judged
    return replace(judged, timed=judged.timed or before.timed, profile=judged.profile or before.profile,
                   limit=judged.limit or before.limit)  # fmt: skip
