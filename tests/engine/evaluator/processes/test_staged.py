"""With how much less isolation a profiler may be tried."""

from __future__ import annotations

from engine.evaluator.processes.observing import isolations_to_try
from engine.evaluator.sandbox import Isolation

FULL = Isolation(has_namespaces=True, has_own_user=True, landlock=7, has_seccomp=True, devices=("/dev/nvidia0",))


def test_walls_come_down_one_after_the_other_and_the_device_stays() -> None:
    isolations = isolations_to_try(FULL, may_weaken=True, is_for_administrators=False)
    assert isolations[0] == FULL
    assert [(one.has_namespaces, one.has_own_user, one.has_seccomp) for one in isolations[1:]] == [
        (True, False, False),
        (False,) * 3,
    ]
    assert {one.devices for one in isolations} == {FULL.devices}


def test_without_leave_no_wall_comes_down() -> None:
    assert isolations_to_try(FULL, may_weaken=False, is_for_administrators=True) == (FULL,)


def test_counters_kept_for_administrators_are_not_asked_for_as_somebody_else() -> None:
    assert FULL not in isolations_to_try(FULL, may_weaken=True, is_for_administrators=True)
    bare = Isolation()
    assert isolations_to_try(bare, may_weaken=True, is_for_administrators=True) == (bare,)
