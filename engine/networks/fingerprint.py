"""What the figures of a proof depend on, and whether one that was broken off can be gone on with. Measures nothing.

Imports no torch.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from engine.evaluator.build.host import installation
from engine.evaluator.machine import devices
from engine.evaluator.toolchains import requirements
from storage.networks import files
from storage.networks.proofs import Proof
from storage.networks.records import Network, ProofStarted

DIGESTS = ("capture", "package of kernels", "network's program")
CARD, HUGGING_FACE = "CARD.md", "hf:"


def begun(before: Proof | None, asked: ProofStarted, *, is_anew: bool) -> tuple[ProofStarted, str]:
    """The proof that is gone on with, or a new one, and why one that was broken off is not gone on with: kernels, ways,
    or what figures depend on are others."""
    if before is None:
        return replace(asked, number=1), ""
    if before.is_over or is_anew:
        return replace(asked, number=before.number + 1), ""
    if before.started == replace(asked, number=before.number):
        return before.started, ""
    return replace(asked, number=before.number + 1), _difference(before.started, asked)


def _difference(before: ProofStarted, asked: ProofStarted) -> str:
    """What parts two proofs, for people."""
    if before.kernels != asked.kernels or before.without != asked.without:
        return "other kernels were measured before"
    if before.ways != asked.ways:
        return "other ways to call the network were measured before"
    then, now = before.measured_with, asked.measured_with
    others = sorted(name for name in then.keys() | now.keys() if then.get(name) != now.get(name))
    told = [
        f"the {name} has changed" if name in DIGESTS else f"{name} was {then.get(name, 'not told')}, "
        f"it is {now.get(name, 'not told')}" for name in others
    ]  # fmt: skip
    return "; ".join(told)


def measured_with(network: Network, package: Mapping[str, str]) -> dict[str, str]:
    """What figures depend on beside kernels and ways; `package` holds texts by path. Modules that the network's file
    imports, and its checkpoint, are not looked at."""
    kernels = "".join(f"{path}\n{text}" for path, text in sorted(package.items()) if path != CARD)
    program = Path(network.folder, network.entry.rpartition(":")[0] or network.entry)
    if network.entry.startswith(HUGGING_FACE):
        program = Path(network.folder, network.entry.removeprefix(HUGGING_FACE), "config.json")
    is_on_processor = network.device == "cpu"
    usable = [] if is_on_processor else devices.usable()
    return {
        "capture": _digest(files.text_of(network).encode()),
        "package of kernels": _digest(kernels.encode()),
        "network's program": _digest(program.read_bytes()) if program.is_file() else "",
        "device": installation.processor() if is_on_processor else usable[0].name if usable else "",
        "Python": platform.python_version(),
        **{name: requirements.version(name) for name in ("torch", "triton", "transformers")},
    }


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
