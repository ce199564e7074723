"""What a model is told of the device, of the contract and of the headroom of a kernel: facts of the record in the words
of prompt files. Measures nothing and decides nothing."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from engine.evaluator import languages, tasks
from engine.evaluator.build.device import flags
from engine.evaluator.build.tunables import CPP_LINE, PYTHON_LINE, REMARK
from engine.evaluator.checks import tolerance
from engine.evaluator.checks.operators import shares_of_pytorch
from engine.evaluator.checks.screening.python_text import FLAGGED_IMPORTS, IMPORTS
from engine.evaluator.checks.trials import IN_WORDS, PLAN, Style
from engine.evaluator.tasks import Task
from engine.search import prompting
from storage.results import observed
from storage.results.check_records import DEVICE_TIME, CheckOutcome
from storage.results.evaluation_results import KernelResources, headline
from storage.results.hardware_limit import FP8, CalledOperator, DeviceFacts, HardwareLimit, stands_on_float8
from storage.results.kernel_names import short
from storage.results.observed import ObservedKernel
from storage.results.policy import EVERYTHING, PRECISIONS, Draws, Policy, Strides
from storage.results.vocabulary import FAILED
from storage.run import tuning
from storage.run.record import Candidate, Record, named
from storage.run.settings import Origin

# Generations of GPUs by the number in their architecture's name; each has a file in prompts/architectures.
GENERATIONS: Mapping[str, str] = {
    "80": "ampere", "86": "ampere", "87": "ampere", "89": "ada", "90": "hopper", "100": "blackwell", "103": "blackwell",
    "120": "blackwell_desktop", "121": "blackwell_desktop",
}  # fmt: skip
VECTORS = ("avx512", "avx2")
RATE_NAMES: Mapping[str, str] = {
    "fp32": "float32 multiply-adds", "tf32": "TF32 on tensor cores", "bf16": "BF16 on tensor cores",
    FP8: "FP8 on tensor cores",
}  # fmt: skip
IN_FULL: Mapping[str, str] = {"bf16": "bfloat16", "fp16": "float16"}
MODE_IN_WORDS: Mapping[str, str] = {"eval": "evaluation", "train": "training"}
STATISTICS = re.compile(r"BatchNorm|InstanceNorm|running_|register_buffer|batch_norm")
NEAR = "a size near them that is told to nobody"
# What TILEWRIGHT_VL is where vectors are no wider: see engine/evaluator/build/shim/vector_length.hpp.
LEAST_LANES = 8
SHOWN_SIZES = 12
SHOWN_KERNELS = 4
SHOWN_OPERATORS, LEAST_SHARE = 4, 0.05
SHOWN_ON_DEVICE, BUSY_SHARE = 6, 0.8
FEW_OPERATORS, SHOWN_CALLED = 8, 10
SHOWN_VARIANTS, SHOWN_FAILED = 3, 2
SHOWN_LAID_OUT = 4
AT_LIMIT = 0.95
NEAR_LIMIT = 0.6


def fixed_slots(
    toolchain: str, task: Task, limit: HardwareLimit | None, language: str = languages.DEFAULT
) -> dict[str, str]:
    """What holds for a whole run, by the slots of system prompts. The same at every step, so that it can be cached."""
    machine = prompting.in_language(prompting.for_toolchain("toolchains", toolchain), language)
    slots = {
        "toolchain": machine,
        "device": device(limit, language),
        "contract": contract(toolchain, task, language, limit),
    }
    slots |= {"language": prompting.of_language("language", language)}
    return slots | {"language_rule": prompting.of_language("language_rule", language)} | allowed(task.policy)


def device(limit: HardwareLimit | None, language: str = languages.DEFAULT) -> str:
    """The device's own numbers, and what its architecture offers; a run of before has no numbers."""
    if limit is None:
        return _filled("unknown", device="not measured")
    name = limit.model
    if limit.facts is None:
        rates = f"{limit.bandwidth_gb_s:.4g} GB/s of memory bandwidth and {_rate(limit.peak_gflop_s)}, measured"
        return _filled("unknown", device=f"{name}: {rates}")
    if not limit.facts.architecture.startswith("sm_"):
        return _host(name, limit.facts)
    known = limit.facts.rates_gflop_s  # FP8 is of no use to a task whose limit does not stand on it
    told = {unit: rate for unit, rate in known.items() if unit != FP8 or stands_on_float8(limit.peak_gflop_s, known)}
    return _gpu(name, replace(limit.facts, rates_gflop_s=told), language)


def _gpu(name: str, facts: DeviceFacts, language: str) -> str:
    number = facts.architecture.removeprefix("sm_").rstrip("af")
    notes = GENERATIONS.get(number, "gpu_other")
    file = prompting.for_language(f"architectures/{notes}.md", language)
    slots = {"gencode": flags.gencode(facts.architecture)}
    return _filled(
        "gpu",
        device=name,
        generation=f"{notes.partition('_')[0].capitalize()}, sm_{number}" if number in GENERATIONS else f"sm_{number}",
        architecture=facts.architecture,
        processors=str(facts.processors),
        registers=f"{facts.registers:,}",
        shared=_size(facts.shared_bytes),
        block_shared=_size(facts.block_shared_bytes),
        dynamic=prompting.of_language("dynamic", language),
        warps=str(facts.warps),
        blocks=str(facts.blocks),
        l2=_size(facts.l2_bytes),
        memory=f"{facts.memory_gb_s:.4g} GB/s",
        clusters=_clusters(facts, language),
        rates=", ".join(f"{_rate(rate)} {RATE_NAMES.get(kind, kind)}" for kind, rate in facts.rates_gflop_s.items()),
        notes=prompting.fill(file, **{slot: slots[slot] for slot in prompting.slots(file)}).strip(),
    )


def _clusters(facts: DeviceFacts, language: str) -> str:
    if not facts.cluster_blocks:
        return "yes" if facts.has_clusters else "no"
    asks = facts.cluster_blocks > 8 and languages.find(language).compiler is None  # the other compilers ask for it
    permission = " (above 8 with `cudaFuncAttributeNonPortableClusterSizeAllowed`)" if asks else ""
    return f"yes, of up to {facts.cluster_blocks}{permission}"


def _host(name: str, facts: DeviceFacts) -> str:
    return _filled(
        "x86",
        device=name,
        processors=str(facts.processors),
        cores=str(facts.cores) if facts.cores else "an unknown number of",
        bits=str(facts.vector_bits),
        lanes=str(max(facts.vector_bits // 32, LEAST_LANES)),
        l1=_size(facts.l1_bytes),
        l2=_size(facts.l2_bytes),
        l3=_size(facts.l3_bytes),
        memory=f"{facts.memory_gb_s:.4g} GB/s",
        rates=", ".join(f"{_rate(rate)} {RATE_NAMES.get(kind, kind)}" for kind, rate in facts.rates_gflop_s.items()),
        notes=_filled(facts.architecture if facts.architecture in VECTORS else "x86_other"),
    )


def _filled(name: str, **values: str) -> str:
    return prompting.fill(f"architectures/{name}.md", **values).strip()


def contract(toolchain: str, task: Task, language: str = languages.DEFAULT, limit: HardwareLimit | None = None) -> str:
    """The task's policy in words, what a check tries, how far an element may be off, and how a kernel is timed."""
    policy = task.policy
    sizes = [f"{name}={value}" for name, value in task.sizes.items()][:SHOWN_SIZES]
    stated = f" ({', '.join(sizes)})" if sizes else ""
    untimed = "; ".join([*map(tasks.workloads.named, policy.other_sizes), *[NEAR] * policy.secret_sizes])
    others = "; ".join(map(tasks.workloads.named, policy.workloads)) or untimed
    more = {"others": others} if others else {}
    if policy.workloads:
        more["untimed"] = f" The result must be right at {untimed} too, which is not timed." if untimed else ""
    kind = "workloads" if policy.workloads else "more" if others else "own"
    styles = dict.fromkeys([*(trial.style for trial in PLAN), *([Style.RECORDED] if policy.recorded else [])])
    return prompting.fill(
        "contract.md",
        **allowed(policy),
        imports=", ".join(sorted((IMPORTS - FLAGGED_IMPORTS) | {*policy.imports, *languages.find(language).imports})),
        sizes=prompting.fill(f"policy/{kind}_sizes.md", sizes=stated, **more).strip(),
        values="; ".join(IN_WORDS[style] for style in styles),
        special=prompting.text(f"policy/special_{policy.special_values}.md").strip(),
        tolerance=_tolerance(policy),
        state="".join(f"\n{line.strip()}" for line in (*_told(limit), *_state(task), *_float8(toolchain, task))),
        timing=prompting.text(prompting.for_toolchain("timing", toolchain)).strip(),
        backward=prompting.text("policy/backward.md").strip() if policy.backward else "",
        place=prompting.fill("policy/place.md", place=task.place).strip() if task.place else "",
    ).strip()


def _told(limit: HardwareLimit | None) -> Iterator[str]:
    """How forward is called, of a task whose text does not tell plainly; and which weights are not contiguous."""
    if limit and limit.signature:
        yield prompting.fill("policy/call.md", signature=limit.signature)
    if limit and limit.laid_out:
        shown = [f"`{part.name}` {part.stride}" for part in limit.laid_out[:SHOWN_LAID_OUT]]
        more = [f"{left} more"] if (left := len(limit.laid_out) - SHOWN_LAID_OUT) > 0 else []
        yield prompting.fill("policy/laid_out.md", strides=", ".join([*shown, *more]))


def _float8(toolchain: str, task: Task) -> Iterator[str]:
    """How 8-bit floats are stored, converted and judged, of a task whose text names them."""
    if tasks.holds_float8(task.source):
        allowed = f"{tolerance.allowed('float8_e4m3fn', 0.0, 0.0, task.policy.precision):g}"
        yield prompting.fill(prompting.for_toolchain("float8", toolchain), allowed=allowed)


def _state(task: Task) -> Iterator[str]:
    """What a task's weights, its mode and its random numbers ask of a kernel; nothing of what it does not have."""
    policy = task.policy
    if policy.is_judged_as_constructed:
        yield prompting.text("policy/weights_constructed.md")
        return
    if tasks.may_have_weights(task.source):
        values = prompting.text(f"policy/values_{policy.weights}.md").strip()
        yield prompting.fill(f"policy/weights_{policy.state_dict}.md", values=values)
        if policy.mode != "eval" and STATISTICS.search(tasks.shown.text_with_modules(task.source)):
            yield prompting.text("policy/statistics.md")
    if policy.mode:
        yield prompting.fill("policy/mode.md", mode=MODE_IN_WORDS[policy.mode])
    if policy.compare_modules:
        yield prompting.fill("policy/modules.md", depth=str(policy.compare_modules))
    if policy.draws is Draws.SEEDED:
        yield prompting.text("policy/draws.md")
    if policy.strides is Strides.ANY:
        yield prompting.text("policy/strides.md")


def _tolerance(policy: Policy) -> str:
    floors = (
        f"{tolerance.allowed(dtype, 0.0, 0.0, policy.precision):g} for {dtype}"
        for dtype in ("float32", "float16", "bfloat16")
    )
    return (
        f"{', '.join(floors)}, nothing for integers; more where thousands of float32 numbers are summed into one "
        f"(with the root of their number), and {tolerance.OWN_ERROR_FACTOR:g} times the reference's own error "
        f"({tolerance.NARROW_FACTOR:g} times in float16 and bfloat16) where that is more"
    )


def allowed(policy: Policy) -> dict[str, str]:
    """What the task leaves to PyTorch, and how exact a kernel must be, in a prompt's words."""
    operators = policy.library_operators
    if EVERYTHING in operators:
        library = prompting.text("policy/all.md")
    elif operators:
        library = prompting.fill("policy/some.md", operators=", ".join(f"`{name}`" for name in operators))
    else:
        library = prompting.text("policy/own.md")
    # Runs made before the classes were checked may name another: it is judged as fp32.
    precision = policy.precision if policy.precision in PRECISIONS else PRECISIONS[0]
    exact = prompting.text(f"policy/{precision}.md")
    if policy.dtype:
        exact = prompting.fill("policy/tensors.md", dtype=IN_FULL[policy.dtype])
    return {"library": library.strip(), "precision": exact.strip()}


def tunables(language: str = languages.DEFAULT) -> str:
    """How a kernel declares numbers for the tuner."""
    line = PYTHON_LINE if languages.find(language).compiler is not None else CPP_LINE
    return prompting.fill("tunables.md", line=line).strip()


def headroom(record: Record, candidate: Candidate) -> str:
    """How fast the device lets the task be, how near to that this kernel and the best come, and what was made of it."""
    lines = [*_limit(record.limit), *_reached(record, candidate), *_baselines(record, candidate), *_built(candidate)]
    lines += [*_swept(record, candidate), *_undeclared(record, candidate)]
    return prompting.fill("headroom.md", lines="\n".join(f"- {line}" for line in lines)).strip()


def room(limit: HardwareLimit | None) -> str:
    """How fast the device lets a task be, for who writes its first kernel; empty where that was not measured."""
    lines = "\n".join(f"- {line}" for line in [*_limit(limit), *_operators(limit)])
    return prompting.fill("headroom.md", lines=lines).strip() if limit is not None else ""


def _operators(limit: HardwareLimit | None) -> Iterator[str]:
    """What one call of a reference runs, where it runs many operators."""
    rows = limit.operators if limit else ()
    if (count := sum(row.calls for row in rows)) <= FEW_OPERATORS:
        return
    told = "; ".join(map(_called, rows[:SHOWN_CALLED]))
    more = f"; {len(rows) - SHOWN_CALLED} more kinds" if len(rows) > SHOWN_CALLED else ""
    yield f"Eager PyTorch runs {count} operators in a call, so often and with so many elements as input: {told}{more}."


def _called(row: CalledOperator) -> str:
    size = f", {row.elements / 1e6:.3g} million" if row.elements >= 0 else ""
    return f"`{row.name}` {row.calls} {'time' if row.calls == 1 else 'times'}{size}"


def _limit(limit: HardwareLimit | None) -> Iterator[str]:
    if limit is None:
        yield "No limit was measured."
        return
    if limit.may_skip:
        yield (
            f"The limit is not known: {limit.limit_ms:.4g} ms is the time for all of the reference's operations. It "
            "masks part of their results, so a kernel may skip some."
        )
        return
    if limit.is_undercut:
        yield (
            f"The limit is not known: {limit.counted_ms:.4g} ms is the time for all of the reference's operations, and "
            f"a correct kernel of this run executes {limit.executed_share:.2g} of them: part of the work is avoidable."
        )
        return
    if limit.leaves_out_products:
        yield (
            "The limit is not known: the reference multiplies matrices, and its operations are not counted. At least "
            f"{limit.min_bytes / 1e6:.4g} MB cross memory at {limit.bandwidth_gb_s:.4g} GB/s, {limit.memory_ms:.4g} ms."
        )
        return
    if not limit.is_known:
        of = f" of {limit.measured_ms:.4g} ms" if limit.measured_ms else ""
        yield (
            f"The limit is not known: a kernel took {limit.limit_ms:.4g} ms, less than the measured limit{of}. The "
            "task needs less work than is counted for it, or the device is faster than was measured."
        )
        return
    moved = (
        f"at least {limit.min_bytes / 1e6:.4g} MB cross memory at {limit.bandwidth_gb_s:.4g} GB/s "
        f"({limit.memory_ms:.4g} ms)"
    )
    rates = limit.facts.rates_gflop_s if limit.facts else {}
    on = " on tensor cores" if not limit.is_raised and limit.peak_gflop_s > rates.get("fp32", math.inf) else ""
    rate = f"{_rate(limit.peak_gflop_s)}{on}"
    left_out = " (what the masks leave)" if limit.leaves_masked_out else ""
    computed = (
        f", {limit.min_flop / 1e9:.4g} GFLOP{left_out} are computed at {rate} ({limit.compute_ms:.4g} ms)"
        if limit.min_flop
        else ", operations are not counted"
    )
    kind = "bytes" if limit.memory_ms >= limit.compute_ms else "operations"
    raised = " The rates were raised to what a kernel reached." if limit.is_raised else ""
    yield f"The hardware allows {limit.limit_ms:.4g} ms: {moved}{computed}; {kind} bound it.{raised}"


def _reached(record: Record, candidate: Candidate) -> Iterator[str]:
    limit, timed, best = record.limit, candidate.trusted, record.best
    if limit is None or timed is None:
        return
    share, left = limit.reached_at(timed.latency_ms), record.settings.policy.library_operators
    if left and (share is None or share < NEAR_LIMIT):
        meaning = _beside_pytorch(candidate, timed.latency_ms, left)
    else:
        meaning = _meaning(share)
    yield f"This kernel: {timed.latency_ms:.4g} ms{_of_limit(share)}. {meaning}".rstrip()
    if best is not None and best.trusted is not None and best.candidate_id != candidate.candidate_id:
        took = best.trusted.latency_ms
        yield (
            f"The best of this run, {named(record, best.candidate_id)}: {took:.4g} ms"
            f"{_of_limit(limit.reached_at(took))}."
        )


def _meaning(share: float | None) -> str:
    if share is None:
        return ""
    if share >= AT_LIMIT:
        return "It is at the limit: nothing beyond the noise is left to gain, so a small and safe change is enough."
    if share >= NEAR_LIMIT:
        return "It is near the limit: what is left is in the resource that bounds the task."
    return (
        "It is far from the limit: its time goes into waiting, repeated traffic or other instructions, "
        "not into what the task needs."
    )


def _beside_pytorch(candidate: Candidate, took_ms: float, left: Sequence[str]) -> str:
    """What can be gained beside the operators that are left to PyTorch, as far as its check saw what they take."""
    shares = shares_of_pytorch(candidate.checked.evidence) if candidate.checked else None
    if shares is None:
        names = "everything" if EVERYTHING in left else ", ".join(left)
        return f"How much of its time is in what is left to PyTorch ({names}) is not known."
    share = min(1.0, sum(shares.values()))
    if share < LEAST_SHARE:
        return _meaning(0.0)
    return (
        f"{share:.0%} of its time is in {', '.join(list(shares)[:SHOWN_OPERATORS])}, left to PyTorch; the rest, "
        f"{(1 - share) * took_ms:.3g} ms, is all that can be gained without replacing that."
    )


def _baselines(record: Record, candidate: Candidate) -> Iterator[str]:
    timed, compiled = candidate.trusted, record.baseline
    if timed is not None:
        yield f"PyTorch on the same inputs: {timed.baseline} {timed.baseline_latency_ms:.4g} ms" + (
            f", {compiled.name} {compiled.result.latency_ms:.4g} ms ({compiled.result.speedup:.3g}x of eager)."
            if compiled and compiled.result
            else "."
        )


def _built(candidate: Candidate) -> Iterator[str]:
    """What the compiler gave the kernels; their own times and launches, as the driver or a profile tells them."""
    kernels = candidate.compiled.resources if candidate.compiled else ()
    if kernels:
        rest = len(kernels) - SHOWN_KERNELS
        more = f"; and {rest} more" if rest > 0 else ""
        yield f"The compiler's figures: {'; '.join(map(_resources, kernels[:SHOWN_KERNELS]))}{more}."
    profiled = candidate.profiled if candidate.profiled and not candidate.profiled.is_cut else None
    launches = {metric.launch for metric in profiled.metrics if metric.launch >= 0} if profiled else ()
    check_records = candidate.trusted.proofs if candidate.trusted else ()
    recorded = next(
        (
            record
            for record in check_records
            if record.check == DEVICE_TIME and record.standing is not CheckOutcome.ABSENT
        ),
        None,
    )
    if recorded:
        yield f"By the driver's records: {recorded.detail}."
    elif launches:
        yield f"Launches in one call: {len(launches)}."
    yield from _on_device(candidate)


def _on_device(candidate: Candidate) -> Iterator[str]:
    """Of a call with several kernels, which of them take how long, and whether the device waits between them."""
    rows = observed.kernels_of(candidate.checked.evidence) if candidate.checked else None
    if not rows or sum(row.launches for row in rows) < 2:
        return
    rest = sum(row.launches for row in rows[SHOWN_ON_DEVICE:])
    more = f"; {rest:g} more launches" if rest else ""
    yield f"On the device, in one call: {'; '.join(map(_launched, rows[:SHOWN_ON_DEVICE]))}{more}."
    busy_ms = sum(row.microseconds for row in rows) / 1e3
    if candidate.trusted and busy_ms < BUSY_SHARE * candidate.trusted.latency_ms:
        took = f"{candidate.trusted.latency_ms:.4g} ms"
        yield (
            f"These take {busy_ms:.4g} ms together, the call {took}: in the rest no kernel runs, the device waits for "
            "the host. Fewer launches and less Python gain there, faster kernels do not."
        )


def _launched(row: ObservedKernel) -> str:
    whose = "yours" if row.origin == observed.OWN else f"PyTorch's, by {row.by}" if row.by else row.origin
    times = "" if row.launches == 1 else f"{row.launches:g} launches, "
    return f"`{short(row.name)}` ({whose}) {times}{row.microseconds / 1e3:.3g} ms, {row.share:.0%}"


def _swept(record: Record, candidate: Candidate) -> Iterator[str]:
    """What the sweep over a kernel's tunables, or over those of the kernel that it was tuned from, has found."""
    name = candidate.candidate_id
    is_tuned = candidate.created.origin is Origin.TUNED
    sweep = record.sweeps.get(candidate.created.parent_id or "" if is_tuned else name)
    if sweep is None or not sweep.variants:
        return
    count = len(sweep.variants)
    timed = [(variant, variant.last_timing) for variant in sweep.variants.values() if variant.last_timing]
    timed.sort(key=lambda pair: -(pair[1].speedup if pair[1] else 0.0))
    written = f"{tuning.in_words(sweep.as_written)} {sweep.to_beat.speedup:.3g}x"
    fast = "; ".join(
        f"{tuning.in_words(variant.values)} {last.speedup:.3g}x" for variant, last in timed[:SHOWN_VARIANTS] if last
    )
    kept = "the fastest is a kernel of its own" if sweep.kept else "none was faster beyond the noise"
    if sweep.failed_again:
        kept = f"as written it failed when timed again ({headline(sweep.failed_again)}), so none was taken"
    kept = "the fastest was taken and stands in this kernel" if is_tuned else kept
    yield (
        f"The engine tried {count} other set{'s' * (count != 1)} of numbers for the tunables, as written {written}: "
        f"{kept}. The fastest: {fast or 'none'}. Change the structure, not these numbers."
    )
    failed = [variant for variant in sweep.variants.values() if variant.has_failed]
    for variant in failed[:SHOWN_FAILED]:
        yield f"With {tuning.in_words(variant.values)} it {FAILED[variant.verdict]}: {variant.failure}"


def _undeclared(record: Record, candidate: Candidate) -> Iterator[str]:
    """Declarations of tunables that could not be read."""
    if record.settings.tune and candidate.compiled is not None:
        yield from (remark for remark in candidate.compiled.remarks if remark.startswith(REMARK))


def _resources(kernel: KernelResources) -> str:
    spilled = kernel.spill_stores + kernel.spill_loads
    spills = f"{spilled} bytes of spills" if spilled else "no spills"
    stack = f", {kernel.stack_bytes} bytes of stack" if kernel.stack_bytes else ""
    shared = f"{_size(kernel.shared_bytes, 'no')} static shared memory"
    return f"`{kernel.kernel}` {kernel.registers} registers, {spills}{stack}, {shared}"


def _of_limit(share: float | None) -> str:
    if share is None:
        return ""
    return f", {min(share, 1.0):.2g} of the limit" if share < 0.995 else ", 1.0 of the limit"


def _rate(gflop_s: float) -> str:
    return f"{gflop_s / 1e3:.4g} TFLOP/s" if gflop_s >= 1e4 else f"{gflop_s:.4g} GFLOP/s"


def _size(count: int, none: str = "an unknown amount") -> str:
    if count <= 0:
        return none
    return (
        f"{count / 2**20:.4g} MiB"
        if count >= 2**20
        else f"{count / 2**10:.4g} KiB"
        if count >= 2**10
        else f"{count} bytes"
    )
