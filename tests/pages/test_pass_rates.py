from dataclasses import replace
from pathlib import Path

import pytest

from pages.parts import index
from pages.parts.pass_rates import PassRates, ranked
from storage.index import queries
from storage.index.queries import RankingRow, TryRow
from storage.run.settings import Origin
from tests.pages.conftest import Open, words
from tests.samples import write_run


def tries(*outcomes: float | None, prompts: str = "p") -> list[TryRow]:
    """Tries by speed-up, None for one that did not pass; their prompts in turn."""
    return [
        TryRow("run", step, speedup is not None, speedup, prompts[step % len(prompts)])
        for step, speedup in enumerate(outcomes)
    ]


def test_samples_with_one_prompt_give_an_estimate_from_all_of_them() -> None:
    rates = PassRates(tries(None, 2.0, None, 1.0), 0.6)
    assert rates.pass_at(1) == 0.5
    assert rates.pass_at(2) == pytest.approx(1 - 1 / 6)
    assert (rates.pass_at(4), rates.pass_at(5)) == (1.0, None)
    assert rates.perf_at_1 == 0.75
    assert rates.cost_per_pass == pytest.approx(0.3)
    assert dict(rates.figures())["Pass@2"] == "83 %"
    assert rates.sentence() == (
        "Of 4 tries from one prompt 50 % brought a correct kernel (likely 83 % within 2, 100 % within 4). On average a "
        "try brings 0.75×, a failed one counted as 0. Cost of a correct kernel: $0.30."
    )


def test_tries_that_were_told_of_each_other_say_what_happened() -> None:
    rates = PassRates(tries(None, 2.0, 3.0, prompts="abc"), None)
    assert [rates.pass_at(k) for k in (1, 2, 3)] == [0.0, 1.0, 1.0]
    assert rates.perf_at_1 == 0.0
    assert dict(rates.figures()) == {"Pass@1": "no", "Pass@2": "yes", "Perf@1": "0.00×", "Cost a pass": "unknown"}
    assert rates.sentence() == (
        "First correct kernel: try 2 of 3, 2.00× over eager PyTorch. Cost of a correct kernel: unknown."
    )
    assert PassRates(tries(None, None, prompts="ab"), 1.0).sentence() == "No correct kernel in 2 tries."
    assert PassRates(tries(None, None, prompts="ab"), 1.0, unjudged=1).sentence() == (
        "No correct kernel in 2 tries. 1 kernel has no verdict, not counted here."
    )


def test_a_kernel_in_work_when_its_run_was_stopped_is_told_beside_the_tries(home: Path, open_page: Open) -> None:
    folder = write_run(home / "runs", "r1")
    lines = folder.journal_file.read_text().splitlines()
    last = max(number for number, line in enumerate(lines) if '"kind":"CandidateCreated"' in line)
    folder.journal_file.write_text("\n".join(lines[: last + 1]) + "\n")
    said = words(open_page("run", run="r1")).replace("\\", "")
    judged = sum(kernel.verdict is not None for kernel in index.attempts("r1"))
    assert judged == len(index.attempts("r1")) - 1
    assert len(queries.tries(index.current(), ["r1"])) >= judged, "steps that brought no kernel are tries too"
    assert "1 kernel has no verdict, not counted here." in said


def test_the_first_correct_kernel_of_a_fork_is_the_one_that_it_began_with(home: Path, open_page: Open) -> None:
    write_run(home / "runs", "r1")
    open_page("run", run="r1")
    kernel = replace(index.attempts("r1")[0], number=1, origin=Origin.FORKED, speedup=261.0)
    brought = "First correct kernel: kernel 1, which came from the run it was forked from, 261× over eager PyTorch."
    rates = PassRates(tries(285.0, 301.0, prompts="ab"), None)
    assert rates.sentence(kernel).startswith(
        f"{brought} The model's own first one: try 1 of 2, 285× over eager PyTorch."
    )
    assert PassRates([], None).sentence(kernel) == brought
    assert PassRates([], None).sentence() == ""
    written = replace(kernel, origin=Origin.SYNTHESIS)
    assert rates.sentence(written) == rates.sentence()
    assert rates.sentence(replace(written, noise=0.6)).startswith("First correct kernel: try 1 of 2. "), "too vague"


def test_nothing_is_said_of_a_first_kernel_that_was_not_timed_or_of_passes_that_are_not() -> None:
    one = PassRates([TryRow("run", 1, True, None, "p")], 1.0)
    assert (one.pass_at(1), one.perf_at_1) == (1.0, None)
    assert PassRates(tries(None), 1.0).cost_per_pass is None


def test_the_reward_model_is_told_by_how_well_it_ranks_or_why_it_does_not() -> None:
    off = RankingRow(0, 2, False, 3, None, None, "3 kernels with a reward are known, 12 are needed")
    used = RankingRow(1, 2, True, 40, 0.62, 0.1, "it ranks better than the order of arrival")
    assert ranked([]) == ""
    assert (
        ranked([off]) == "Reward model: it ranked 0 of 1 draw; last: 3 kernels with a reward are known, 12 are needed"
    )
    assert "it ranked 1 of 2 draws; last: rank correlation 0.62 over 40 earlier kernels, 0.10 for" in ranked(
        [off, used]
    )
