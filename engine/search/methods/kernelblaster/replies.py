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
        answer = Object.of(reply)
        state, confidence, why = answer.choice("state", self.known), answer.share("confidence"), answer.text("why")
        answer.close()
        answer.report()
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
        answer = Object.of(reply)
        reading = answer.text("reading")
        rated = answer.take("relevance")
        relevance = self._rated(answer, {} if rated is None and not self.offered else rated)
        new = [self._new(entry) for entry in answer.objects("new", MOST_NEW)]
        if not self.offered and not new:
            answer.fault("new", "must hold at least one technique: none is known for this state")
        answer.close()
        answer.report()
        summary = ", ".join(f"{name} {share:.2g}" for name, share in _largest_first(relevance))
        proposed = "; ".join(
            f"{technique['technique']} ({technique['predicted_gain']:.3g}x): {technique['about']}" for technique in new
        )
        fields = {"reading": reading, "relevance": summary, "new": proposed}
        payload = {
            "relevance": relevance | {technique["technique"]: technique["relevance"] for technique in new},
            "new": new,
        }
        return Reading({name: text for name, text in fields.items() if text}, payload)

    def _rated(self, answer: Object, rated: object) -> dict[str, float]:
        if not isinstance(rated, dict):
            answer.fault("relevance", "must be an object with a number from 0 to 1 by technique")
            return {}
        offered, elsewhere = {name.lower(): name for name in self.offered}, {name.lower() for name in self.others}
        ratings = Object(rated, "relevance: ", answer.faults)
        relevance = {}
        for name in rated:
            plain = " ".join(name.split()).lower()
            if plain in offered:
                relevance[offered[plain]] = ratings.share(name)
            elif plain not in elsewhere:  # those are shown by name alone: a rating of one says no more, and is left out
                answer.fault(
                    "relevance", f"names {name[:NAME]!r}, which is not on the list; a new one belongs into new"
                )
        if self.offered and not relevance:
            answer.fault("relevance", "rates none of the techniques on the list")
        return relevance

    def _new(self, fields: Object) -> dict[str, Any]:
        name = fields.text("technique", NAME)
        if name.lower() in {offered.lower() for offered in self.offered}:
            fields.fault("technique", f"{name!r} is on the list already: rate it in relevance")
        known_name = next((other for other in self.others if other.lower() == name.lower()), "")
        new = {
            "technique": known_name or name,
            "is_known": bool(known_name),
            "category": fields.choice("category", list(Category)),
            "about": fields.text("about"),
            "helps": fields.text("helps"),
            "hurts": fields.text("hurts"),
            "predicted_gain": fields.gain("predicted_gain"),
            "relevance": fields.share("relevance"),
        }
        fields.close()
        return new


def read_verification(reply: str) -> Reading:
    """What the judge says of a kernel's structure beside the reference's; a flag for each claim that it makes.

    Raises:
        EditError: the reply does not say so.
    """
    answer = Object.of(reply)
    claims = {name: answer.truth(name) for name in CLAIMS}
    evidence = answer.text("evidence", 3 * SENTENCE)
    answer.close()
    answer.report()
    claimed = [name for name, is_made in claims.items() if is_made]
    flags = tuple(f"the judge says that it {CLAIMS[name]}: {evidence}" for name in claimed)
    verdict = "; ".join(f"it {CLAIMS[name]}" for name in claimed) or "nothing dropped, called or folded"
    return Reading({"verdict": verdict, "evidence": evidence}, {"claims": claimed, "evidence": evidence}, flags)


def state_name(text: str) -> str:
    """A state's name as all of them are written: small letters, digits and underscores."""
    return "_".join("".join(c if c.isascii() and c.isalnum() else " " for c in text.lower()).split())


@dataclass(frozen=True, slots=True)
class ReadEdits:
    """Reads what is to change in the knowledge base, each edit by its kind. Names must be known, or made by an earlier
    edit of the reply. `proposed` are techniques that a plan of the round brought in: known, but described for the
    kernel that it saw, and so they may be described anew."""

    states: tuple[str, ...]
    techniques: tuple[str, ...]
    proposed: tuple[str, ...] = ()

    def __call__(self, reply: str) -> Reading:
        """The edits, checked.

        Raises:
            EditError: the reply does not hold a list of edits, or not all of them fit.
        """
        answer = Object.of(reply)
        if answer.take("edits") is None:
            answer.fault("edits", "is missing: an empty list where nothing is to change")
        names = _Names(
            {state.lower(): state for state in self.states},
            {technique.lower(): technique for technique in (*self.techniques, *self.proposed)},
            {technique.lower() for technique in self.proposed},
        )
        edits = [_edit(fields, names) for fields in answer.objects("edits", MOST_EDITS)]
        answer.close()
        answer.report()
        summary = "\n".join(f"{number}. {_edit_line(edit)}: {edit['why']}" for number, edit in enumerate(edits, 1))
        return Reading({"edits": summary or "nothing is to change"}, {"edits": edits})


@dataclass(frozen=True, slots=True)
class _Names:
    """Names in use, by their small letters; those in `proposed` may be described anew."""

    states: dict[str, str]
    techniques: dict[str, str]
    proposed: set[str]


def _edit(fields: Object, names: _Names) -> dict[str, Any]:
    kind = fields.choice("edit", list(_EDITS))
    edit = {"edit": kind, **(_EDITS[kind](fields, names) if kind else {}), "why": fields.text("why")}
    if kind:
        fields.close()
    return edit


def _prediction(fields: Object, names: _Names) -> dict[str, Any]:
    edit: dict[str, Any] = {
        "state": fields.choice("state", [*names.states.values()]),
        "technique": fields.choice("technique", [*names.techniques.values()]),
    }
    has_gain, has_confidence = fields.take("gain") is not None, fields.take("confidence") is not None
    if has_gain:
        edit["gain"] = fields.gain("gain")
    if has_confidence:
        edit["confidence"] = fields.share("confidence")
    if not has_gain and not has_confidence:
        fields.fault("gain", "or confidence, or both, must be given")
    return edit


def _technique(fields: Object, names: _Names) -> dict[str, Any]:
    name = fields.text("technique", NAME)
    if name.lower() in names.proposed:
        name = names.techniques[name.lower()]
    elif name.lower() in names.techniques:
        fields.fault("technique", f"{name!r} is known already: change what is expected of it with a prediction edit")
    edit = {
        "technique": name,
        "category": fields.choice("category", list(Category)),
        "about": fields.text("about"),
        "helps": fields.text("helps"),
        "hurts": fields.text("hurts"),
        "state": fields.choice("state", [*names.states.values()]),
        "gain": fields.gain("gain"),
        "confidence": fields.share("confidence"),
    }
    names.techniques.setdefault(name.lower(), name)
    return edit


def _composite(fields: Object, names: _Names) -> dict[str, Any]:
    parts = fields.texts("parts", MOST_PARTS)
    part_names = [names.techniques.get(part.lower(), "") for part in parts]
    if len(parts) < 2 or len({part.lower() for part in parts}) < len(parts) or not all(part_names):
        fields.fault("parts", f"must be two or three different techniques of {listed([*names.techniques.values()])}")
    return _technique(fields, names) | {"parts": part_names}


def _state(fields: Object, names: _Names) -> dict[str, Any]:
    name = state_name(fields.text("state", NAME))
    if name in names.states:
        fields.fault("state", f"{name!r} is known already")
    edit = {
        "state": name,
        "bottleneck": fields.choice("bottleneck", list(Bottleneck)),
        "about": fields.text("about"),
        "inherits": fields.choice("inherits", [*names.states.values()]),
    }
    names.states.setdefault(name, name)
    return edit


def _deprecation(fields: Object, names: _Names) -> dict[str, Any]:
    return {"technique": fields.choice("technique", [*names.techniques.values()])}


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
    return sorted(relevance.items(), key=lambda pair: -pair[1])
