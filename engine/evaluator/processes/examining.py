"""Examines a reference before kernels are judged against it: is it a function, and do trials tell right from wrong?

What a call does beside answering; answers that do nothing, weighed as a kernel's are; which weights may vary.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from engine.evaluator.checks import comparison, float8, trials, weights
from engine.evaluator.checks.comparison import is_rounded
from engine.evaluator.checks.trials import FIRST, PLAN, Style, Trial
from engine.evaluator.checks.weighing import Output, Weighed, weigh
from engine.evaluator.checks.weights import Kind
from engine.evaluator.processes.task_facts import Facts, UnusableTask
from engine.evaluator.processes.worker_pair import WorkerPair
from storage.results.examination import Examination, Standing
from storage.results.policy import Draws, Weights

# Each answer that does nothing must fail a trial by a factor of one over this at least. All 36 shipped tasks stay
# decided with a fortieth in its place.
FRACTION = 0.25
SAMPLE = 1 << 16
NOTHING = 1e-6  # of what the reference returns, that its exact answer is where it is none
SHOWN = 6
TRIED = 24  # tensors of a state that are looked at one by one, where all together leave nothing to compare
ZEROS, MEAN, OTHER_INPUTS = "an answer of zeros", "the mean over the batch", "the answer to other inputs"
COPY = "a copy of "
OTHER_SIZES = "other sizes (--set NAME=...) or inputs, on which the answer depends"


@dataclass(frozen=True, slots=True)
class Asked:
    """The reference weighed against its own float64 answer in one trial, by output; empty where it takes no such
    inputs."""

    weighed: tuple[Weighed, ...]
    is_finite: bool

    @property
    def is_ill(self) -> bool:
        """Whether rounding alone leaves nothing to compare."""
        return any(output.is_ill for output in self.weighed)


class Examining:
    """One reference, in a worker of its own."""

    def __init__(self, workers: WorkerPair, seed: int) -> None:
        self._workers = workers
        self._seed = seed
        self._allowed = 0.0
        self._least_off = math.inf
        self.idle_modules: list[str] = []
        """Modules compared too, for which an answer that does nothing would pass: `run` found the task undecidable."""

    def run(self) -> Examination:
        """All of it; the first reason not to judge ends it."""
        workers = self._workers
        plain = workers.ask_reference("observe", seed=self._seed, call_seed=workers.call_seed)
        facts = Facts.from_plain(plain)
        if examination := self._impure(facts) or self._as_constructed(facts):
            return examination
        plan = self._plan()
        if examination := self._idle_answers(facts, self._seed if plan.varied else None):
            return examination
        remarks = []
        if facts.changed_inputs:
            remarks.append(
                "the reference changes its inputs in place: each of its calls gets copies, a kernel must not"
            )
        if facts.changed_state:
            remarks.append(f"a call changes {', '.join(facts.changed_state[:4])}: a kernel must too")
        if workers.inner:
            more = f" and {len(workers.inner) - SHOWN} more" if len(workers.inner) > SHOWN else ""
            remarks.append(f"outputs of modules are compared too: {', '.join(workers.inner[:SHOWN])}{more}")
        return Examination(
            Standing.DECIDED,
            remarks=tuple(remarks),
            varied=dict(plan.varied),
            stays=dict(plan.stays),
            inner=tuple(workers.inner),
            allowed=self._allowed,
            idle=self._least_off if math.isfinite(self._least_off) else None,
            hidden=facts.hidden,
        )

    def _as_constructed(self, facts: Facts) -> Examination | None:
        """Whether a first trial with the task's own inputs and the constructor's weights tells right from wrong."""
        first = self._asked(FIRST, None)
        references = self._workers.trusted["own"]
        if not sum(tensor.numel() for tensor in references):
            return _undecidable("its outputs have no elements, so there is nothing to compare", "sizes above zero")
        if not any(
            bool(float8.exact(comparison.real(tensor)).isfinite().any()) for tensor in references if tensor.numel()
        ):
            return _undecidable("no number of the reference's own answer is finite", "inputs with a finite answer")
        self._allowed = max(output.allowed for output in first.weighed)
        return self._blurred(facts) if first.is_ill else None

    def _impure(self, facts: Facts) -> Examination | None:
        if facts.draws and self._workers.request.policy.draws is Draws.REFUSED:
            return _undecidable(
                "forward draws random numbers and its answer depends on them, so no trial can tell right from wrong",
                "a given seed (--random seeded), from which a kernel draws what the reference draws",
                "the numbers as an input of forward",
            )
        if facts.repeats:
            return None
        kept = (*facts.changed_attributes, *facts.changed_state)
        if kept:
            return _undecidable(
                f"the reference keeps state between calls and its answer depends on it (`{kept[0]}`): the same inputs "
                "have another answer in the next call",
                "the state as an input and an output of forward",
                "a forward that begins with the same state in every call",
            )
        return _undecidable(
            "the reference gives another answer to the same inputs when it is called again",
            "a forward that is a function of its inputs and weights",
        )

    def _plan(self) -> weights.Plan:
        """Which weights may vary: those with which trials still tell right from wrong. The reference takes them."""
        if not self._workers.weight_names:
            return weights.Plan({}, {})
        plan = self._chosen()
        self._workers.ask_reference("take_weights", varied=dict(plan.varied))
        return plan

    def _chosen(self) -> weights.Plan:
        plain = self._workers.ask_reference("plan_weights")
        plan = weights.Plan({name: Kind(kind) for name, kind in plain["varied"].items()}, plain["stays"])
        if self._workers.request.policy.weights is Weights.FIXED:
            return plan.without(plan.varied, "is fixed by the task's policy")
        for tried in (plan, plan.positive()):
            if not self._spoiled(tried):
                return tried
        plan, together = plan.positive(), "leaves nothing to compare when all change"
        if len(plan.varied) > TRIED:
            return plan.without(plan.varied, together)
        spoiling = [name for name, kind in plan.varied.items() if self._spoiled(weights.Plan({name: kind}, {}))]
        rest = plan.without(spoiling, "leaves nothing to compare when it changes")
        return plan.without(plan.varied, together) if self._spoiled(rest) else rest

    def _spoiled(self, plan: weights.Plan) -> bool:
        """Whether the reference is not finite, or far off its float64 self, with weights that vary so."""
        if not plan.varied:
            return False
        self._workers.ask_reference("take_weights", varied=dict(plan.varied))
        first = self._asked(FIRST, self._seed)
        return first.is_ill or not first.is_finite

    def _asked(self, trial: Trial, weights_seed: int | None) -> Asked:
        """The reference's outputs in a trial, now in the shared memory, weighed as a kernel's are."""
        workers = self._workers
        workers.ask_reference("set_weights", seed=weights_seed)
        seed = trials.seed_of(self._seed, trial.seed_name)
        inputs = workers.ask_reference("make", seed=seed, style=str(trial.style))
        reply = workers.ask_reference("answer", leaves=inputs["leaves"], seed=workers.call_seed, may_refuse=True)
        if trial.style is Style.OWN and "refused" in reply:
            raise UnusableTask(f"the reference failed: {reply['refused']}")
        if trial.style is not Style.OWN and ("refused" in reply or not inputs["is_styled"]):
            return Asked((), is_finite=False)
        references = workers.trusted["own"]
        weighed = tuple(self._weigh(number, out, trial, inputs, reply) for number, out in enumerate(references))
        return Asked(weighed, is_finite=all(map(_is_finite, references)))

    def _weigh(
        self, number: int, out: torch.Tensor, trial: Trial, inputs: Mapping[str, Any], reply: Mapping[str, Any]
    ) -> Weighed:
        workers = self._workers
        output = Output(
            workers.output_names[number], len(workers.trusted["own"]), out, workers.trusted["own"][number],
            workers.trusted["answer"][number], workers.trusted["inputs"], workers.summed_into(number),
            workers.longest_into(number), workers.request.policy.precision,
        )  # fmt: skip
        return weigh(output, trial, bool(reply["is_wide"]), lambda by_rows: 0.0)

    def _idle_answers(self, facts: Facts, weights_seed: int | None) -> Examination | None:
        """Answers that do nothing, until each has failed a trial by far."""
        seed = trials.seed_of(self._seed, OTHER_INPUTS)
        self._workers.ask_reference("set_weights", seed=weights_seed)
        inputs = self._workers.ask_reference("make", seed=seed, style=str(Style.OWN))
        self._workers.ask_reference("answer", leaves=inputs["leaves"], seed=self._workers.call_seed, is_own_enough=True)
        self._other = [tensor.clone() for tensor in self._workers.trusted["own"]]
        alive: set[tuple[str, str]] | None = None
        for trial in PLAN:
            asked = self._asked(trial, weights_seed)
            if not asked.weighed or asked.is_ill or not asked.is_finite:
                continue
            passed = self._passing(asked, trial)
            alive = passed if alive is None else alive & passed
            if not alive:
                return None
        self.idle_modules = sorted({module for _, module in alive or () if module})
        return self._passed(sorted(name for name, module in alive or () if not module), facts)

    def _passing(self, asked: Asked, trial: Trial) -> set[tuple[str, str]]:
        """The answers that pass the trial, or nearly: each by its name and that of the module, empty for the whole."""
        passed = set()
        references, answers = self._workers.trusted["own"], self._workers.trusted["answer"]
        modules = ["" for _ in references[len(self._workers.inner) :]] + list(self._workers.inner)
        for name, outputs in self._idle(references):
            pairs = list(zip(outputs, answers, references, asked.weighed, modules, strict=True))
            off = max(_apart(out, answer, mine, is_quick=True) for out, answer, mine, _, _ in pairs)
            if trial.style is Style.OWN and name in (ZEROS, MEAN, OTHER_INPUTS):
                self._least_off = min(self._least_off, off)
            for module in set(modules):
                # What a sample shows to be far off is far off; only what seems near is looked at whole.
                if all(
                    _apart(out, answer, mine, is_quick=is_quick) <= weighed.allowed / FRACTION
                    for is_quick in (True, False)
                    for out, answer, mine, weighed, its in pairs
                    if its == module
                ):
                    passed.add((name, module))
        return passed

    def _idle(self, references: Sequence[torch.Tensor]) -> Iterator[tuple[str, list[torch.Tensor]]]:
        """Answers that do nothing, by name."""
        yield ZEROS, [torch.zeros_like(reference) for reference in references]
        yield OTHER_INPUTS, self._other
        yield (
            "a constant answer",
            [_constant(reference, other) for reference, other in zip(references, self._other, strict=True)],
        )
        inputs = self._workers.trusted["inputs"]
        for number, given in enumerate(inputs):
            if all(given.numel() == reference.numel() and given.dtype == reference.dtype for reference in references):
                name = f"{COPY}input {number}" if len(inputs) > 1 else f"{COPY}the input"
                yield name, [given.reshape(reference.shape) for reference in references]
        if all(
            reference.dim() and reference.shape[0] > 1 and not float8.equal(reference[0], reference[-1])
            for reference in references
        ):
            yield MEAN, [_mean(reference) for reference in references]

    def _blurred(self, facts: Facts) -> Examination:
        workers = self._workers
        pairs = list(zip(workers.trusted["answer"], workers.trusted["own"], strict=True))
        if all(comparison.scale_of(answer) < NOTHING * comparison.scale_of(reference) for answer, reference in pairs):
            why = "the exact answer is zero throughout, and what the reference returns is its rounding"
            return Examination(Standing.NOTHING_TO_DO, why, (OTHER_SIZES,))
        why = (
            "rounding alone moves the reference's answer so far that a kernel could be off by "
            f"{self._allowed:.2g} of |answer| + rms, and an answer of zeros is off by half of it"
        )
        return _of_depth(why, facts)

    def _passed(self, names: list[str], facts: Facts) -> Examination:
        """Some answer was never far off."""
        if self.idle_modules:
            return _undecidable(
                f"an answer that does nothing would pass for module {self.idle_modules[0]!r}", "another depth"
            )
        if not names:
            return _undecidable("the reference gives no finite answer to its own inputs", "inputs with a finite answer")
        if OTHER_INPUTS in names:
            why = f"{OTHER_INPUTS} is right as well: the answer does not depend on them"
            return Examination(Standing.NOTHING_TO_DO, why, (OTHER_SIZES,))
        if copied := [name for name in names if name.startswith(COPY)]:
            return Examination(
                Standing.NOTHING_TO_DO, f"{copied[0]} is right in every trial", ("a task that computes",)
            )
        why = f"{names[0]} would pass every trial, where an error of {self._allowed:.2g} of |answer| + rms is allowed"
        return _of_depth(why, facts)


def _apart(out: torch.Tensor, answer: torch.Tensor, reference: torch.Tensor, *, is_quick: bool) -> float:
    """The largest error of an output, or that of elements all over it."""
    scale = comparison.scale_of(answer, reference)
    if is_quick and reference.numel() > SAMPLE:
        spots = torch.linspace(0, reference.numel() - 1, SAMPLE, dtype=torch.float64).long()
        out, answer, reference = (tensor.reshape(-1)[spots] for tensor in (out, answer, reference))
    return comparison.errors(out, answer, reference, scale).relative


def _is_finite(tensor: torch.Tensor) -> bool:
    numbers = float8.exact(comparison.real(tensor))
    return not numbers.dtype.is_floating_point or bool(numbers.isfinite().all())


def _constant(reference: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """One number, which other inputs tell: a loss is one number itself."""
    if not is_rounded(reference):
        return other.flatten()[:1].expand(reference.numel()).reshape(reference.shape)
    return torch.full_like(reference, float8.exact(other).mean().item())


def _mean(reference: torch.Tensor) -> torch.Tensor:
    if not is_rounded(reference):
        return reference[:1].expand_as(reference).contiguous()
    mean = float8.exact(reference).mean(0, keepdim=True).expand_as(reference)
    return mean.to(reference.dtype).contiguous()


def _undecidable(why: str, *remedies: str) -> Examination:
    return Examination(Standing.UNDECIDABLE, why, remedies)


def _of_depth(why: str, facts: Facts) -> Examination:
    """Undecidable by rounding, with what makes that matter less."""
    batch = ("a larger batch",) if facts.is_training else ()
    remedies = (*batch, "fewer layers, or parts of the network as tasks of their own")
    return Examination(Standing.UNDECIDABLE, why, remedies, is_blurred=True)
