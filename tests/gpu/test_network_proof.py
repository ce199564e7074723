"""Kernels put back into a network on a GPU: launches are seen, and every way to call the network is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.__main__ import main
from storage.networks import files
from storage.networks.records import CUDA_GRAPH, MAX_AUTOTUNE, TUNED_GRAPH, Verdict
from storage.networks.standing import standing
from tests.engine.networks import paying_networks
from tests.engine.packaging.judged import judged_run

pytestmark = pytest.mark.gpu


def test_what_pays_is_kept_and_measured_in_every_way(home: Path) -> None:
    words = ["--name", "paying", "--device", "cuda", "--no-limits", "--least-share", "0"]
    assert main(["network", "capture", f"{paying_networks.__file__}:make", *words]) == 0
    folder = files.find("paying")
    used = []
    for name in ("chain", "scaled_wrong", "shifted"):
        region = name.partition("_")[0]
        task = folder.path / "regions" / region / "task.py"
        run = judged_run(home, str(task), paying_networks.kernel(name), toolchain="cuda")
        used += ["--use", f"{region}={run.run_id}"]
    assert main(["network", "apply", "paying", *used, "--seconds", "2"]) == 0
    proof = standing(folder).proof
    assert proof is not None
    assert proof.is_over
    assert proof.tried["scaled"].verdict is Verdict.WRONG
    engaged = proof.tried["chain"].engaged
    assert [(part.seen, part.expected) for part in engaged] == [(paying_networks.CHAINS, paying_networks.CHAINS)]
    assert all(part.kernels for part in engaged)
    ways = {timed.way: timed.note for timed in proof.originals}
    assert [ways[way] for way in (CUDA_GRAPH, MAX_AUTOTUNE, TUNED_GRAPH)] == ["", "", ""]
    for trial in proof.tried.values():
        assert trial.verdict is not Verdict.CRASHED, trial.why
        assert all(speed.before_bytes is not None for speed in trial.speeds)
