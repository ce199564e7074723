"""What g++ says about vectorising the candidate's own lines, from its -fopt-info file. Knows no flags."""

from __future__ import annotations

import re

from engine.toolchains.host.order import CANDIDATE_FILE

MAX_REMARKS = 40
_LINE = re.compile(rf"^(?:{re.escape(CANDIDATE_FILE)}|cpp_sources\[\d+\]):(\d+):\d+: (optimized|missed): +(.*)$")
# Said about every call and statement next to a loop; the loop's own remark carries the reason.
_NOISE = re.compile(
    r"statement (clobbers memory|can throw)|splitting region|no grouped|basic block part|no vectype|: ?$"
)


def read(text: str) -> tuple[str, ...]:
    """Remarks in line order, each once: `line 17: missed: couldn't vectorize loop`."""
    found: dict[tuple[int, str], None] = {}
    for raw in text.split("\n"):
        match = _LINE.match(raw)
        if match and not _NOISE.search(match[3]):
            found[(int(match[1]), f"{match[2]}: {match[3][:160]}")] = None
    return tuple(f"line {line}: {text}" for line, text in sorted(found))[:MAX_REMARKS]
