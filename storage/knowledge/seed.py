"""The states and techniques that Tilewright is shipped with, as a revision that comes before all others."""

from __future__ import annotations

import functools
import hashlib
import tomllib
from pathlib import Path

from storage import codec
from storage.knowledge.records import Revision

SEED = "seed"
FILE = Path(__file__).with_name("seed.toml")


@functools.cache
def revision() -> Revision:
    """What stands in seed.toml.

    Raises:
        codec.DecodeError: the file is not what it must be.
    """
    try:
        tables = tomllib.loads(FILE.read_text(encoding="utf-8"))
        head = {"revision_id": SEED, "at": 0.0, "by": SEED, "why": "shipped with Tilewright"}
        shipped: Revision = codec.from_plain(Revision, head | tables)
    except ValueError as error:
        raise codec.DecodeError(f"{FILE}: {error}") from error
    return shipped


@functools.cache
def digest() -> str:
    """Names the content of the seed in use."""
    return hashlib.sha256(codec.dumps(revision()).encode()).hexdigest()[:8]
