"""Every kernel file of the suite gets the verdict it declares, for the reason it declares, and leaves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.toolchains.cpu import CpuToolchain
from tests.cheats import declaration, running
from tests.cheats.declaration import KERNELS, Declaration
from tests.cheats.running import Mode

FILES = declaration.in_folder(KERNELS)
HONEST = [one for one in FILES if one.is_honest]
CHEATS = [one for one in FILES if not one.is_honest]


def by_name(declared: Declaration) -> str:
    return declared.path.stem


@pytest.mark.parametrize("declared", HONEST, ids=by_name)
def test_an_honest_kernel_passes_and_is_timed(evaluator: CpuToolchain, scratch: Path, declared: Declaration) -> None:
    outcome = running.run(evaluator, scratch, declared, Mode.WHOLE)
    assert running.complaints(declared, outcome, Mode.WHOLE) == []
    assert outcome.speedup is not None


@pytest.mark.parametrize("declared", CHEATS, ids=by_name)
def test_a_cheat_gets_its_verdict(evaluator: CpuToolchain, scratch: Path, declared: Declaration) -> None:
    if declared.needs_walls and not running.walls_hold():
        pytest.skip("does harm where the sandbox does not hold")
    outcome = running.run(evaluator, scratch, declared, Mode.WHOLE)
    assert running.complaints(declared, outcome, Mode.WHOLE) == []


def test_there_are_enough_of_both_kinds() -> None:
    assert len(CHEATS) >= 32
    assert len(HONEST) >= 16
    assert all(one.verdicts == ("passed",) for one in HONEST)
    assert not [one.name for one in CHEATS if one.verdicts == ("passed",)]
