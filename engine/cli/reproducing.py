"""`reproduce MANIFEST` on the command line: a suite's best kernels judged again. Knows toolchains by name only."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path

from engine.cli import report
from engine.cli.judgement import printable
from engine.cli.subcommands import FAILED, OK
from engine.errors import EngineError
from engine.suites import manifest
from engine.suites.manifest import ManifestKernel
from engine.toolchains import Toolchain
from storage import codec, read_only
from storage.suites import files
from storage.suites.records import JudgedAgain


def reproduce(options: Namespace, open_toolchain: Callable[[str], Toolchain]) -> int:
    """Judge the kernels of a manifest again; returns 1 where anything came out otherwise."""
    found = manifest.read(Path(options.manifest))
    chosen = _chosen(found.kernels, options.tasks)
    _tell_versions(found.made_with)
    judged: list[JudgedAgain] = []
    answers = []
    for name in sorted({kernel.toolchain for kernel in chosen}):
        toolchain = open_toolchain(name)
        try:
            for kernel in (one for one in chosen if one.toolchain == name):
                again, answer = manifest.judge_again(kernel, toolchain)
                judged.append(again)
                answers.append(codec.to_plain(again) | {"answer": answer})
                print(_line(kernel, again), flush=True)
                _keep(found.defined.name, kernel, again)
        finally:
            toolchain.close()
    alike = sum(not one.differs for one in judged)
    print(f"{alike} of {len(judged)} kernels came out alike.")
    if options.output:
        plain = {"made_with": manifest.versions(), "judged": answers}
        report.write(json.dumps(plain, indent=1, ensure_ascii=False) + "\n", options.output)
    return OK if alike == len(judged) else FAILED


def _chosen(kernels: tuple[ManifestKernel, ...], tasks: list[str]) -> list[ManifestKernel]:
    known = {kernel.cell.task for kernel in kernels}
    if strangers := sorted(set(tasks) - known):
        raise EngineError(f"the manifest has no kernel of {', '.join(strangers)}: it has {', '.join(sorted(known))}")
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
    known = {line.event.run_id for line in files.read(folder) if hasattr(line.event, "run_id")}
    if kernel.run_id in known and not read_only.is_on():
        files.append(folder, again)
