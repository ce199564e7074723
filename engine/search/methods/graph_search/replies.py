"""What the answers to the graph search's questions must hold, read strictly: a sequence of techniques, their known
names, a new method. Knows text, not kernels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engine.search.actions import Reading
from engine.search.methods.answers import NAME, SENTENCE, Object, listed
from storage.knowledge.graph import NEW_METHOD, START, named_as
from storage.knowledge.records import Category

MOST_STEPS, LEAST_STEPS = 6, 2
CODE = 1200  # characters of the lines before and after
OUTLINE_FIELDS, RELABEL_FIELDS = ("steps",), ("labels",)
PROPOSE_FIELDS = ("technique", "category", "think", "about", "helps", "hurts", "predicted_gain")
NEW = "new"  # the label of a technique that is none of those known
RESERVED = (START, NEW_METHOD, NEW)


def name_as_known(name: str, known: Iterable[str]) -> str:
    """The spelling under which a technique is known; as it is where it is not."""
    plain = " ".join(name.split())
    return named_as(known).get(plain.lower(), plain)


@dataclass(frozen=True, slots=True)
class ReadOutline:
    """Reads a sequence of techniques, each with its reason, what it does and the lines that it changes."""

    known: tuple[str, ...]

    def __call__(self, reply: str) -> Reading:
        """The steps in order.

        Raises:
            EditError: the reply holds none, too few or too many.
        """
        answer = Object.of(reply)
        steps = [self._step(fields) for fields in answer.objects("steps", MOST_STEPS)]
        if len(steps) < LEAST_STEPS:
            answer.fault("steps", f"must hold {LEAST_STEPS} to {MOST_STEPS} objects, one a technique")
        answer.close()
        answer.report()
        return Reading({"steps": "\n".join(_step_line(n, step) for n, step in enumerate(steps, 1))}, {"steps": steps})

    def _step(self, fields: Object) -> dict[str, str]:
        name = name_as_known(fields.text("technique", NAME), self.known)
        if name.lower() in RESERVED:
            fields.fault("technique", "must name a technique")
        step = {
            "technique": name,
            "category": fields.choice("category", list(Category)),
            "think": fields.text("think"),
            "method": fields.text("method"),
            "before": fields.code("before", CODE),
            "after": fields.code("after", CODE),
        }
        fields.close()
        return step


@dataclass(frozen=True, slots=True)
class ReadLabels:
    """Reads a known name, or `new`, for each technique of a sequence, in its order."""

    techniques: tuple[str, ...]
    known: tuple[str, ...]

    def __call__(self, reply: str) -> Reading:
        """The names under which the graph keeps them.

        Raises:
            EditError: another number of labels than of techniques, or a label that is no known name.
        """
        answer = Object.of(reply)
        labels = answer.texts("labels", len(self.techniques))
        if len(labels) != len(self.techniques):
            answer.fault("labels", f"has {len(labels)} entries for {len(self.techniques)} techniques: one for each")
        names = named_as([*self.known, NEW])
        if unknown := [label for label in labels if label.lower() not in names]:
            answer.fault("labels", f'holds {listed(unknown)}: each must be a name of the list, or "{NEW}"')
        answer.close()
        answer.report()
        kept = [
            name if names[label.lower()] == NEW else names[label.lower()]
            for name, label in zip(self.techniques, labels, strict=True)
        ]
        path = ", ".join(f"{a} → {b}" if a != b else a for a, b in zip(self.techniques, kept, strict=True))
        return Reading({"labels": path}, {"labels": kept})


@dataclass(frozen=True, slots=True)
class ReadProposal:
    """Reads one technique that has no edge at the node yet. `known` are names of the base, `taken` those that have."""

    known: tuple[str, ...]
    taken: tuple[str, ...]

    def __call__(self, reply: str) -> Reading:
        """The technique with what is expected of it.

        Raises:
            EditError: the reply does not hold one, or one that has an edge here.
        """
        answer = Object.of(reply)
        name = name_as_known(answer.text("technique", NAME), [*self.taken, *self.known])
        if name in self.taken:
            answer.fault("technique", f'"{name}" has an edge here already: propose one that has none')
        if name.lower() in RESERVED:
            answer.fault("technique", "must name a technique")
        words = {key: answer.text(key) for key in ("think", "about", "helps", "hurts")}
        category, gain = answer.choice("category", list(Category)), answer.gain("predicted_gain")
        answer.close()
        answer.report()
        fields = {"technique": name, "category": category, **words, "predicted_gain": f"{gain:.3g}x"}
        is_known = name in self.known
        return Reading(fields, {**fields, "predicted_gain": gain, "is_known": is_known})


def _step_line(number: int, step: dict[str, str]) -> str:
    return f"{number}. {step['technique']}: {step['think']}"[: 2 * SENTENCE]
