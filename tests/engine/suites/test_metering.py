"""What a run has spent, as a suite meters it."""

from __future__ import annotations

import pytest

from engine import examples
from engine.shown import runs
from engine.suites.metering import Meter
from storage.run import journal
from storage.run.folder import run_at
from storage.suites import measured

STOPPED = "causal_attention-20261129-172503-6c23"  # an engine was lost within the step that times its kernel


@pytest.mark.usefixtures("home")
def test_the_time_of_a_step_that_was_cut_off_is_the_same_for_a_suite_its_results_and_programs() -> None:
    examples.open_examples([STOPPED])
    folder = run_at(STOPPED)
    timed = 25.1 + 26.7  # the kernel, and the alternative after it
    spent = Meter(folder).read().spent.engine_s
    assert spent == pytest.approx(timed + 53.7, abs=0.2)
    assert measured.of_run(folder.read_settings(), list(journal.read(folder.journal_file))).engine_s == spent
    assert runs.form(folder).engine_s == spent
