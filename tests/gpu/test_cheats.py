"""Every file of the suite for a GPU gets the verdict it declares, for the reason it declares, on a real GPU."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from tests.cheats import declaration, running
from tests.cheats.declaration import CUDA_KERNELS, CUTE_DSL_KERNELS, TRITON_KERNELS, Declaration
from tests.cheats.running import Mode

pytestmark = pytest.mark.gpu

FILES = [*declaration.in_folder(CUDA_KERNELS), *declaration.in_folder(TRITON_KERNELS)]
if importlib.util.find_spec("cutlass"):  # optional: requirements-cute-dsl.txt
    FILES += declaration.in_folder(CUTE_DSL_KERNELS)
HONEST_ONCE = next(declared for declared in FILES if declared.path.stem == "in_place_passes")
# Screening refuses the others before they run; these show what is left to the checks on the device.
UNSCREENED = (
    "cuda-graph_captured_in_cpp",
    "cuda-side_stream",
    "cuda-host_function",
    "cuda-late_copy",
    "cuda-cache_by_address",
    "cuda-events_patched",
    "triton-side_stream",
    "triton-benchmarks_inputs",
    "triton-cached_output",
    "triton-library_call",
)


def by_name(declared: Declaration) -> str:
    return f"{declared.path.parts[-3]}-{declared.path.stem}"


@pytest.mark.parametrize("declared", FILES, ids=by_name)
def test_a_file_gets_its_verdict(gpu: Any, scratch: Path, declared: Declaration) -> None:
    outcome = running.run(gpu, scratch, declared, Mode.WHOLE)
    assert running.complaints(declared, outcome, Mode.WHOLE) == []


@pytest.mark.parametrize("declared", [one for one in FILES if by_name(one) in UNSCREENED], ids=by_name)
def test_a_cheat_is_caught_without_screening_and_the_device_works_on(
    gpu: Any, scratch: Path, declared: Declaration
) -> None:
    outcome = running.run(gpu, scratch, declared, Mode.DYNAMIC)
    assert outcome.verdict in declared.without, outcome.message  # other checks see it, in words of their own
    assert outcome.left == ()
    after = running.run(gpu, scratch, HONEST_ONCE, Mode.DYNAMIC)
    assert running.complaints(HONEST_ONCE, after, Mode.DYNAMIC) == []
