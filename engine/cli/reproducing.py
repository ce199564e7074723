"""`reproduce MANIFEST` on the command line: a suite's best kernels judged again. Knows toolchains by name only."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from engine.cli import report
from engine.cli.subcommands import FAILED, OK
from engine.cli.terminal import printable
from engine.errors import EngineError
from engine.evaluator.request import Evaluator
from engine.suites import manifest
from engine.suites.manifest import ManifestKernel
from storage import codec, read_only
from storage.suites import files
from storage.suites.records import JudgedAgain

UNKNOWN_REFERENCE = (
    "its reference is not that of a task that comes with Tilewright, and references run outside the sandbox: read it "
    "in the manifest (task_source), then give --run-references"
)


def reproduce(options: Namespace, open_toolchain: Callable[[str], Evaluator]) -> int:
    """Judge the kernels of a manifest again; returns 1 where one came out otherwise or could not be judged."""
    recorded = manifest.read(Path(options.manifest))
    chosen = _chosen(recorded.kernels, options.tasks)
    _tell_versions(recorded.made_with)
    answers: list[dict[str, Any]] = []
    alike = judged = 0
    try:
        for kernel, again, answer in _judged(chosen, open_toolchain, options.run_references):
            if isinstance(again, JudgedAgain):
                judged += 1
                alike += not again.differs
                answers.append(codec.to_plain(again) | {"answer": answer})
                print(_line(kernel, again), flush=True)
                _keep(recorded.defined.name, kernel, again)
            else:
                answers.append({"cell": codec.to_plain(kernel.cell), "not_judged": again})
                print(printable(f"{kernel.cell.words}: could not be judged here: {again}"), flush=True)
    finally:
        if options.output:
            plain = {"made_with": manifest.versions(), "judged": answers}
            report.write(json.dumps(plain, indent=1, ensure_ascii=False) + "\n", options.output)
    left = f" {len(chosen) - judged} could not be judged here." if judged < len(chosen) else ""
    print(f"{alike} of {judged} kernels came out alike.{left}")
    return OK if alike == len(chosen) else FAILED


def _judged(
    chosen: list[ManifestKernel], open_toolchain: Callable[[str], Evaluator], runs_references: bool
) -> Iterator[tuple[ManifestKernel, JudgedAgain | str, dict[str, Any]]]:
    """Each kernel with what came of it, or the reason why it cannot be judged on this machine."""
    for name in sorted({kernel.toolchain for kernel in chosen}):
        toolchain: Evaluator | None = None
        try:
            for kernel in (kernel for kernel in chosen if kernel.toolchain == name):
                if not runs_references and not manifest.is_shipped(kernel):
                    yield kernel, UNKNOWN_REFERENCE, {}
                    continue
                if rules := manifest.other_rules(kernel):
                    note = f"other rules than the task {kernel.task_name} has here: {'; '.join(rules)}"
                    print(printable(f"{kernel.cell.words}: {note}"), flush=True)
                try:
                    toolchain = toolchain or open_toolchain(name)
                    again, answer = manifest.judge_again(kernel, toolchain)
                except EngineError as error:
                    yield kernel, str(error), {}
                else:
                    yield kernel, again, answer
        finally:
            if toolchain is not None:
                toolchain.close()


def _chosen(kernels: tuple[ManifestKernel, ...], tasks: list[str]) -> list[ManifestKernel]:
    task_names = {kernel.cell.task for kernel in kernels}
    if strangers := sorted(set(tasks) - task_names):
        raise EngineError(
            f"the manifest has no kernel of {', '.join(strangers)}: it has {', '.join(sorted(task_names))}"
        )
    if not kernels:
        raise EngineError("the manifest has no kernel: none was correct when it was written")
    return [kernel for kernel in kernels if not tasks or kernel.cell.task in tasks]


def _tell_versions(then: Mapping[str, str]) -> None:
    now = manifest.versions()
    for name in sorted({*then, *now}):
        was, is_now = then.get(name, "not there"), now.get(name, "not there")
        if was != is_now:
            print(f"{name}: {printable(is_now)} here, {printable(was)} where the manifest was written")


def _line(kernel: ManifestKernel, again: JudgedAgain) -> str:
    then = f"{kernel.speedup:.3g}x on {kernel.device or 'an unknown device'}"
    now = f"{again.verdict}" + (f", {again.speedup:.3g}x" if again.speedup else "") + f" on {again.device}"
    differs = f"; differs: {'; '.join(again.differs)}" if again.differs else "; alike"
    return printable(f"{kernel.cell.words}: {now}; then {then}{differs}")


def _keep(name: str, kernel: ManifestKernel, again: JudgedAgain) -> None:
    """In the suite's journal, where it is the suite of this home that has the run."""
    try:
        folder = files.find(name)
    except files.SuiteError:
        return
    run_ids = {line.event.run_id for line in files.read(folder) if hasattr(line.event, "run_id")}
    if kernel.run_id in run_ids and not read_only.is_on():
        files.append(folder, again)
