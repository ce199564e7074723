"""A network under torch.compile: every kernel with the places that its operators come from."""

import torch
from torch import nn

from engine.networks import compiled
from engine.networks.entries import Workload


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.wide = nn.LayerNorm(64), nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.nn.functional.gelu(self.wide(self.norm(x)))


def test_a_fused_kernel_is_one_row_that_names_all_its_places_and_a_product_has_its_own() -> None:
    network = nn.Sequential(Block(), Block()).eval()
    seen = compiled.watched(network, Workload("call", 1.0, (torch.randn(32, 64),), {}), is_training=False)
    assert seen.note == ""
    assert len(seen.walls_ms) >= 5
    places = {kernel.places for kernel in seen.kernels}
    assert ("0.wide",) in places
    assert ("0", "1.norm") in places  # the first block's gelu and sum, and the norm after it
    ms, is_shared = compiled.touching(seen, ["1.norm"], is_exact=False)
    assert ms is not None
    assert is_shared
    assert compiled.touching(seen, ["0.wide"], is_exact=False)[1] is False
    assert compiled.touching(seen, ["nowhere"], is_exact=False) == (None, False)


def test_what_the_compiler_does_not_take_is_a_note() -> None:
    class Refused(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise ValueError(f"not for {tuple(x.shape)}")

    seen = compiled.watched(Refused(), Workload("call", 1.0, (torch.ones(2),), {}), is_training=False)
    assert seen.walls_ms == ()
    assert "torch.compile does not take it" in seen.note
