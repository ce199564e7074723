"""What a model is told of device, contract and headroom, from the record alone."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.evaluator import tasks
from engine.evaluator.build.device import flags, installation
from engine.evaluator.build.host.installation import find_cutlass
from engine.evaluator.checks import tolerance
from engine.evaluator.checks.distributions import restyle
from engine.evaluator.checks.screening import screen
from engine.evaluator.checks.trials import IN_WORDS, PLAN, SHORT_PLAN, SPREADS, Style
from engine.evaluator.processes import timing
from engine.evaluator.toolchains.cpu import CpuToolchain
from engine.search.actions import Ask
from engine.search.context import RunContext
from engine.search.methods.coder_judge.strategy import CoderJudge
from engine.search.prompting import PROMPTS
from engine.search.steps import briefing
from storage import codec
from storage.results import observed
from storage.results.check_records import DEVICE_TIME, CheckOutcome, CheckRecord, Group
from storage.results.evaluation_results import CheckResult, CompileResult, KernelResources, TimingResult
from storage.results.hardware_limit import CalledOperator, DeviceFacts, HardwareLimit, LaidOut
from storage.results.observed import ObservedKernel, ObservedOperator
from storage.results.policy import PRECISIONS, Draws, Policy, SpecialValues, StateDict, Strides, Weights
from storage.results.profile_results import LAUNCHES, Metric, ProfileResult
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.journal import decode
from storage.run.record import Record
from tests.engine.contexts import SOURCE, add_candidate, open_context
from tests.engine.story import Step, resolved, settings_with

KIB = 1 << 10
SOFTMAX = tasks.find("softmax").task("cpu")


def gpu(capability: str, processors: int, shared: int, block: int, warps: int, l2_mib: int, fp32: float) -> DeviceFacts:
    """Figures as NVIDIA's tables of compute capabilities have them; sizes in KiB."""
    return DeviceFacts(
        installation.arch_of(capability), processors, 10.0 * processors + l2_mib, {"fp32": fp32, "bf16": 7 * fp32},
        l2_bytes=l2_mib << 20, shared_bytes=shared * KIB, block_shared_bytes=block * KIB, registers=65536, warps=warps,
        blocks=32 if capability != "8.6" else 16, has_clusters=float(capability) >= 9,
    )  # fmt: skip


GPUS = {
    "NVIDIA H200": gpu("9.0", 132, 228, 227, 64, 60, 66011.0),
    "NVIDIA A100-SXM4-80GB": gpu("8.0", 108, 164, 163, 64, 40, 19380.0),
    "NVIDIA GeForce RTX 3090": gpu("8.6", 82, 100, 99, 48, 6, 35580.0),
    "NVIDIA GeForce RTX 4090": gpu("8.9", 128, 100, 99, 48, 72, 82580.0),
    "NVIDIA B200": gpu("10.0", 148, 228, 227, 64, 126, 74450.0),
    "NVIDIA GeForce RTX 5090": gpu("12.0", 170, 100, 99, 48, 96, 104800.0),
    "Tesla T4": gpu("7.5", 40, 64, 64, 32, 4, 8141.0),
}
GENERATIONS = {
    "NVIDIA H200": "Hopper", "NVIDIA A100-SXM4-80GB": "Ampere", "NVIDIA GeForce RTX 3090": "Ampere",
    "NVIDIA GeForce RTX 4090": "Ada", "NVIDIA B200": "Blackwell", "NVIDIA GeForce RTX 5090": "Blackwell",
    "Tesla T4": "",
}  # fmt: skip
# What only one kind of tensor core is used by; each text names it as there, or as not there.
INSTRUCTIONS = {"hopper": "`wgmma`, issued", "blackwell": "`tcgen05.mma`, issued", "ampere": "one warp's `mma.sync`"}


def limit_of(name: str, facts: DeviceFacts | None) -> HardwareLimit:
    return HardwareLimit(name, 4300.7, 65971.0, 12_582_912, 2_147_483_648, facts)


def numbers(name: str) -> set[str]:
    """Words of a device's text that its figures alone explain."""
    facts = GPUS[name]
    return {
        name, f"{facts.processors} multiprocessors", f"`{facts.architecture}`", flags.gencode(facts.architecture),
        f", {facts.shared_bytes // KIB} KiB of shared memory and", f"may have {facts.block_shared_bytes // KIB} KiB",
        f"{facts.warps} warps in {facts.blocks} blocks", f"L2 cache: {facts.l2_bytes >> 20} MiB",
        f"{facts.memory_gb_s:.4g} GB/s",
    }  # fmt: skip


@pytest.mark.parametrize("name", GPUS)
def test_a_prompt_has_the_numbers_of_its_own_gpu_and_of_no_other(name: str) -> None:
    told = briefing.device(limit_of(name, GPUS[name]))
    own = numbers(name) - {flags.gencode(GPUS[name].architecture)}
    assert {words for words in own if words not in told} == set()
    others = {words for other in GPUS if other != name for words in numbers(other)} - numbers(name)
    assert {words for words in others if words in told} == set()
    assert (f"({GENERATIONS[name]}, sm_" in told) is bool(GENERATIONS[name])
    assert ("in clusters of blocks: yes." in told) is GPUS[name].has_clusters
    sixteen = briefing.device(limit_of(name, replace(GPUS[name], cluster_blocks=16)))
    assert "blocks: yes, of up to 16 (above 8 with `cudaFuncAttribute" in sixteen


@pytest.mark.parametrize("language", ["triton", "cute_dsl"])
def test_a_language_that_launches_by_itself_is_not_told_what_to_ask_the_driver_for(language: str) -> None:
    facts = replace(GPUS["NVIDIA H200"], cluster_blocks=16)
    told = briefing.device(limit_of("NVIDIA H200", facts), language)
    assert "cudaFunc" not in told
    assert "227 KiB of shared memory; " in told
    assert "blocks: yes, of up to 16." in told


@pytest.mark.parametrize(
    ("name", "has"),
    [("NVIDIA H200", "hopper"), ("NVIDIA B200", "blackwell"), ("NVIDIA A100-SXM4-80GB", "ampere"),
     ("NVIDIA GeForce RTX 4090", "ampere"), ("NVIDIA GeForce RTX 5090", "ampere"), ("Tesla T4", "")],
)  # fmt: skip
def test_only_the_tensor_core_instructions_of_the_architecture_are_offered(name: str, has: str) -> None:
    told = briefing.device(limit_of(name, GPUS[name]))
    offered = {kind for kind in ("hopper", "blackwell") if INSTRUCTIONS[kind] in told}
    assert offered == ({has} & {"hopper", "blackwell"})
    assert ("cores: " + INSTRUCTIONS["ampere"] in told or "one warp's `mma.sync` (CuTe's" in told) == (has == "ampere")
    assert ("TMA moves" in told) is ("gencode=" in told) is (GPUS[name].has_clusters)


def test_no_text_of_an_architecture_or_a_toolchain_states_a_size_of_its_own() -> None:
    """48 KiB is CUDA's rule for every device: more is dynamic."""
    for folder in ("architectures", "toolchains"):
        for path in (PROMPTS / folder).glob("*.md"):
            found = re.findall(
                r"[\d,]+ ?(?:KiB|MiB|KB|GB/s|GFLOP|TFLOP|SMs|registers of)|compute_\d+|sm_\d+", path.read_text()
            )
            assert set(found) <= {"48 KiB"}, path


def test_what_the_texts_of_architectures_name_of_cute_exists_in_its_headers() -> None:
    named = {
        name
        for path in (PROMPTS / "architectures").glob("*.md")
        for name in re.findall(r"SM\d+_\w+[^\W…]|make_\w+", path.read_text())
    }
    headers = "\n".join(path.read_text() for path in (find_cutlass() / "cute").rglob("*sm*.hpp"))
    assert len(named) >= 4
    assert {name for name in named if name not in headers} == set()


@pytest.mark.parametrize(("architecture", "bits"), [("avx512", 512), ("avx2", 256), ("sse", 128)])
def test_a_prompt_has_the_processors_own_vectors_cores_and_caches(architecture: str, bits: int) -> None:
    facts = DeviceFacts(
        architecture, 12, 81.5, {"fp32": 812.0}, cores=6, vector_bits=bits, l1_bytes=48 * KIB, l2_bytes=1280 * KIB,
        l3_bytes=30 << 20,
    )  # fmt: skip
    told = briefing.device(limit_of("A processor, 12 threads", facts))
    header = (PROMPTS.parent / "engine/evaluator/build/shim/vector_length.hpp").read_text()
    wide, narrow = re.findall(r"TILEWRIGHT_VL (\d+)", header)
    own = ("12 threads on 6 cores", f"{bits} bits", "48 KiB L1", "1.25 MiB L2", "30 MiB L3", "81.5 GB/s", "812 GFLOP/s")
    lanes = f"`TILEWRIGHT_VL` is {wide if bits == 512 else narrow} floats"
    assert {words for words in (*own, lanes) if words not in told} == set()
    assert ("AVX-512" in told, "AVX2 has 16" in told) == (bits == 512, bits == 256)
    assert "multiprocessor" not in told


def test_the_facts_of_this_machine_are_measured_and_survive_the_journal(home: Path) -> None:
    with CpuToolchain(home / "scratch") as toolchain:
        limit = toolchain.limit(SOFTMAX)
    facts = limit.facts
    assert facts is not None
    assert (facts.vector_bits == 512) is ("avx512f" in Path("/proc/cpuinfo").read_text())
    assert facts.rates_gflop_s == {"fp32": limit.peak_gflop_s}
    assert 0 < facts.memory_gb_s <= limit.bandwidth_gb_s
    assert codec.from_plain(HardwareLimit, codec.to_plain(limit)) == limit


def test_a_journal_of_before_has_a_limit_without_facts_and_claims_no_architecture() -> None:
    line = (
        '{"seq":1,"time":1.0,"kind":"LimitMeasured","event":{"limit":{"device":"NVIDIA H200","bandwidth_gb_s":4300.7,'
        '"peak_gflop_s":65971.0,"min_bytes":12582912,"min_flop":2147483648}}}'
    )
    event = decode(line).event
    assert isinstance(event, ev.LimitMeasured)
    assert event.limit == limit_of("NVIDIA H200", None)
    told = briefing.device(event.limit)
    assert "NVIDIA H200: 4301 GB/s" in told
    assert not re.search(r"sm_|KiB|Hopper|wgmma", told)
    assert "not measured" in briefing.device(None)


def asked(context: RunContext, kind: str, about: str | None = None) -> tuple[str, str]:
    """System and first user message of a step."""
    ask = resolved(context, Step(kind, context.record.step_index, about))
    assert isinstance(ask, Ask)
    system, user = ask.prompt(context, ask)[:2]
    return system.text, user.text


def test_how_forward_is_called_is_told_where_the_tasks_text_does_not_tell_it_plainly() -> None:
    signature = "forward(float32[8, 6], mask=bool[8, 6]) returns {'y': {'z': float32[8, 6], 'n': (None, 3)}}"
    limit = replace(limit_of("a device", None), signature=signature)
    told = briefing.fixed_slots("cpu", SOFTMAX, limit)["contract"]
    assert f"`{signature}`" in told
    assert "A plain dict stands for a dataclass" in told
    assert "The call," not in briefing.fixed_slots("cpu", SOFTMAX, replace(limit, signature=""))["contract"]


def test_weights_that_are_not_contiguous_are_told_with_their_strides_and_others_are_not() -> None:
    limit = limit_of("a device", None)
    lying = tuple(LaidOut(f"{n}.weight", (8, 3, 2, 2), (12, 1, 6, 3)) for n in range(10))
    told = briefing.fixed_slots("cpu", SOFTMAX, replace(limit, laid_out=lying[:1]))["contract"]
    assert "not contiguous (strides): `0.weight` (12, 1, 6, 3).\n" in told
    many = briefing.fixed_slots("cpu", SOFTMAX, replace(limit, laid_out=lying))["contract"]
    assert "`3.weight` (12, 1, 6, 3), 6 more.\n" in many
    assert "(strides)" not in briefing.fixed_slots("cpu", SOFTMAX, limit)["contract"]


def test_every_prompt_of_a_run_begins_with_the_same_facts_and_contract(tmp_path: Path) -> None:
    context = open_context(tmp_path, toolchain=CpuToolchain())
    context.emit(ev.LimitMeasured(limit_of("NVIDIA H200", GPUS["NVIDIA H200"])))
    first, _ = asked(context, "synthesise")
    assert "may have 227 KiB" in first
    assert "The contract of this run" in first
    base = add_candidate(context, speedup=2.0)
    later, user = asked(context, "optimise", base)
    assert later == first
    assert "Headroom on this device" in user
    assert "may have 227 KiB" not in user


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_contract_states_the_tolerance_that_the_check_applies(precision: str) -> None:
    told = briefing.contract("cpu", replace(SOFTMAX, policy=Policy(precision=precision)))
    for dtype in ("float32", "float16", "bfloat16"):
        assert f"{tolerance.allowed(dtype, 0.0, 0.0, precision):g} for {dtype}" in told
    assert f"{tolerance.OWN_ERROR_FACTOR:g} times the reference's own error" in told
    assert tolerance.allowed("float32", 0.0, 400_000.0, "fp32") == pytest.approx(
        20 * tolerance.allowed("float32", 0, 0)
    )


def test_the_contract_names_every_distribution_that_is_tried_and_they_are_as_it_says() -> None:
    told = briefing.contract("cuda", SOFTMAX)
    assert {style for style in Style if IN_WORDS[style] in told} == {trial.style for trial in PLAN}
    for style, (deviation, mean) in SPREADS.items():
        drawn = restyle(torch.rand(400, 400), style)
        assert float(drawn.std()) == pytest.approx(deviation, rel=0.02)
        assert abs(float(drawn.mean()) - mean) < 0.02 * deviation
        assert f"{deviation:g}" in IN_WORDS[style]
    assert "decides nothing" in told
    required = replace(SOFTMAX, policy=Policy(special_values=SpecialValues.REQUIRED))
    assert "must come out as the reference has them" in briefing.contract("cuda", required)


def test_the_contract_names_the_sizes_that_are_tried_and_invites_to_them() -> None:
    told = briefing.contract("cpu", replace(SOFTMAX, sizes={"batch_size": 64, "dim": 4096}))
    assert "Only those of the reference are tried (batch_size=64, dim=4096)." in told
    policy = Policy(other_sizes=({"batch_size": 33}, {"batch_size": 1, "dim": 7}))
    more = briefing.contract("cpu", replace(SOFTMAX, policy=policy))
    assert "right at batch_size=33; batch_size=1, dim=7 too" in more
    assert "Only those" not in more
    both = briefing.contract("cpu", replace(SOFTMAX, policy=replace(policy, workloads=({"dim": 9}, {"dim": 64}))))
    assert "workloads is tried and timed: dim=9; dim=64." in both
    assert "must be right at batch_size=33; batch_size=1, dim=7 too, which is not timed." in both
    assert {trial.style for trial in SHORT_PLAN} == {Style.OWN, Style.NORMAL}


LINEAR = (
    "from torch import nn\n\n\nclass Model(nn.Module):\n    def __init__(self):\n        self.fc = nn.Linear(4, 4)\n"
)


def test_a_task_without_weights_is_told_nothing_of_them_and_one_that_may_have_some_is() -> None:
    assert "state_dict" not in briefing.contract("cpu", SOFTMAX)
    for made in ("nn.Linear(4, 4)", "nn.Parameter(x)", "getattr(nn, kind)()", "nn.NLLLoss(x)", "make()"):
        source = LINEAR.replace("nn.Linear(4, 4)", made) + ("from mine import make\n" if made == "make()" else "")
        told = briefing.contract("cpu", replace(SOFTMAX, source=source))
        assert "register_load_state_dict_post_hook" in told, made
        assert "training mode" not in told, made
    plain = LINEAR.replace("Linear(4, 4)", "Sequential(nn.ReLU(), nn.MaxPool2d(2))")
    assert "state_dict" not in briefing.contract("cpu", replace(SOFTMAX, source=plain))


@pytest.mark.parametrize(
    ("policy", "said", "unsaid"),
    [
        (Policy(), "convert_state_dict", "seeded alike"),
        (Policy(mode="eval"), "put into evaluation mode", "running statistics"),
        (Policy(mode="train"), "updates buffers such as running statistics", "evaluation"),
        (Policy(weights=Weights.FIXED), "derives nothing from them", "_version"),
        (Policy(state_dict=StateDict.ANY), "the reference's random seed", "convert_state_dict"),
        (Policy(draws=Draws.SEEDED), "seeded alike before each call", "gaps"),
        (Policy(compare_modules=2), "every module up to 2 names deep", "seeded"),
        (Policy(strides=Strides.ANY), "gaps between their elements", "seeded"),
        (Policy(secret_sizes=True), "a size near them that is told to nobody too", "Only those"),
        (Policy(rules=1), "With other names the constructor runs", "_version"),
    ],
    ids=lambda value: None if isinstance(value, Policy) else str(value)[:20],
)
def test_the_contract_says_what_is_tried_of_weights_mode_draws_and_strides(
    policy: Policy, said: str, unsaid: str
) -> None:
    source = LINEAR.replace("Linear", "BatchNorm1d")
    told = " ".join(briefing.contract("cpu", replace(SOFTMAX, source=source, policy=policy)).split())
    assert said in told
    assert unsaid not in told
    assert "{{" not in told


def test_every_import_that_the_contract_names_is_let_through_and_no_other() -> None:
    told = briefing.contract("cpu", replace(SOFTMAX, policy=Policy(imports=("sympy",))))
    named = re.search(r"Imports: (.*)\. No other", told)
    assert named
    modules = named[1].split(", ")
    lines = [f"from {name} import annotations" if name == "__future__" else f"import {name}" for name in modules]
    assert screen("\n".join(lines), Policy(imports=("sympy",))) == []
    assert {"torch", "sympy"} <= set(modules)
    assert not {"subprocess", "ctypes", "numpy"} & set(modules)


def test_the_contract_says_of_each_device_how_its_calls_are_timed() -> None:
    on_gpu, on_host = (briefing.contract(toolchain, SOFTMAX) for toolchain in ("cuda", "cpu"))
    assert "overwritten before each call" in timing.COLD
    assert re.search(r"L2 cache is overwritten\s+before each call", on_gpu)
    assert "overwritten" not in on_host
    assert "written just before" in on_host


LIMIT = HardwareLimit("d", 100.0, 1000.0, 100_000_000, 0)  # 1 ms


def with_timed(context: RunContext, latency_ms: float, eager_ms: float) -> str:
    """A correct kernel of this latency, accepted."""
    name = add_candidate(context, f"{SOURCE}# {latency_ms}\n", speedup=1.0)
    context.emit(ev.Timed(1, name, TimingResult((latency_ms,) * 9, (eager_ms,) * 9)))
    return name


def test_headroom_says_how_near_the_limit_the_base_and_the_best_are(tmp_path: Path) -> None:
    context = open_context(tmp_path)
    context.emit(ev.LimitMeasured(LIMIT))
    slow, best = with_timed(context, 4.0, 2.0), with_timed(context, 1.03, 2.0)
    of_slow, of_best = (briefing.headroom(context.record, context.candidate(name)) for name in (slow, best))
    assert (
        "allows 1 ms: at least 100 MB cross memory at 100 GB/s (1 ms), operations are not counted; bytes bound"
        in of_slow
    )
    assert "This kernel: 4 ms, 0.25 of the limit. It is far from the limit" in of_slow
    assert "The best of this run, kernel 2: 1.03 ms, 0.97 of the limit." in of_slow
    assert "This kernel: 1.03 ms, 0.97 of the limit. It is at the limit" in of_best
    assert "The best of this run" not in of_best


def test_headroom_is_what_is_beside_the_operators_that_are_left_to_pytorch(tmp_path: Path) -> None:
    context = open_context(tmp_path, policy=Policy(library_operators=("linear",)))
    context.emit(ev.LimitMeasured(LIMIT))
    name = with_timed(context, 4.0, 2.0)

    def told(evidence: dict[str, str], latency_ms: float = 4.0) -> str:
        context.emit(ev.Checked(1, name, CheckResult(Verdict.PASSED, 1.0, evidence=evidence)))
        context.emit(ev.Timed(1, name, TimingResult((latency_ms,) * 9, (2.0,) * 9)))
        return briefing.headroom(context.record, context.candidate(name))

    def operators(share: float | None) -> dict[str, str]:
        copied = ObservedOperator("aten::copy_", "copies", 1, 8, 0.1)
        return {observed.KEY: observed.to_text([ObservedOperator("aten::linear", "computes", 3, 8, share), copied])}

    far = "0.25 of the limit. It is far from the limit"
    assert "0.25 of the limit. 79% of its time is in linear, left to PyTorch; the rest, 0.84 ms" in told(
        operators(0.79)
    )
    assert "How much of its time is in what is left to PyTorch (linear) is not known" in told({})
    assert "not known" in told(operators(None))
    assert far in told(operators(0.001))
    assert "It is at the limit" in told(operators(0.79), latency_ms=1.03)
    kernels = [
        ObservedKernel("gemm", "PyTorch", "aten::addmm", 1, 5.0, 0.5),
        ObservedKernel("copy", "PyTorch", "aten::copy_", 1, 2.0, 0.2),
        ObservedKernel("mine", "own", "", 1, 3.0, 0.3),
    ]
    on_gpu = told(operators(None) | {observed.KERNELS: observed.to_text(kernels)})
    assert "50% of its time is in addmm, left to PyTorch; the rest, 2 ms" in on_gpu
    assert "`gemm` (PyTorch's, by aten::addmm) 0.005 ms, 50%; `copy` (" in on_gpu
    assert "; `mine` (yours) 0.003 ms, 30%." in on_gpu
    assert "These take 0.01 ms together, the call 4 ms: in the rest no kernel runs" in on_gpu
    alone = told(operators(None) | {observed.KERNELS: observed.to_text(kernels[2:])})
    assert "On the device" not in alone


def test_the_writer_of_a_first_kernel_is_told_the_limit_and_of_a_network_what_eager_runs() -> None:
    assert briefing.room(None) == ""
    few = (CalledOperator("conv2d", 1, 4_000_000), CalledOperator("relu", 1, 2_000_000))
    told = briefing.room(replace(LIMIT, operators=few))
    assert "- The hardware allows " in told
    assert "Eager PyTorch" not in told, "its text shows them"
    many = (CalledOperator("conv2d", 98, 4_000_000), *few[1:], CalledOperator("cat", 97, -1))
    line = "runs 196 operators in a call, so often and with so many elements as input: `conv2d` 98 times, 4 million; "
    assert f"{line}`relu` 1 time, 2 million; `cat` 97 times." in briefing.room(replace(LIMIT, operators=many))


def test_headroom_says_that_operations_bound_a_task_that_computes_much(tmp_path: Path) -> None:
    context = open_context(tmp_path)
    context.emit(ev.LimitMeasured(replace(LIMIT, min_flop=3_000_000_000).raised_to(2.9)))
    told = briefing.headroom(context.record, context.candidate(with_timed(context, 3.4, 9.0)))
    assert "allows 2.9 ms" in told
    assert "operations bound it. The rates were raised to what a kernel reached." in told
    assert "0.85 of the limit. It is near the limit" in told


def test_a_kernel_that_beat_the_measured_limit_is_told_no_share_of_it(tmp_path: Path) -> None:
    context = open_context(tmp_path)
    context.emit(ev.LimitMeasured(LIMIT.raised_to(0.5)))
    slow, best = with_timed(context, 0.8, 2.0), with_timed(context, 0.5, 2.0)
    told = briefing.headroom(context.record, context.candidate(slow))
    assert "The limit is not known: a kernel took 0.5 ms, less than the measured limit of 1 ms." in told
    assert "This kernel: 0.8 ms.\n- The best of this run, kernel 2: 0.5 ms.\n" in told
    for text in (told, briefing.headroom(context.record, context.candidate(best))):
        assert "of the limit" not in text
        assert "at the limit" not in text


def test_headroom_has_the_baselines_the_compilers_figures_and_the_launches(tmp_path: Path) -> None:
    context = open_context(tmp_path)
    name = with_timed(context, 4.0, 8.0)
    context.emit(ev.BaselineMeasured("torch.compile", TimingResult((5.0,) * 9, (8.0,) * 9)))
    built = (KernelResources("softmax<4>", 40, 0, 0, 16384), KernelResources("tail", 255, 96, 104, 0, 72))
    context.emit(ev.Compiled(1, name, CompileResult(True, 1.0, resources=built), None))
    metrics = tuple(Metric("gpu__time_duration.sum", "ns", 5.0, "k", launch) for launch in (-1, 0, 1, 2))
    context.emit(ev.Profiled(1, name, ProfileResult("h", metrics, "latency", ""), None))
    told = briefing.headroom(context.record, context.candidate(name))
    assert "No limit was measured." in told
    assert "eager 8 ms, torch.compile 5 ms (1.6x of eager)." in told
    assert (
        "`softmax<4>` 40 registers, no spills, 16 KiB static shared memory; `tail` 255 registers, 200 bytes of spills"
        in told
    )
    assert "Launches in one call: 3." in told
    only_first = ProfileResult("h", metrics, "latency", "", evidence={LAUNCHES: "only the first 3 were profiled"})
    cut = replace(context.candidate(name), profiled=only_first)
    assert "Launches in one call" not in briefing.headroom(context.record, cut)
    timed = context.candidate(name).timed
    assert timed is not None
    for standing, is_told in ((CheckOutcome.HELD, True), (CheckOutcome.ABSENT, False)):
        check_record = CheckRecord(Group.TIMING, DEVICE_TIME, standing, "kernels of a call take 3.9 ms in 2 launches")
        context.emit(ev.Timed(1, name, replace(timed, proofs=(check_record,))))
        told = briefing.headroom(context.record, context.candidate(name))
        assert ("By the driver's records: kernels of a call take 3.9 ms in 2 launches." in told) is is_told
        assert ("Launches in one call: 3." in told) is not is_told


def test_the_judge_of_the_other_method_sees_device_contract_and_headroom(tmp_path: Path) -> None:
    context = open_context(tmp_path, toolchain=CpuToolchain(), strategy="coder_judge")
    context.strategy = CoderJudge()
    context.emit(ev.LimitMeasured(limit_of("NVIDIA H200", GPUS["NVIDIA H200"])))
    system, user = asked(context, "judge", with_timed(context, 4.0, 8.0))
    assert "may have 227 KiB" in system
    assert "The contract of this run" in system
    assert "This kernel: 4 ms" in user


def test_the_rate_of_fp8_is_told_to_a_task_whose_limit_stands_on_it() -> None:
    facts = replace(GPUS["NVIDIA H200"], rates_gflop_s={"fp32": 65971.0, "bf16": 857342.0, "fp8": 1400000.0})
    assert "FP8" not in briefing.device(limit_of("NVIDIA H200", facts))
    eight = replace(limit_of("NVIDIA H200", facts), peak_gflop_s=1400000.0)
    assert "857.3 TFLOP/s BF16 on tensor cores, 1400 TFLOP/s FP8 on tensor cores" in briefing.device(eight)


def test_a_task_with_8_bit_floats_is_told_how_they_are_stored_and_judged() -> None:
    source = SOFTMAX.source.replace("import torch\n", "import torch\n\nKEPT = torch.float8_e4m3fn\n", 1)
    assert "8-bit floats" not in briefing.contract("cuda", SOFTMAX)
    told = briefing.contract("cuda", replace(SOFTMAX, source=source))
    assert all(word in told for word in ("__nv_fp8_e4m3", "cutlass::float_e4m3_t", "tl.float8e4nv", "within 8e-06"))
    assert "at::Float8_e4m3fn" in briefing.contract("cpu", replace(SOFTMAX, source=source))


def test_a_limit_of_before_masks_were_counted_is_not_known_where_the_task_masks_products() -> None:
    record = Record.at_start(settings_with(task_source="scores.masked_fill(later, -math.inf).softmax(-1)"))
    limit = HardwareLimit("d", 100.0, 1000.0, 1_000_000, 2_000_000_000)
    record.apply(ev.LimitMeasured(limit))
    assert "The limit is not known: 2 ms is the time for all of the reference's operations." in briefing.room(
        record.limit
    )
    record.apply(ev.LimitMeasured(replace(limit, min_flop=1_000_000_000, leaves_masked_out=True)))
    assert "1 GFLOP (what the masks leave) are computed at" in briefing.room(record.limit)


def test_a_limit_without_the_task_s_products_is_told_to_a_model_as_not_known() -> None:
    recurrent = replace(LIMIT, operators=(CalledOperator("gru", 1, -1),))
    told = briefing.room(recurrent)
    assert "The limit is not known: the reference multiplies matrices, and its operations are not counted." in told
    assert "at least 100 MB cross memory at 100 GB/s, 1 ms." in told.lower().replace("mb", "MB").replace("gb", "GB")
    assert "The hardware allows 2 ms" in briefing.room(replace(recurrent, min_flop=2_000_000_000)), "counted"


def test_a_limit_that_a_kernel_undercut_is_told_to_a_model_as_not_known() -> None:
    limit = HardwareLimit("d", 100.0, 1000.0, 1_000_000, 2_000_000_000, executed_share=0.2317)
    told = briefing.room(limit)
    assert "The limit is not known: 2 ms is the time for all of the reference's operations" in told
    assert "executes 0.23 of them: part of the work is avoidable." in told
    assert "The hardware allows 2 ms" in briefing.room(replace(limit, executed_share=0.9))
