"""A tool call of a model carried out: journaled before and after, judged as kernels of the run are. What a program that
works in a folder of its own calls while it is asked. Knows stages of evaluation, not methods and no endpoint."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

from engine.errors import ProfileUnavailable
from engine.evaluator.checks.screening import screen
from engine.search import limits
from engine.search.actions import Ask
from engine.search.context import RunContext
from engine.search.llm import ToolAnswer, Workbench
from engine.search.llm.tools import CHECK, COMPILE, EVALUATE, SCREEN, ToolCall
from engine.search.steps.evaluate import describe_failed, timing_words
from storage.results.evaluation_results import CheckResult, CompileResult, headline
from storage.results.vocabulary import Verdict
from storage.run.events import ToolAnswered, ToolCalled

NONE_LEFT = "No tool call is left in this turn: send the final reply now."
SPENT = "No evaluation is left: leave the best kernel in kernel.py and end. compile and screen are still free."
UNREADABLE = "unreadable"
HAS = "done"


def workbench(context: RunContext, ask: Ask, call: int) -> Workbench:
    """What an agent gets for a question: tools only where its reply is to be a kernel."""
    about = context.whole.candidates.get(ask.about or "")
    use = partial(_use, context, ask, call) if ask.makes else None
    return Workbench(context.task.source, context.source(about) if about else "", use)


def _use(context: RunContext, ask: Ask, call: int, tool: str, source: str, is_left: bool) -> ToolAnswer:
    """A call within a call: others may be at work meanwhile. The same call on the same text costs nothing again."""
    with context.company.at_work():
        blob = context.blobs.put(source)
        earlier = [event for (step, of, _), event in context.record.tools.items() if (step, of) == (context.step, call)]
        same = next((event for event in earlier if (event.tool, event.source_blob) == (tool, blob)
                     and event.outcome != HAS), None)  # fmt: skip
        if same is not None:
            context.emit(replace(same, number=len(earlier), seconds=0.0))
            return ToolAnswer(context.blobs.get(same.text_blob), same.outcome == Verdict.PASSED, was_done=False)
        refusal = "" if is_left else SPENT
        step_s = context.company.work_so_far(context.step_began)
        if reason := limits.out_of_time(context.whole, step_s):
            refusal = f"The run's {reason}. {SPENT}"
        return call_tool(context, ask.about, call, len(earlier), ToolCall(tool, source), refusal)


def answered(context: RunContext, call: int, number: int) -> str | None:
    """What a call was answered before the engine was killed; None where it was not."""
    event = context.record.tools.get((context.step, call, number))
    return None if event is None else context.blobs.get(event.text_blob)


def call_tool(
    context: RunContext, about: str | None, call: int, number: int, tool_call: ToolCall, refusal: str = ""
) -> ToolAnswer:
    """Carry out a call, unless it is refused, and journal both."""
    source, began = context.blobs.put(tool_call.source), time.monotonic()
    place, depth = (context.step, call, number), context.record.index_in_flight
    context.emit(ToolCalled(*place, tool_call.tool, depth, about, source))
    if refusal:
        outcome, summary, text = HAS, refusal, refusal
    elif tool_call.problem:
        outcome, summary, text = UNREADABLE, tool_call.problem, tool_call.problem
    else:
        outcome, summary, text = _carry_out(context, tool_call)
    blob, seconds = context.blobs.put(text), time.monotonic() - began
    context.emit(ToolAnswered(*place, tool_call.tool, source, outcome, summary, blob, seconds))
    return ToolAnswer(text, outcome == Verdict.PASSED, was_done=outcome != HAS)


def _carry_out(context: RunContext, tool_call: ToolCall) -> tuple[str, str, str]:
    """(verdict, a line for people, a text for the model)."""
    task, tools, source = context.task, context.toolchain, tool_call.source
    if tool_call.tool == SCREEN:
        return _screened(context, source)
    compiled: CompileResult = context.judge(tools.compile, task, source)
    if not compiled.is_ok:
        return _failed(compiled.verdict, compiled, None)
    if tool_call.tool == COMPILE:
        return Verdict.PASSED, "it compiles", "It compiles."
    checked: CheckResult = context.judge(tools.check, task, source)
    if checked.verdict is not Verdict.PASSED:
        return _failed(checked.verdict, compiled, checked)
    passed = f"it passes the check in {checked.in_trials}"
    if tool_call.tool == CHECK:
        return Verdict.PASSED, passed, f"It compiles, and {passed}."
    timed = context.judge(tools.time, task, source)
    if isinstance(timed, CheckResult):
        return _failed(timed.verdict, compiled, timed)
    words = timing_words(timed)
    if timed.untrusted:
        words += f". This timing decides nothing: {timed.untrusted}"
    if tool_call.tool == EVALUATE:
        return Verdict.PASSED, words, f"It is correct: {words}."
    try:
        summary = context.judge(tools.profile, task, source, timed).summary.strip()
    except ProfileUnavailable as error:
        summary = f"No profile: {error}"
    return Verdict.PASSED, words, f"It is correct: {words}.\n\n{summary}"


def _screened(context: RunContext, source: str) -> tuple[str, str, str]:
    refused = [finding for finding in screen(source, context.task.policy, context.task.language) if finding.is_refusal]
    if not refused:
        return Verdict.PASSED, "nothing in its text is refused", "Nothing in the text refuses it."
    lines = [f"line {finding.line}: {finding.message}" if finding.line else finding.message for finding in refused]
    return Verdict.REFUSED, lines[0], "The text would be refused:\n" + "\n".join(lines)


def _failed(verdict: Verdict, compiled: CompileResult, checked: CheckResult | None) -> tuple[str, str, str]:
    return verdict, headline(checked or compiled), describe_failed(verdict, compiled, checked)
