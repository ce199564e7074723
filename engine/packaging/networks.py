"""A package of kernels for the regions of one network: `apply(network)` finds its modules by their paths."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from engine.errors import EngineError
from engine.packaging import card, folders, kernels, packing
from engine.packaging.kernels import PackagedKernel
from engine.packaging.packing import COPIED, Asked
from engine.packaging.template.package import _entries
from storage.networks.proofs import Proof
from storage.networks.records import ChosenKernel, Form, Network, Region
from storage.run.folder import RunFolder, runs_folder

OURS = COPIED | {
    "_network.py": "__init__.py", "_places.py": "_places.py", "_fused.py": "_fused.py", "_forms.py": "_forms.py",
}  # fmt: skip
OURS.pop("_package.py")


class CannotBePutBack(EngineError):
    """A region's kernel that no package can put into the network; the message is the end of a sentence."""


def name_of(network: str) -> str:
    """Of a network's package, where none is asked for."""
    return f"tilewright_{re.sub(r'[^a-z0-9]+', '_', network.lower()).strip('_')}"


def taken(region: Region, kernel: ChosenKernel, number: int) -> PackagedKernel:
    """What the package holds of one region.

    Raises:
        CannotBePutBack: its call is put together as no table says, or no package holds its kernel.
    """
    if region.form is Form.MODULE and (region.takes is None or region.gives is None):
        raise CannotBePutBack(
            f"{region.kind} is called with, or returns, an object that is no tensor, number, tuple, list or dict"
        )
    if region.form is Form.MODULE and "" in region.places:
        raise CannotBePutBack("it is the network as a whole")
    try:
        packaged = kernels.of_run(RunFolder(runs_folder() / kernel.run_id), kernel.candidate_id, number, "exact")
    except EngineError as error:
        raise CannotBePutBack(str(error)) from error
    wanted = len(region.inputs), [part.name for part in region.parameters]
    has = len(packaged.entries[0].inputs), [part.name for part in packaged.entries[0].state]
    if wanted[0] != has[0] or sorted(wanted[1]) != sorted(has[1]):
        raise CannotBePutBack("its run was made of another capture: start a run for the region as it is now")
    return packaged


def packaged(network: Network, chosen: Sequence[tuple[Region, PackagedKernel]], asked: Asked, proof: Proof | None
             ) -> dict[str, str]:  # fmt: skip
    """Every file of the network's package by its path below the folder.

    Raises:
        EngineError: the name, or an architecture, is none.
    """
    name = asked.name or name_of(network.name)
    packing.see_name(name)
    if not chosen:
        raise EngineError(f"no kernel of network {network.name} is kept, so there is nothing to package")
    made = folders.MadePackage(
        name, asked.licence, tuple(kernel for _, kernel in chosen),
        packing.architectures_of(asked, [kernel for _, kernel in chosen]), network.name,
    )  # fmt: skip
    regions, first = [], 0
    for region, kernel in chosen:
        numbers = tuple(range(first, first + len(kernel.entries)))
        first += len(kernel.entries)
        regions.append(_region(region, numbers))
    files = packing.package_files(made, OURS, regions)
    text = card.of_network(made, network, [region for region, _ in chosen], proof)
    return folders.around(files, made, asked.layout) | {"CARD.md": text}


def _region(region: Region, numbers: tuple[int, ...]) -> _entries.Region:
    if region.form is Form.FUSED:
        return _entries.Region(region.name, numbers)
    plain: Any = json.loads(json.dumps([region.takes, region.gives]))
    return replace(_entries.Region(region.name, numbers, region.places, region.kind), takes=plain[0], gives=plain[1])
