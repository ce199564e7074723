"""`python -m tests.guard`: the pages' rows after every single event of every saved run, which takes minutes."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.guard.saved import NAMES, expected, unpack
from tests.guard.test_guard import different_rows


def main() -> int:
    failed = 0
    for name in sys.argv[1:] or NAMES:
        with tempfile.TemporaryDirectory() as place:
            root = Path(place)
            found = different_rows(
                name, unpack(name, root / "saved"), root / "growing", expected(name), lambda count: True
            )
        print(f"{name}: {len(found)} differences", *found[:20], sep="\n  ", flush=True)
        failed += bool(found)
    return min(failed, 1)


sys.exit(main())
