"""Repeated sampling as a decision: first kernels that know nothing of each other, of which the best stands. Pure.

The baseline of every comparison: what a model reaches without feedback. A step index is called sample here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.search import limits
from engine.search.actions import Ask, Expects, Step
from engine.search.context import RunContext
from engine.search.llm import Message
from engine.search.methods.kernel_in_work import KernelInWork, KernelPerIndex, all_done, draws_option
from engine.search.methods.options import Value, option, read
from engine.search.methods.steered import REPAIR, ask_first, ask_repair
from engine.search.steps.conversation import as_code, hint_section, open_conversation, reference, rule_section, sample
from engine.search.steps.evaluate import describe_failure
from storage.run.method_words import MethodWords
from storage.run.record import Candidate, Record
from storage.run.steering.verbs import CommandKind


@dataclass(frozen=True, slots=True)
class BestOfSettings:
    """Settings of the method. The run's limit of samples holds beside them."""

    samples: int = option(
        8, "first kernels that are written independently, 1 for one-shot; no more than the run's limit of samples and "
        "one", label="Samples", least=1,
    )  # fmt: skip
    max_repairs: int = option(
        0, "rewrites of a sample that failed, with its error", label="Repairs per sample", least=0
    )
    draws: int = draws_option("sample")


class BestOf(KernelPerIndex):
    """Repeated sampling: independent first kernels, of which the best counts; one sample is one-shot."""

    name, title = "best_of", "repeated sampling"
    options = BestOfSettings
    independent: Mapping[str, Value] = {}
    words = MethodWords(
        "sample", "samples", "independent first kernels",
        "A sample is a kernel that is written from the task alone. It knows of no other one, and ends when it is "
        "correct and timed, or has failed.",
        collected="only where a person asks for it", counts_first=True,
    )  # fmt: skip
    refuses: Mapping[CommandKind, str] = {
        CommandKind.SUBMIT: "each sample is the model's own: fork the run to go on from a kernel by hand",
        CommandKind.EXPOSE: "no prompt of this method is about a kernel that was profiled",
        **dict.fromkeys(
            (CommandKind.ROLL_BACK, CommandKind.SET_BASE, CommandKind.PIN, CommandKind.UNPIN),
            "each sample is written from nothing: fork the run to go on from a kernel",
        ),
    }

    def draws(self, record: Record) -> int:
        """As its settings say."""
        return _settings(record).draws

    def draw(self, record: Record, state: KernelInWork) -> Step:
        """A sample's call: it has to know nothing."""
        return self.first_kernel(record, state)

    def first_kernel(self, record: Record, state: KernelInWork) -> Ask:
        """The call for a sample."""
        return ask_first(record, sample, untitled="sample")

    def reason_to_stop(self, record: Record, state: KernelInWork) -> str | None:
        """No sample is worth more after others, so that it never stagnates."""
        return all_done(record, _settings(record).samples, "sample") or limits.reason_to_stop(record, 0, "sample")

    def mend(self, record: Record, state: KernelInWork, kernel: Candidate) -> Step | None:
        """A sample that failed may be written again with its error."""
        is_mended = not state.spent and state.repairs < _settings(record).max_repairs
        return self.again(record, REPAIR, kernel.candidate_id) if is_mended else None

    def step(self, record: Record, state: KernelInWork, label: str, kernel: Candidate) -> Step | None:
        """Of a kernel nothing else is asked than its repair."""
        return ask_repair(record, kernel, Expects.SOURCE, repair, 0) if label == REPAIR else None


def repair(context: RunContext, ask: Ask) -> list[Message]:
    """A sample that failed once more, with its error."""
    candidate, record = context.candidate(ask.about), context.record
    return open_conversation(
        context,
        ask,
        "best_of/repair.md",
        task=reference(context),
        failure=describe_failure(candidate),
        kernel=as_code(context.source(candidate)),
        rules=rule_section(record.steering.rules),
        hint=hint_section(record.pending_hints),
    )


def _settings(record: Record) -> BestOfSettings:
    return read(BestOfSettings, record.settings.strategy_options)
