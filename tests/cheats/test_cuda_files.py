"""What can be said without a GPU of the suite's files for one: what screening alone makes of them."""

from __future__ import annotations

import pytest

from engine.evaluator.checks.screening.screening import screen
from storage.results.vocabulary import Verdict
from tests.cheats import declaration
from tests.cheats.declaration import CUDA_KERNELS, CUTE_DSL_KERNELS, TRITON_KERNELS, Declaration

FILES = declaration.in_folder(CUDA_KERNELS)
TRITON = declaration.in_folder(TRITON_KERNELS)
CUTE_DSL = declaration.in_folder(CUTE_DSL_KERNELS)


@pytest.mark.parametrize(
    "declared",
    [*FILES, *TRITON, *CUTE_DSL],
    ids=lambda declared: f"{declared.path.parent.parent.name}-{declared.path.stem}",
)
def test_screening_refuses_a_file_for_a_gpu_only_where_that_is_right(declared: Declaration) -> None:
    task = declaration.task_of(declared)
    refusals = [
        found.message.lower() for found in screen(declared.source, task.policy, task.language) if found.is_refusal
    ]
    if declared.verdicts == (Verdict.REFUSED,):
        assert any(word in message for word in declared.says for message in refusals), refusals
    elif Verdict.REFUSED not in declared.verdicts:
        assert not refusals


@pytest.mark.parametrize(("files", "cheats", "honest"), [(FILES, 20, 6), (TRITON, 10, 8), (CUTE_DSL, 7, 3)])
def test_there_are_enough_files_of_both_kinds(files: list[Declaration], cheats: int, honest: int) -> None:
    assert sum(not declared.is_honest for declared in files) >= cheats
    assert sum(declared.is_honest for declared in files) >= honest
    assert all(declared.verdicts == ("passed",) for declared in files if declared.is_honest)
    assert not [declared.name for declared in files if not declared.is_honest and declared.verdicts == ("passed",)]
