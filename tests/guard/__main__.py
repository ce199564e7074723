"""What CI looks at in samples, looked at whole; run before and after a change of how a run's figures are made.

python -m tests.guard                   the pages' rows after every event of every saved run (minutes)
python -m tests.guard --all             that, index against record after every event, and all that is shown
python -m tests.guard --write FILE      all that is shown, as JSON, to compare two versions of the code by eye
python -m tests.guard --keep            all that is shown is right as it is: keep its hashes
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.guard import shown, two_sides
from tests.guard.saved import FEW, NAMES, SHOWN_ALL, SHOWN_FEW, expected, unpack
from tests.guard.test_guard import different_rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", default=NAMES, metavar="RUN")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--write", type=Path, metavar="FILE")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # Streamlit's, of scripts without a browser
    if options.write:
        with shown.home_of(options.runs, with_examples=True) as runs:
            options.write.write_text(json.dumps(dict(shown.said(runs)), indent=1, sort_keys=True, ensure_ascii=False))
        return 0
    if options.keep:
        for file, names in ((SHOWN_ALL, NAMES), (SHOWN_FEW, FEW)):
            file.write_text(json.dumps(shown.digests(names, with_examples=file == SHOWN_ALL), indent=0) + "\n")
        return 0
    looks = [_rows(name) for name in options.runs]
    if options.all:
        looks += [*(_sides(name) for name in options.runs), _shown()]
    failed = 0
    for found in looks:
        what, differences = next(found), list(found)
        print(f"{what}: {len(differences)} differences", *differences[:20], sep="\n  ", flush=True)
        failed += bool(differences)
    return min(failed, 1)


def _rows(name: str) -> Iterator[str]:
    yield f"{name}, rows"
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        yield from different_rows(
            name, unpack(name, root / "saved"), root / "growing", expected(name), lambda count: True
        )


def _sides(name: str) -> Iterator[str]:
    yield f"{name}, index and record"
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        yield from two_sides.differences(unpack(name, root / "saved"), root / "growing", lambda count: True)


def _shown() -> Iterator[str]:
    yield "all that is shown"
    known, now = json.loads(SHOWN_ALL.read_text()), shown.digests(NAMES, with_examples=True)
    yield from sorted(where for where in known.keys() | now.keys() if known.get(where) != now.get(where))


sys.exit(main())
