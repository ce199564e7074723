"""What a step does, or what came of it, as a sentence."""

from __future__ import annotations

from collections.abc import Mapping

from pages.parts import wording
from storage.index.queries import StepRow
from storage.results.profile_results import bound_by
from storage.results.vocabulary import FAILED, Verdict
from storage.run.method_words import PLAIN, MethodWords
from storage.run.settings import StepKind
from storage.run.steering import command_arguments

# A step that a strategy of its own names.
OTHER_STEP = "The model is at the step {name}: {kernel}"
_DOING: Mapping[str, str] = {
    StepKind.COMPILE: "Compiling {kernel}",
    StepKind.CHECK: "Checking {kernel} against the reference",
    StepKind.TIME: "Timing {kernel}",
    StepKind.PROFILE: "Profiling {kernel}",
    StepKind.SUBMIT: "Reading a submitted kernel",
    command_arguments.CONSULT: "Looking up what is known for {kernel}",
    command_arguments.TEACH: "Writing into the knowledge base",
    command_arguments.RANK: "Ranking the kernels that were drawn",
    command_arguments.REFUSE: "Refusing {kernel}",
    command_arguments.TUNE: "Tuning {kernel}",
    command_arguments.BEGIN: "Taking what torch.compile generates as the first kernel",
}


_ENDED = {"patch_failed": "", "unreadable": "it could not be read", "unavailable": "not available"}


def came_to(outcome: str | None) -> str:
    """How a step ended, in words; empty where the sentence around it says so already."""
    return _ENDED.get(outcome or "", (outcome or "").replace("_", " "))


def sentence(step: StepRow, words: MethodWords = PLAIN) -> str:
    """What the step does, or what came of it, in the words of the run's method."""
    result, kernel = step.result, _kernel(step)
    if step.outcome in (None, "interrupted", "dropped", "skipped"):
        a_kernel = "the first kernel" if not step.depth and result.number is None else "a kernel from scratch"
        of_model = words.calls[step.kind].doing if step.kind in words.calls else OTHER_STEP
        doing = _DOING.get(step.kind, of_model).format(kernel=kernel, a_kernel=a_kernel, name=step.kind)
        return _with(doing, step.outcome)
    if result.said_problem:
        return f"Reply about {kernel} could not be read: {result.said_problem}"
    if result.said:
        return f"{step.kind.capitalize()} on {kernel}: {result.said}"
    match step.kind:
        case StepKind.COMPILE | StepKind.CHECK | command_arguments.REFUSE:
            return _judged(step)
        case StepKind.TIME:
            return _timed(step)
        case StepKind.PROFILE:
            return _profiled(step)
        case command_arguments.RANK:
            return "Ranked the kernels that were drawn"
        case command_arguments.BEGIN:
            return f"Kernel {result.made_number} is what torch.compile generates"
        case command_arguments.TUNE if step.outcome in FAILED:
            return f"Tuned {kernel}: as written it {FAILED[Verdict(step.outcome)]} when timed again"
        case command_arguments.TUNE:
            came = "a variant is faster" if step.outcome == "tuned" else "no faster variant"
            return f"Tuned {kernel}: {came}"
        case command_arguments.CONSULT if result.state is not None and not result.is_by_base:
            return f"Named the state of {kernel} from its profile: {result.state or 'not known'}"
        case command_arguments.CONSULT:
            techniques = f"{result.techniques} technique{'s' * (result.techniques != 1)} found"
            state = result.state or "state not known"
            return f"Looked up {kernel} in the knowledge base: {state}, {techniques}"
        case command_arguments.TEACH:
            return _with("Revised the knowledge base", result.lesson)
        case StepKind.DIAGNOSE:
            return _with(f"Diagnosed {kernel}", "" if step.outcome == "written" else came_to(step.outcome))
        case _:
            return _edited(step, words)


def _kernel(step: StepRow) -> str:
    return f"kernel {step.result.number}" if step.result.number else "the kernel"


def _with(text: str, reason: str | None) -> str:
    return f"{text}: {reason}" if reason else text


def _judged(step: StepRow) -> str:
    result, kernel = step.result, _kernel(step)
    if result.verdict is None:
        return f"{step.kind.capitalize()} of {kernel}: {came_to(step.outcome)}"
    if result.verdict is Verdict.PASSED and step.kind == StepKind.COMPILE:
        return f"{kernel.capitalize()} compiles"
    if result.verdict is Verdict.PASSED:
        bounds = (
            f"{wording.NEAREST} {result.max_error:.1e}, {result.tolerance:.1e} allowed"
            if result.max_error and result.tolerance
            else ""
        )
        return _with(f"{kernel.capitalize()} is correct", bounds)
    return _with(f"{kernel.capitalize()} {FAILED[result.verdict]}", result.message)


def _timed(step: StepRow) -> str:
    result, kernel = step.result, _kernel(step)
    if result.verdict not in (None, Verdict.PASSED):
        return _judged(step)
    figures = result.timed
    if figures is None:
        return f"Timing of {kernel}: {came_to(step.outcome)}"
    if result.untrusted:
        return f"{kernel.capitalize()} is correct, not timed: {result.untrusted}"
    measured = f"{wording.ratio(figures)} over {figures.baseline}"
    return f"{kernel.capitalize()} takes {wording.latency(figures.latency_ms)}, {measured}"


def _profiled(step: StepRow) -> str:
    result, kernel = step.result, _kernel(step)
    if result.failure:
        return f"Profiling {kernel} failed: {result.failure}"
    return f"Profiled {kernel}" + (f": bound by {bound_by(result.bound)[0]}" if result.bound else "")


def _edited(step: StepRow, words: MethodWords) -> str:
    result, kernel = step.result, _kernel(step)
    if result.made_number is None:
        reason = result.patch_reason or came_to(step.outcome)
        if step.kind == StepKind.SYNTHESISE:
            return _with("The reply holds no kernel", reason)
        if step.kind == "rewrite":
            return f"The reply holds no rewrite of {kernel}"
        return _with(f"No edit of {kernel} applied", reason)
    if step.kind == StepKind.SUBMIT:
        made_from = f", an edit of {kernel}" if result.number else ""
        return _with(f"Kernel {result.made_number} submitted by hand{made_from}", result.summary)
    seen = " with its profile" if result.is_profile_exposed else ""
    if step.kind == StepKind.SYNTHESISE:
        return _with(f"Wrote kernel {result.made_number}{seen}", result.summary)
    hoped = f" (predicted gain {result.predicted:.2f}×)" if result.predicted is not None else ""
    verb = words.calls[step.kind].made if step.kind in words.calls else ""
    edited = f"{verb or 'Changed'} {kernel} into kernel {result.made_number}{seen}"
    return _with(edited, result.summary) + hoped
