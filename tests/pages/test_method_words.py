"""A page speaks of a run in the words of its search method, wherever it counts step indexes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from pages.parts import index
from pages.parts.report.report_run import run_report
from storage.run import liveness
from tests import samples
from tests.pages.conftest import Open, everything

# What is data and not a word on screen: keys of JSON, of widgets and of a report's links.
KEYS = re.compile(r'"key\\*": \\*"depth|\\*"depth\w*\\*"\s*:|[#"]depth-\d+|\bdepths?:|"?fork_depths"?|more_depths')
DEPTH, ROUND = re.compile(r"\b[Dd]epths?\b"), re.compile(r"\b[Rr]ounds?\b")


def spoken(app: AppTest) -> str:
    """All that a page sends to the browser, less what is no word on screen."""
    return KEYS.sub("", everything(app))


@pytest.fixture
def judged(home: Path) -> str:
    folder = samples.write_run(home / "runs", "judged", depths=6, strategy="coder_judge", ending="running")
    liveness.hold(folder)
    return folder.run_id


PAGES: list[tuple[str, dict[str, str]]] = [
    ("run", {}),
    ("run", {"candidate": "c002"}),
    ("steering", {}),
    ("edit", {}),
    *[("candidate", {"candidate": name, "tab": tab}) for name in ("c002", "c003")
      for tab in ("Diff", "Errors", "Profile", "Prompts", "Trust", "Diagnosis and patch")],
]  # fmt: skip


def test_a_coder_judge_run_is_told_in_rounds(open_page: Open, judged: str) -> None:
    for page, query in PAGES:
        shown = spoken(open_page(page, run=judged, **query))
        assert [shown[max(0, m.start() - 80) : m.end() + 40] for m in DEPTH.finditer(shown)] == [], (page, query)


def test_the_run_page_and_the_report_say_round_for_the_judge_and_depth_for_cutegen(
    open_page: Open, home: Path, judged: str
) -> None:
    samples.write_run(home / "runs", "usual", depths=4)
    for name, word, other in ((judged, "round", DEPTH), ("usual", "depth", ROUND)):
        shown = spoken(open_page("run", run=name))
        for sentence in (f"## Speed-up by {word}", rf"{word} \(", rf"{word.capitalize()} \d ends with kernel"):
            assert re.search(sentence, shown), sentence
        html = KEYS.sub("", re.sub(r"<style>.*?</style>", "", run_report(index.current(), name), flags=re.DOTALL))
        assert f"<h2>{word.capitalize()} 1</h2>" in html
        assert f"A {word} is one" in html
        assert [html[max(0, m.start() - 80) : m.end() + 40] for m in other.finditer(html)] == []


def test_runs_of_several_methods_stand_together_under_a_neutral_word(open_page: Open, home: Path, judged: str) -> None:
    samples.write_run(home / "runs", "usual", depths=4)
    for page, query in (("overview", {}), ("compare", {"runs": f"{judged},usual"})):
        shown = spoken(open_page(page, **query))
        assert re.search(r'"label\\*": \\*"Step', shown)
        assert not re.search(r'"label\\*": \\*"(Depth|Round)', shown)


def test_new_run_asks_for_the_number_in_the_words_of_the_strategy(open_page: Open) -> None:
    app = open_page("new_run")
    assert "Depths" in labels(app)
    next(box for box in app.selectbox if box.label == "Strategy").select("coder_judge").run()
    assert "Rounds" in labels(app)
    assert "Depths" not in labels(app)


def labels(app: AppTest) -> list[str]:
    return [field.label for field in app.text_input]
