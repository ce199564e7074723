"""CARD.md of a package: what it is, how it is used, how each kernel was judged, what it gains, where it is from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.evaluator import tasks
from engine.packaging.folders import KERNELS, NOT_STATED, MadePackage, benchmark_of, variant
from engine.packaging.kernels import PackagedKernel
from engine.packaging.template.package._entries import Entry
from storage.networks import in_network
from storage.networks.proofs import Proof
from storage.networks.records import Form, Network, Region
from storage.results import flags, relative
from storage.results.check_records import CheckOutcome
from storage.run.record import checks_of
from storage.run.saved_models import RECORDED
from storage.run.steering.command_arguments import MANUAL

_HOW = {
    "cpp": "C++ (`TORCH_LIBRARY`); AOTInductor and C++ programs can call it",
    "triton": "Triton (`torch.library.triton_op`): PyTorch's compiler sees through it",
    "python": "Python (`torch.library.custom_op`): compiled programs call it as one piece, AOTInductor cannot",
}
_SIZES = {
    "exact": "the sizes above alone; any other runs PyTorch's own code",
    "batch": "the sizes above with any length of the first dimension (**lengths other than these were not judged**)",
    "any": "any sizes with as many dimensions (**sizes other than these were not judged**)",
}


IN_NETWORK = "the table above"


def written(made: MadePackage, layout: str) -> str:
    """The text."""
    described = (line for kernel in made.kernels for line in _of_kernel(kernel, f"`{benchmark_of(layout)}`"))
    return "\n".join([*_head(made, layout), *described, *_tail(made)])


def of_network(made: MadePackage, network: Network, regions: Sequence[Region], proof: Proof | None) -> str:
    """The text for the regions of a network."""
    lines = [f"# {made.name}", ""]
    lines.append(
        f"Kernels for {len(regions)} {'region' if len(regions) == 1 else 'regions'} of the network `{network.name}`, "
        "made and judged by Tilewright."
    )
    lines += ["", "```python", f"import {made.name} as kernels"]
    lines.append("kernels.apply(network)          # kernels of modules; kernels.revert(network) takes them out")
    if any(region.form is Form.FUSED for region in regions):
        lines.append("network = kernels.compile(network)   # torch.compile, with the kernels that lie across modules")
    lines.append("print(kernels.report())         # how often a kernel ran, and where PyTorch's own code did, and why")
    lines += ["```", "", "Parameters stay the same objects. What a kernel does not take runs PyTorch's own code.", ""]
    lines += ["## In the network", "", *(in_network.lines(network, proof) if proof else ["Not measured yet."]), ""]
    lines += ["## Regions", "", "| region | kernel | places |", "|---|---|---|"]
    for region, kernel in zip(regions, made.kernels, strict=True):
        places = ", ".join(f"`{path}`" for path in region.places[:4]) + (" …" if len(region.places) > 4 else "")
        lines.append(f"| {region.name} | {kernel.name} | {places} |")
    lines.append("")
    return "\n".join(
        [*lines, *(line for kernel in made.kernels for line in _of_kernel(kernel, IN_NETWORK)), *_tail(made)]
    )


def _head(made: MadePackage, layout: str) -> Iterator[str]:
    settings = made.kernels[0].record.settings
    yield f"# {made.name}"
    yield ""
    yield f"Kernels for `{settings.task_name}`, made and judged by Tilewright."
    yield ""
    yield "```python"
    if layout == KERNELS:
        yield "from pathlib import Path"
        yield "from kernels import get_local_kernel"
        yield ""
        yield 'kernels = get_local_kernel(Path("."))   # this folder; kernelize: LocalLayerRepository, layer `Layer`'
    else:
        yield f"import {made.name} as kernels"
    yield "kernels.apply(network)          # or kernels.from_module(module), kernels.new()"
    yield "print(kernels.report())         # how often a kernel ran, and where PyTorch's own code did, and why"
    yield "kernels.revert(network)"
    yield "```"
    yield ""
    if layout == KERNELS:
        yield f"`{variant(made)}` is loaded as it is{', and built at first use' if made.needs_build else ''}."
        yield "The kernel builder reads `build.toml` and `torch-ext/` (builds with Nix: not tried)."
        yield ""
    elif made.needs_build:
        yield "`pip wheel . --no-deps --no-build-isolation` builds it where a compiler and setuptools>=70.1 are;"
        yield "without that it is built at first use."
        yield ""
    yield "What a kernel does not take (another dtype, other sizes, gaps in memory, autocast) runs PyTorch's own code."
    path = "PYTHONPATH=torch-ext " if layout == KERNELS else ""
    yield f"Gradients: see below. `{path}python -m pytest tests` tries all of this,"
    yield f"`{path}python {benchmark_of(layout)}` times it."
    yield ""


def _of_kernel(kernel: PackagedKernel, left: str) -> Iterator[str]:
    settings, record = kernel.record.settings, kernel.record
    yield f"## {kernel.name}"
    yield ""
    rows = [
        ("operator", f"`torch.ops.….{kernel.entries[0].operator}`, {_HOW[kernel.how]}"),
        ("takes", "<br>".join(_listed(entry) for entry in kernel.entries)),
        ("sizes", _SIZES[kernel.entries[0].sizes]),
        ("gradients", "by the kernel's own backward, which was judged too" if settings.policy.backward else
         "PyTorch's own code runs where they are wanted (`on_missing_backward`: `fall back`, `raise`, or `recompute`)"),
        ("gain", _gain(kernel, left)),
        ("judged on", record.limit.model if record.limit else "a device that the run does not name"),
        ("precision", settings.policy.measured),
        ("checks", _checks(kernel)),
        *([("read by a person", kernel.mark)] if kernel.mark else ()),
        ("run", f"`{kernel.run_id}`, kernel {record.number(kernel.candidate.candidate_id)}, SHA-256 `{kernel.hash}`"),
        ("written by", _author(kernel)),
    ]  # fmt: skip
    yield "| | |"
    yield "|---|---|"
    yield from (f"| {name} | {text} |" for name, text in rows)
    yield ""


def _listed(entry: Entry) -> str:
    parts = [
        f"{wanted.name} {wanted.dtype}{list(wanted.shape) if wanted.is_tensor else ''}"
        for wanted in (*entry.inputs, *entry.state)
    ]
    return ", ".join(parts)


def _gain(kernel: PackagedKernel, left: str) -> str:
    timed, record = kernel.candidate.trusted, kernel.record
    if timed is None:
        return "**not timed**"
    low, high = timed.speedup_interval
    text = f"{timed.speedup:.3g}x eager PyTorch ({low:.3g} to {high:.3g}), {timed.latency_ms:.4g} ms"
    if eager_ms := relative.baseline_ms(timed.speedup, timed.latency_ms):
        text += f" beside eager's {eager_ms:.4g} ms by the pairs' median ratio"
    if high < 1:
        text = f"**slower than eager PyTorch**: {text}"
    elif low <= 1:
        text += ", **not faster beyond the noise**"
    fastest = record.baseline
    if fastest is None or fastest.result is None:
        return f"{text}; nothing but eager was timed beside it"
    over = relative.over(timed.figures, fastest.result.figures)
    slower = ", **slower than it**" if over.is_slower else ""
    return (
        f"{text}; {over.speedup:.3g}x {fastest.name} ({over.low:.3g} to {over.high:.3g}){slower}. Each was timed in a "
        f"process of its own; {left} says what is left in one program"
    )


def _checks(kernel: PackagedKernel) -> str:
    checked, proofs = kernel.candidate.checked, checks_of(kernel.record.events, kernel.candidate, kernel.record.limit)
    parts = [flags.counted(proofs) if proofs else "of a version that kept no list of them"]
    found = flags.flags(proofs)
    parts += [f"**to look at: {flag.check}.** {flag.advice.rstrip('.')}" for flag in found if flag.is_look]
    if noted := [flag.check for flag in found if not flag.is_look]:
        parts.append(f"noted: {', '.join(noted)}")
    if broken := [proof.check for proof in proofs if proof.standing is CheckOutcome.BROKEN]:
        parts.append(f"**did not hold: {', '.join(broken)}**")
    if absent := [proof.check for proof in proofs if proof.standing is CheckOutcome.ABSENT]:
        parts.append(f"not made, or no occasion for it: {', '.join(absent)}")
    rules = checked.rules if checked else kernel.record.settings.policy.rules
    if kept := tasks.kept_rules(rules, kernel.record.settings.task_source):
        parts.append(f"**{kept}**")
    return "; ".join(parts)


_AUTHORS = {
    RECORDED: "a language model, whose replies were recorded before",
    MANUAL: "whoever handed the replies in by hand, a person or a language model",
}


def _author(kernel: PackagedKernel) -> str:
    settings = kernel.record.settings
    author = _AUTHORS.get(settings.model, f"`{settings.model}`")
    how = f"{author}, method {settings.strategy}, language {settings.language}"
    return f"{how}; prompts {settings.prompts.in_words}" if settings.prompts.in_words else how


def _tail(made: MadePackage) -> Iterator[str]:
    yield "## Licence"
    yield ""
    if made.licence:
        yield made.licence
    else:
        yield f"Licence of the kernels: {NOT_STATED}. Whoever passes this package on states one (`--licence`)."
    yield "The reference modules have the licence of the program they are from."
    yield ""
