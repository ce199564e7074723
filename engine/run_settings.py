"""Settings of runs that do not exist yet: from a task, a recording or the demo. Starts nothing and writes nothing."""

from __future__ import annotations

import dataclasses
import math
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.capabilities import available_models, has_gpu
from engine.errors import EngineError, ModelError
from engine.evaluator import languages, tasks
from engine.evaluator.languages import DEFAULT as LANGUAGE
from engine.evaluator.languages import Triton
from engine.knowledge import consulting
from engine.networks import elsewhere
from engine.search.llm.recording import calls_of_first_run, recorded_settings, recorded_tasks, shipped_recording
from engine.search.methods import check_width, independence_of, usual_knowledge
from engine.search.methods.loading import DEFAULT, find_strategy, options_of
from engine.search.methods.options import Option, Value, complete
from engine.search.prompt_pack import shipped
from storage.knowledge.choice import OFF
from storage.results import baselines
from storage.run import budgets, saved_models
from storage.run.folder import id_for
from storage.run.models import Options
from storage.run.saved_models import RECORDED, Saved, SavedModelError
from storage.run.settings import Budget, RunSettings, Start, Switch
from storage.run.steering.command_arguments import MANUAL

DEMO_TASK = "square_matmul"
REPLAY_SECONDS = 2.0
SETTINGS = {field.name for field in dataclasses.fields(RunSettings)}


def new_settings(
    task: str,
    *,
    toolchain: str = "cpu",
    model: str | None = None,
    overrides: Mapping[str, int | float] | None = None,
    strategy: str = DEFAULT,
    options: Sequence[Option] | None = None,
    **fields: Any,
) -> RunSettings:
    """Settings of a run that does not exist yet. Without a model: recorded replies if no endpoint is configured.

    Those of `tasks.POLICY_OPTIONS` change the task's policy, as `tasks.policy_with` says. `options` describes those of
    the strategy, which is imported where they are not given.

    Raises:
        TaskError: no such task, or an override names nothing in it.
        ModelError: the model cannot work on this task here.
        EngineError: no such strategy, or a value that an option cannot have.
    """
    usual = usual_knowledge(find_strategy(strategy)) if options is None else OFF
    fields["knowledge"] = consulting.check(fields.get("knowledge", usual))
    options = options_of(strategy) if options is None else options
    chosen_options: dict[str, Value] = {}
    chosen_policy = {name: fields.pop(name) for name in tasks.POLICY_OPTIONS if name in fields}
    language = fields.setdefault("language", LANGUAGE)
    _check(fields, language, toolchain)
    elsewhere.refuse_task(task)
    file = tasks.find(task)
    file = dataclasses.replace(file, policy=tasks.policy_with(file.policy, **chosen_policy))
    chosen = file.task(toolchain, overrides)
    if fault := baselines.fault(chosen.policy.baselines, toolchain):
        raise EngineError(fault)
    model = model or available_models()[0]
    recording = fields.pop("recording", None)
    if model == RECORDED:
        recording = recording or _recording_for(chosen.name, toolchain, strategy, language)
        recorded = recorded_settings(Path(recording))
        chosen_options = {option.name: recorded.get(option.name, option.default_for(model)) for option in options}
        overrides = _as_recorded(recorded, fields, overrides, chosen.sizes)
        chosen = file.task(toolchain, overrides)
        fields.setdefault("reply_seconds", REPLAY_SECONDS)
    chosen_options = take_options(options, fields, chosen_options)
    _check_width(fields.get("width", 1), strategy, chosen_options, model)
    fields.setdefault("prompts", shipped())
    created = time.time()
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(created))
    return RunSettings(
        run_id=id_for(chosen.name, f"{stamp}-{secrets.token_hex(2)}"),
        task_name=chosen.name,
        task_source=chosen.source,
        task_place=chosen.place,
        kernel_class=chosen.kernel_class or chosen.guessed_class,
        class_is_proposed=chosen.kernel_class is None,
        sizes=chosen.sizes,
        toolchain=toolchain,
        model=model,
        recording=recording,
        policy=chosen.policy,
        saved_models=saved_for(model, fields.get("model_options", ())),
        created_at=created,
        strategy=strategy,
        strategy_options=chosen_options,
        **fields,
    )


def saved_for(model: str, options: Options, before: Saved = ()) -> Saved:
    """What a run that asks these models keeps of `models.toml`.

    Raises:
        ModelError: an entry that it asks cannot be read.
    """
    try:
        return saved_models.used_by(model, options, before)
    except SavedModelError as error:
        raise ModelError(f"{error}") from error


def _check(fields: Mapping[str, Any], language: str, toolchain: str) -> None:
    """Raises EngineError for a language, device, start, weight or number of variants that cannot be had here."""
    languages.check(language, toolchain)
    _check_device(fields.get("device", ""), toolchain)
    if not 0 < fields.get("weight", 1.0) < math.inf:
        raise EngineError(f"a weight is a number above 0, such as 2 for twice the usual share, not {fields['weight']}")
    if "budget" in fields and (fault := budgets.fault(fields["budget"])):
        raise EngineError(fault)
    if fields.get("tune", 0) < 0:
        raise EngineError(f"the number of variants to tune is 0 for none, or more, not {fields['tune']}")
    if fields.get("start") is Start.COMPILED and language != Triton.name:
        raise EngineError(
            "a run begins with what torch.compile generates in the language triton alone: choose it, or leave the "
            "first kernel to the model"
        )


def _check_width(width: int, strategy: str, values: Mapping[str, Value], model: str) -> None:
    if width == 1:
        return
    check_width(width, strategy, independence_of(find_strategy(strategy)), values)
    if model == MANUAL:
        raise EngineError("a person answers one call after the other: with the model manual the width is 1")


def _check_device(device: str, toolchain: str) -> None:
    if device and not has_gpu(toolchain):
        raise EngineError("a device is a GPU: choose the toolchain cuda with it, or leave it out")


def take_options(options: Sequence[Option], fields: dict[str, Any], defaults: Mapping[str, Value]) -> dict[str, Value]:
    """Every option, taken out of the fields where it stands there or in `strategy_options`, else as `defaults`, else
    its default.

    Raises:
        EngineError: no such option, or a value that it cannot have.
    """
    names = [option.name for option in options]
    values = {name: value for name, value in defaults.items() if name in names}
    values |= {name: fields.pop(name) for name in names if name in fields and name not in SETTINGS}
    return complete(options, values | fields.pop("strategy_options", {}))


def import_settings(
    task: str,
    *,
    toolchain: str,
    device: str,
    model: str | None,
    overrides: Mapping[str, int | float] | None,
    depths: int,
) -> RunSettings:
    """Settings of a run that is filled from elsewhere. Who goes on from it: the model named, one that is
    connected, or a person.

    Raises:
        TaskError: no such task.
    """
    model = model or next(name for name in available_models() if name != RECORDED)
    budget = Budget(depths=depths)
    return new_settings(task, toolchain=toolchain, model=model, overrides=overrides, device=device, budget=budget)


def demo_settings() -> RunSettings:
    """The run that a first start shows: square matmul, recorded replies, every kernel profiled for the watcher."""
    return new_settings(DEMO_TASK, toolchain="cpu", model=RECORDED, collect=Switch.ON, is_demo=True)


def recorded_depths(task_name: str, toolchain: str, strategy: str = DEFAULT, language: str = LANGUAGE) -> int | None:
    """How many depths the shipped recording of a task goes, None when there is none."""
    path = shipped_recording(task_name, toolchain, strategy, language)
    return recorded_settings(path).get("depths") if path else None


def recorded_calls(
    task_name: str, depths: int, toolchain: str, strategy: str = DEFAULT, language: str = LANGUAGE
) -> int | None:
    """How many calls a run of so many depths makes that keeps to the shipped recording of a task; None without one."""
    path = shipped_recording(task_name, toolchain, strategy, language)
    return calls_of_first_run(path, depths) if path else None


def recording_note(task_name: str, toolchain: str, strategy: str = DEFAULT, language: str = LANGUAGE) -> str:
    """Why the model `recorded` cannot work on a task, as a sentence; empty when it can."""
    if shipped_recording(task_name, toolchain, strategy, language) is not None:
        return ""
    there = ", ".join(recorded_tasks(toolchain, strategy, language))
    another = "strategy" if language == LANGUAGE else "language"
    choose = f"Choose a task that has them ({there}), or" if there else f"Choose another {another}, or"
    method = "" if strategy == DEFAULT else f" with the strategy {strategy}"
    method += "" if language == LANGUAGE else f" in the language {language}"
    return (
        f"No recorded replies for task {task_name} on {toolchain}{method}. {choose} "
        "the model manual, to write the replies yourself; for a live model set OPENAI_API_KEY (and OPENAI_BASE_URL), "
        "or save one on the page Models."
    )


def _recording_for(task_name: str, toolchain: str, strategy: str, language: str) -> str:
    if note := recording_note(task_name, toolchain, strategy, language):
        raise ModelError(note)
    return str(shipped_recording(task_name, toolchain, strategy, language))


def _as_recorded(
    recorded: Mapping[str, Any],
    fields: dict[str, Any],
    overrides: Mapping[str, int | float] | None,
    sizes_of_task: Mapping[str, int | float],
) -> dict[str, int | float]:
    """Sizes and depths as the run was recorded, where none are given: so the same kernels lead to the same calls."""
    if isinstance(recorded.get("depths"), int):
        fields.setdefault("budget", Budget(depths=recorded["depths"]))
    sizes = recorded["sizes"] if isinstance(recorded.get("sizes"), dict) else {}
    return dict(overrides or {n: v for n, v in sizes.items() if n in sizes_of_task and isinstance(v, (int, float))})
