"""How pages speak of each verb: on its button, and when it is on its way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from storage.run.method_words import MethodWords
from storage.run.steering.verbs import CommandKind


@dataclass(frozen=True, slots=True)
class VerbWords:
    """What a verb's button shows. In `sent`, which is told when it is on its way, `{}` is its argument; there and in
    `tip` stands `{step}` for what the run's search method calls a step index.
    """

    sent: str
    label: str = ""
    icon: str | None = None
    tip: str | None = None

    def sent_words(self, argument: str, words: MethodWords) -> str:
        """What is told when it is on its way to a run of that method."""
        return self.sent.format(argument, step=words.distinct)

    def tip_words(self, words: MethodWords) -> str | None:
        """What its button tells beside a run of that method."""
        return self.tip.format(step=words.distinct) if self.tip else None


VERB_WORDS: Mapping[CommandKind, VerbWords] = {
    CommandKind.PAUSE: VerbWords(
        "Pausing after this step", "Pause", ":material/pause:",
        "holds the run after the current step, until you resume it (Freeze page holds this page only)",
    ),
    CommandKind.RESUME: VerbWords("Resuming", "Resume", ":material/play_arrow:"),
    CommandKind.STOP: VerbWords("Stopping", "Stop", ":material/stop:"),
    CommandKind.COLLECT: VerbWords(
        "Collect profiles: {} from the next step", "Collect profiles", tip="profile correct kernels, for you to see",
    ),
    CommandKind.EXPOSE: VerbWords(
        "Show profiles to the model: {} from the next step", "Show profiles to the model",
        tip="put the profile into the prompts that ask for a faster kernel",
    ),
    CommandKind.ROLL_BACK: VerbWords(
        "Going back to {}", "Go back or fork", ":material/undo:",
        "continue from an earlier kernel, in this run or in a new one",
    ),
    CommandKind.SET_BASE: VerbWords(
        "The next {step} starts from {}", "Base kernel", ":material/keep:",
        "choose which kernel the next {step} starts from",
    ),
    CommandKind.PIN: VerbWords("Pinning {} from the next {step}"),
    CommandKind.UNPIN: VerbWords("Unpinning from the next {step}", "Unpin"),
    CommandKind.HINT: VerbWords("Hint sent", "Hint", ":material/lightbulb:"),
    CommandKind.BAN: VerbWords("Rule sent: must not use {}"),
    CommandKind.REQUIRE: VerbWords("Rule sent: must use {}"),
    CommandKind.LIFT: VerbWords("Removing the rule", "Remove"),
    CommandKind.SUBMIT: VerbWords("Kernel sent", "Edit a kernel by hand", ":material/edit:"),
    CommandKind.SET_MODEL: VerbWords(
        "Model from the next call: {}", "Model", ":material/smart_toy:",
        "change the model, or redo a step with another one",
    ),
    CommandKind.RETRY: VerbWords("Redoing a step with {}"),
    CommandKind.SET_BUDGET: VerbWords("New limits sent: {}"),
    CommandKind.ANSWER: VerbWords("Reply sent", "Send reply", ":material/send:"),
    CommandKind.TAKE_OVER: VerbWords(
        "The next prompt will wait for your reply", "Write the next reply yourself", ":material/edit_note:",
        "the next prompt is shown here and waits for your reply instead of going to the model",
    ),
    CommandKind.ASK_FIRST: VerbWords("Approval rule sent", "Approve steps before they start", ":material/front_hand:"),
    CommandKind.APPROVE: VerbWords("Step {} approved", "Approve", ":material/check:"),
    CommandKind.SKIP: VerbWords("Step {} rejected", "Reject", ":material/close:"),
    CommandKind.SET_CLASS: VerbWords(
        "Kernel class from the next step: {}", "Class", ":material/category:", "the kernel class",
    ),
}  # fmt: skip
