"""What the answers to KernelBlaster's questions must hold, read strictly: a state, a plan, a verification, edits of
what is known. What does not fit is reported to the model, all of it at once. Knows text, not kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.search.actions import Reading
from engine.search.methods.answers import NAME, SENTENCE, Object, listed
from storage.knowledge.records import Bottleneck, Category

MOST_NEW, MOST_EDITS, MOST_PARTS = 3, 8, 3
CLASSIFY_FIELDS = ("state", "confidence", "why")
PLAN_FIELDS = ("reading", "relevance", "new")
CLAIMS = {
    "work_dropped": "leaves out work of the reference",
    "library_called": "leaves the work to a library",
    "constant_folded": "holds results that were worked out beforehand",
}
JUDGE_FIELDS = (*CLAIMS, "evidence")
REVISE_FIELDS = ("edits",)


@dataclass(frozen=True, slots=True)
class ReadState:
    """Reads which known state is nearest to a kernel's, and how surely it is that one."""

    known: tuple[str, ...]

    def __call__(self, reply: str) -> Reading:
        """The state by name.

        Raises:
            EditError: the reply does not hold one.
        """
        found = Object.of(reply)
        state, confidence, why = found.choice("state", self.known), found.share("confidence"), found.text("why")
        found.close()
        found.report()
        summary = {"state": state, "confidence": f"{confidence:.2g}", "why": why}
        return Reading(summary, {"state": state, "confidence": confidence, "why": why})


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """Reads how much each technique offered would help a kernel, from 0 to 1, and at most three that are not on that
    list: new ones, or some of the `others` that the base knows by name."""

    offered: tuple[str, ...]
    others: tuple[str, ...] = ()

    def __call__(self, reply: str) -> Reading:
        """Relevance by technique, and the new ones with what is expected of them.

        Raises:
            EditError: the reply does not hold them.
        """
        found = Object.of(reply)
        reading = found.text("reading")
        rated = found.take("relevance")
        relevance = self._rated(found, {} if rated is None and not self.offered else rated)
        new = [self._new(one) for one in found.objects("new", MOST_NEW)]
        if not self.offered and not new:
            found.fault("new", "must hold at least one technique: none is known for this state")
        found.close()
        found.report()
        summary = ", ".join(f"{name} {share:.2g}" for name, share in _largest_first(relevance))
        proposed = "; ".join(f"{one['technique']} ({one['predicted_gain']:.3g}x): {one['about']}" for one in new)
        fields = {"reading": reading, "relevance": summary, "new": proposed}
        payload = {"relevance": relevance | {one["technique"]: one["relevance"] for one in new}, "new": new}
        return Reading({name: text for name, text in fields.items() if text}, payload)

    def _rated(self, found: Object, rated: object) -> dict[str, float]:
        if not isinstance(rated, dict):
            found.fault("relevance", "must be an object with a number from 0 to 1 by technique")
            return {}
        known, elsewhere = {name.lower(): name for name in self.offered}, {name.lower() for name in self.others}
        ratings = Object(rated, "relevance: ", found.faults)
        relevance = {}
        for name in rated:
            plain = " ".join(name.split()).lower()
            if plain in known:
                relevance[known[plain]] = ratings.share(name)
            elif plain not in elsewhere:  # those are shown by name alone: a rating of one says no more, and is left out
                found.fault("relevance", f"names {name[:NAME]!r}, which is not on the list; a new one belongs into new")
        if self.offered and not relevance:
            found.fault("relevance", "rates none of the techniques on the list")
        return relevance

    def _new(self, one: Object) -> dict[str, Any]:
        name = one.text("technique", NAME)
        if name.lower() in {known.lower() for known in self.offered}:
            one.fault("technique", f"{name!r} is on the list already: rate it in relevance")
        known = next((other for other in self.others if other.lower() == name.lower()), "")
        new = {
            "technique": known or name,
            "is_known": bool(known),
            "category": one.choice("category", list(Category)),
            "about": one.text("about"),
            "helps": one.text("helps"),
            "hurts": one.text("hurts"),
            "predicted_gain": one.gain("predicted_gain"),
            "relevance": one.share("relevance"),
        }
        one.close()
        return new


def read_verification(reply: str) -> Reading:
    """What the judge says of a kernel's structure beside the reference's; a flag for each claim that it makes.

    Raises:
        EditError: the reply does not say so.
    """
    found = Object.of(reply)
    claims = {name: found.truth(name) for name in CLAIMS}
    evidence = found.text("evidence", 3 * SENTENCE)
    found.close()
    found.report()
    made = [name for name, is_made in claims.items() if is_made]
    flags = tuple(f"the judge says that it {CLAIMS[name]}: {evidence}" for name in made)
    verdict = "; ".join(f"it {CLAIMS[name]}" for name in made) or "nothing dropped, called or folded"
    return Reading({"verdict": verdict, "evidence": evidence}, {"claims": made, "evidence": evidence}, flags)


def state_name(text: str) -> str:
    """A state's name as all of them are written: small letters, digits and underscores."""
    return "_".join("".join(c if c.isascii() and c.isalnum() else " " for c in text.lower()).split())


@dataclass(frozen=True, slots=True)
class ReadEdits:
    """Reads what is to change in the knowledge base, each edit by its kind. Names must be known, or made by an earlier
    edit of the reply."""

    states: tuple[str, ...]
    techniques: tuple[str, ...]

    def __call__(self, reply: str) -> Reading:
        """The edits, checked.

        Raises:
            EditError: the reply does not hold a list of edits, or not all of them fit.
        """
        found = Object.of(reply)
        if found.take("edits") is None:
            found.fault("edits", "is missing: an empty list where nothing is to change")
        names = _Names({one.lower(): one for one in self.states}, {one.lower(): one for one in self.techniques})
        edits = [_edit(one, names) for one in found.objects("edits", MOST_EDITS)]
        found.close()
        found.report()
        summary = "\n".join(f"{number}. {_edit_line(one)}: {one['why']}" for number, one in enumerate(edits, 1))
        return Reading({"edits": summary or "nothing is to change"}, {"edits": edits})


@dataclass(frozen=True, slots=True)
class _Names:
    """Names in use, by their small letters."""

    states: dict[str, str]
    techniques: dict[str, str]


def _edit(one: Object, names: _Names) -> dict[str, Any]:
    kind = one.choice("edit", list(_EDITS))
    edit = {"edit": kind, **(_EDITS[kind](one, names) if kind else {}), "why": one.text("why")}
    if kind:
        one.close()
    return edit


def _prediction(one: Object, names: _Names) -> dict[str, Any]:
    edit: dict[str, Any] = {
        "state": one.choice("state", [*names.states.values()]),
        "technique": one.choice("technique", [*names.techniques.values()]),
    }
    has_gain, has_confidence = one.take("gain") is not None, one.take("confidence") is not None
    if has_gain:
        edit["gain"] = one.gain("gain")
    if has_confidence:
        edit["confidence"] = one.share("confidence")
    if not has_gain and not has_confidence:
        one.fault("gain", "or confidence, or both, must be given")
    return edit


def _technique(one: Object, names: _Names) -> dict[str, Any]:
    name = one.text("technique", NAME)
    if name.lower() in names.techniques:
        one.fault("technique", f"{name!r} is known already: change what is expected of it with a prediction edit")
    edit = {
        "technique": name,
        "category": one.choice("category", list(Category)),
        "about": one.text("about"),
        "helps": one.text("helps"),
        "hurts": one.text("hurts"),
        "state": one.choice("state", [*names.states.values()]),
        "gain": one.gain("gain"),
        "confidence": one.share("confidence"),
    }
    names.techniques.setdefault(name.lower(), name)
    return edit


def _composite(one: Object, names: _Names) -> dict[str, Any]:
    parts = one.texts("parts", MOST_PARTS)
    known = [names.techniques.get(part.lower(), "") for part in parts]
    if len(parts) < 2 or len({part.lower() for part in parts}) < len(parts) or not all(known):
        one.fault("parts", f"must be two or three different techniques of {listed([*names.techniques.values()])}")
    return _technique(one, names) | {"parts": known}


def _state(one: Object, names: _Names) -> dict[str, Any]:
    name = state_name(one.text("state", NAME))
    if name in names.states:
        one.fault("state", f"{name!r} is known already")
    edit = {
        "state": name,
        "bottleneck": one.choice("bottleneck", list(Bottleneck)),
        "about": one.text("about"),
        "inherits": one.choice("inherits", [*names.states.values()]),
    }
    names.states.setdefault(name, name)
    return edit


def _deprecation(one: Object, names: _Names) -> dict[str, Any]:
    return {"technique": one.choice("technique", [*names.techniques.values()])}


_EDITS: Mapping[str, Callable[[Object, _Names], dict[str, Any]]] = {
    "prediction": _prediction,
    "technique": _technique,
    "composite": _composite,
    "state": _state,
    "deprecation": _deprecation,
}


def _edit_line(edit: Mapping[str, Any]) -> str:
    """An edit in words."""
    expected = [f"{edit['gain']:.3g}x" for _ in range("gain" in edit)]
    expected += [f"confidence {edit['confidence']:.2g}" for _ in range("confidence" in edit)]
    about = " in ".join(str(edit[name]) for name in ("technique", "state") if name in edit)
    parts = f" of {' + '.join(edit['parts'])}" if "parts" in edit else ""
    return f"{edit['edit']} {about}{parts}" + (f" ({', '.join(expected)})" if expected else "")


def _largest_first(relevance: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(relevance.items(), key=lambda one: -one[1])
