"""A run that begins with a kernel of another one: its settings, and the files its engine needs. Starts nothing."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from engine.errors import EngineError
from engine.evaluator import languages, tasks
from engine.knowledge import consulting
from engine.run_settings import saved_for, take_options
from engine.search.methods.loading import options_of
from engine.search.methods.options import Option
from engine.search.prompt_pack import with_pack
from storage.results.policy import Policy, as_of_now
from storage.run import journal
from storage.run.blobs import Blobs
from storage.run.folder import RunFolder, runs_folder
from storage.run.forks import Fork
from storage.run.record import Candidate, Record
from storage.run.settings import RunSettings


def fork_settings(
    folder: RunFolder, candidate_id: str, options: Sequence[Option] | None = None, **changes: Any
) -> RunSettings:
    """Settings of a run that begins with a kernel of the run in `folder`; what is not changed stays as it is there.

    `options` describes those of its strategy, which is imported where they are not given. With another toolchain a
    shipped task has its sizes for that one. Its kernel is judged again first, so the rules that hold now are its own,
    whatever those of the other run.

    Raises:
        EngineError: there is no such kernel.
    """
    settings, created = folder.read_settings(), time.time()
    changes = on_toolchain(settings, changes.get("toolchain", settings.toolchain)) | changes
    record = Record.of(settings, list(journal.read(folder.journal_file)))
    candidate = record.candidates.get(candidate_id)
    if candidate is None:
        raise EngineError(f"run {folder.run_id} has no kernel {candidate_id}")
    number = record.number(candidate_id)
    inherited: dict[str, Any] = {
        "kernel_class": record.kernel_class,
        "class_is_proposed": not record.is_class_known,
        "budget": record.budget,
        "prompts": with_pack(settings.prompts.folder, settings.prompts.files),
    }
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(created))
    new: dict[str, Any] = {
        "run_id": f"{settings.task_name[:60]}-{stamp}-{secrets.token_hex(2)}",
        "created_at": created,
        "is_demo": False,
        "is_example": False,
        "replay_of": None,
        "width": 1,  # a fork goes on from one kernel
        "suite": "",
        "policy": _judged_here(settings, as_of_now(changes.get("policy", settings.policy))),
        "forked_from": _fork(folder.run_id, candidate, number),
    }
    fields = inherited | changes | new
    options = options_of(settings.strategy) if options is None else options
    fields["strategy_options"] = take_options(options, fields, settings.strategy_options)
    fields["knowledge"] = consulting.check(fields.get("knowledge", settings.knowledge))
    model, asked = fields.get("model", settings.model), fields.get("model_options", settings.model_options)
    fields["saved_models"] = saved_for(model, asked, settings.saved_models)
    return replace(settings, **fields)


def _judged_here(settings: RunSettings, policy: Policy) -> Policy:
    """An example's recorded tensors are not part of it: its kernels are judged here on drawn inputs alone."""
    return replace(policy, recorded="") if settings.is_example else policy


def on_toolchain(settings: RunSettings, toolchain: str) -> dict[str, Any]:
    """Fields of a run that goes on with another toolchain: a language that it runs, and a shipped task's sizes for it.

    Raises:
        EngineError: there is no such toolchain.
    """
    if toolchain == settings.toolchain:
        return {}
    known_languages = languages.of_toolchain(toolchain)
    language = settings.language if settings.language in known_languages else known_languages[0]
    fields: dict[str, Any] = {"toolchain": toolchain, "language": language, "device": ""}
    if (file := _shipped(settings)) is not None:
        task = file.task(toolchain)
        fields |= {"task_source": task.source, "sizes": task.sizes}
    return fields


def _shipped(settings: RunSettings) -> tasks.TaskFile | None:
    """The shipped task that a run works on; None for a file of a person's own, whatever its name."""
    try:
        file = tasks.find(settings.task_name)
        is_it = file.is_shipped and file.task(settings.toolchain, settings.sizes).source == settings.task_source
    except EngineError:
        return None
    return file if is_it else None


def lay_out(settings: RunSettings, source: RunFolder) -> RunFolder:
    """Put the text of the kernel taken over where the new run's engine finds it.

    Raises:
        FileNotFoundError: the other run's folder has lost the text.
    """
    folder = RunFolder(runs_folder() / settings.run_id)
    if settings.forked_from is not None:
        Blobs(folder.blobs).put(Blobs(source.blobs).get(settings.forked_from.source_blob))
    return folder


def _fork(run_id: str, candidate: Candidate, number: int) -> Fork:
    timed = candidate.timed
    return Fork(
        run_id=run_id,
        candidate_id=candidate.candidate_id,
        number=number,
        source_blob=candidate.created.source_blob,
        latency_ms=timed.latency_ms if timed else None,
        baseline_latency_ms=timed.baseline_latency_ms if timed else None,
    )
