"""Device memory of fixed size between the judge and one worker, seen as tensors. Knows shapes, not meanings."""

from __future__ import annotations

from engine.evaluation.arena import Arena, Layout, padded
from engine.evaluation.device import driver


class DeviceArena(Arena):
    """One allocation of the judge's, mapped by a worker through its handle. Lives as long as the judge."""

    device = "cuda"

    def __init__(self, name: str) -> None:
        self._address = 0
        self._groups = {}

    @property
    def inherited(self) -> list[int]:
        """None: the driver's handle says it all."""
        return []

    @property
    def place(self) -> str:
        """The allocation's handle."""
        handle, _ = driver.export(self._address)
        return handle.hex()

    def size_to(self, layout: Layout) -> None:
        """Allocate for a layout and map it here.

        Raises:
            DriverRefused: the device has not so much memory free.
        """
        self._address = driver.allocate(max(1, sum(padded(spec) for specs in layout.values() for spec in specs)))
        self._lay_out(layout)

    def map(self, layout: Layout, place: str = "") -> None:
        """Map what the judge has sized."""
        self._address = driver.attach(bytes.fromhex(place))
        self._lay_out(layout)

    def _lay_out(self, layout: Layout) -> None:
        offset = self._address
        for name, specs in layout.items():
            self._groups[name] = []
            for spec in specs:
                self._groups[name].append(driver.tensor_at(offset, spec.shape, spec.torch_dtype))
                offset += padded(spec)
