"""A finished or running run as a recording that can be replayed without a key. Knows journals, not who saves them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from engine.errors import EngineError
from engine.search.llm.recording import Line, write_recording
from storage.run import events as ev
from storage.run import journal
from storage.run.blobs import Blobs
from storage.run.folder import RunFolder
from storage.run.record import Candidate, Record
from storage.run.settings import RunSettings

REMOVED = "[removed]"
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$")
_KEY = re.compile(
    r"\b(?:sk|pk|rk|hf|gh[pousr]|xox[bap]|AIza|AKIA)[-_]?[A-Za-z0-9][A-Za-z0-9_-]{18,}|(?<=Bearer )\S{16,}"
)
_ADDRESS = re.compile(
    r"https?://(?:[^\s/@\"']+@[^\s\"'`<>)]+|(?:localhost|\d{1,3}(?:\.\d{1,3}){3})(?::\d+)?[^\s\"'`<>)]*)"
)


def recording_of(folder: RunFolder) -> str:
    """The text of a recording of a run: every reply it was given, in order, and what is needed to replay it.

    Keys and addresses of endpoints are taken out wherever they stand.

    Raises:
        EngineError: the run has had no reply yet, or a text of it is missing.
    """
    settings, blobs = folder.read_settings(), Blobs(folder.blobs)
    record, lines = Record.of(settings, []), dict[tuple[int, int], Line]()
    for entry in journal.read(folder.journal_file):
        if isinstance(entry.event, ev.ModelCalled):
            # A reply that was cut off is asked for again: the one that was used stands.
            lines[entry.event.step, entry.event.call] = _line(entry.event, record, blobs)
        record.apply(entry.event)
    if not lines:
        raise EngineError(f"run {folder.run_id} has no model reply yet, so there is nothing to record")
    return without_secrets(write_recording(_header(settings, record), list(lines.values())))


def _line(call: ev.ModelCalled, record: Record, blobs: Blobs) -> Line:
    candidate = record.candidates.get(call.candidate_id or "")
    try:
        reply = blobs.get(call.reply_blob)
    except FileNotFoundError as error:
        raise EngineError(f"the reply of step {call.step} is missing from the run folder") from error
    source = candidate.created.source_blob if candidate else None
    return Line(call.role, source, reply, call.depth, call.finish_reason, _verdict(candidate))


def _verdict(candidate: Candidate | None) -> str:
    return str(candidate.verdict) if candidate and candidate.verdict else ""


def _header(settings: RunSettings, record: Record) -> Mapping[str, Any]:
    return {
        "task": settings.task_name,
        "toolchain": settings.toolchain,
        "model": settings.model,
        "author": "recorded from a run",
        "note": "",
        "settings": {
            "strategy": settings.strategy,
            "language": settings.language,
            "sizes": dict(settings.sizes),
            **settings.strategy_options,
            "depths": len(record.concluded) - 1 if record.concluded else settings.budget.depths,
        },
    }


def without_secrets(text: str, environment: Mapping[str, str] | None = None) -> str:
    """The text without the keys and endpoint addresses of this environment, and without what looks like one."""
    variables = os.environ if environment is None else environment
    secret_texts = {v for name, v in variables.items() if _SECRET_NAME.search(name) and len(v) >= 8}
    for name, address in variables.items():
        if name.endswith("BASE_URL") and address:
            secret_texts |= {address, address.rstrip("/"), urlsplit(address).netloc or address}
    for secret in sorted(secret_texts, key=len, reverse=True):
        text = text.replace(secret, REMOVED)
    return _ADDRESS.sub(REMOVED, _KEY.sub(REMOVED, text))
