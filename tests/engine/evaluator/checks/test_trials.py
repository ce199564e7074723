"""The seeds of trials are secret, and each trial has its own."""

from engine.evaluator.checks.trials import PLAN, seed_of


def test_every_trial_has_a_seed_of_its_own_that_only_the_secret_tells() -> None:
    names = {trial.seed_name for trial in PLAN}
    first, second = ({seed_of(seed, name) for name in names} for seed in (1, 2))
    assert len(first) == len(second) == len(names)
    assert not first & second
