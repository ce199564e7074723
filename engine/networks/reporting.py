"""What kernels bring in a network, as one HTML file that needs nothing else."""

from __future__ import annotations

import html

from markdown_it import MarkdownIt

from storage.networks import in_network
from storage.networks.proofs import Proof
from storage.networks.records import ELSEWHERE, Network

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1c2127;
  background: #fff; }
table { border-collapse: collapse; display: block; overflow-x: auto; margin: 1rem 0; }
th, td { text-align: left; padding: .35rem .75rem; border-bottom: 1px solid #d5d9de; }
td { font-variant-numeric: tabular-nums; }
code { background: #f0f2f4; padding: .1rem .3rem; border-radius: 3px; }
@media (prefers-color-scheme: dark) { body { color: #e3e6ea; background: #15181c; } code { background: #262b31; }
  th, td { border-color: #353b43; } }
"""


def page(network: Network, proof: Proof) -> str:
    """The file's text."""
    title = f"{network.name}: kernels in the network"
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render("\n".join(_lines(network, proof)))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>\n'
        f"<body>\n{body}</body></html>\n"
    )


def _lines(network: Network, proof: Proof) -> list[str]:
    lines = [f"# {network.name}: kernels in the network", "", f"Network `{network.entry}`, {network.mode} mode.", ""]
    lines += in_network.lines(network, proof)
    if proof.stack and proof.stack.left_out:
        lines += ["", "## Each kernel left out", "", "| region | brings to the others |", "|---|---|"]
        lines += [
            f"| {part.region} | {part.speedup:.3f}x ({part.low:.3f} to {part.high:.3f}) |"
            for part in proof.stack.left_out
        ]
    if proof.stack and proof.stack.parity:
        lines += ["", "## Are results as right as before?", ""]
        lines += [
            "| workload | output | error | of the network itself | allowed | against |",
            "|---|---|---|---|---|---|",
        ]
        lines += [
            f"| {part.workload} | {part.output} | {part.error:.2g} | {part.own_error:.2g} | {part.allowed:.2g} | "
            f"{part.exact} |"
            for part in proof.stack.parity
        ]
    lines += ["", "## Called?", "", "| region | workload | calls due | calls seen | more |", "|---|---|---|---|---|"]
    lines += [
        f"| {trial.region} | {part.workload} | {part.expected} | {part.reached} | {part.more or ''} |"
        for trial in proof.tried.values() for part in trial.engaged
    ]  # fmt: skip
    if any(part.more for trial in proof.tried.values() for part in trial.engaged):
        lines += ["", f"More: calls {ELSEWHERE}, which the kernel computes too."]
    versions = ", ".join(f"{name} {value}" for name, value in network.versions.items())
    lines += ["", "## Measure it again", "", f"Measured with {versions}.", ""]
    reproduced = "`python -m engine network reproduce FOLDER`"
    if network.is_example:
        return [*lines, f"From a shipped package, beside the network's program: {reproduced}."]
    lines += ["```", f"python -m engine network apply {network.name} --again", "```"]
    return [*lines, "", f"or, from a shipped package alone: {reproduced}."]
