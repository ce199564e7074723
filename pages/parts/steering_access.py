"""Whether this server lets people steer. storage.read_only refuses as well; pages only hide what it would refuse."""

from __future__ import annotations

from storage import read_only


def is_allowed() -> bool:
    """False when TILEWRIGHT_READ_ONLY is set."""
    return not read_only.is_on()
