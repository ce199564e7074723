"""What a run was started with, as rows of a label and a value: sizes, precision, strategy, options, limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import streamlit as st

from engine import run_options
from engine.evaluator import languages, tasks
from engine.search.methods import catalogue
from pages.parts import run_settings, wording
from storage import codec
from storage.index.queries import RunRow
from storage.knowledge import choice
from storage.results import baselines
from storage.results.policy import Policy
from storage.results.vocabulary import KernelClass
from storage.run.saved_models import SavedModel
from storage.run.settings import RunSettings, Switch

COLLECTED = {
    Switch.AUTO: "auto, when the method needs them",
    Switch.ON: "of every correct kernel",
    Switch.OFF: "of none",
}
"""Of a new run; a person may have changed it since, which *Steering* tells."""


def of(run_id: str, kernel_class: KernelClass | None = None) -> list[tuple[str, str]] | str:
    """(label, value) in reading order; why run.json cannot be read instead where that is so. With the run's class, what
    follows from it is told too."""
    try:
        return list(rows(run_settings.of(run_id), kernel_class))
    except (FileNotFoundError, codec.DecodeError, UnicodeDecodeError) as error:
        return f"run.json cannot be read: {error}"


def older_rules(run_id: str) -> str:
    """That a run's kernels are judged by rules of before, as a sentence; empty where not, or where nobody knows."""
    try:
        settings = run_settings.of(run_id)
    except (FileNotFoundError, codec.DecodeError, UnicodeDecodeError):
        return ""
    kept = tasks.kept_rules(settings.policy.rules, settings.task_source)
    return f"An older version started this run, and its rules stay in force: kernels are {kept}." if kept else ""


def rows(settings: RunSettings, kernel_class: KernelClass | None = None) -> Iterator[tuple[str, str]]:
    """(label, value) in reading order, as `of`."""
    budget = settings.budget
    yield "Sizes", ", ".join(f"{name} = {value:,}" for name, value in settings.sizes.items()) or "as in the reference"
    yield "Precision", settings.policy.measured
    yield "Operators left to PyTorch", settings.policy.library_in_words
    yield from _tried(settings)
    yield from _baselines(settings)
    yield "Language", languages.title(settings.language)
    if settings.device:
        yield "GPU", settings.device
    yield "Strategy", settings.strategy
    yield from catalogue.in_words(settings, kernel_class)
    yield "Profiles collected", COLLECTED[settings.collect]
    if settings.saved_models:
        yield "Saved models", ", ".join(map(_saved, settings.saved_models))
    yield "Knowledge base", choice.in_words(settings.knowledge)
    yield from run_options.in_words(settings)
    if settings.prompts.hash:
        yield "Prompts", settings.prompts.in_words
    limits = [
        _steps(settings),
        wording.counted(budget.model_calls, "call") if budget.model_calls is not None else "",
        f"{budget.tokens:,} tokens" if budget.tokens is not None else "",
        wording.cost(budget.cost_usd) if budget.cost_usd is not None else "",
        wording.seconds(budget.wall_s) if budget.wall_s is not None else "",
        f"target {wording.speedup(budget.target_speedup)}" if budget.target_speedup is not None else "",
        f"stop at {wording.percent(budget.limit_share)} of the hardware limit" if budget.limit_share else "",
    ]
    yield "Limits at the start", ", ".join(limit for limit in limits if limit)


def _steps(settings: RunSettings) -> str:
    """How many step indexes the run may have, and that an option of its strategy limits them too where that differs."""
    words = catalogue.words(settings.strategy)
    _, most = words.completed(0, settings.budget.depths)
    chosen = dict(catalogue.in_words(settings)).get(words.titles)
    differs = words.counts_first and chosen not in (None, f"{most:,}")
    return words.counted(most) + (f" (of this and “{words.titles}” above the lower holds)" if differs else "")


def _saved(entry: SavedModel) -> str:
    """What answers by a name; no address, since reports show it too."""
    return f"{entry.name} ({entry.endpoint.model if entry.endpoint else 'a program'})"


def _tried(settings: RunSettings) -> Iterator[tuple[str, str]]:
    """What is tried otherwise than usual."""
    policy, usual = settings.policy, Policy()
    if policy.is_judged_as_constructed:
        if kept := tasks.kept_rules(policy.rules, settings.task_source):
            yield "Kernels", kept
        return
    labels = {"mode": "Mode", "weights": "Weights", "state_dict": "Names of weights", "draws": "Random numbers",
              "strides": "Strides of inputs", "compare_modules": "Modules compared, names deep"}  # fmt: skip
    yield from (
        (label, str(getattr(policy, name)))
        for name, label in labels.items()
        if getattr(policy, name) != getattr(usual, name)
    )
    if policy.secret_sizes:
        yield "Other sizes", "one near its own that nobody is told"


def _baselines(settings: RunSettings) -> Iterator[tuple[str, str]]:
    """What is timed beside eager, where that was chosen."""
    if asked := settings.policy.baselines:
        chosen = [baselines.TITLES.get(name, name) for name in baselines.of_run(asked, settings.toolchain, "")]
        yield "Baselines", ", ".join(["eager PyTorch", *chosen])
    if settings.own_baseline is not None:
        yield "Baseline of one's own", settings.own_baseline.name


def draw(run: RunRow) -> None:
    """The rows of one run, folded away."""
    # With a key and its state on the server it stays open when what stands above it on the page comes or goes.
    with st.expander("Settings", icon=":material/tune:", key=f"settings:{run.run_id}", on_change="rerun"):
        listed = of(run.run_id, run.kernel_class)
        if isinstance(listed, str):
            st.caption(wording.plain(listed))
            return
        st.markdown("\n\n".join(f":gray[{wording.plain(label)}]  \n{wording.plain(value)}" for label, value in listed))


def differing(run_ids: Sequence[str]) -> list[list[str]]:
    """A row for each setting in which the runs differ: its label, then the value of each run, or a dash."""
    by_run = [{} if isinstance(listed := of(name), str) else dict(listed) for name in run_ids]
    labels = dict.fromkeys(label for values in by_run for label in values)
    compared = [[label, *(values.get(label, wording.NONE) for values in by_run)] for label in labels]
    return [row for row in compared if len(set(row[1:])) > 1]
