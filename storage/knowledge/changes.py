"""What a person changes of what is known, as revisions to append. Pure: knows what is there, writes nothing."""

from __future__ import annotations

import dataclasses
import os
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from storage import codec
from storage.knowledge.base import Base
from storage.knowledge.exported import KnowledgeError
from storage.knowledge.failures import FailureRule
from storage.knowledge.figures import revisions_in_force
from storage.knowledge.records import Prior, Revision, RuleWords, State, Technique

_FIXED = ("name", "is_discovered", "rule")


def change(
    why: str,
    by: str = "",
    *,
    states: Sequence[State] = (),
    techniques: Sequence[Technique] = (),
    priors: Sequence[Prior] = (),
    rules: Sequence[RuleWords] = (),
    reverts: str = "",
) -> Revision:
    """A revision with an id of its own, made now, by this user where nobody is named."""
    return Revision(
        revision_id=uuid.uuid4().hex[:12],
        at=time.time(),
        by=by or os.environ.get("USER") or os.environ.get("LOGNAME") or "someone",
        why=why,
        states=tuple(states),
        techniques=tuple(techniques),
        priors=tuple(priors),
        rules=tuple(rules),
        reverts=reverts,
    )


def named(base: Base, name: str) -> State | Technique | RuleWords:
    """The technique of this name, or else the state, or else what a person says of the failure rule of this id.

    Raises:
        KnowledgeError: there is none of them.
    """
    entry = base.techniques.get(name) or base.states.get(name) or words_of(base, name)
    if entry is None:
        raise KnowledgeError(f"nothing is known as {name!r}: `python -m engine knowledge list` shows all names")
    return entry


def rule_of(base: Base, rule_id: str) -> FailureRule | None:
    """The failure rule of this id, if such a failure was seen."""
    return next((rule for rule in base.rules() if rule.rule_id == rule_id), None)


def words_of(base: Base, rule_id: str) -> RuleWords | None:
    """What a person says of a failure rule, empty where nobody has said anything; None where there is no such rule."""
    return base.known.rules.get(rule_id) or (RuleWords(rule_id) if rule_of(base, rule_id) else None)


def switched(base: Base, name: str, is_disabled: bool, why: str = "", by: str = "") -> Revision:
    """Take a technique, a state or a failure rule out of use, or back into it.

    Raises:
        KnowledgeError: there is none of this name, or it is so already.
    """
    entry = named(base, name)
    word = "disabled" if is_disabled else "enabled"
    if entry.is_disabled == is_disabled:
        raise KnowledgeError(f"{name} is {word} already")
    return put(dataclasses.replace(entry, is_disabled=is_disabled), why or f"{word} {name}", by)


def edited(base: Base, name: str, fields: Mapping[str, str], why: str = "", by: str = "") -> Revision:
    """Other words for a technique, a state or a failure rule; a field of several names takes them separated by commas.

    Raises:
        KnowledgeError: there is none of this name or no such field, or the field cannot have this value.
    """
    entry = named(base, name)
    allowed = [field.name for field in dataclasses.fields(entry) if field.name not in _FIXED]
    plain: dict[str, Any] = codec.to_plain(entry)
    for field, text in fields.items():
        if field not in allowed:
            raise KnowledgeError(f"{field!r} cannot be set: use one of {', '.join(allowed)}")
        plain[field] = _read(plain[field], text)
    try:
        return put(codec.from_plain(type(entry), plain), why or f"edited {', '.join(fields)} of {name}", by)
    except codec.DecodeError as error:
        raise KnowledgeError(f"{error}") from error


def _read(before: Any, text: str) -> Any:
    if isinstance(before, bool):
        return {"true": True, "yes": True, "false": False, "no": False}.get(text.strip().lower(), text)
    if isinstance(before, list | tuple):
        return [name.strip() for name in text.split(",") if name.strip()]
    return text


def reverted(base: Base, revision_id: str, why: str = "", by: str = "") -> Revision:
    """Take a change back; one that is itself a revert brings back what it took away.

    Raises:
        KnowledgeError: there is no such change, or it does not count any longer.
    """
    if revision_id not in {revision.revision_id for revision in base.revisions}:
        raise KnowledgeError(f"there is no revision {revision_id!r}: `python -m engine knowledge revisions` shows them")
    if revision_id not in {revision.revision_id for revision in revisions_in_force(base.revisions)}:
        raise KnowledgeError(f"revision {revision_id} is reverted already: revert the revert to bring it back")
    return change(why or f"reverted {revision_id}", by, reverts=revision_id)


def put(entry: State | Technique | RuleWords, why: str, by: str) -> Revision:
    """A change that puts this in place of what has its name."""
    if isinstance(entry, RuleWords):
        return change(why, by, rules=(entry,))
    if isinstance(entry, State):
        return change(why, by, states=(entry,))
    return change(why, by, techniques=(entry,))
