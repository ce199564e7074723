"""The JSON Schema of each form, as `docs/json/` ships it; `python -m engine.shown.schemas` writes the files anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from engine.shown.networks import NetworkForm
from engine.shown.runs import RunForm
from engine.shown.suites import SuiteForm

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "json"
FORMS: dict[str, Any] = {"show": RunForm, "network_rank": NetworkForm, "suite_show": SuiteForm}


def text(name: str) -> str:
    """The schema of a form as its file has it."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"} | msgspec.json.schema(FORMS[name])
    for record in schema["$defs"].values():
        if "properties" in record:
            record["required"] = list(record["properties"])  # what has a default is written too
    return f"{json.dumps(schema, indent=1)}\n"


if __name__ == "__main__":
    for form in FORMS:
        (FOLDER / f"{form}.schema.json").write_text(text(form), encoding="utf-8")
