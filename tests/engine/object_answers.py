"""Answers to the questions that expect a JSON object, by the prompt alone: for a server that knows nothing of a run."""

from __future__ import annotations

import json
import re

WORDS = {"category": "memory", "about": "does it", "helps": "here", "hurts": "there"}
CLAIMS = dict.fromkeys(("work_dropped", "library_called", "constant_folded"), False)
KINDS = "memory|compute|latency|general|hybrid|overhead"  # of a technique, or of a state
STEP = {"category": "memory", "think": "it waits", "method": "does it", "before": "a;", "after": "b;"}


def answer(prompt: str, number: int) -> str | None:
    """The object that a prompt asks for, as a reply; None where it asks for none. `number` makes new names differ."""
    fields = _fields(prompt, number)
    return None if fields is None else f"```json\n{json.dumps(fields)}\n```\n"


def _fields(prompt: str, number: int) -> dict[str, object] | None:
    asked = prompt.rpartition("JSON")[2] if "JSON object" in prompt else ""
    listed = re.findall(rf"^- (.+?) \((?:{KINDS})\): ", prompt, re.MULTILINE)
    if '"relevance"' in asked:
        added = {"technique": f"idea {number}", "predicted_gain": 1.5, "relevance": 0.5}
        return {"reading": "it waits", "relevance": dict.fromkeys(listed, 0.5), "new": [added | WORDS]}
    if '"confidence"' in asked:
        return {"state": listed[0], "confidence": 0.4, "why": "no counters here"}
    if '"work_dropped"' in asked:
        return CLAIMS | {"evidence": "each element is computed"}
    if '"lesson"' in asked:
        return {"assumption": "that it waits", "cause": "it is tiny", "lesson": "expect less"}
    if '{"edits": […]}' in asked:
        return {"edits": []}
    if '"labels"' in asked:
        return {"labels": ["new"] * len(re.findall(r"^\d+\. ", prompt, re.MULTILINE))}
    if '"steps"' in asked:
        return {"steps": [STEP | {"technique": f"idea {number}.{place}"} for place in range(2)]}
    if '"think"' in asked:
        return {"technique": f"idea {number}", "think": "it waits", "predicted_gain": 1.3} | WORDS
    return None
