"""Line edits as a JSON schema, for endpoints that can be held to one. Knows the form, not what an edit does."""

from __future__ import annotations

from typing import Any

from storage.models import PatchForm

NAME = "line_edits"
ABOUT = "Edit the numbered listing. All line numbers refer to the listing as shown; edits are applied together."

_LINES = {"type": "array", "items": {"type": "string"}}
_EDIT = {
    "action": {"type": "string", "enum": ["replace", "delete", "insert"]},
    "line_number": {"type": "integer"},
    "num_lines": {"type": "integer", "description": "0 for an insert"},
    "old_code": _LINES,
    "new_code": _LINES,
    "why": {"type": "string"},
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "summary": {"type": "string", "description": "what is changed and why, in one sentence"},
        "edits": {
            "type": "array",
            "items": {"type": "object", "properties": _EDIT, "required": list(_EDIT), "additionalProperties": False},
        },
    },
    "required": ["summary", "edits"],
    "additionalProperties": False,
}


def for_chat(form: PatchForm) -> dict[str, Any]:
    """Request fields of chat completions that ask for edits in this form."""
    match form:
        case PatchForm.JSON_SCHEMA:
            schema = {"name": NAME, "schema": SCHEMA, "strict": True}
            return {"response_format": {"type": "json_schema", "json_schema": schema}}
        case PatchForm.TOOL:
            tool = {"name": NAME, "description": ABOUT, "parameters": SCHEMA}
            return {"tools": [{"type": "function", "function": tool}]}
        case PatchForm.TEXT:
            return {}


def for_responses(form: PatchForm) -> dict[str, Any]:
    """Request fields of the Responses protocol that ask for edits in this form."""
    match form:
        case PatchForm.JSON_SCHEMA:
            return {"text": {"format": {"type": "json_schema", "name": NAME, "schema": SCHEMA, "strict": True}}}
        case PatchForm.TOOL:
            return {"tools": [{"type": "function", "name": NAME, "description": ABOUT, "parameters": SCHEMA}]}
        case PatchForm.TEXT:
            return {}
