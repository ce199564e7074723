"""What the pages say of a sweep over a kernel's tunables."""

from __future__ import annotations

from dataclasses import replace

from pages.parts.kernel.sweep_table import cells, sentence, words
from storage.index.queries import SweepRow, VariantRow
from storage.results.vocabulary import Verdict

SWEEP = SweepRow("c001", 1, "[]", 12, 2.0, 1.0, "c002", 2, "tuned: kTile 64 → 128", True, 75.0)
FAST = VariantRow(3, {"kTile": 128, "kStages": 2}, Verdict.PASSED, "", True, 3.0, 2.9, 3.1, 0.667, 9.0)
BROKEN = VariantRow(1, {"kTile": 96}, Verdict.COMPILE_ERROR, "error: no", False, None, None, None, None, 3.0)


def test_a_variant_is_told_with_its_ratio_to_the_kernel_as_it_was_written() -> None:
    assert words(FAST, SWEEP) == {
        "numbers": "kTile 128, kStages 2", "outcome": "timed fully", "latency": "0.667 ms", "speedup": "3.00×",
        "ratio": "1.50×", "seconds": "9.0 s",
    }  # fmt: skip
    failed = cells(BROKEN, SWEEP)["outcome"]
    assert isinstance(failed, dict)
    assert (failed["text"], failed["title"]) == ("does not compile", "error: no")


def test_what_a_sweep_came_to_is_one_sentence() -> None:
    assert sentence(SWEEP, 12).endswith("without a model call; the fastest is kernel 2, tuned: kTile 64 → 128.")
    nothing = SweepRow("c001", 1, "[]", 12, 2.0, 1.0, None, None, None, True, 75.0)
    assert sentence(nothing, 12).endswith("none is faster by more than the noise.")
    failed = replace(nothing, failed_again="off by two.")
    assert sentence(failed, 12).endswith("as written it failed when timed again (off by two), so none was taken.")
