"""Reading the saved runs and what is expected of them."""

from __future__ import annotations

import json
import lzma
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RUNS, EXPECTED = HERE / "runs", HERE / "expected"
# Hashes of what is shown of all runs and examples, and of a few runs alone.
SHOWN_ALL, SHOWN_FEW = EXPECTED / "shown.json", EXPECTED / "shown_few.json"
FEW = ["approval", "hinted", "rolled_back"]
NAMES = sorted(path.name.removesuffix(".tar.xz") for path in RUNS.glob("*.tar.xz"))


@dataclass(frozen=True, slots=True)
class Expected:
    """What was made of one run. Place k of each list is about the first k events of its journal.

    `texts` holds what `prompts` names by hash; `rows` names, for each query, the hash of its answer where it changed.
    `last_rows` are the answers about the whole journal in full.
    """

    moves: list[Any]
    prompts: list[list[str]]
    texts: dict[str, Any]
    rows: list[dict[str, str]]
    last_rows: dict[str, Any]


def unpack(name: str, root: Path) -> Path:
    """The folder of a saved run, under its own run id in `root`."""
    root.mkdir(parents=True, exist_ok=True)
    with tarfile.open(RUNS / f"{name}.tar.xz") as packed:
        run_id = packed.getnames()[0].partition("/")[0]
        if hasattr(tarfile, "data_filter"):  # Debian's Python 3.11.2 has none yet
            packed.extraction_filter = tarfile.data_filter
        packed.extractall(root)
    return root / run_id


def expected(name: str) -> Expected:
    """What is expected of a saved run."""
    return Expected(**json.loads(lzma.decompress((EXPECTED / f"{name}.json.xz").read_bytes())))
