"""A package as files: what it holds of each run, its table, its card, and what it refuses."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tomllib
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from engine.__main__ import main
from engine.errors import EngineError, EvaluationModeNeeded
from engine.exporting import exported
from engine.packaging import describing, folders, packing
from engine.packaging.described import described
from engine.packaging.packing import Asked, packaged
from storage.results.check_records import CheckOutcome, CheckRecord, Group
from storage.results.evaluation_results import CheckResult, TimingResult
from storage.results.flags import LOOKS
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.folder import RunFolder
from storage.run.journal import Journal
from tests.engine.evaluator.processes.references import AFTER, IMPORTS, module
from tests.engine.packaging.judged import IN_PYTORCH, LAYER_NORM, WITH_BACKWARD, judged_run
from tests.engine.swish_story import THIRD

SMALL: dict[str, int | float] = {"batch_size": 4, "dim": 64}


@pytest.fixture
def run(home: Path) -> RunFolder:
    return judged_run(home, "swish", THIRD, SMALL)


def test_a_kernel_in_cpp_becomes_an_operator_with_its_texts_in_files_of_their_own(run: RunFolder) -> None:
    files = packaged([run], Asked())
    table = files["tilewright_swish/_table.py"]
    assert "how='cpp'" in table
    assert "shape=(4, 64)" in table
    main_cpp = files["tilewright_swish/csrc/kernel_1/main.cpp"]
    assert "TORCH_LIBRARY_FRAGMENT(tilewright_swish, library)" in main_cpp
    assert "c10::DispatchKey::CPU" in main_cpp
    assert 'library("kernel_1")' in files["tilewright_swish/kernel_1.py"].replace("_tilewright_", "")
    project = tomllib.loads(files["pyproject.toml"])
    assert project["project"]["name"] == "tilewright-swish"
    assert project["build-system"]["requires"][0] == "setuptools>=70.1"
    assert "tilewright_package" not in "".join(files.values())
    assert "2x eager PyTorch (2 to 2)" in files["CARD.md"]
    assert run.run_id in files["CARD.md"]


def test_the_card_says_once_who_wrote_a_kernel_whose_replies_were_recorded(run: RunFolder) -> None:
    settings = replace(run.read_settings(), model="recorded")
    run.settings_file.unlink()
    run.write_settings(settings)
    card = packaged([run], Asked())["CARD.md"]
    assert "| written by | a language model, whose replies were recorded before, method cutegen" in card
    assert card.count("written by") == 1


def test_a_kernel_with_a_backward_of_its_own_says_so_and_is_called_through_python(home: Path) -> None:
    files = packaged([judged_run(home, "swish", WITH_BACKWARD, SMALL, backward=True)], Asked(name="mine"))
    assert "how='python'" in files["mine/_table.py"]
    assert "has_backward=True" in files["mine/_table.py"]
    assert "by the kernel's own backward" in files["CARD.md"]


def test_the_card_and_the_exported_file_count_the_checks_as_trust_does_and_carry_what_is_to_be_looked_at(
    run: RunFolder,
) -> None:
    held, flagged, absent = CheckOutcome.HELD, CheckOutcome.FLAGGED, CheckOutcome.ABSENT
    values = CheckRecord(Group.CORRECTNESS, "special values", flagged), CheckRecord(Group.CORRECTNESS, "wide", held)
    times = CheckRecord(Group.TIMING, "re-measured", flagged), CheckRecord(Group.TIMING, "device time", absent)
    book = Journal(run.journal_file)
    book.append(ev.Checked(2, "c001", CheckResult(Verdict.PASSED, 1.0, proofs=values)))
    book.append(ev.Timed(2, "c001", TimingResult((1.0,) * 7, (2.0,) * 7, proofs=times)))
    book.close()
    counted, look = "1 check passed, 1 to look at, 1 noted, 1 not done", LOOKS["re-measured"]
    card = packaged([run], Asked())["CARD.md"]
    assert f"| checks | {counted}; **to look at: re-measured.** {look.rstrip('.')}; noted: special values; " in card
    assert "1 ms beside eager's 2 ms by the pairs' median ratio" in card
    head = exported(run, "c001").partition("\n\n\n")[0]
    assert f"# {counted}." in head
    assert f"# To look at, re-measured: {look}" in head
    assert "eager 2 ms beside it by the pairs' median ratio" in head


def test_runs_of_one_task_at_several_sizes_are_one_table(home: Path) -> None:
    runs = [judged_run(home, "swish", THIRD, {"batch_size": 4, "dim": dim}) for dim in (64, 128)]
    table = packaged(runs, Asked(sizes="batch"))["tilewright_swish/_table.py"]
    assert "shape=(4, 64)" in table
    assert "shape=(4, 128)" in table
    assert table.count("sizes='batch'") == 2


def test_a_kernel_that_is_no_faster_is_called_so(home: Path) -> None:
    slow = judged_run(home, "swish", THIRD, SMALL, latency_ms=4.0)
    assert "**slower than eager PyTorch**: 0.5x" in packaged([slow], Asked())["CARD.md"]


def test_gpus_to_build_for_are_those_asked_for_else_the_one_that_it_was_judged_on(home: Path) -> None:
    run = judged_run(home, "swish", IN_PYTORCH, SMALL, toolchain="cuda")
    assert "capabilities=((9, 0),)" in packaged([run], Asked())["tilewright_swish/_table.py"]
    several = packaged([run], Asked(architectures=("sm_80", "90a")))["tilewright_swish/_table.py"]
    assert "capabilities=((8, 0), (9, 0))" in several
    with pytest.raises(EngineError, match="--arch ninety: write GPUs as nvcc does"):
        packaged([run], Asked(architectures=("ninety",)))


def test_the_layout_of_the_kernel_builder_has_the_same_package(run: RunFolder) -> None:
    files = packaged([run], Asked(layout=folders.KERNELS, licence="Apache-2.0"))
    built = tomllib.loads(files["build.toml"])
    assert built["general"] == {
        "name": "tilewright-swish", "version": 1, "edition": 5, "license": "Apache-2.0", "backends": ["cpu"],
    }  # fmt: skip
    assert built["kernel"]["kernel_1"]["src"] == ["torch-ext/tilewright_swish/csrc/kernel_1/main.cpp"]
    card = files["CARD.md"]
    assert 'kernels = get_local_kernel(Path("."))' in card
    assert "PYTHONPATH=torch-ext python benchmarks/benchmark.py" in card
    assert "pip wheel" not in card
    layer = files["torch-ext/tilewright_swish/layers.py"]
    assert "def forward(self, x):" in layer
    assert "call_layer(self, (x,))" in layer
    assert {name.removeprefix("torch-ext/") for name in files} >= set(packaged([run], Asked())) - {
        "setup.py", "pyproject.toml", "benchmark.py",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (Asked(name="two words"), "no name for a Python package"),
        (Asked(architectures=("sm_90",)), "--arch is for kernels of a GPU"),
        (Asked(candidate_id="7"), "has no kernel 7"),
    ],
)
def test_what_cannot_be_is_said(run: RunFolder, asked: Asked, message: str) -> None:
    with pytest.raises(EngineError, match=message):
        packaged([run], asked)


def test_runs_that_are_no_one_operator_are_refused(home: Path, run: RunFolder) -> None:
    with pytest.raises(EngineError, match="runs of several tasks"):
        packaged([run, judged_run(home, "softmax", IN_PYTORCH, SMALL)], Asked())
    with pytest.raises(EngineError, match="two packages"):
        packaged([run, judged_run(home, "swish", IN_PYTORCH, SMALL, toolchain="cuda")], Asked())


@pytest.mark.parametrize(
    ("kept", "forward", "message"),
    [
        ("self.table = torch.ones(3)", "x * self.table", r"keeps tensors beside its state_dict \(table\)"),
        ("self.register_buffer('table', torch.ones(3), persistent=False)", "x * self.table", "beside its state_dict"),
        ("self.norm = nn.BatchNorm1d(3)", "self.norm(x)", "a call changes norm"),
        ("pass", "{'y': x}", "its forward returns a dict"),
    ],
)
def test_a_reference_that_a_package_cannot_stand_in_for_has_a_fault(kept: str, forward: str, message: str) -> None:
    assert re.search(message, describing.answer(reference(kept, forward))["fault"])


def test_evaluation_mode_is_proposed_where_it_mends_and_a_run_in_it_is_described() -> None:
    normalises = reference("self.norm = nn.BatchNorm1d(3)", "self.norm(x)")
    with pytest.raises(EvaluationModeNeeded, match="package a run in evaluation mode"):
        described(normalises, "this run")
    assert described(normalises, "this run", "eval")["inputs"] == [["x", "float32", [4, 3], []]]
    counts = reference("self.register_buffer('calls', torch.zeros(1))", "x + self.calls.add_(1)")
    told = describing.answer(counts)
    assert "a call changes calls, and no operator may: export" in told["fault"]
    assert "is_mended_by_evaluation_mode" not in told


def test_a_reference_with_a_fault_and_one_that_cannot_be_called_are_refused() -> None:
    with pytest.raises(EngineError, match="this run cannot be packaged: its forward returns a dict"):
        described(reference("pass", "{'y': x}"), "this run")
    with pytest.raises(EngineError, match="cannot be called here"):
        described(reference("pass", "x.undefined"), "this run")


def reference(kept: str, forward: str) -> str:
    return (
        "import torch\nimport torch.nn as nn\n\nclass Model(nn.Module):\n    def __init__(self):\n"
        f"        super().__init__()\n        {kept}\n    def forward(self, x):\n        return {forward}\n\n"
        "def get_inputs():\n    return [torch.rand(4, 3)]\n\ndef get_init_inputs():\n    return []\n"
    )


BY_NAME = """import dataclasses

import torch
import torch.nn as nn

@dataclasses.dataclass
class Result:
    y: torch.Tensor

class Model(nn.Module):
    def forward(self, x, mask=None, scale=1.0, *, bias=None):
        return {forward}

def get_inputs():
    return [torch.rand(4, 32)], {named}

def get_init_inputs():
    return []
"""
FORWARD = "x * torch.sigmoid(x) * (1 if mask is None else mask) * scale"
MASK = "'mask': torch.rand(4, 32)"


@pytest.mark.parametrize(
    ("forward", "named", "message"),
    [
        (FORWARD, "{'scale': 2.0}", "scale by name, and they are not its next arguments"),
        (FORWARD, "{'bias': 2.0}", "bias by name, and they are not its next arguments"),
        (FORWARD, "{'mask': [torch.rand(4, 32)]}", "its input mask is a list, no tensor or number: export the kernel"),
        ("Result(x)", "{}", "its forward returns a Result, not a tensor"),
        ("x, (x, x)", "{}", "its forward returns a tuple, not a tensor or a tuple of tensors alone: export the kernel"),
    ],
)
def test_calls_and_results_that_no_operator_has_are_told_in_words(forward: str, named: str, message: str) -> None:
    assert message in describing.answer(BY_NAME.replace("{forward}", forward).replace("{named}", named))["fault"]


@pytest.mark.parametrize(
    ("weight", "stride", "out"),
    [
        ("torch.randn(32, 2, 2, 16).permute(0, 3, 1, 2)", [64, 1, 32, 16], [512, 1, 128, 32]),
        ("torch.randn(32, 16, 2, 2)", [], [512, 1, 128, 32]),
    ],
)
def test_weights_and_results_that_lie_in_another_order_stand_in_the_table_with_their_strides(
    weight: str, stride: list[int], out: list[int]
) -> None:
    init = f"self.weight = nn.Parameter({weight})"
    model = module("Model", init, "return F.conv2d(x, self.weight, stride=2)", "x")
    inputs = "torch.randn(4, 8, 8, 16).permute(0, 3, 1, 2)"
    found = describing.answer(IMPORTS + model + AFTER.format(inputs=inputs))
    assert found["state"] == [["weight", "float32", [32, 16, 2, 2], stride]]
    assert found["output_strides"] == [out]


@pytest.mark.judging
def test_a_kernel_that_is_called_by_name_is_packaged_with_its_arguments_in_order(home: Path, tmp_path: Path) -> None:
    task = tmp_path / "gated.py"
    task.write_text(BY_NAME.replace("{forward}", FORWARD).replace("{named}", "{'scale': 2.0, " + MASK + "}"))
    kernel = IN_PYTORCH.replace("forward(self, x)", "forward(self, x, *, scale, mask)").replace(
        "x * torch.sigmoid(x)", "x * torch.sigmoid(x) * mask * scale"
    )
    files = packaged([judged_run(home, str(task), kernel)], Asked(sizes="batch"))
    assert " passed" in own_tests(files, tmp_path / "package", "-k", "not compile and not export and not ahead")


def test_a_text_that_is_made_while_the_file_runs_is_refused(home: Path) -> None:
    made = THIRD.replace("load_inline(", "load_inline(extra_cflags=open('/dev/null').readlines(), ")
    with pytest.raises(EngineError, match="cannot be read from its text"):
        packaged([judged_run(home, "swish", made, SMALL)], Asked())


def test_the_command_line_writes_it_into_an_empty_folder_alone(
    run: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "package"
    assert main(["package", run.run_id, "--output", str(target)]) == 0
    told = capsys.readouterr().out
    assert "CARD.md says what the package holds" in told
    assert "warning" not in told
    assert "pip wheel . --no-deps --no-build-isolation" in told
    assert (target / "tilewright_swish" / "__init__.py").exists()
    assert main(["package", run.run_id, "--output", str(target)]) == 2
    assert "is there already: name a folder that is not, or is empty" in capsys.readouterr().err


def test_the_command_line_says_that_a_kernel_is_slow(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = judged_run(home, "swish", IN_PYTORCH, SMALL, latency_ms=4.0)
    for verb, target in (("package", tmp_path / "package"), ("export", tmp_path / "fast.py")):
        options = ["--no-measure"] if verb == "export" else []
        assert main([verb, slow.run_id, "--output", str(target), *options]) == 0
        assert "warning: This kernel is slower than eager PyTorch: 0.5x" in capsys.readouterr().out


def test_the_archive_has_everything_in_one_folder(run: RunFolder) -> None:
    files = packaged([run], Asked())
    with zipfile.ZipFile(io.BytesIO(packing.zipped(files, "tilewright_swish"))) as archive:
        assert sorted(archive.namelist()) == sorted(f"tilewright_swish/{name}" for name in files)


@pytest.mark.judging
def test_a_package_without_cpp_passes_its_own_tests(home: Path, tmp_path: Path) -> None:
    run = judged_run(home, "layer_norm", LAYER_NORM, {"batch_size": 4, "features": 3, "height": 5, "width": 6})
    passed = own_tests(
        packaged([run], Asked(sizes="batch")), tmp_path, "-k", "not compile and not export and not ahead"
    )
    assert " passed" in passed


@pytest.mark.judging
def test_packages_with_cpp_are_built_and_pass_their_own_tests(home: Path, tmp_path: Path) -> None:
    runs = [
        judged_run(home, "swish", THIRD, {"batch_size": 4, "dim": 1024}),
        judged_run(home, "swish", WITH_BACKWARD, {"batch_size": 8, "dim": 512}, backward=True),
    ]
    # What torch.compile writes for the processor takes g++ minutes; a package's own tests do that where it is used.
    assert " passed" in own_tests(packaged(runs, Asked()), tmp_path, "-k", "not compile and not ahead")


def own_tests(files: dict[str, str], folder: Path, *chosen: str) -> str:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": str(folder)}
    words = ["-q", "-p", "no:cacheprovider", "-W", "ignore", "--rootdir", str(folder), "tests", *chosen]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout
