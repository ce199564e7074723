"""What a prompt tells of a run's past: the steps that led to a kernel, what was tried and left, what failed in the
present step, and the repairs of a kernel so far. Pure: from the record and its texts. Knows no method."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from itertools import pairwise

from engine.search.context import RunContext
from engine.search.limits import RULE
from engine.search.prompting import Passage, Ranked
from storage.results import relative
from storage.results.vocabulary import FAILED, Verdict
from storage.run import events as ev
from storage.run.record import Candidate, Record, named
from storage.run.settings import Origin
from storage.run.steering.verbs import CommandKind

# Tokens of a whole text; characters of one diagnosis and of one repair's edits in it.
HISTORY_TOKENS, REPAIR_TOKENS = 1200, 2400
FINDING, EDITS = 1500, 2000
LINE = "What led to the base, the correct kernel to go on from, oldest first; each figure is a speed-up over PyTorch:"
LEFT = "Tried and left, so not in the base; what failed or cost speed is not to be sent again as it was:"
LEFT_FOR = "Left when a person went back to {kernel}, so not in the base:"
BEFORE = "Kernels tried before in this run; what failed is not to be sent again as it was:"
PRESENT = "Failed in this step; not to be sent again as it was:"
REPAIRS = "Repairs so far, oldest first, with the line numbers of then; the kernel still fails, so none was enough:"


@dataclass(slots=True)
class Attempt:
    """A kernel written at a step index and its repairs, in order; none where the reply could not be used.

    `unused` are replies that brought no kernel: the kernel they were about, and why. `left_for` is the kernel that a
    person went back to when this was part of what was left.
    """

    index: int
    kernels: list[str] = field(default_factory=list)
    unused: list[tuple[str | None, str]] = field(default_factory=list)
    left_for: str | None = None


def attempts(record: Record) -> list[Attempt]:
    """Everything that was tried in a run, oldest first."""
    tried, of_kernel = list[Attempt](), dict[str | None, Attempt]()
    started, problem = ev.StepStarted(0, "", 0, None), ""
    for event in record.events:
        match event:
            case ev.StepStarted():
                started, problem = event, "it holds no whole file"
            case ev.ModelCalled(finish_reason="length"):
                problem = "it was cut off at the output limit"
            case ev.PatchTried(is_applied=False, reason=reason):
                problem = reason.partition("\n")[0]
            case ev.CandidateCreated(candidate_id=name, parent_id=parent, depth=index, origin=origin):
                mended = of_kernel.get(parent)
                if mended is None or (origin is not Origin.REPAIR and mended.index != index):
                    tried.append(mended := Attempt(index))
                mended.kernels.append(name)
                of_kernel[name] = mended
            case ev.StepFinished(outcome="patch_failed"):
                about = record.candidates.get(started.candidate_id or "")
                if about is None or not about.has_failed:
                    tried.append(Attempt(started.depth, unused=[(started.candidate_id, problem)]))
                else:
                    of_kernel[about.candidate_id].unused.append((about.candidate_id, problem))
            case ev.CommandEffective(command_id=name) if name in record.commands:
                _leave(record, tried, name)
            case _:
                pass
    return tried


def _leave(record: Record, tried: list[Attempt], command_id: str) -> None:
    command = record.commands[command_id].command
    if command.kind is CommandKind.ROLL_BACK and (kept := record.candidates.get(command.argument)) is not None:
        for attempt in tried:
            if attempt.index > kept.created.depth and attempt.left_for is None:
                attempt.left_for = kept.candidate_id


def history(record: Record, base_id: str | None, word: str, about: str | None = None) -> Ranked:
    """What led to a base kernel, what was tried and left, and what failed in the present step.

    `word` is what the method calls a step index; `about` is a failed kernel of which the prompt tells elsewhere.
    """
    line = line_to(record, base_id)
    off_line = [attempt for attempt in attempts(record) if not {*attempt.kernels} & {*line, about}]
    left = [attempt for attempt in off_line if attempt.index != record.step_index and attempt.kernels]
    failed = [attempt for attempt in off_line if attempt.index == record.step_index]
    passages = [_on_line(record, name, base_id, word) for name in line]
    passages += [
        _off_line(record, attempt, LEFT if line else BEFORE, word) for attempt in left if attempt.left_for is None
    ]
    for kept in dict.fromkeys(attempt.left_for for attempt in left if attempt.left_for is not None):
        heading = LEFT_FOR.format(kernel=named(record, kept))
        passages += [_off_line(record, attempt, heading, word) for attempt in left if attempt.left_for == kept]
    for number, attempt in enumerate(failed):
        if attempt.kernels:
            lead = named(record, attempt.kernels[-1])
            passages.append(
                Passage(PRESENT, _summary_of(record, record.candidates[attempt.kernels[-1]], lead), (3, number))
            )
        elif attempt is failed[-1]:
            text = f"- the last reply could not be used: {attempt.unused[-1][1]}"
            passages.append(Passage(PRESENT, text, (3, number)))
    return Ranked(tuple(passages), int(HISTORY_TOKENS * RULE))


def line_to(record: Record, base_id: str | None) -> list[str]:
    """The kernels that a base came from, step index by step index, oldest first, itself last."""
    line, name = list[str](), base_id
    while name in record.candidates and name not in line:
        line.insert(0, name)
        name = record.candidates[name].created.base_id
    return line


def _on_line(record: Record, name: str, base_id: str | None, word: str) -> Passage:
    candidate, is_base = record.candidates[name], name == base_id
    marks = ["the base"] * is_base + ["the best so far"] * (name == record.best_id)
    index = next((done.depth for done in record.concluded if done.candidate_id == name), candidate.created.depth)
    lead = f"{word} {index}, {named(record, name)}" + (f" ({', '.join(marks)})" if marks else "")
    return Passage(LINE, _summary_of(record, candidate, lead), _worth(record, candidate, is_base))


def _off_line(record: Record, attempt: Attempt, heading: str, word: str) -> Passage:
    candidate = record.candidates[attempt.kernels[-1]]
    base, best = candidate.created.base_id, " (the best so far)" * (candidate.candidate_id == record.best_id)
    origin = f" from {named(record, base)}" if base else ""
    lead = f"{word} {attempt.index}, {named(record, candidate.candidate_id)}{best}{origin}"
    return Passage(heading, _summary_of(record, candidate, lead), _worth(record, candidate))


def _worth(record: Record, candidate: Candidate, is_base: bool = False) -> tuple[float, ...]:
    """The base, then the best, what failed in the present step (3), gains and losses by size, the rest by age."""
    if is_base or candidate.candidate_id == record.best_id:
        return (4, float(is_base))
    change = _against_base(record, candidate)
    if change is not None and (change.is_faster or change.is_slower):
        return (2, abs(math.log(change.speedup)))
    return (1, record.number(candidate.candidate_id))


def _against_base(record: Record, candidate: Candidate) -> relative.Relative | None:
    base = record.candidates.get(candidate.created.base_id or "")
    new, old = candidate.trusted, base.trusted if base else None
    if new is None or old is None:
        return None
    return relative.between_sessions(new.speedup, new.noise, old.speedup, old.noise)


def _summary_of(record: Record, candidate: Candidate, lead: str) -> str:
    """One line of a list: what became of a kernel, what it changed, and its last error if it failed."""
    error = f" [{candidate.failure.partition('. ')[0]}]" if candidate.has_failed else ""
    return f"- {lead}: {_outcome(record, candidate)}: {_change(record, candidate)}{error}"


def _outcome(record: Record, candidate: Candidate) -> str:
    """The speed-up before and after a step and whether the timings can tell them apart, or why there is none."""
    if candidate.verdict is not None and candidate.has_failed:
        return FAILED[candidate.verdict]
    if candidate.trusted is None:
        ends = (done.reason for done in record.concluded if done.candidate_id == candidate.candidate_id)
        return next(ends, "left before it was timed")
    change, now = _against_base(record, candidate), f"{candidate.trusted.speedup:.3g}x"
    if change is None:
        return now
    verdict = "faster" if change.is_faster else "slower" if change.is_slower else f"within noise (±{change.noise:.0%})"
    return f"{candidate.trusted.speedup / change.speedup:.3g}x → {now}, {verdict}"


def _change(record: Record, candidate: Candidate) -> str:
    """What was changed, in the words it was announced with, and the last repair that it took."""
    chain = repair_chain(record, candidate)
    tuned = [kernel.created.summary for kernel in chain if kernel.created.origin is Origin.TUNED]
    written = [kernel.created.summary for kernel in chain if kernel.created.origin is not Origin.TUNED] or tuned
    count, changes = len(written) - 1, "; ".join([written[0], *tuned])
    if not count:
        return changes
    verb, times = "repair tried" if candidate.has_failed else "repaired", f" {count} times, last" if count > 1 else ""
    return f"{changes}; {verb}{times}: {written[-1]}"


def repair_chain(record: Record, candidate: Candidate) -> list[Candidate]:
    """The kernels that a kernel is a repair of, the one written first at the start, itself last."""
    chain = [candidate]
    while chain[0].created.origin in (Origin.REPAIR, Origin.TUNED):
        parent = record.candidates.get(chain[0].created.parent_id or "")
        if parent is None:
            break
        chain.insert(0, parent)
    return chain


def changes(context: RunContext, candidate: Candidate) -> str | Ranked:
    """What was changed since a failed kernel's base was correct: the last edit, and of a repair all before it."""
    created = candidate.created
    if created.origin is Origin.REPAIR:
        return repairs(context, candidate, shows_change=True)
    if created.diff_blob is None:
        return "This is a first version; there is no earlier kernel to compare with."
    diff = context.blobs.get(created.diff_blob).rstrip()
    return f"The last change ({created.summary}), as a unified diff:\n```diff\n{diff}\n```"


def repairs(context: RunContext, candidate: Candidate, *, shows_change: bool = False) -> Ranked:
    """What the repairs of a failed kernel found and changed so far; with `shows_change` the change they began with.

    Diagnoses and edits are shortened. The newest edits are worth most, then the diagnoses, the newest first.
    """
    chain, passages = repair_chain(context.record, candidate), list[Passage]()
    first = chain[0].created
    if (base := context.record.candidates.get(first.base_id or "")) is not None:
        before = named(context.record, base.candidate_id) + ", which is correct" * (base.verdict is Verdict.PASSED)
        passages.append(Passage("", f"The change that this kernel makes to {before}: {first.summary}", (4,)))
    if shows_change and first.diff_blob is not None:
        passages.append(Passage("", _diff(context, first), (0,)))
    for number, (failed, mended) in enumerate(pairwise(chain), 1):
        ended = _outcome(context.record, failed)
        line = f"Repair {number}: {named(context.record, failed.candidate_id)} {ended} [{failed.failure}]"
        edits = f"Edits of repair {number} ({mended.created.summary}):\n{_diff(context, mended.created)}"
        passages.append(Passage(REPAIRS, line, (4, number)))
        if finding := explanation(context, failed):
            passages.append(Passage(REPAIRS, f"What was found:\n{shortened(finding, FINDING)}", (2, number)))
        passages.append(Passage(REPAIRS, edits, (3 if mended is candidate else 1, number)))
    unused = [
        why for attempt in attempts(context.record) for about, why in attempt.unused if about == candidate.candidate_id
    ]
    if unused:
        passages.append(Passage("", f"The last edits of the kernel as it stands could not be used: {unused[-1]}", (4,)))
    return Ranked(tuple(passages), int(REPAIR_TOKENS * RULE))


def explanation(context: RunContext, candidate: Candidate) -> str:
    """The last thing that was said of a kernel: a diagnosis, or a review with a line for each field; else empty."""
    if candidate.diagnosis_blob is not None:
        return context.blobs.get(candidate.diagnosis_blob).strip()
    reviews = context.record.reviews.values()
    of_kernel = [review for review in reviews if review.candidate_id == candidate.candidate_id and not review.problem]
    if not of_kernel:
        return ""
    fields = json.loads(context.blobs.get(of_kernel[-1].text_blob))
    return "\n".join(f"{name.capitalize()}: {text}" for name, text in fields.items())


def _diff(context: RunContext, created: ev.CandidateCreated) -> str:
    if created.diff_blob is None:
        return "(written anew)"
    _, _, hunks = context.blobs.get(created.diff_blob).partition("\n@@")  # above it are two names that tell nothing
    return f"```diff\n{shortened(f'@@{hunks.rstrip()}', EDITS)}\n```"


def shortened(text: str, most: int) -> str:
    """The first whole lines of a text, about `most` characters of it, and how many follow."""
    lines, used = text.split("\n"), 0
    for count, line in enumerate(lines):
        used += len(line) + 1
        if used > most and count:
            return "\n".join([*lines[:count], f"[{len(lines) - count} of {len(lines)} lines left out here]"])
    return text
