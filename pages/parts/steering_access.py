"""Whether this server lets people steer. storage.commands refuses as well; pages only hide what it would refuse."""

from __future__ import annotations

import os


def is_allowed() -> bool:
    """False when TILEWRIGHT_READ_ONLY is set."""
    return not os.environ.get("TILEWRIGHT_READ_ONLY")
