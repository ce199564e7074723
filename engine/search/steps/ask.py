"""A step that asks the model: prompt, reply, and what the reply brings. Knows no method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.search import prompting
from engine.search.actions import Ask, Expects, NewCandidate
from engine.search.calling import reply_to
from engine.search.context import RunContext
from engine.search.llm import Completion, Message
from engine.search.patching.edits import EditError, numbered, refuse_too_long
from engine.search.patching.prediction import NOTHING_PREDICTED, Prediction, read_prediction, read_prediction_field
from engine.search.patching.proposed_patch import ProposedPatch, read_patch
from engine.search.patching.reply import find_python, labelled, read_fields
from engine.search.steps.candidates import create_candidate
from engine.search.steps.conversation import settle_hints
from engine.search.steps.knowledge import tell_rules
from engine.search.steps.tools import converse
from storage import codec
from storage.results.vocabulary import KernelClass
from storage.run.events import AttemptFailed, ClassProposed, DiagnosisWritten, PatchTried, ReviewWritten
from storage.run.settings import Origin

FORMATS = ("edits", "reask", "search_replace", "rewrite")


@dataclass(frozen=True, slots=True)
class Patched:
    """A new source, what the reply offered, and the step's replies, the one that was used last."""

    source: str
    proposed: ProposedPatch
    replies: tuple[str, ...]

    @property
    def why(self) -> str:
        """The reason that the first edit gives; empty without one."""
        return next(iter(self.proposed.whys), "")


def apply_with_fallbacks(context: RunContext, ask: Ask) -> Patched | None:
    """Ask until a patch applies; None when every format failed. Each try is journaled, and each reply is kept."""
    candidate, talk = context.candidate(ask.about), ask.prompt(context, ask)
    source = context.source(candidate)
    for call, patch_format in enumerate(FORMATS):
        completion = reply_to(context, ask, call, talk, wants_edits=patch_format in ("edits", "reask"))
        proposed = None
        try:
            proposed = read_reply(completion)
            before = [message.text for message in talk if message.role == "assistant"]
            patched = Patched(proposed.apply(source), proposed, (*before, completion.text))
        except EditError as error:
            _record(context, call, candidate.candidate_id, patch_format, proposed, str(error), is_applied=False)
            if call + 1 < len(FORMATS):
                talk += [
                    Message("assistant", completion.text),
                    _reask(FORMATS[call + 1], str(error), source),
                ]
            continue
        _record(
            context,
            call,
            candidate.candidate_id,
            patch_format,
            proposed,
            f"applied as {proposed.form}",
            is_applied=True,
        )
        return patched
    return None


def read_reply(completion: Completion) -> ProposedPatch:
    """What a reply offers, in whichever form.

    Raises:
        EditError: the reply was cut off or offers nothing.
    """
    if completion.finish_reason == "length":
        raise EditError(
            "The reply was cut off at the output limit, so nothing of it was used. Send fewer, smaller edits."
        )
    return read_patch(completion.text)


def _reask(patch_format: str, report: str, source: str) -> Message:
    return prompting.message("user", f"reask_{patch_format}.md", report=report, listing=numbered(source))


def _record(
    context: RunContext,
    call: int,
    candidate_id: str | None,
    patch_format: str,
    proposed: ProposedPatch | None,
    reason: str,
    *,
    is_applied: bool,
) -> None:
    if (context.step, call) in context.record.patches:
        return
    edits = proposed.as_json() if proposed else ""
    context.emit(
        PatchTried(
            step=context.step,
            call=call,
            candidate_id=candidate_id,
            rung=patch_format,
            is_applied=is_applied,
            edit_count=proposed.count if proposed else 0,
            reason=reason,
            edits_blob=context.blobs.put(edits) if edits else None,
            form=f"{proposed.form} ({proposed.way})" if proposed else "",
        )
    )


SUMMARY_LENGTH = 140
JSON_TRIES = 2
CUT_OFF = "The reply was cut off at the output limit: be brief."


def ask_model(context: RunContext, ask: Ask) -> str:
    """Ask and journal what comes of it. Returns the step's outcome."""
    if ask.expects is Expects.JSON:
        return _take_review(context, ask)
    if ask.makes is None:
        return _keep_text(context, ask)
    tell_rules(context)
    hints = context.record.pending_hints
    replies: tuple[str, ...]
    if ask.expects is Expects.SOURCE:
        talk = ask.prompt(context, ask)
        completion = converse(context, ask, talk) if ask.tools else reply_to(context, ask, 0, talk)
        source, replies, why = _file_of(context, ask, completion), (completion.text,), ""
    else:
        patched = apply_with_fallbacks(context, ask)
        source, replies, why = (patched.source, patched.replies, patched.why) if patched else (None, ("",), "")
    settle_hints(context, hints)
    if source is None:
        _tell_failure(context, ask, ask.makes)
        return "patch_failed"
    if ask.expects is Expects.SOURCE:
        _learn_class(context, replies[-1])
    summary = _summary(ask.makes, replies[-1], why)
    create_candidate(context, source, ask.about, ask.makes, summary, _prediction(ask.makes, replies))
    return "created"


def _file_of(context: RunContext, ask: Ask, completion: Completion) -> str | None:
    """The file that a reply holds; None where it was cut off, holds none, or one too long, which is journaled."""
    source = find_python(completion.text) if completion.finish_reason != "length" else None
    try:
        refuse_too_long(source or "")
    except EditError as error:
        _record(context, 0, ask.about, "rewrite", None, str(error), is_applied=False)
        return None
    return source


def _tell_failure(context: RunContext, ask: Ask, makes: NewCandidate) -> None:
    """A technique that the method chose is told with its failure: no reply that could be used names it."""
    if makes.technique and ask.about and context.step not in context.record.failed_attempts:
        tried = [
            event for event in context.record.events if isinstance(event, PatchTried) and event.step == context.step
        ]
        reason = tried[-1].reason if tried else "the reply holds no kernel"
        failed = AttemptFailed(context.step, ask.index, ask.about, makes.technique, makes.predicted_gain, reason)
        context.emit(failed)


def _keep_text(context: RunContext, ask: Ask) -> str:
    completion, about = reply_to(context, ask, 0, ask.prompt(context, ask)), context.candidate(ask.about)
    if about.diagnosis_step != context.step:
        blob = context.blobs.put(_whole(completion))
        context.emit(DiagnosisWritten(context.step, about.candidate_id, blob))
    return "written"


def _take_review(context: RunContext, ask: Ask) -> str:
    """A reply that must be one JSON object; what cannot be read is asked for once more, with the report."""
    about, talk = context.candidate(ask.about).candidate_id, ask.prompt(context, ask)
    for call in range(JSON_TRIES):
        completion = reply_to(context, ask, call, talk)
        text, summary, problem, prediction = completion.text, "", "", NOTHING_PREDICTED
        payload, flags = "", tuple[str, ...]()
        try:
            if completion.finish_reason == "length":
                raise EditError(CUT_OFF)
            if ask.reads is None:
                fields, prediction = read_fields(text, ask.fields), read_prediction_field(text)
            else:
                read = ask.reads(text)
                fields, payload, flags = dict(read.fields), codec.dumps(read.payload), read.flags
            text, summary = codec.dumps(fields), _one_line(next(iter(fields.values())))
        except EditError as report:
            problem = str(report)
        if (context.step, call) not in context.record.reviews:
            blob = context.blobs.put(text)
            review = ReviewWritten(context.step, call, ask.label, ask.index, about, blob, summary, problem)
            review = replace(review, payload=payload, flags=flags)
            context.emit(replace(review, technique=prediction.technique, predicted_gain=prediction.gain))
        if not problem:
            return "written"
        again = prompting.message("user", "reask_json.md", report=problem, names=", ".join(ask.fields))
        talk = [*talk, Message("assistant", completion.text), again]
    return "unreadable"


def _whole(completion: Completion) -> str:
    """The text of a diagnosis; one that stayed cut off says so, to the model that repairs as well."""
    cut = "\n\n[The diagnosis was cut off here at the output limit.]\n" if completion.finish_reason == "length" else ""
    return completion.text + cut


def _learn_class(context: RunContext, reply: str) -> None:
    kernel_class = labelled(reply, "Kernel class").lower().strip("`. ")
    if not context.record.is_class_known and kernel_class in set(KernelClass):
        context.emit(ClassProposed(KernelClass(kernel_class)))


def _prediction(makes: NewCandidate, replies: Sequence[str]) -> Prediction:
    """Of an optimisation: that of the last reply with one, since a reply that only mends its edits repeats none."""
    predictions = map(read_prediction, reversed(replies) if makes.origin is Origin.OPTIMISATION else ())
    return next((prediction for prediction in predictions if prediction != NOTHING_PREDICTED), NOTHING_PREDICTED)


def _summary(makes: NewCandidate, reply: str, why: str) -> str:
    """The reply's own words for what it brings, else those of its first edit, in one line."""
    return _one_line(labelled(reply, makes.title) or why or makes.untitled)


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SUMMARY_LENGTH else line[: SUMMARY_LENGTH - 1] + "…"
