"""A real Ray cluster on this machine: a run goes on when the node that judged its kernels is taken away."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.pool.on_ray import ROOT
from storage import device_use

pytest.importorskip("ray")
MEMORY = 100 << 20
RUN = ("run", "swish", "--depths", "0", "--set", "batch_size=16", "--set", "dim=4096", "--pool", "ray")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """A head that evaluates nothing; homes of the engine and of the workers are the test's own."""
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TILEWRIGHT_WORKER_HOME", str(tmp_path / "worker"))
    monkeypatch.setenv("TILEWRIGHT_LEASES", str(tmp_path / "leases"))
    monkeypatch.setenv("TILEWRIGHT_COMPILED_BASELINE", "off")
    kind = importlib.import_module("ray.cluster_utils").Cluster
    made = kind(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": MEMORY})
    monkeypatch.setenv("RAY_ADDRESS", made.address)
    yield made
    made.shutdown()


def test_a_run_goes_on_when_the_node_that_works_for_it_is_taken_away(cluster: Any, tmp_path: Path) -> None:
    nodes = [cluster.add_node(num_cpus=1, object_store_memory=MEMORY) for _ in range(2)]
    engine = subprocess.Popen([sys.executable, "-m", "engine", *RUN], cwd=ROOT, env=os.environ, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
    first = ""
    while engine.poll() is None and not first:
        holding = [one.device for one in device_use.claims() if one.stage is device_use.Stage.HOLDING]
        first = holding[0] if holding else ""
        time.sleep(0.1)
    assert first
    gone = next(one for one in nodes if first.endswith(one.node_id[:6]))
    cluster.remove_node(gone, allow_graceful=False)
    told, _ = engine.communicate(timeout=500)
    assert engine.returncode == 0, told
    (journal,) = (tmp_path / "home" / "runs").glob("*/journal.jsonl")
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [line["seq"] for line in lines] == list(range(lines[0]["seq"], lines[0]["seq"] + len(lines)))
    where = {line["event"]["result"]["evidence"]["device id"] for line in lines if line["kind"] == "Timed"}
    assert where
    assert first not in where
    assert not list((tmp_path / "worker").glob("runs/*"))
