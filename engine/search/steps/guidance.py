"""What a prompt advises: the guide of a class, how faults are found, an example of a structure that a kernel lacks, and
what the knowledge base answered. Knows a run's class, device and policy."""

from __future__ import annotations

from collections.abc import Sequence

from engine.evaluator import tasks
from engine.search import exemplars, prompting
from engine.search.context import RunContext
from storage.knowledge.records import Advised, ToldRule
from storage.results.policy import EVERYTHING
from storage.run.record import Candidate

MOST_KNOWN, MOST_NEGATIVE = 5, 2


def guide(context: RunContext) -> str:
    """How a kernel of the run's class is made faster on its device: structure first, then tuning; of a chain of
    operators first how they become few passes."""
    folder = prompting.for_toolchain("guides", context.toolchain.name)
    of_class = prompting.for_class(folder, context.record.kernel_class, ".md", context.language.name).strip()
    return "\n\n".join(filter(None, (fusion(context), of_class)))


def fusion(context: RunContext) -> str:
    """How a chain of operators becomes few passes, or a recurrence one launch, and what is to be gained beside what is
    left to PyTorch; empty where the task is one operator."""
    source, left = context.task.source, context.task.policy.library_operators
    folder = "recurrence" if tasks.is_recurrence(source, left) else "fusion" if tasks.is_chain(source) else ""
    if not folder:
        return ""
    file = prompting.for_language(prompting.for_toolchain(folder, context.toolchain.name), context.language.name)
    passes = prompting.text(file).strip()
    if not left or folder == "recurrence":
        return passes
    names = "All operators" if EVERYTHING in left else ", ".join(f"`{name}`" for name in left)
    return f"{passes}\n\n{prompting.fill('fusion/left.md', operators=names).strip()}"


def debugging(context: RunContext) -> str:
    """How the cause of a failure is found and its mend proved, in the run's language and on its device."""
    language = context.language.name
    device = prompting.in_language(prompting.for_toolchain("debugging", context.toolchain.name), language)
    return prompting.in_language("debugging.md", language, device=device)


def lacking(context: RunContext, candidate: Candidate) -> str:
    """An example of the first structure of its class that a kernel does not have; empty where it has them all."""
    record = context.record
    limit, policy = record.limit, context.task.policy
    need = exemplars.Need(
        record.kernel_class,
        exemplars.architecture_of(limit),
        policy.arithmetic,
        is_memory_bound=limit is not None and limit.bound_by == "memory" and not limit.leaves_out_products,
    )
    source, language = context.source(candidate), context.language.name
    return exemplars.lacking(context.toolchain.name, need, source, language).strip()


def known(context: RunContext, candidate: Candidate, label: str) -> str:
    """What the knowledge base answered about a kernel at this step index; empty where it knows nothing.

    `label` is where a reply names its technique.
    """
    record = context.record
    consulted = record.consulted.get((record.step_index, candidate.candidate_id))
    if consulted is None or not consulted.found:
        return ""
    state = consulted.state.replace("_", " ")
    lines = "\n".join(f"- {_advice(advice)}" for advice in chosen(consulted.found))
    where = f"in the state of this one, {state}" if state else "of this class, whatever their state"
    return prompting.fill("known.md", state=where, label=label, techniques=lines).strip()


def failure_rules(context: RunContext) -> str:
    """The failure rules that writers are told now; empty without any."""
    rules = context.record.failure_rules[-1].rules if context.record.failure_rules else ()
    if not rules:
        return ""
    language = prompting.of_language("language", context.language.name)
    return prompting.fill("failure_rules.md", language=language, rules="\n".join(map(_rule, rules))).strip()


def _rule(rule: ToldRule) -> str:
    runs = "one run" if rule.runs == 1 else f"{rule.runs} runs"
    return f"- {rule.signature} ({rule.kernels} kernels of {runs}): {rule.words}"


def chosen(advised: Sequence[Advised]) -> list[Advised]:
    """The techniques that a prompt shows: what went wrong more often than not first, then what promises most."""
    negative = [advice for advice in advised if advice.is_negative]
    worst = sorted(negative, key=lambda advice: advice.faster - advice.slower - advice.failed)[:MOST_NEGATIVE]
    return [*worst, *(advice for advice in advised if not advice.is_negative)][:MOST_KNOWN]


def _advice(advice: Advised) -> str:
    if advice.is_negative:
        counts = f"{advice.faster} faster, {advice.slower} slower, {advice.failed} without a correct kernel"
        return f"Rather not `{advice.technique}`: of {advice.attempts} attempts {counts}. {advice.hurts}".strip()
    seen = f"{advice.faster} of {advice.attempts} attempts faster" if advice.attempts else "not tried yet"
    joined = f"{advice.joined}." if advice.parts else ""
    text = " ".join(filter(None, (joined, advice.about, advice.helps, advice.hurts)))
    return f"`{advice.technique}`: expected {advice.expected_gain:.2f}x, {seen}. {text}".strip()
