"""The first screen of a run: what it was measured on, the line of figures, words for kernels that got slower."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.types import Message, Receive, Scope, Send

from engine import supervisor
from pages.parts import index, method, wording
from pages.parts.client.page_style import PageStyle
from pages.parts.run import curve_chart, key_figures
from pages.parts.status import beside_base, measured_on
from storage.index import queries
from storage.index.queries import BaselineRow, KernellessRow, RiseRow, RunRow
from storage.results.policy import BOTH_PASSES
from storage.run.settings import RunState
from tests import samples
from tests.pages.conftest import Open, words


@pytest.mark.parametrize(
    ("inputs", "shapes"),
    [
        ("[torch.rand(N, N), torch.rand(N, N)]", ("4096 × 4096",)),
        ("[torch.randn((8, 2 * N)), torch.randint(0, 9, (8,))]", ("8 × 8192", "8")),
        ("[torch.rand(N, size())]", ()),
        ("[make(N)]", ()),
    ],
)
def test_shapes_are_told_where_the_reference_says_them_plainly(inputs: str, shapes: tuple[str, ...]) -> None:
    source = f"import torch\nN = 4096\n\ndef get_inputs():\n    return {inputs}\n"
    assert measured_on.shapes(source) == shapes
    settings = replace(samples.sample_settings("r1"), task_source=source, sizes={"N": 4096})
    assert measured_on.of(settings) == (", ".join(shapes) or "N = 4,096", "fp32")


def test_a_text_that_is_no_module_has_no_shapes() -> None:
    assert measured_on.shapes("def") == measured_on.shapes("N = 1") == ()


def test_a_task_of_8_bit_floats_names_them_and_not_the_class_of_its_arithmetic() -> None:
    narrow = supervisor.new_settings("fp8_matmul", model="manual")
    assert measured_on.of(narrow)[1] == "float8_e4m3fn"
    both = replace(narrow, policy=replace(narrow.policy, backward=True))
    assert measured_on.of(both)[1] == narrow.policy.measured.replace("half", "float8_e4m3fn") + BOTH_PASSES
    assert measured_on.of(supervisor.new_settings("int4_linear", model="manual"))[1] == "half"


def test_the_page_says_shape_format_and_device_under_the_title(home: Path, open_page: Open) -> None:
    samples.write_run(home / "runs", "r1", depths=4)
    app = open_page("run", run="r1")
    assert any(caption.value.startswith("1024 × 1024 · fp32 · sample device · ") for caption in app.caption)
    assert words(app).count("Finished") + words(app).count("finished:") <= 1


def run_of(home: Path, open_page: Open, **changed: object) -> RunRow:
    samples.write_run(home / "runs", "r1", depths=4)
    open_page("run", run="r1")
    run = queries.run(index.current(), "r1")
    assert run is not None
    return replace(run, **changed)  # type: ignore[arg-type]


def test_the_axis_of_a_run_that_ended_ends_where_the_run_did(home: Path, open_page: Open) -> None:
    run = run_of(home, open_page, depths=9)
    reached = max(point.depth for point in curve_chart.gather(run).points)
    for state in RunState:
        last = curve_chart.last_depth(curve_chart.gather(replace(run, state=state)))
        assert last == (reached if state.is_finished else 9)


def test_before_a_first_gain_words_lead_and_the_number_is_small(home: Path, open_page: Open) -> None:
    run = run_of(home, open_page)
    first = next(kernel.speedup for kernel in index.attempts("r1") if kernel.speedup)
    slow = replace(run, best_speedup=0.9, best_low=0.89, best_high=0.91, best_noise=0.01)
    gain = wording.speedup(0.9 / first, 0.03)
    shown = key_figures._best(slow, RunState.RUNNING)
    assert shown["said"].startswith(gain[:3])
    assert shown["said"].endswith("faster than its first kernel, not yet as fast as PyTorch")
    assert shown["title"].startswith(f"{gain[:3]}")
    assert f"0.90×, divided by that of kernel 1, {wording.speedup(first)[:3]}" in shown["title"]
    assert shown["note"] == "0.90× (0.89 to 0.91×) over eager PyTorch"
    assert "value" not in shown
    assert key_figures._best(slow, RunState.FINISHED)["said"].endswith(", not as fast as PyTorch")
    level = replace(slow, best_speedup=first, best_low=first - 0.01, best_high=1.01)
    assert key_figures._best(level, RunState.RUNNING)["said"] == "Not yet faster than PyTorch"
    assert key_figures._best(replace(run, best_low=1.2), RunState.RUNNING)["value"]
    wide = replace(run, best_speedup=26.2, best_noise=0.55, best_low=17.0, best_high=38.0)
    assert key_figures._latency(wide)["note"] == key_figures.headroom(wide)["note"] == "of the timing that was kept"
    assert key_figures._latency(run)["note"].startswith("PyTorch ")
    shown = key_figures._best(wide, RunState.FINISHED)
    assert (shown["said"], shown["note"].partition(" · ")[0], shown["tone"]) == (
        "17.0 to 38.0×", wording.TOO_WIDE, "good"
    )  # fmt: skip
    assert wording.gain_tone(0.33, 14.0) == "strong"


def test_a_stopped_run_says_how_far_it_came_as_the_list_does(home: Path, open_page: Open) -> None:
    run = run_of(home, open_page, state=RunState.STOPPED, state_reason="stopped by a person", completed=3, depths=10)
    assert key_figures._state(run, RunState.STOPPED)["note"] == "2 of 10 depths, by a person"
    assert method.completed(run) == (2, 10)
    ended = replace(run, state=RunState.FINISHED, state_reason="all 10 depths are done")
    assert key_figures._state(ended, RunState.FINISHED)["note"] == "all 10 depths are done"


def test_an_accepted_kernel_that_is_slower_than_its_base_is_called_slower(home: Path, open_page: Open) -> None:
    run_of(home, open_page)
    made = [kernel for kernel in index.attempts("r1") if kernel.speedup and kernel.is_accepted]
    base, kernel = replace(made[0], speedup=1.0, noise=0.01), replace(made[1], speedup=0.8, noise=0.01)
    assert beside_base.is_slower(kernel, base, is_on_gpu=True)
    assert not beside_base.is_slower(replace(kernel, speedup=0.99), base, is_on_gpu=True)
    assert not beside_base.is_slower(kernel, None, is_on_gpu=True)
    assert not beside_base.is_slower(base, base, is_on_gpu=True)
    assert wording.outcome(kernel, is_slower=True) == "slower, kept"
    assert wording.outcome(kernel) == "accepted"


def test_in_a_stopped_run_the_best_is_called_that_and_of_others_that_nothing_was_decided(
    home: Path, open_page: Open
) -> None:
    run = run_of(home, open_page)
    rows = curve_chart.gather(replace(run, state=RunState.STOPPED))
    first, second = (replace(point, is_accepted=False, is_pending=True, is_best=False) for point in rows.points[:2])
    best = replace(first, is_best=True)
    assert wording.outcome(best, is_stopped=True) == "correct, the best"
    assert wording.outcome(second, is_stopped=True) == "not decided: the run was stopped"
    assert wording.outcome(second) == "correct, pending"
    drawn = curve_chart.curve_figure(replace(rows, points=[best, second]), False, "r1")["data"]
    by_name = {trace.get("name"): trace for trace in drawn}
    assert by_name["not decided: the run was stopped"]["customdata"] == [second.candidate_id]
    assert "correct, the best" in by_name["best"]["text"][0]


def test_a_kernel_in_work_is_not_drawn_as_one_that_was_not_kept(home: Path, open_page: Open) -> None:
    rows = curve_chart.gather(run_of(home, open_page))
    base, made = replace(rows.points[0], is_accepted=True), replace(rows.points[1], base_id=rows.points[0].candidate_id)
    for is_pending, name in ((True, "made from"), (False, "tried from")):
        points = [base, replace(made, is_accepted=False, is_pending=is_pending, trajectory=0)]
        lines = {trace["name"]: trace for trace in curve_chart._branches(points) if trace["x"]}
        assert lines.keys() == {name}
        assert lines[name]["line"]["dash"] == ("solid" if is_pending else "dot")


def test_a_step_that_made_no_kernel_has_a_mark_and_its_reason(home: Path, open_page: Open) -> None:
    run = run_of(home, open_page)
    rows = replace(curve_chart.gather(run), kernelless=[KernellessRow(1, 1, "left to go back to kernel 1")])
    assert curve_chart.last_depth(replace(rows, points=(), failures=(), budget_depths=0)) == 1
    (mark,) = [
        trace for trace in curve_chart.curve_figure(rows, False, "r1")["data"] if trace.get("name") == "no kernel made"
    ]
    assert (mark["x"], mark["text"]) == ([1], [f"{rows.words.step} 1 · no kernel made\nleft to go back to kernel 1"])
    assert "1 made no kernel: left to go back to kernel 1" in curve_chart._marks(rows)
    assert "Drawn at its latency" not in curve_chart._marks(rows)
    assert "Drawn at its latency: CUDA graph. Eager" in curve_chart._marks(replace(rows, by_latency=["CUDA graph"]))


def test_an_alternative_known_too_widely_to_draw_is_named(home: Path, open_page: Open) -> None:
    rows = curve_chart.gather(run_of(home, open_page))
    known, vague = (
        BaselineRow(name, 2.0, 1.5, 6.0, noise, 1.0, 2.0, "") for name, noise in (("graph", 0.1), ("mine", 0.9))
    )
    drawn = replace(rows, baselines=[known, vague])
    assert f"mine has no line: its time varied so much ({wording.interval(1.5, 6.0)} over" in curve_chart._marks(drawn)
    assert "graph has no line" not in curve_chart._marks(drawn)
    names = [
        str(line.get("text", "")) for line in curve_chart.curve_figure(drawn, False, "r1")["layout"]["annotations"]
    ]
    assert any("graph" in text for text in names)
    assert not any("mine" in text for text in names)


def test_a_tie_and_a_rise_within_the_noise_are_told_in_figures(home: Path, open_page: Open) -> None:
    run = run_of(home, open_page)
    kernel, best = (a for a in index.attempts("r1") if a.speedup and (a.is_best or a.candidate_id == "c001"))
    best = replace(best, speedup=1.64, noise=0.03, latency_ms=26.3)
    tied = replace(kernel, is_tied=True, speedup=1.6, noise=0.03, latency_ms=31.6)
    told = beside_base.tie(tied, best, is_on_gpu=False)
    holds = f"is 1.02× (0.96 to 1.10×) as fast as kernel 1: {beside_base.OPEN}."
    assert told.startswith(
        f"Kernel {best.number}, the best, {holds} By latency alone kernel {best.number} is 1.20× as fast as kernel 1: "
    )
    assert "50.6 ms beside kernel 1" in told
    assert beside_base.tie(replace(tied, is_tied=False), best, is_on_gpu=False) == ""
    newer = beside_base.tie(replace(tied, number=best.number + 1), best, is_on_gpu=False)
    assert newer.startswith(
        f"Kernel {best.number + 1} is 0.98× (0.92 to 1.04×) as fast as kernel {best.number}, the best: "
    )
    rows = curve_chart.gather(run)
    rises = [RiseRow(0, 1.0, 1, True), RiseRow(1, 1.01, 2, False), RiseRow(2, 1.02, 4, False), RiseRow(3, 2.0, 5, True)]
    assert "Its rise at kernels 2 and 4 is smaller than" in curve_chart._marks(replace(rows, rises=rises))
    assert "Its rise at" not in curve_chart._marks(replace(rows, rises=rises[:1]))


def test_the_axis_of_latencies_names_the_limit_by_milliseconds_that_stay(home: Path, open_page: Open) -> None:
    run = run_of(home, open_page)
    rows = curve_chart.gather(run)
    assert rows.limit_ms == pytest.approx(queries.limit(index.current(), "r1").limit_ms)  # type: ignore[union-attr]
    for eager_ms in (1.9, 3.0):
        layout = curve_chart.curve_figure(replace(rows, eager_ms=eager_ms), True, "r1")["layout"]
        named = [note["text"] for note in layout["annotations"] if "hardware limit" in note.get("text", "")]
        assert [text.rstrip(" ↑↓") for text in named] == [f"hardware limit {wording.latency(rows.limit_ms)}"]
        axis = layout["yaxis3"]
        assert (axis["side"], axis["matches"], axis["type"]) == ("right", "y", "log")
        told = [float(text.split()[0]) for text in axis["ticktext"]]
        assert told == pytest.approx([eager_ms / tick for tick in axis["tickvals"]])


def test_a_run_that_its_engine_left_is_called_interrupted_and_keeps_its_state_in_the_journal() -> None:
    assert wording.STATE_NAME[RunState.LOST] == "interrupted"
    assert str(RunState.LOST) == "lost"


def test_the_style_of_all_pages_is_part_of_the_document_and_of_nothing_else() -> None:
    page = b"<html><body><div></div></body></html>"

    def sent(kind: bytes) -> tuple[dict[bytes, bytes], bytes]:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            assert not any(name == b"accept-encoding" for name, _ in scope["headers"])
            headers = [(b"content-type", kind), (b"content-length", b"%d" % len(page)), (b"etag", b"x")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": page[:20], "more_body": True})
            await send({"type": "http.response.body", "body": page[20:]})

        async def receive() -> Message:
            return {"type": "http.request"}

        async def send(message: Message) -> None:
            messages.append(message)

        messages: list[Message] = []
        scope = {"type": "http", "headers": [(b"accept", b"text/html"), (b"accept-encoding", b"gzip")]}
        with ThreadPoolExecutor(1) as pool:  # a browser's tests may have a loop in this thread
            pool.submit(lambda: asyncio.run(PageStyle(app)(scope, receive, send))).result()
        return dict(messages[0]["headers"]), b"".join(message["body"] for message in messages[1:])

    headers, body = sent(b"text/html; charset=utf-8")
    assert body.endswith(b"</style></body></html>")
    assert b".st-key-curve_place" in body
    assert headers == {b"content-type": b"text/html; charset=utf-8", b"content-length": b"%d" % len(body)}
    assert sent(b"text/css")[1] == page


@pytest.mark.parametrize(
    ("turned", "profile", "short", "reason"),
    [
        ("on", "Profiled", "disturbed", "that of kernel {} was disturbed"),
        ("auto", "Profiled", "disturbed", "that of kernel {} was disturbed"),
        ("off", "Profiled", "", ""),
        ("on", "ProfileFailed", "profiling failed", "profiling kernel {} failed (no profiler)"),
        ("on", "", "not profiled", "kernel {} was not profiled"),
    ],
)
def test_a_run_says_why_its_model_saw_no_profile_where_it_was_to_see_one(
    home: Path, open_page: Open, turned: str, profile: str, short: str, reason: str
) -> None:
    """A step of the profile-guided phase whose prompt had none: its base has none that could be shown."""
    folder = samples.write_run(home / "runs", "r1")
    lines = [json.loads(line) for line in folder.journal_file.read_text().splitlines()]
    calls = [e["event"] for e in lines if e["kind"] == "ModelCalled" and e["event"]["role"] == "optimise"]
    call = next(e for e in reversed(calls) if e["is_profile_exposed"])
    depth, base = call["depth"], call["candidate_id"]
    for line in lines:
        event = line["event"]
        if event.get("depth") == depth and "is_profile_exposed" in event:
            event["is_profile_exposed"] = False
        if event.get("command", {}).get("kind") == "expose":
            event["command"]["argument"] = turned
        if line["kind"] == "Profiled" and event["candidate_id"] == base:
            event["result"]["evidence"]["disturbed"] = "the profiled call took 9 ms, the timed one 2 ms"
            if profile != "Profiled":
                told = {"step": event["step"], "candidate_id": base, "reason": "no profiler"}
                line |= {"kind": "ProfileFailed", "event": told | ({} if profile else {"candidate_id": "none"})}
    folder.journal_file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    asked = '"kind":"expose","argument":'
    commands = folder.commands_file.read_text()
    assert f'{asked}"on"' in commands
    folder.commands_file.write_text(commands.replace(f'{asked}"on"', f'{asked}"{turned}"'))
    reason = reason.format(int(base.removeprefix("c")))
    said = words(open_page("run", run="r1")).replace("\\", "")
    assert ("The model saw no profile" in said) is bool(reason)
    assert not reason or f"The model saw no profile at depth {depth}: {reason}." in said
    run = queries.run(index.current(), "r1")
    assert run
    band = next(phase for phase in curve_chart.gather(run).phases if phase.first <= depth <= phase.last)
    assert band.why == short
    kernel = next(a for a in queries.attempts(index.current(), "r1") if (a.depth, a.base_id) == (depth, base))
    said = words(open_page("candidate", run="r1", candidate=kernel.candidate_id)).replace("\\", "")
    assert f"The model had not seen a profile{f': {reason}' if reason else ''}." in said
