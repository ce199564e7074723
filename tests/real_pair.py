"""A run with two kernels that really build, as if an engine had made and timed them: nothing is run to write it."""

from __future__ import annotations

from pathlib import Path

from engine import supervisor
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.blobs import Blobs
from storage.run.folder import RunFolder
from storage.run.journal import Journal
from storage.run.settings import DepthOutcome, Origin, RunState, Switch
from tests.engine.swish_story import FIRST, THIRD

SIZES: dict[str, int | float] = {"batch_size": 4, "dim": 1024}


def real_pair(home: Path, collect: Switch = Switch.AUTO) -> RunFolder:
    """Kernels 1 and 2 of swish at a small size; the journal says that the second is 1.2 times as fast."""
    settings = supervisor.new_settings("swish", model="manual", overrides=SIZES, collect=collect)
    folder = RunFolder(home / "runs" / settings.run_id)
    folder.write_settings(settings)
    blobs, book = Blobs(folder.blobs), Journal(folder.journal_file)
    book.append(ev.RunStarted(settings.run_id, "swish"))
    book.append(ev.EngineStarted(1, False))
    for number, (source, ms) in enumerate(((FIRST, 1.2), (THIRD, 1.0)), 1):
        name, parent = f"c{number:03d}", "c001" if number > 1 else None
        made = (number, name, parent, parent, number - 1, 0, 0, Origin.MANUAL, blobs.put(source), None, 0, 0)
        book.append(ev.CandidateCreated(*made, summary=f"way {number}"))
        book.append(ev.Compiled(number, name, CompileResult(True, 1.0), None))
        book.append(ev.Checked(number, name, CheckResult(Verdict.PASSED, 1.0)))
        book.append(ev.Timed(number, name, TimingResult((ms,) * 7, (2.0,) * 7)))
        book.append(ev.DepthFinished(number, number - 1, DepthOutcome.ACCEPTED, name, parent, False, True, ""))
    book.append(ev.RunEnded(RunState.FINISHED, "both depths are done", "c002"))
    book.close()
    return folder
