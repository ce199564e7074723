"""A real Ray cluster on this machine: a run goes on when the node that judged its kernels is taken away."""

from __future__ import annotations

import importlib
import io
import json
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.errors import ToolchainError
from engine.evaluator.pool import on_ray, remote
from engine.evaluator.pool.on_ray import ROOT, RayCluster
from engine.evaluator.pool.remote import RemotePool
from engine.evaluator.request import Compile
from storage import device_use
from tests.engine.evaluator.pool.conftest import asked

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


def test_a_worker_of_another_version_of_the_code_is_replaced(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.add_node(num_cpus=1, object_store_memory=MEMORY)
    names = importlib.import_module("ray.util").list_named_actors
    build = replace(asked(Compile), toolchain="cpu")
    with closing(RemotePool(RayCluster("ray"))) as pool:
        pool.evaluate(build)
        (before,) = names()
    code = on_ray._packed()
    monkeypatch.setattr(on_ray, "_packed", lambda: _with_one_more(code))
    with closing(RemotePool(RayCluster("ray"))) as pool:
        pool.evaluate(build)
        (after,) = names()
    assert before.rpartition("-")[0] == after.rpartition("-")[0]
    assert before != after


def test_why_no_worker_starts_is_told(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "worker").write_text("no folder")
    monkeypatch.setattr(remote, "NONE_S", 0.0)
    cluster.add_node(num_cpus=1, object_store_memory=MEMORY)
    with (
        closing(RemotePool(RayCluster("ray"))) as pool,
        pytest.raises(ToolchainError, match=r"it has none; cpu-.*(FileExists|NotADirectory)Error"),
    ):
        pool.evaluate(replace(asked(Compile), toolchain="cpu"))


def _with_one_more(code: bytes) -> bytes:
    archive = io.BytesIO(code)
    with zipfile.ZipFile(archive, "a") as packed:
        packed.writestr("engine/newer.txt", "")
    return archive.getvalue()
