"""Problems of SOL-ExecBench and flashinfer-bench: what becomes of their files, how they are judged, the way back."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch._subclasses.fake_tensor import FakeTensorMode

from engine import exporting, supervisor
from engine.errors import EngineError, TaskError
from engine.evaluator import tasks
from engine.evaluator.checks.findings import OTHER_SHAPES
from engine.evaluator.toolchains.cpu import CpuToolchain
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult
from storage.results.examination import Standing
from storage.results.policy import EVERYTHING, Policy
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.blobs import Blobs
from storage.run.folder import RunFolder
from storage.run.journal import Journal
from storage.run.settings import Origin
from tests.real_pair import real_pair

REFERENCE = """\
import torch
import torch.nn.functional as F

@torch.no_grad()
def run(x, w, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * w
"""
DEFINITION: dict[str, Any] = {
    "name": "rms norm/64", "description": 'Rows of "x".', "reference": REFERENCE,
    "axes": {"rows": {"type": "var"}, "h": {"type": "const", "value": 32}, "F": {"type": "const", "value": 2},
             "n": {"type": "expr", "expression": "h * F"}},
    "inputs": {"x": {"shape": ["rows", "n"], "dtype": "float32"}, "w": {"shape": ["n"], "dtype": "float32"},
               "eps": {"shape": None, "dtype": "float32"}},
    "outputs": {"y": {"shape": ["rows", "n"], "dtype": "float32"}},
}  # fmt: skip
RIGHT = """\
import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def forward(self, x, w, eps):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * w
"""


def workload(rows: int, kind: str = "random", eps: object = 1e-6) -> dict[str, Any]:
    inputs = {"x": {"type": kind}, "w": {"type": "random"}, "eps": {"type": "scalar", "value": eps}}
    return {"uuid": f"{rows}", "axes": {"rows": rows}, "inputs": inputs}


def problem(folder: Path, *workloads: dict[str, Any], **changed: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "definition.json").write_text(json.dumps({**DEFINITION, **changed}))
    (folder / "workload.jsonl").write_text("\n".join(map(json.dumps, workloads)) + "\n")
    return folder


def test_a_problem_is_a_task_at_its_largest_workload_with_all_of_them_as_sizes(tmp_path: Path) -> None:
    traced = {"definition": "d", "workload": workload(16), "solution": None, "evaluation": None}
    file = tasks.find(str(problem(tmp_path, workload(8), traced, workload(4, "safetensors"))))
    assert file.name == "rms_norm_64"
    assert file.policy.workloads == ({"rows": 8, "eps": 1e-6}, {"rows": 16, "eps": 1e-6})
    assert file.remark.startswith("1 of 3 workloads are left out: the input x is of type safetensors")
    task = file.task()
    assert task.sizes == {"rows": 16, "eps": 1e-6, "h": 32, "F_size": 2}  # F is what the reference imports
    module: dict[str, Any] = {}
    exec(task.source, module)
    x, w, eps = module["get_inputs"]()
    assert (x.shape, w.shape, eps, module["Model"]()(x, w, eps).shape) == ((16, 64), (64,), 1e-6, (16, 64))
    assert tasks.problems.asked_for(task.source) == ("rms norm/64", ["x", "w", "eps"])
    # One size for all of them leaves one workload, which is the task's own then.
    alone = file.task(overrides={"rows": 4})
    assert (alone.policy.workloads, alone.sizes["rows"]) == ((), 4)
    entries = tasks.in_folder(tmp_path)
    assert [entry.task.name for entry in entries if entry.task] == ["rms_norm_64"]


def test_inputs_that_the_reference_makes_itself_are_drawn_on_the_device_asked_for(tmp_path: Path) -> None:
    made = f"{REFERENCE}\ndef get_inputs(axes, device):\n    n = axes['n']\n    return dict(eps=1e-5, " + (
        "w=torch.ones(n, device=device), x=torch.ones(axes['rows'], n, device=device))\n"
    )
    custom = {**workload(8), "inputs": {name: {"type": "custom"} for name in DEFINITION["inputs"]}}
    folder = problem(tmp_path, custom, reference=made, custom_inputs_entrypoint="get_inputs")
    module: dict[str, Any] = {}
    exec(tasks.find(str(folder)).task().source, module)
    x, w, eps = module["get_inputs"]()
    assert (x.shape, w.shape, eps) == ((8, 64), (64,), 1e-5)
    mixed = {**custom, "inputs": {**custom["inputs"], "eps": {"type": "scalar", "value": 1}}}
    problem(tmp_path, custom, mixed, reference=made, custom_inputs_entrypoint="get_inputs")
    assert tasks.find(str(folder)).remark.startswith("1 of 2 workloads are left out: the input eps is scalar")


def test_names_that_are_taken_and_imports_that_must_come_first_leave_a_module_that_runs(tmp_path: Path) -> None:
    reference = (
        "from __future__ import annotations\nimport torch\ndef run(x: later, x_var):\n    return x * x_var.log()\n"
    )
    axes = {name: {"type": "const", "value": size} for size, name in enumerate(("run", "run_size", "len", "torch"), 2)}
    tensor = {"shape": [*axes], "dtype": "float32"}
    lines = {"axes": {}, "inputs": {name: {"type": "random"} for name in ("x", "x_var")}}
    folder = problem(
        tmp_path, lines, reference=reference, axes=axes, inputs={"x": tensor, "x_var": tensor}, outputs={"y": tensor}
    )
    module: dict[str, Any] = {}
    exec(compile(tasks.find(str(folder)).task().source, "task", "exec", dont_inherit=True), module)
    inputs = module["get_inputs"]()
    assert module["Model"]()(*inputs).isfinite().all()
    assert inputs[0].shape == (2, 3, 4, 5)


def test_tensors_of_8_bits_are_drawn_in_float32_and_rounded(tmp_path: Path) -> None:
    kinds = {"x": "float8_e4m3fn", "w": "float8_e5m2", "s": "float8_e8m0fnu"}
    given = {name: {"shape": ["rows", "n"], "dtype": dtype} for name, dtype in kinds.items()}
    reference = "import torch\ndef run(x, w, s):\n    return (x.float() * w.float() * s.float()).to(x.dtype)\n"
    line = {"axes": {"rows": 8}, "inputs": {name: {"type": "random"} for name in kinds}}
    folder = problem(tmp_path, line, reference=reference, inputs=given, outputs={"y": given["x"]})
    module: dict[str, Any] = {}
    exec(tasks.find(str(folder)).task().source, module)
    drawn = module["get_inputs"]()
    assert [str(tensor.dtype) for tensor in drawn] == [f"torch.{dtype}" for dtype in kinds.values()]
    assert module["Model"]()(*drawn).float().isfinite().all()
    assert {0.5, 1.0} <= set(drawn[2].float().unique().tolist()) <= {0.5, 1.0, 2.0}


def test_the_files_of_a_trace_data_set_are_found_in_its_folders(tmp_path: Path) -> None:
    source = problem(tmp_path / "there", workload(8))
    for kind, name in (("definitions", "norm.json"), ("workloads", "norm.jsonl")):
        (tmp_path / kind / "rmsnorm").mkdir(parents=True)
        old = source / ("definition.json" if kind == "definitions" else "workload.jsonl")
        (tmp_path / kind / "rmsnorm" / name).write_text(old.read_text())
    assert tasks.find(str(tmp_path / "definitions" / "rmsnorm" / "norm.json")).task().sizes["rows"] == 8


GATHER: dict[str, Any] = {
    "name": "segment sums", "reference": """import torch

def run(x, starts, weights):
    rows = torch.arange(starts.shape[0] - 1, device=x.device).repeat_interleave(starts.diff())
    return torch.zeros(starts.shape[0] - 1, x.shape[1], device=x.device).index_add_(0, rows, x) * weights
""",
    "axes": {"rows": {"type": "var"}, "segments": {"type": "var"}, "h": {"type": "const", "value": 32},
             "ends": {"type": "expr", "expression": "segments + 1"}},
    "inputs": {"x": {"shape": ["rows", "h"], "dtype": "float32"}, "starts": {"shape": ["ends"], "dtype": "int64"},
               "weights": {"shape": ["h"], "dtype": "float32"}},
    "outputs": {"y": {"shape": ["segments", "h"], "dtype": "float32"}},
}  # fmt: skip
SUMS = """\
import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def forward(self, x, starts, weights):
        sums = torch.cat([torch.zeros_like(x[:1], dtype=torch.float64), x.double().cumsum(0)])
        return (sums[starts[1:]] - sums[starts[:-1]]).float() * weights
"""


def stored(path: str, key: str) -> dict[str, str]:
    return {"type": "safetensors", "path": path, "tensor_key": key}


def gathered(folder: Path, *starts: Sequence[int], weights: bool = False) -> Path:
    """A problem whose workloads have segments that begin there, each in a file, and in the last one weights too."""
    lines = []
    for number, begins in enumerate(starts):
        file = folder / "blob" / f"{number}.safetensors"
        file.parent.mkdir(parents=True, exist_ok=True)
        save_file({"starts": torch.tensor(begins), "w": torch.full((32,), 2.0)}, file)
        file.chmod(0o644)
        inputs = {"x": {"type": "random"}, "weights": {"type": "random"}}
        inputs["starts"] = stored(f"./blob/{number}.safetensors", "starts")
        if weights and number == len(starts) - 1:
            inputs["weights"] = stored(f"blob/{number}.safetensors", "w")
        lines.append({"axes": {"rows": begins[-1], "segments": len(begins) - 1}, "inputs": inputs})
    return problem(folder, *lines, **GATHER)


def test_inputs_in_files_are_those_of_their_workload(tmp_path: Path) -> None:
    file = tasks.find(str(gathered(tmp_path, [0, 3, 8], [0, 0, 5, 12], [0, 12], weights=True)))
    assert file.remark == ""
    assert [sizes["recording"] for sizes in file.policy.workloads] == [1, 2, 3]
    given = list[list[Any]]()
    for _, task in tasks.workloads.each(file.task()):
        module: dict[str, Any] = {}
        exec(task.source, module)
        given.append(module["get_inputs"]())
        x, starts, weights = given[-1]
        assert module["Model"]()(x, starts, weights).shape == (len(starts) - 1, 32)
    assert [starts.tolist() for _, starts, _ in given] == [[0, 3, 8], [0, 0, 5, 12], [0, 12]]
    assert [bool((weights == 2).all()) for _, _, weights in given] == [False, False, True]
    with FakeTensorMode():  # as its memory is estimated
        assert module["get_inputs"]()[1].shape == (2,)
    exec(file.task(overrides={"segments": 7}).source, module)
    with pytest.raises(ValueError, match="sizes of what is in files cannot be set"):
        module["get_inputs"]()


def test_another_content_of_a_file_makes_another_task_and_the_sandbox_sees_the_files(tmp_path: Path) -> None:
    source = tasks.find(str(gathered(tmp_path, [0, 3, 8], [0, 8]))).task().source
    assert tasks.imported.files(source) == (tmp_path / "blob/0.safetensors", tmp_path / "blob/1.safetensors")
    other = tasks.find(str(gathered(tmp_path, [0, 4, 8], [0, 8]))).task().source
    assert other != source
    assert other.replace(other.split("\n")[2], "") == source.replace(source.split("\n")[2], "")


def test_files_of_a_trace_data_set_are_named_from_its_root(tmp_path: Path) -> None:
    gathered(tmp_path, [0, 3, 8])
    for kind, old, name in (("definitions", "definition.json", "g.json"), ("workloads", "workload.jsonl", "g.jsonl")):
        (tmp_path / kind / "sums").mkdir(parents=True)
        (tmp_path / old).rename(tmp_path / kind / "sums" / name)
    module: dict[str, Any] = {}
    exec(tasks.find(str(tmp_path / "definitions" / "sums" / "g.json")).task().source, module)
    assert module["get_inputs"]()[1].tolist() == [0, 3, 8]


@pytest.mark.judging
def test_a_kernel_is_judged_at_every_workload_whose_inputs_are_in_files(home: Path, tmp_path: Path) -> None:
    file = tasks.find(str(gathered(tmp_path, [0, 300, 800], [0, 0, 500, 1200])))
    task = replace(file.task(), policy=replace(file.policy, library_operators=(EVERYTHING,)))
    with CpuToolchain(tmp_path / "scratch") as cpu:
        examined = cpu.examine_confined(task)
        checked, timed = cpu.check(task, SUMS), cpu.time(task, SUMS)
        wrong = cpu.check(task, SUMS.replace("starts[:-1]", "starts[:-1].clamp(min=1)"))
    assert (examined.standing, examined.refusal) == (Standing.DECIDED, "")
    assert (checked.verdict, checked.message) == (Verdict.PASSED, "")
    assert isinstance(timed, TimingResult)
    assert [workload.sizes["recording"] for workload in timed.workloads] == [1, 2]
    assert wrong.verdict is Verdict.INCORRECT


def bad_file(at: Path, **changed: object) -> None:
    """The first workload's tensor of segments, described otherwise."""
    line = json.loads((gathered(at, [0, 3, 8]) / "workload.jsonl").read_text())
    line["inputs"]["starts"] |= changed
    problem(at, line, **GATHER)


def spoiled(at: Path) -> None:
    gathered(at, [0, 3, 8])
    (at / "blob/0.safetensors").write_bytes(b"not what it says" * 9)


Change = Callable[[Path], object]
FILES: list[Any] = [
    (lambda at: bad_file(at, path="blob/7.safetensors"), r"is in .*blob/7\.safetensors, which does not exist: put it"),
    (lambda at: bad_file(at, path="../0.safetensors"), "by its path inside the problem's folder"),
    (lambda at: bad_file(at, path="/etc/passwd.safetensors"), "by its path inside the problem's folder"),
    (lambda at: bad_file(at, path="blob/0.pt"), "name a file .safetensors"),
    (lambda at: bad_file(at, tensor_key="begins"), "is called 'begins' in .*, which holds starts, w"),
    (lambda at: bad_file(at, tensor_key=None), "without a path and a tensor_key"),
    (lambda at: bad_file(at, tensor_key="w"), r"is float32 of shape \(32,\) in .* says int64 of shape \(3,\)"),
    pytest.param(
        lambda at: (gathered(at, [0, 3, 8]) / "blob/0.safetensors").chmod(0o600),
        "the sandbox's user may not read: chmod a\\+r it",
        marks=pytest.mark.skipif(os.geteuid() != 0, reason="whose own files the sandbox may read"),
    ),
    (spoiled, "which cannot be read .*: copy the file again"),
]


@pytest.mark.parametrize(("change", "words"), FILES)
def test_a_file_that_cannot_be_used_is_told(tmp_path: Path, change: Change, words: str) -> None:
    change(tmp_path)
    with pytest.raises(TaskError, match=f"no workload can be used: the input starts .*{words}"):
        tasks.find(str(tmp_path))


BAD: list[tuple[Change, str]] = [
    (lambda at: (at / "definition.json").write_text("{"), "definition.json is not valid JSON"),
    (lambda at: (at / "definition.json").write_text("[]"), "definition.json is not a JSON object"),
    (lambda at: (at / "workload.jsonl").unlink(), "workload.jsonl, which does not exist: put workload.jsonl there"),
    (lambda at: (at / "workload.jsonl").write_text("\n"), "names no workload: write one JSON object a line"),
    (lambda at: (at / "workload.jsonl").write_text("{}"), "line 1 of the workloads of .* needs axes and inputs"),
    (lambda at: problem(at, {**workload(8), "axes": {}}), "gives the axis rows no whole number"),
    (lambda at: problem(at, workload(8, "safetensors")), "no workload can be used: the input x is of type safetensors"),
    (lambda at: problem(at, workload(8, eps=True)), "scalars must be finite numbers"),
    (lambda at: problem(at, workload(8, "custom")), "names no custom_inputs_entrypoint"),
    (lambda at: problem(at, workload(8), axes=None), "it has no axes"),
    (lambda at: problem(at, workload(8), inputs=["x"]), "no definition of a problem that can be read"),
    (lambda at: problem(at, workload(8), reference="def run(x):\n    return x"), r"run\(x\) does not take the inputs"),
    (lambda at: problem(at, workload(8), reference="x = 1"), "defines no function run"),
    (lambda at: problem(at, workload(8), reference="def"), "is not valid Python"),
    (
        lambda at: problem(at, workload(8), reference=f"{REFERENCE}\nreturn 3"),
        "module made from .* is not valid Python",
    ),
    (lambda at: problem(at, workload(8), reference=f"{REFERENCE}\nclass Model: pass"), "defines Model, .* rename it"),
    (
        lambda at: problem(at, workload(8), axes={**DEFINITION["axes"], "eps": {"type": "const", "value": 1}}),
        "eps is both an axis and an input",
    ),
    (
        lambda at: problem(at, workload(8), outputs={"y": {"shape": ["rows"], "dtype": "float4_e2m1"}}),
        r"y is of dtype float4_e2m1, which is not supported \(PyTorch converts 4-bit floats to no other dtype\)",
    ),
    (lambda at: problem(at, workload(8), outputs={"y": {"shape": ["k"], "dtype": "float32"}}), "k, which is no axis"),
    (lambda at: problem(at, workload(8), outputs={"y": {"shape": None, "dtype": "float32"}}), "only tensors"),
]


@pytest.mark.parametrize(("change", "told"), BAD, ids=[told for _, told in BAD])
def test_a_file_that_cannot_be_used_is_told_in_one_sentence(tmp_path: Path, change: Change, told: str) -> None:
    change(problem(tmp_path, workload(8)))
    with pytest.raises(TaskError, match=told) as caught:
        tasks.find(str(tmp_path))
    assert "\n" not in str(caught.value)


@pytest.mark.judging
def test_each_workload_is_checked_and_timed_and_the_speedup_is_their_geometric_mean(home: Path, tmp_path: Path) -> None:
    file = tasks.find(str(problem(tmp_path / "norm", workload(8), workload(64))))
    policy = Policy(library_operators=(EVERYTHING,), workloads=file.policy.workloads)
    task = tasks.Task(file.name, file.task().source, file.task().sizes, policy=policy)
    toolchain = CpuToolchain(tmp_path / "scratch")
    try:
        checked, timed = toolchain.check(task, RIGHT), toolchain.time_briefly(task, RIGHT)
        assert checked.verdict is Verdict.PASSED, checked.message
        assert next(one.detail for one in checked.proofs if one.check == OTHER_SHAPES) == "rows=8, eps=1e-06"
        assert isinstance(timed, TimingResult), timed.message
        small, large = timed.workloads
        assert (small.sizes["rows"], large.sizes["rows"]) == (8, 64)
        assert timed.speedup == pytest.approx((small.timing.speedup * large.timing.speedup) ** 0.5)
        low, high = timed.speedup_interval
        assert low <= timed.speedup <= high
        assert tasks.workloads.own_latency_ms(task, timed) == large.timing.latency_ms
        wrong = RIGHT.replace("* w", "* w if x.shape[0] == 64 else x.clone()")
        failed = toolchain.check(task, wrong)
        assert failed.verdict is Verdict.INCORRECT
        assert failed.message.startswith("right at the task's own sizes, but not with rows=8, eps=1e-06")
        # A limit of the mean: no larger than the mean of the limits.
        limits = [toolchain.limit(one).limit_ms for _, one in tasks.workloads.each(task)]
        assert 0 < toolchain.limit(task).limit_ms <= 2 * (limits[0] * limits[1]) ** 0.5
    finally:
        toolchain.close()


@pytest.mark.parametrize("form", exporting.SOLUTIONS)
def test_a_kernel_is_exported_as_a_solution_of_its_problem(home: Path, tmp_path: Path, form: str) -> None:
    settings = supervisor.new_settings(str(problem(tmp_path / "norm", workload(8), workload(16))), model="manual")
    body = RIGHT.partition("return ")[2]
    own = RIGHT.replace(body, f"run(x, w, eps)\n\ndef run(x, w, eps):\n    return {body}")
    folder = RunFolder(home / "runs" / settings.run_id)
    folder.write_settings(settings)
    blobs, book = Blobs(folder.blobs), Journal(folder.journal_file)
    book.append(ev.RunStarted(settings.run_id, settings.task_name))
    book.append(
        ev.CandidateCreated(1, "c001", None, None, 0, 0, 0, Origin.MANUAL, blobs.put(own), None, 0, 0, summary="one")
    )
    book.append(ev.Compiled(1, "c001", CompileResult(True, 1.0), None))
    book.append(ev.Checked(1, "c001", CheckResult(Verdict.PASSED, 1.0)))
    book.append(ev.Timed(1, "c001", TimingResult((1.0,) * 7, (2.0,) * 7)))
    book.close()
    with pytest.raises(EngineError, match=f"made kernels for the CPU, and {form} runs solutions on a GPU"):
        supervisor.solution(folder, None, form)
    changed = settings.task_source.replace("h = 32", "h = 16")
    folder.settings_file.unlink()
    folder.write_settings(replace(settings, toolchain="cuda", task_source=changed))
    with pytest.raises(EngineError, match=r"changed what its problem holds constant \(h\)"):
        supervisor.solution(folder, None, form)
    folder.settings_file.unlink()
    folder.write_settings(replace(settings, toolchain="cuda"))
    plain = json.loads(supervisor.solution(folder, None, form))
    assert (plain["definition"], plain["spec"]["entry_point"]) == ("rms norm/64", "main.py::tilewright_run")
    assert plain["spec"]["destination_passing_style"] is False
    language = plain["spec"].get("languages") or plain["spec"]["language"]
    assert language == {"sol-execbench": ["pytorch"], "flashinfer-bench": "python"}[form]
    code = plain["sources"][0]["content"]
    names: dict[str, Any] = {}
    exec(code.replace('ModelNew().to("cuda")', "ModelNew()").replace("'cuda', ", "'cpu', "), names)
    task: dict[str, Any] = {}
    exec(settings.task_source, task)
    inputs = task["get_inputs"]()
    assert names["tilewright_run"](*inputs).equal(task["run"](*inputs))


def test_a_run_of_another_task_has_no_solution_to_export(home: Path) -> None:
    with pytest.raises(EngineError, match="was made from no problem of sol-execbench or flashinfer-bench"):
        supervisor.solution(real_pair(home), None, "sol-execbench")


def test_an_uploaded_problem_is_kept_as_its_two_files(home: Path, tmp_path: Path) -> None:
    there = problem(tmp_path / "norm", workload(8), workload(16))
    texts = [(there / name).read_text() for name in ("definition.json", "workload.jsonl")]
    task = supervisor.problem_of(*texts)
    supervisor.keep_module(task)
    assert [(task.path.parent / name).read_text() for name in ("definition.json", "workload.jsonl")] == texts
    assert tasks.find(str(task.path)).task() == task.task()
    with pytest.raises(TaskError, match=r"^definition\.json is not valid JSON"):
        supervisor.problem_of("{", texts[1])
