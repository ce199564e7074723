"""What a search method calls its step index and its calls to a model, and when it has profiles taken and shown. Knows
no method."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class CallWords:
    """How people read one kind of a method's calls to a model: one role, by whose name its steps go too."""

    task: str
    """What whoever replies is to do: "judge the kernel"."""
    asked: str
    """What the step does, as a question of approval, before the kernel: "Ask the judge about"."""
    doing: str
    """The call while it waits; `{kernel}` is the kernel that it is about, `{a_kernel}` the one that it will make."""
    made: str = ""
    """Before the kernel that it was about and the one that came of it: "Rewrote"."""
    has_rules: bool = False
    """Its prompt carries what people require and ban, since a kernel or the plan of one comes of it."""
    can_show_profile: bool = False
    """Its prompt carries a profile where one is to be shown."""


# The calls that methods share.
CALLS: Mapping[str, CallWords] = {
    "synthesise": CallWords(
        "write the first kernel", "Ask the model for a first kernel", "The model is writing {a_kernel}", has_rules=True
    ),
    "diagnose": CallWords(
        "explain why the kernel is wrong", "Ask the model what is wrong with", "The model is diagnosing {kernel}"
    ),
    "repair": CallWords(
        "repair the kernel", "Ask the model to repair", "The model is repairing {kernel}", "Repaired", has_rules=True
    ),
    "optimise": CallWords(
        "make one optimisation", "Ask the model to optimise", "The model is optimising {kernel}", "Optimised",
        has_rules=True, can_show_profile=True,
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class MethodWords:
    """The words of one method, as people read them beside a run of it.

    `step` and `steps` name a step index: "depth", "round". `counts` says beside an axis what it counts, `about` what
    one is, in whole sentences. `collected` and `shown` end "on auto, profiles are collected …" and "… are shown …";
    empty where the method has nothing fixed to say. `counts_first`: the step index 0 is one of those counted, as the
    first sample is; without it, it makes the first kernel, and the limit counts what follows. `own_calls` are its calls
    to a model by role, beside CALLS. `names_others`: its prompts name the techniques that the knowledge base has from
    other states.
    """

    step: str = "step"
    steps: str = "steps"
    counts: str = "completed steps of the search"
    about: str = ""
    collected: str = ""
    shown: str = ""
    counts_first: bool = False
    names_others: bool = False
    own_calls: Mapping[str, CallWords] = field(default_factory=dict)

    @property
    def calls(self) -> Mapping[str, CallWords]:
        """The words of every role that it asks."""
        return {**CALLS, **self.own_calls}

    def by_hand(self) -> MethodWords:
        """The same for a run whose replies a person writes."""
        calls = {
            role: replace(call, asked=_by_hand(call.asked), doing=_by_hand(call.doing))
            for role, call in self.calls.items()
        }
        return replace(self, own_calls=calls)

    def task(self, role: str) -> str:
        """What whoever replies to a call is to do; its role where the method has no words for it."""
        return self.calls[role].task if role in self.calls else role

    def roles(self, *, has_rules: bool = False, can_show_profile: bool = False) -> Iterable[str]:
        """The roles whose prompts carry rules, or a profile where one is to be shown."""
        return [
            role for role, call in self.calls.items()
            if (has_rules and call.has_rules) or (can_show_profile and call.can_show_profile)
        ]  # fmt: skip

    @property
    def title(self) -> str:
        """At the beginning of a line."""
        return f"{self.step[:1].upper()}{self.step[1:]}"

    @property
    def titles(self) -> str:
        """Several, at the beginning of a line."""
        return f"{self.steps[:1].upper()}{self.steps[1:]}"

    @property
    def limited(self) -> str:
        """What the run's limit of step indexes counts, at the beginning of a line."""
        return f"{self.titles} after the first" if self.counts_first else self.titles

    @property
    def distinct(self) -> str:
        """Beside the number of an engine's step, which is a call, a compile or a check: never the same word."""
        return self.step if self.step != "step" else "search step"

    def counted(self, number: int) -> str:
        """How many: "1 depth", "1,204 rounds"."""
        return f"{number:,} {self.step if number == 1 else self.steps}"

    def completed(self, ended: int, last: int) -> tuple[int, int]:
        """How many are completed and how many there may be, by how many step indexes have ended and the limit."""
        more = int(self.counts_first)
        return max(0, ended - 1 + more), last + more

    def progress(self, ended: int, last: int) -> str:
        """How far a run has come: "2 of 8 depths"."""
        done, most = self.completed(ended, last)
        return f"{done:,} of {self.counted(most).replace(self.step, self.distinct)}"

    def place(self, index: int, last: int) -> str:
        """The step index at work: "depth 3 of 8"; "sample 1 of 8", since the first sample has the number 0."""
        more = int(self.counts_first)
        return f"{self.distinct} {index + more} of {last + more}"


def _by_hand(text: str) -> str:
    return text.replace("The model", "A person").replace("the model", "a person")


PLAIN = MethodWords()
# What tables, events and wire forms call it, whatever the method.
AS_STORED = MethodWords("depth", "depths", "completed optimisation steps")
