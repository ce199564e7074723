"""Synthetic run folders that look like real ones, of any size: `python -m tests.samples HOME --runs 3 --depths 8`.

Every kind of event is in them: failed builds, diagnoses, repairs, wrong values with a heat map, edits that do not
apply, slower steps, profiles, commands, waiting. The same seed gives the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from storage import codec
from storage.results.vocabulary import KernelClass
from storage.run import journal, liveness
from storage.run.blobs import Blobs, text_hash
from storage.run.folder import RunFolder
from storage.run.journal import Entry
from storage.run.settings import Budget, RunSettings
from tests.sample_events import JudgedScript, Script

TASKS = (
    ("square_matmul", KernelClass.MATMUL),
    ("softmax", KernelClass.REDUCTION),
    ("swish", KernelClass.ACTIVATION),
)
REFERENCE = """import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


N = 1024


def get_inputs():
    return [torch.rand(N, N), torch.rand(N, N)]


def get_init_inputs():
    return []
"""


def sample_settings(run_id: str, seed: int = 0, depths: int = 8, created_at: float = 1.75e9) -> RunSettings:
    """Settings of a run on one of three tasks, chosen by the seed."""
    task, kernel_class = TASKS[seed % len(TASKS)]
    return RunSettings(
        run_id=run_id,
        task_name=task,
        task_source=REFERENCE,
        kernel_class=kernel_class,
        class_is_proposed=False,
        sizes={"N": 1024},
        toolchain="cpu" if seed % 2 else "cuda",
        model="recorded-replies",
        budget=Budget(depths=depths, tokens=2_000_000, cost_usd=5.0),
        created_at=created_at,
        is_demo=seed == 0,
    )


def sample_script(settings: RunSettings, seed: int = 0, ending: str = "finished") -> Script:
    """All events of a run. `ending`: finished, stopped, failed, waiting, paused, running (a step is in flight), new."""
    script = JudgedScript(settings, seed) if settings.strategy == "coder_judge" else Script(settings, seed)
    script.play(ending)
    return script


def write_run(
    root: Path,
    run_id: str = "sample",
    *,
    seed: int = 0,
    depths: int = 8,
    ending: str = "finished",
    created_at: float = 1.75e9,
    has_blobs: bool = True,
    strategy: str = "cutegen",
    knowledge: str = "off",
    width: int = 1,
) -> RunFolder:
    """Write a whole run folder under `root` (a `runs` folder) at once."""
    settings = sample_settings(run_id, seed, depths, created_at)
    settings = replace(settings, strategy=strategy, knowledge=knowledge, width=width)
    script = sample_script(settings, seed, ending)
    folder = RunFolder(root / run_id)
    folder.write_settings(settings)
    if has_blobs:
        write_blobs(folder, script)
    write_commands(folder, script)
    folder.journal_file.write_bytes(b"".join(as_line(entry) for entry in script.entries))
    return folder


def rewrite_texts(folder: RunFolder, change: Callable[[str], str]) -> None:
    """Change every text of a run; each lies under its new hash then, and the journal names that."""
    blobs, journal = Blobs(folder.blobs), folder.journal_file.read_text()
    for file in list(folder.blobs.iterdir()):
        journal = journal.replace(file.name, blobs.put(change(file.read_text())))
        file.unlink()
    folder.journal_file.write_text(journal)


def forget_proofs(folder: RunFolder) -> None:
    """Make the journal one of an engine that did not record its checks yet."""
    lines = [json.loads(line) for line in folder.journal_file.read_text().splitlines()]
    for line in lines:
        line["event"].pop("flags", None)
        if isinstance(result := line["event"].get("result"), dict):
            result.pop("proofs", None)
    folder.journal_file.write_text("".join(json.dumps(line) + "\n" for line in lines))


def write_blobs(folder: RunFolder, script: Script) -> None:
    """Without fsync, which real runs pay for and samples need not."""
    folder.blobs.mkdir(parents=True, exist_ok=True)
    for text in script.texts:
        (folder.blobs / text_hash(text)).write_bytes(text.encode())


def write_commands(folder: RunFolder, script: Script) -> None:
    """commands.jsonl with every command asked so far."""
    folder.commands_file.write_text("".join(codec.dumps(command) + "\n" for command in script.commands))


def as_line(entry: Entry) -> bytes:
    """A journal line with its newline."""
    return (journal.encode(entry) + "\n").encode("utf-8", "surrogatepass")


def play_live(root: Path, run_id: str, seed: int, depths: int, seconds_per_event: float) -> Iterator[Entry]:
    """Write a run event by event, holding its lock as an engine would."""
    settings = sample_settings(run_id, seed, depths, time.time())
    script = sample_script(settings, seed)
    folder = RunFolder(root / run_id)
    folder.write_settings(settings)
    write_blobs(folder, script)
    write_commands(folder, script)
    liveness.hold(folder)
    folder.engine_file.write_text(json.dumps({"pid": os.getpid()}))
    book = journal.Journal(folder.journal_file)
    for entry in script.entries:
        yield book.append(entry.event)
        time.sleep(seconds_per_event)
    book.close()


ENDINGS = ("finished", "running", "waiting", "stopped", "failed", "paused", "new")


def main() -> None:
    parser = argparse.ArgumentParser(description="Write synthetic runs for looking at the dashboard.")
    parser.add_argument("home", type=Path, help="a TILEWRIGHT_HOME")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--depths", type=int, default=8)
    parser.add_argument("--live", type=float, metavar="SECONDS", help="then write one more run, an event per SECONDS")
    options = parser.parse_args()
    root = options.home / "runs"
    for seed in range(options.runs):
        ending = ENDINGS[seed % len(ENDINGS)]
        started = time.time() - 3600 * (seed + 1)
        folder = write_run(
            root, f"sample-{seed:03d}-{ending}", seed=seed, depths=options.depths, ending=ending, created_at=started
        )
        print(folder.path)
    if options.live:
        for entry in play_live(root, f"live-{int(time.time())}", 1, options.depths, options.live):
            print(entry.seq, type(entry.event).__name__, flush=True)


if __name__ == "__main__":
    main()
