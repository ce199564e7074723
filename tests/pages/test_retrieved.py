"""What the knowledge base had answered, on the page of a kernel."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pages.parts.kernel import retrieved, walk
from storage.index.queries import RetrievalRow, WeighedRow
from storage.knowledge.records import Advised, Category
from storage.run.method_words import AS_STORED, MethodWords
from tests import samples
from tests.pages.conftest import Open, words

ASKED = RetrievalRow(3, 1, "cache_inefficient", "memory", 0.9, ["a tail"], "by rule", "mark", "SIMD", 2, 1)
FOUND = Advised("SIMD", Category.COMPUTE, "It.", "Helps.", "Hurts.", 1.25, 0.5, 4, 1, 2, 1, True, "hybrid_bound")


def test_the_state_is_told_with_what_decided_it() -> None:
    known = "State of kernel 1: cache inefficient (confidence 0.90; by rule); also a tail."
    assert retrieved.state(ASKED) == known
    unknown = replace(ASKED, state="", why="the kernel has no profile")
    assert retrieved.state(unknown).startswith("The state of kernel 1 is not known: the kernel has no profile")


def test_whether_it_was_followed_is_told() -> None:
    def told(**changes: Any) -> str:
        return retrieved.followed(replace(ASKED, **changes), AS_STORED)

    assert told() == "Followed: this kernel's technique, SIMD, is number 2 of what was found."
    assert told(followed=None).startswith("Not followed: this kernel's technique, SIMD,")
    assert told(technique="") == "Which technique this kernel uses was not named."
    assert told(techniques=0) == "No technique was found for it."


def test_what_a_prompt_named_as_known_from_other_states_was_followed_by_name() -> None:
    named, naming = replace(ASKED, followed=None, is_other=True), MethodWords(names_others=True)
    assert retrieved.followed(named, naming) == (
        "Followed by name: the prompt named this kernel's technique, SIMD, as known from other states, without its "
        "figures."
    )
    assert retrieved.followed(named, AS_STORED).startswith("Not followed: "), "no prompt of this method names them"
    unasked = retrieved.followed(replace(ASKED, mark="", techniques=0, followed=None), naming)
    assert unasked.endswith("the knowledge base was not asked.")


def test_a_technique_is_a_row_with_its_counts() -> None:
    cells = retrieved.cells(FOUND, is_followed=True)
    assert (cells["expected"], cells["confidence"], cells["attempts"]) == ("1.25×", "0.50", "4")
    assert cells["outcome"] == "1 / 2 / 1"
    named = cells["technique"]
    assert isinstance(named, dict)
    assert named["note"] == "went wrong more often than not; expected as in hybrid bound"
    assert [one["text"] for one in named["badges"]] == ["followed"]
    assert retrieved.cells(replace(FOUND, attempts=0), is_followed=False)["outcome"] == "–"


def test_the_prompts_tab_shows_what_was_found_where_the_base_was_asked(home: Path, open_page: Open) -> None:
    samples.write_run(home / "runs", "asking", depths=4, knowledge="on")
    samples.write_run(home / "runs", "alone", depths=4)
    said = words(open_page("candidate", run="asking", candidate="c002", tab="Prompts and replies"))
    assert "From the knowledge base" in said
    assert "pass B as (N, K) (4 kernels of 2 runs)" in said.replace("\\", "")
    assert "Tools that the model called before it sent this kernel" in said
    assert "Followed: this kernel's technique, vectorise loads, is number 1 of what was found." in said.replace(
        "\\", ""
    )
    opened = open_page("candidate", run="asking", candidate="c002", tab="Prompts and replies")
    opened.session_state["retrieved:open"] = True
    opened.run()
    assert not opened.exception
    assert "As the base stood then (evidence:10)." in words(opened).replace("\\", "")
    assert "From the knowledge base" not in words(
        open_page("candidate", run="alone", candidate="c002", tab="Prompts and replies")
    )


def test_a_walk_is_told_by_its_edges_with_n_q_and_prior() -> None:
    taken = WeighedRow(0, 1, "start", "tile", 2, 0.75, 0.2, 0.9, True)
    left = WeighedRow(1, 1, "start", "fuse", 0, 0.0, 0.1, 0.1, False)
    end = WeighedRow(2, 2, "tile", "unroll", 0, 0.0, -0.1, -0.1, True)
    assert walk.sentence([taken, left, end]) == "start → tile → unroll"
    shown = walk.cells(taken)
    assert [shown[name] for name in ("kernel", "visits", "value", "prior", "score")] == [
        "Kernel 1", "2", "+0.75", "+0.20", "+0.90",
    ]  # fmt: skip
    assert walk.cells(left)["value"] == "–", "nothing has come back yet"
