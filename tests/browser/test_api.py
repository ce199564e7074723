"""What machines can read, asked of a real server over real HTTP."""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from storage.run.blobs import Blobs
from tests import samples
from tests.browser.conftest import ROOT, Server, new_home, start_server, stop_server
from tests.browser.play import PretendEngine, finished_depth

pytestmark = pytest.mark.browser

EXAMPLE = re.compile(r"^```\n(GET|HEAD|POST) (\S+)\n```\n+```json\n(.*?)^```$", re.DOTALL | re.MULTILINE)
KEY = "sk-not-for-anyone"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Message
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def ask(server: Server, path: str, method: str = "GET", **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(server.url + path, method=method, headers=named)
    try:
        with urllib.request.urlopen(request, timeout=20) as found:
            return Answer(found.status, found.headers, found.read())
    except urllib.error.HTTPError as error:
        return Answer(error.code, error.headers, error.read())


def until(look: Callable[[], Any]) -> Any:
    """What a look gives once it gives anything."""
    deadline = time.monotonic() + 20
    while not (found := look()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = new_home(tmp_path_factory.mktemp("api") / "home")
    for seed, (name, ending) in enumerate((("example", "finished"), ("second", "stopped"), ("third", "new"))):
        samples.write_run(home / "runs", name, seed=seed, depths=4, ending=ending, created_at=1.75e9 - seed)
    server = start_server(home, OPENAI_API_KEY=KEY)
    until(lambda: ask(server, "/api/runs").json["total"] == 3)
    yield server
    stop_server(server)


def test_every_example_of_the_documentation_is_what_the_server_answers(api: Server) -> None:
    examples = EXAMPLE.findall((ROOT / "docs" / "api.md").read_text())
    assert len(examples) >= 6
    for method, path, shown in examples:
        assert_shows(ask(api, path, method).json, json.loads(shown), f"{method} {path}")


def assert_shows(found: Any, shown: Any, where: str) -> None:
    """What is shown is there; an example may leave out fields and the rest of a list."""
    if isinstance(shown, dict):
        for name, value in shown.items():
            assert name in found, f"{where}: no {name}"
            assert_shows(found[name], value, f"{where} {name}")
    elif isinstance(shown, list):
        assert len(found) >= len(shown), where
        for number, (one, value) in enumerate(zip(found, shown, strict=False)):
            assert_shows(one, value, f"{where} [{number}]")
    else:
        assert found == shown, where


def test_runs_are_paged_filtered_and_sorted(api: Server) -> None:
    first = ask(api, "/api/runs?limit=2").json
    assert [run["run"] for run in first["runs"]] == ["example", "second"]
    rest = ask(api, first["next"]).json
    assert [run["run"] for run in rest["runs"]] == ["third"]
    assert rest["next"] is None
    assert [run["run"] for run in ask(api, "/api/runs?state=lost").json["runs"]] == ["third"]
    assert [run["run"] for run in ask(api, "/api/runs?task=softmax").json["runs"]] == ["second"]
    assert ask(api, "/api/runs?text=no+such").json["total"] == 0
    assert ask(api, "/api/runs?sort=best").json["runs"][-1]["best"] is None


def test_events_since_a_number_are_the_lines_of_the_journal(api: Server) -> None:
    lines = (api.runs / "example" / "journal.jsonl").read_text().splitlines()
    seen: list[Any] = []
    since, has_more = 0, True
    while has_more:
        page = ask(api, f"/api/runs/example/events?since={since}&limit=60").json
        seen += page["events"]
        since, has_more = page["next"], page["has_more"]
    assert seen == [json.loads(line) for line in lines]
    assert ask(api, f"/api/runs/example/events?since={since}").json["events"] == []


def unchanged(api: Server, address: str, word: bytes) -> Answer | None:
    """An answer with a word in it that the server calls unchanged right after: one given while it reads is older."""
    found = ask(api, address)
    if word not in found.body:
        return None
    return found if ask(api, address, If_None_Match=found.headers["ETag"]).status == 304 else None


def test_a_follower_gets_each_new_event_once_and_nothing_when_there_is_none(api: Server) -> None:
    engine = PretendEngine(api.runs, "followed", depths=3)
    engine.play_until(finished_depth)
    address = "/api/runs/followed/events?since=0"
    known = until(lambda: unchanged(api, address, b"DepthFinished"))
    etag = known.headers["ETag"]
    engine.play_until(finished_depth)
    since = known.json["next"]
    news = until(lambda: ask(api, f"/api/runs/followed/events?since={since}").json["events"])
    assert news[0]["seq"] == since + 1
    assert ask(api, address, If_None_Match=etag).status == 200
    assert ask(api, "/api/runs?state=running").json["runs"][0]["run"] == "followed"
    found = read_metrics(ask(api, "/metrics").body.decode())
    assert found["tilewright_engines_alive"] == [({}, 1.0)]
    assert found["tilewright_run_best_speedup"][0][0] == {"run": "followed", "task": "square_matmul"}
    engine.die()


def test_the_best_kernel_is_a_file_and_a_source_is_its_bytes(api: Server) -> None:
    run = ask(api, "/api/runs/example").json
    best = ask(api, "/api/runs/example/best")
    kernel = ask(api, f"/api/runs/example/kernels/{run['best']['kernel']}").json
    assert best.body.decode() == Blobs(api.runs / "example" / "blobs").get(kernel["source_sha256"])
    assert best.headers["Content-Disposition"] == f'attachment; filename="square_matmul-{kernel["kernel"]}.py"'
    assert best.headers["X-Content-Type-Options"] == "nosniff"
    assert ask(api, kernel["source"]).body == best.body
    assert ask(api, kernel["source"], If_None_Match=best.headers["ETag"]).status == 304
    assert ask(api, "/api/runs/third/best").status == 404


WRONG = [
    ("/api/runs?limit=many", 400),
    ("/api/runs?limit=100000", 400),
    ("/api/runs?offset=-1", 400),
    ("/api/runs?state=asleep", 400),
    ("/api/runs?sort=luck", 400),
    ("/api/runs/none", 404),
    ("/api/runs/example/kernels/c999", 404),
    ("/api/runs/example/kernels/c999/source", 404),
    ("/api/runs/example/events?since=soon", 400),
    ("/api/nothing", 404),
]


@pytest.mark.parametrize(("path", "status"), WRONG)
def test_an_error_is_json_and_says_what_to_do(api: Server, path: str, status: int) -> None:
    found = ask(api, path)
    assert found.status == status
    assert set(found.json) == {"error", "remedy"}
    assert found.json["remedy"]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_nothing_can_be_written(api: Server, method: str) -> None:
    before = {path: path.stat().st_mtime_ns for path in api.runs.rglob("*")}
    for path in ("/api/runs", "/api/runs/example", "/api/runs/example/events", "/metrics", "/api/pulse"):
        found = ask(api, path, method)
        assert (found.status, found.headers["Allow"]) == (405, "GET, HEAD")
    assert {path: path.stat().st_mtime_ns for path in api.runs.rglob("*")} == before


def test_a_head_request_has_the_headers_and_no_body(api: Server) -> None:
    found = ask(api, "/api/runs/example", "HEAD")
    assert (found.status, found.body) == (200, b"")
    assert found.headers["ETag"] == ask(api, "/api/runs/example").headers["ETag"]


def test_no_answer_tells_a_key_or_a_place_of_this_machine(api: Server) -> None:
    settings = json.loads((api.runs / "second" / "run.json").read_text())
    settings["run_id"] = "telling"
    settings["recording"] = f"{api.home}/replies.jsonl"
    settings["model_options"] = [{"role": "all", "base_url": "http://secret.example:9/v1"}]
    settings["saved_models"] = [
        {"name": "work", "endpoint": {"model": "gpt-x", "base_url": "http://secret.example:9/v1"}, "key": "file"},
        {"name": "mine", "program": {"command": [f"{api.home}/program"]}},
    ]
    settings["prompts"] = {"hash": "ab", "shipped": "cd", "folder": f"{api.home}/packs/terse", "files": {"hint.md": ""}}
    folder = api.runs / "telling"
    folder.mkdir()
    text = (api.runs / "second" / "journal.jsonl").read_text()
    (folder / "journal.jsonl").write_text(text.replace("stopped after", f"see {api.home}/runs/x and {ROOT}/app.py,"))
    (folder / "run.json").write_text(json.dumps(settings))
    until(lambda: ask(api, "/api/runs/telling/events?since=1").status == 200)
    for path in ("/api/runs", "/api/runs/telling", "/api/runs/telling/events", "/metrics"):
        said = ask(api, path).body.decode()
        assert not [word for word in (str(api.home), str(ROOT), KEY, "secret.example") if word in said], path
    assert ask(api, "/api/runs/telling").json["settings"]["recording"] == "replies.jsonl"
    assert ask(api, "/api/runs/telling").json["settings"]["saved_models"] == [
        {"name": "work", "kind": "endpoint", "model": "gpt-x"}, {"name": "mine", "kind": "command", "model": None},
    ]  # fmt: skip
    prompts = {"hash": "ab", "shipped": "cd", "folder": "terse", "files": ["hint.md"]}
    assert ask(api, "/api/runs/telling").json["settings"]["prompts"] == prompts
    assert "<home>/runs/x" in ask(api, "/api/runs/telling/events").body.decode()


def read_metrics(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Samples by name; each metric comes once, explained and typed, and so does each sample."""
    families = list(text_string_to_metric_families(text))
    assert text.endswith("\n")
    assert len({family.name for family in families}) == len(families)
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in families:
        name = family.name + ("_total" if family.type == "counter" else "")
        assert family.documentation, name
        assert family.type in ("gauge", "counter"), name
        found[name] = [(sample.labels, sample.value) for sample in family.samples]
        assert {sample.name for sample in family.samples} <= {name}
        assert len({tuple(labels.items()) for labels, _ in found[name]}) == len(found[name]), name
        assert family.type == "gauge" or all(value >= 0 for _, value in found[name]), name
    return found


def test_the_metrics_are_what_prometheus_reads(api: Server) -> None:
    answer = ask(api, "/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    found = read_metrics(answer.body.decode())
    runs = {labels["state"]: value for labels, value in found["tilewright_runs"]}
    assert runs["finished"] == 1
    assert sum(runs.values()) == ask(api, "/api/runs").json["total"]
    events = sum(path.read_text().count("\n") for path in api.runs.glob("*/journal.jsonl"))
    assert found["tilewright_events_total"] == [({}, float(events))]
    assert found["tilewright_ingest_lag_bytes"] == [({}, 0.0)]
    assert found["tilewright_cost_usd_total"][0][1] > 0


def test_with_a_token_machines_need_it_and_pages_do_not(tmp_path: Path) -> None:
    server = start_server(new_home(tmp_path / "home"), TILEWRIGHT_API_TOKEN="long and random")
    try:
        for path in ("/api/runs", "/metrics", "/api/anything"):
            refused = ask(server, path)
            assert (refused.status, set(refused.json)) == (401, {"error", "remedy"})
            assert ask(server, path, Authorization="Bearer wrong").status == 401
        assert ask(server, "/api/runs", Authorization="Bearer long and random").status == 200
        assert ask(server, "/api/pulse?overview").status == 200
    finally:
        stop_server(server)
