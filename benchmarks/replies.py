"""How many raw replies of real models turn into a new source: `python -m benchmarks.replies FILE.jsonl`.

Each line of the file has `source`, `answer` (the raw reply) and `source_after` (what the system that recorded it made
of it; equal to `source` where it could not use the reply). Prints every reply whose result is not what was recorded.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

from engine.search.patching.edits import EditError
from engine.search.patching.proposed_patch import read_patch

SAME = "as recorded"
BLANKS = "as recorded but for blank lines, which the reply asks for and the recorded source lacks"
ELSEWHERE = "not comparable: the recorded source has none of the lines that the reply adds, so it came from elsewhere"
OTHER = "other than recorded"
RESCUED, LOST = "used here, lost in the recording", "not used"


def judge(row: dict[str, str]) -> tuple[str, str]:
    """(outcome, why) of one reply."""
    try:
        proposed = read_patch(row["answer"])
        made = proposed.apply(row["source"])
    except EditError as report:
        is_bare = "{" not in row["answer"] and "```" not in row["answer"]
        why = f"it is only {row['answer'][:60]!r}" if is_bare else str(report).splitlines()[0]
        return LOST, why
    description = f"{proposed.form} ({proposed.way}), {proposed.count} edits"
    if row["source_after"] == row["source"]:
        return RESCUED, description
    if made == row["source_after"]:
        return SAME, description
    return _difference(row["source"], made, row["source_after"]), description


def _difference(source: str, made: str, recorded: str) -> str:
    if _dense(made) == _dense(recorded):
        return BLANKS
    added = set(_dense(made)) - set(_dense(source))
    return ELSEWHERE if added and not added & set(_dense(recorded)) else OTHER


def _dense(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.strip()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    rows = [json.loads(line) for line in parser.parse_args().file.read_text().splitlines() if line.strip()]
    outcomes: Counter[str] = Counter()
    for number, row in enumerate(rows, 1):
        outcome, why = judge(row)
        outcomes[outcome] += 1
        if outcome is not SAME:
            print(f"{number:4d} {row.get('id', '')}: {outcome}: {why}")
    recorded = sum(row["source_after"] != row["source"] for row in rows)
    print(f"\n{len(rows) - outcomes[LOST]} of {len(rows)} replies apply; of {recorded} with a recorded outcome:")
    for outcome in (SAME, BLANKS, ELSEWHERE, OTHER):
        print(f"{outcomes[outcome]:4d} {outcome}")
    print(f"{outcomes[RESCUED]:4d} more are {RESCUED}; {outcomes[LOST]} are {LOST}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
