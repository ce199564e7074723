"""Which example kernel a prompt shows: by class, device, precision, and what the present kernel has already."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import PromptError
from engine.evaluator.languages import find, of_toolchain
from engine.evaluator.toolchain_table import TABLE
from engine.evaluator.toolchains.cpu import CpuToolchain
from engine.search import exemplars, prompting
from engine.search.actions import Ask
from engine.search.exemplars import Need
from storage.results.evaluation_results import CheckResult
from storage.results.vocabulary import KernelClass, Verdict
from tests.engine.contexts import add_candidate, open_context
from tests.engine.exemplars import files
from tests.engine.story import Step, resolved

PAIRS = [(toolchain, language) for toolchain in TABLE for language in of_toolchain(toolchain)]
STAGED = "Tensor sA = make_tensor(make_smem_ptr(smem), layout); cp_async_fence();"
WITH_TENSOR_CORES = STAGED + "TiledMMA mma = make_tiled_mma(SM80_16x8x8_F32TF32TF32F32_TN{});"


@pytest.mark.parametrize(("toolchain", "language"), PAIRS)
def test_the_table_names_the_files_and_the_gates_name_what_a_kernel_can_be_seen_to_have(
    toolchain: str, language: str
) -> None:
    known = exemplars.table(toolchain, language)
    assert sorted(known.examples) == [path.stem for path in files(toolchain, language)]
    assert set(known.gates) == set(KernelClass)
    for name in {name for gate in known.gates.values() for name in gate}:
        one = known.examples[name]
        assert any(sign in find(language).cut(exemplars.source(toolchain, name, language)) for sign in one.signs), name


@pytest.mark.parametrize(("toolchain", "language"), PAIRS)
def test_a_first_kernel_is_written_after_an_example_of_its_class(toolchain: str, language: str) -> None:
    shown = {name: exemplars.opening(toolchain, name, language) for name in KernelClass}
    assert len(set(shown.values())) == len(KernelClass) - 1
    other = exemplars.opening(toolchain, "unheard of", language)
    assert shown[KernelClass.ACTIVATION] == shown[KernelClass.OTHER] == other
    assert all("class ModelNew" in text for text in shown.values())


@pytest.mark.parametrize(
    ("need", "kernel", "shown"),
    [
        (Need("matmul", "sm_90a"), "no structure", "staged in shared memory"),
        (Need("matmul", "sm_90a"), "__shared__ float a[64];", "several stages"),
        (Need("matmul", "sm_90a"), STAGED, "TiledMMA"),
        (Need("matmul", "sm_90a", is_memory_bound=True), STAGED, ""),
        (Need("matmul", "sm_90a"), WITH_TENSOR_CORES, ""),
        (Need("matmul", "sm_90a", "tf32"), WITH_TENSOR_CORES, "Hopper"),
        (Need("matmul", "sm_100a", "tf32"), WITH_TENSOR_CORES, "Blackwell"),
        (Need("matmul", "sm_89", "tf32"), WITH_TENSOR_CORES, ""),
        (Need("matmul", "", "tf32"), WITH_TENSOR_CORES, ""),
        (Need("reduction", "sm_90a"), "make_tiled_copy(", "cluster of blocks"),
        (Need("reduction", "sm_80"), "make_tiled_copy(", ""),
        (Need("loss", "sm_80"), "tile += gridDim.x", ""),
    ],
)
def test_the_first_structure_that_a_kernel_lacks_is_shown(need: Need, kernel: str, shown: str) -> None:
    told = exemplars.lacking("cuda", need, kernel)
    assert (shown in told.split("The code below")[0]) if shown else told == ""


def test_a_task_of_float32_is_shown_tensor_cores_of_its_precision_and_one_of_tf32_the_faster_ones_next() -> None:
    kernel = "tile = cutlass.memory.SmemAllocator().allocate_tensor(cutlass.Float32, layout)"
    exact, narrow = Need("convolution", "sm_90a"), Need("convolution", "sm_90a", "tf32")
    assert "split TF32 operands" in exemplars.lacking("cuda", exact, kernel, "cute_dsl")
    assert exemplars.lacking("cuda", exact, kernel + "warp.MmaTF32Op", "cute_dsl") == ""
    assert "TMA ahead of wgmma" in exemplars.lacking("cuda", narrow, kernel + "warp.MmaTF32Op", "cute_dsl")


@pytest.mark.parametrize(("toolchain", "name"), [("cpu", "packed_panels"), ("cuda", "tcgen05")])
def test_an_example_that_was_never_run_is_told_as_compiled_only(toolchain: str, name: str) -> None:
    need = Need("matmul", "sm_100a", "tf32")
    told = exemplars.lacking(toolchain, need, WITH_TENSOR_CORES)
    assert find("cute").cut(exemplars.source(toolchain, name)) in told
    assert ("(compiled, not run)" in told) == (toolchain == "cuda")
    assert ("(compiled and run)" in told) == (toolchain == "cpu")


def test_an_example_of_a_structure_is_cut_to_its_kernel() -> None:
    told = exemplars.lacking("cuda", Need("matmul", "sm_80"), "")
    assert "__global__ void distance_kernel" in told
    assert not any(word in told for word in ("#include", "load_inline", "ModelNew", "import torch"))


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("[gates]\nmatmul = 3\n", "cannot be read"),
        ("[gates]\nmatmul = ['loops']\n[examples]\n", "name loops, which"),
    ],
)
def test_a_table_that_is_wrong_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, said: str) -> None:
    folder = tmp_path / "examples" / "cpu"
    folder.mkdir(parents=True)
    (folder / "exemplars.toml").write_text(table)
    monkeypatch.setattr(prompting, "PROMPTS", tmp_path)
    with pytest.raises(PromptError, match=rf"examples/cpu/exemplars\.toml.*{said}"):
        exemplars.table("cpu")


def test_an_optimisation_is_asked_for_with_one_structure_that_the_kernel_lacks(tmp_path: Path) -> None:
    context = open_context(tmp_path)
    context.toolchain = CpuToolchain()
    name = add_candidate(context, speedup=1.0)
    ask = resolved(context, Step("optimise", 1, name))
    assert isinstance(ask, Ask)
    text = ask.prompt(context, ask)[1].text
    assert text.count("A structure that this kernel does not have") == 1
    assert "Structure before tuning" in text


@pytest.mark.parametrize("label", ["diagnose", "repair"])
def test_a_failure_is_diagnosed_and_mended_by_the_guide_of_its_device(tmp_path: Path, label: str) -> None:
    context = open_context(tmp_path)
    context.toolchain = CpuToolchain()
    name = add_candidate(context, speedup=1.0)
    failed = CheckResult(Verdict.INCORRECT, 1.0, message="element 7 is wrong")
    context.record.candidates[name] = replace(context.record.candidates[name], checked=failed, timed=None)
    ask = resolved(context, Step(label, 0, name))
    assert isinstance(ask, Ask)
    text = ask.prompt(context, ask)[1].text
    assert "Prove the mend." in text
    assert "On a processor, furthermore:" in text
    assert "On a GPU, furthermore:" not in text
