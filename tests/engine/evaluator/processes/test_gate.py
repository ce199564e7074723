"""The gate shuts on a breach in the text or the library, and on what cannot be read."""

from pathlib import Path
from typing import Any, cast

from engine.evaluator.checks.screening import Rule
from engine.evaluator.machine.worker_limits import Limits, Times
from engine.evaluator.processes.evaluation_request import EvaluationRequest
from engine.evaluator.processes.process import Gate
from storage.results.policy import Policy
from tests.engine.evaluator.checks.screening.candidates import REFERENCE, SWISH, forward


def gate(folder: Path, source: str, limits: Limits | None = None) -> Gate:
    return Gate(EvaluationRequest(REFERENCE, Policy(), source, cast(Any, None), Times(), limits or Limits()), folder)


def test_an_honest_text_leaves_it_open_and_a_breach_shuts_it(tmp_path: Path) -> None:
    honest, refused = gate(tmp_path, SWISH), gate(tmp_path, forward("return torch.jit.script(torch.relu)(x)"))
    honest.read_text()
    refused.read_text()
    assert not honest.is_shut
    assert refused.is_shut
    assert "torch.jit.script" in refused.message


def test_a_text_that_ends_its_reader_is_refused(tmp_path: Path) -> None:
    shut = gate(tmp_path, "x = [" + "1," * 400_000 + "]\n" + SWISH, Limits(address_space=1 << 20))
    shut.read_text()
    assert shut.is_shut
    assert "cannot be read within limits" in shut.message or "nested too deeply" in shut.message


def test_a_library_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    library = tmp_path / "kernel.so"
    library.write_bytes(b"no library")
    shut = gate(tmp_path, SWISH)
    assert "damaged" in shut.read_library(library, ())
    assert {finding.rule for finding in shut.findings} == {Rule.DYNAMIC}
