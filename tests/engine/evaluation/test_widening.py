"""Inputs moved by half a unit in their last place: all up, or neighbours against each other."""

from __future__ import annotations

import torch

from engine.evaluation.widening import nudged


def test_every_number_moves_by_half_a_unit_and_zero_stays() -> None:
    given = torch.tensor([1.0, -2.0, 0.0, 3.0])
    half = torch.finfo(torch.float32).eps / 2
    size = given.double().abs() * half
    assert torch.equal(nudged(given), given.double() + size)
    ways = torch.tensor([1.0, -1.0, 1.0, -1.0], dtype=torch.float64)
    assert torch.equal(nudged(given, alternately=True), given.double() + ways * size)


def test_differences_of_large_neighbours_move_only_when_they_move_against_each_other() -> None:
    row = torch.tensor([2500.25, 2499.5])
    exact = torch.softmax(row.double(), 0)
    upwards = (torch.softmax(nudged(row), 0) - exact).abs().max()
    against = (torch.softmax(nudged(row, alternately=True), 0) - exact).abs().max()
    assert float(against) > 1e-5 > 100 * float(upwards)
