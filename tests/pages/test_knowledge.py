"""The Knowledge page and a technique's story: what they show of the base, and what a person may change there."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from engine.examples import example_files
from engine.learned_examples import learn_from_examples
from pages.parts import access, index, wording
from pages.parts.knowledge import (
    amendments,
    changes_table,
    evidence_table,
    exchange_panel,
    failure_rules,
    known_tables,
    learning_table,
    technique_graph,
)
from pages.parts.widgets import table
from storage.index.database import index_file, open_database
from storage.index.queries import learning
from storage.knowledge import browsing, changes, exported, failures, files, merging, seed
from storage.knowledge.browsing import EvidenceFilter
from storage.knowledge.failures import FailureRule
from storage.knowledge.figures import Tally, figures_of, tally
from storage.knowledge.merging import Prefer
from storage.knowledge.records import Evidence, FailureCase, Outcome, Revision, Transition, WeighedEdge
from storage.run import events as ev
from storage.run.events import DepthFinished
from storage.run.journal import Journal
from storage.run.settings import DepthOutcome, StepKind
from tests import sample_knowledge, samples
from tests.pages.conftest import Open, everything, protos, words
from tests.storage.test_queries_predictions import FIRST, made, tell, timed

VIEWS = ["techniques", "states", "attempts", "did not help", "failure rules", "picture", "runs", "changes"]
ATTEMPT = Evidence(
    "r1", "c001", "operator <fusion>", Outcome.FASTER, 1.75e9, state="cache_inefficient", task="softmax",
    kernel_class="reduction", device="NVIDIA H200", architecture="sm_90a", predicted_gain=1.4, gain=1.3, gain_low=1.28,
    gain_high=1.32,
)  # fmt: skip


def whole(cell: table.Cell) -> dict[str, Any]:
    assert isinstance(cell, dict)
    return cell


def part(cell: table.Cell, name: str) -> Any:
    return whole(cell)[name]


def test_every_view_stands_over_an_empty_home_with_what_is_shipped(open_page: Open) -> None:
    for view in VIEWS:
        app = open_page("knowledge", show=view)
        assert not app.exception, view
        assert "No attempt has been kept yet" in words(app), view
        assert "Many recorded replies name none" in words(app), view
        assert f"{len(seed.revision().techniques)} techniques, 0 tried" in words(app), view


def test_every_view_stands_over_many_attempts(home: Path, open_page: Open) -> None:
    sample_knowledge.write_knowledge(home, 300)
    for view in VIEWS:
        app = open_page("knowledge", show=view)
        assert not app.exception, view
        assert "300 attempts of 1 run" in words(app), view


def test_what_named_no_technique_is_told_and_not_counted(home: Path, open_page: Open) -> None:
    with open_database(index_file(home)) as db:
        tell(db, home / "runs", *FIRST, *made(3, "c002", "c001"), *timed(4, "c002", 2.0))
    assert "1 change of 1 run named no technique and is not counted" in words(open_page("knowledge"))


def test_an_attempt_names_the_kernel_that_was_changed(home: Path, open_page: Open) -> None:
    with open_database(index_file(home)) as db:
        tell(db, home / "runs", *FIRST, *made(3, "c002", "c001"), *timed(4, "c002", 2.0),
             ev.StepStarted(5, StepKind.OPTIMISE, 2, "c002"))  # fmt: skip
    unusable = replace(ATTEMPT, candidate_id="step 5", outcome=Outcome.PATCH_FAILED, gain=None)
    rows = [replace(ATTEMPT, candidate_id="c002"), unusable, replace(ATTEMPT, run_id="elsewhere")]
    files.append_evidence(rows, home / "knowledge")
    app = open_page("learning", run="r1")
    assert learning.bases(index.current(), [row.run_id for row in rows], [row.candidate_id for row in rows]) == {
        ("r1", "c002"): 1,
        ("r1", "step 5"): 2,
    }
    drawn = "".join(getattr(proto, "json", "") for proto in protos(app._tree))
    assert '"note": "kernel 1"' in drawn
    assert '"note": "kernel 2"' in drawn


def test_a_page_of_runs_tells_how_many_it_shows(home: Path, open_page: Open) -> None:
    sample_knowledge.write_knowledge(home, 60, [f"r{number}" for number in range(60)])
    assert "Showing 1–50 of 60 runs" in words(open_page("knowledge", show="runs"))


def test_the_address_says_which_techniques_are_shown(home: Path, open_page: Open) -> None:
    sample_knowledge.write_knowledge(home, 200)
    app = open_page("knowledge", in_state="memory_bank_conflicts", on_device="NVIDIA H200", order="name")
    assert "figures of all attempts in memory_bank_conflicts on NVIDIA H200" in words(app).replace("\\", "")
    assert app.selectbox(key="order").value == "name"
    app = open_page("knowledge", find_known="no such words")
    assert "No technique matches all filters" in words(app)


def test_an_attempt_says_how_it_ended_and_leads_to_its_kernel() -> None:
    shown = evidence_table.cells(ATTEMPT, {"r1": "softmax"})
    assert part(shown["run"], "link") is True
    assert part(shown["gain"], "text") == "1.30×"
    assert part(shown["gain"], "note") == "1.28 to 1.32×"
    same = evidence_table.cells(replace(ATTEMPT, outcome=Outcome.SAME), {})
    assert [part(cells["gain"], "tone") for cells in (shown, same)] == ["green", "muted"], "no difference is shown"
    stands = evidence_table.cells(replace(ATTEMPT, over_eager=4.2, over_best=2.1), {})
    assert (stands["eager"], stands["best"], shown["best"]) == ("4.20×", "2.10×", wording.NONE)
    assert evidence_table.link(ATTEMPT) == "candidate?run=r1&candidate=c001"
    wrong = replace(ATTEMPT, candidate_id="step 7", outcome=Outcome.PATCH_FAILED, error="line 3", gain=None)
    shown = evidence_table.cells(wrong, {})
    assert part(shown["outcome"], "note") == "line 3"
    assert "link" not in whole(shown["run"])
    assert evidence_table.link(wrong) == "run?run=r1"


def test_predicted_against_measured_gains_are_points_by_outcome_that_open_their_kernel(
    home: Path, open_page: Open
) -> None:
    slower = replace(ATTEMPT, candidate_id="c002", outcome=Outcome.SLOWER, gain=0.9)
    failed = replace(ATTEMPT, candidate_id="c003", outcome=Outcome.INCORRECT, gain=None)
    files.append_evidence([ATTEMPT, slower, failed], home / "knowledge")
    open_page("knowledge")
    found = browsing.predicted(files.load(), EvidenceFilter())
    faster, less = evidence_table.figure(found)["data"][2:]
    assert (faster["x"], faster["y"], less["y"]) == ([1.4], [1.3], [0.9])
    assert faster["customdata"] == ["r1\nc001\noperator <fusion>"]
    assert "<b>operator &lt;fusion&gt;</b>" in faster["text"][0]


def test_a_techniques_story_has_its_sentences_its_parts_and_every_attempt(home: Path, open_page: Open) -> None:
    samples.write_run(home / "runs", "told", depths=2)
    sample_knowledge.write_knowledge(home, 400)
    app = open_page("technique", technique="flash attention")
    assert not app.exception
    shown = words(app).replace("\\", "")
    assert "Helps attention that stores its scores." in shown
    assert "[online softmax](technique?technique=online%20softmax)" in shown
    base = files.load(home / "knowledge")
    assert f"of {len(base.attempts_of('flash attention'))} attempts, newest first" in shown
    assert {str(button.key).partition(":")[0] for button in app.button} >= {"edit", "expect", "switch"}
    assert "No technique is called **nobody**" in words(open_page("technique", technique="nobody"))


def test_a_state_has_its_sentences_its_techniques_and_every_attempt_from_it(home: Path, open_page: Open) -> None:
    sample_knowledge.write_knowledge(home, 200)
    app = open_page("kernel_state", state="discovered_memory_1")
    assert not app.exception
    shown = words(app).replace("\\", "")
    assert "Loads hit the L2 and stores write partial sectors back." in shown
    assert "[cache_inefficient](kernel_state?state=cache_inefficient), at 0.8" in shown
    assert "of 13 techniques" in shown
    app.button(key="switch_state:discovered_memory_1").click().run()
    app.text_input(key="change_by").set_value("Ada")
    app.text_input(key="change_why").set_value("the same as another")
    app.button(key="switch_yes").click().run()
    assert files.load(home / "knowledge").states["discovered_memory_1"].is_disabled
    assert "No state is called **nobody**" in words(open_page("kernel_state", state="nobody"))


def test_a_base_without_attempts_takes_over_those_of_the_shipped_examples_once(home: Path, open_page: Open) -> None:
    app = open_page("knowledge")
    app.button(key="learn_examples").click().run()
    assert not app.exception
    taken = files.load().rows
    assert len(taken) > 40
    assert {row.origin for row in taken} == {"examples"}
    assert {row.outcome for row in taken} >= {Outcome.FASTER, Outcome.SAME, Outcome.SLOWER}
    attempts = files.load().attempts
    said = words(open_page("knowledge"))
    assert f"{len(attempts)} attempts of {len({row.run_id for row in taken})} runs" in said
    assert "learn_examples" not in [button.key for button in app.button]
    (slower,) = files.load().attempts_of("double_buffered_wgmma_accumulators")
    assert "made in 2 runs, timed once" in everything(open_page("technique", technique=slower.technique))
    assert len(taken) - len(attempts) == 8, "four pairs of runs have two changes in common, whose timings are the same"
    assert learn_from_examples() == 0
    ended = {}
    for row in taken:
        written = example_files(row.run_id)["journal.jsonl"].splitlines()[-1]
        ended[row.run_id] = json.loads(written)["time"]
    assert {row.run_id: row.at for row in taken} == ended, "as old as they are, not as the click is"


def test_what_was_tried_stands_before_what_is_only_known_by_name(home: Path, open_page: Open) -> None:
    app = open_page("knowledge")
    whole = f"Not tried by any run yet: {len(seed.revision().techniques)} techniques"
    assert whole in [fold.label for fold in app.expander]
    assert "not tried" not in everything(app)
    files.append_evidence([replace(ATTEMPT, technique="TMA")], home / "knowledge")
    files.append_evidence([replace(ATTEMPT, candidate_id="c009", technique="a trick of a model")], home / "knowledge")
    app = open_page("knowledge", order="name")
    said = everything(app)
    assert said.index("technique?technique=TMA") < said.index("a trick of a model") < said.index("Not tried by any run")
    assert "not tried" not in said
    app.session_state["untried"] = True
    opened = everything(app.run())
    assert opened.index("a trick of a model") < opened.index("not tried")
    assert "technique?technique=TMA" not in opened[opened.index("Not tried by any run") :]
    assert "not tried" in everything(open_page("knowledge", find_known="split-K")), "what is asked for is shown"


def test_negative_evidence_is_a_view_of_its_own(home: Path, open_page: Open) -> None:
    slower = [replace(ATTEMPT, candidate_id=f"c{n}", technique="TMA", outcome=Outcome.SLOWER, gain=0.8) for n in "123"]
    files.append_evidence(slower, home / "knowledge")
    app = open_page("knowledge", show="did not help")
    assert "Showing 1–1 of 1 pair" in words(app)
    (row,) = browsing.negative(files.load())
    assert part(known_tables.negative_cells(row)["attempts"], "text") == "0 of 3"


def test_a_person_turns_a_technique_off_with_a_reason_and_reverts_it(home: Path, open_page: Open) -> None:
    app = open_page("technique", technique="TMA")
    app.button(key="switch:TMA").click().run()
    app.text_input(key="change_by").set_value("Ada")
    app.button(key="switch_yes").click().run()
    assert "A reason is missing" in words(app).replace("\\", "")
    app.text_input(key="change_why").set_value("slow here")
    app.button(key="switch_yes").click().run()
    base = files.load(home / "knowledge")
    change = base.revisions[-1]
    assert (change.by, change.why) == ("Ada", "slow here")
    assert base.techniques["TMA"].is_disabled
    assert "This technique is off" in words(open_page("technique", technique="TMA"))
    assert files.append_revision(changes.change("back", "Ada", reverts=change.revision_id))
    assert not files.load(home / "knowledge").techniques["TMA"].is_disabled


def test_a_technique_that_only_a_model_has_named_shows_its_attempts_and_can_be_defined(
    home: Path, open_page: Open
) -> None:
    files.append_evidence([ATTEMPT], home / "knowledge")
    assert "Named by models, not defined yet" in words(open_page("knowledge"))
    app = open_page("technique", technique=ATTEMPT.technique)
    assert not app.exception
    assert "nobody has said what it means" in words(app)
    assert "Showing 1–1 of 1 attempt" in words(app)
    app.button(key=f"define:{ATTEMPT.technique}").click().run()
    app.text_area(key="technique_about").set_value("Does it in one pass.")
    app.text_input(key="change_by").set_value("Ada")
    app.text_input(key="change_why").set_value("seen twice")
    app.button(key="technique_yes").click().run()
    assert files.load(home / "knowledge").techniques[ATTEMPT.technique].about == "Does it in one pass."


def test_a_technique_is_added_for_a_state_and_offered_there(home: Path, open_page: Open) -> None:
    app = open_page("knowledge")
    app.button(key="add_technique").click().run()
    app.text_input(key="technique_name").set_value("tensor  cores")
    app.text_area(key="technique_about").set_value("Does it twice.")
    app.multiselect(key="technique_states").set_value(["hybrid_bound"])
    app.text_input(key="change_by").set_value("Ada")
    app.text_input(key="change_why").set_value("seen in a talk")
    app.button(key="technique_yes").click().run()
    assert "There is one of this name" in words(app).replace("\\", "")
    app.text_input(key="technique_name").set_value("whole  waves")
    app.button(key="technique_yes").click().run()
    base = files.load(home / "knowledge")
    assert base.techniques["whole waves"].about == "Does it twice."
    assert "whole waves" in base.techniques_of("hybrid_bound")
    assert base.figures("whole waves", "hybrid_bound").expected_gain == pytest.approx(1.2)


def test_an_expectation_is_changed_in_one_state(home: Path, open_page: Open) -> None:
    app = open_page("technique", technique="split-K")
    app.button(key="expect:split-K").click().run()
    app.number_input(key="expected_gain:insufficient_parallelism").set_value(1.05)
    app.text_input(key="change_by").set_value("Ada")
    app.text_input(key="change_why").set_value("measured elsewhere")
    app.button(key="expectation_yes").click().run()
    base = files.load(home / "knowledge")
    assert base.known.priors["insufficient_parallelism", "split-K"].gain == pytest.approx(1.05)
    assert base.revisions[-1].techniques == ()


def test_a_change_says_what_it_did_and_whether_it_still_counts(home: Path, open_page: Open) -> None:
    sample_knowledge.write_knowledge(home, 10)
    revert = changes.change("too early", "Ada", reverts="person-1")
    files.append_revision(revert, home / "knowledge")
    open_page("knowledge")
    rows = {row.revision_id: row for row in browsing.revisions(files.load())}
    told = {name: changes_table.cells(row, browsing.revision(files.load(), name), rows.get(row.reverts))["what"]
            for name, row in rows.items()}  # fmt: skip
    assert part(told["person-1"], "text") == "Expect 1.02× of vectorised loads in memory_bandwidth_saturated"
    assert part(told["person-1"], "badges")[0]["text"] == "reverted"
    assert part(told["person-1"], "buttons") == []
    assert part(told[revert.revision_id], "text") == "Revert: No gain on H200 in five runs."
    assert part(told[revert.revision_id], "buttons")[0]["text"] == "Bring back"
    assert part(told["seed"], "text").startswith("16 states, ")


def test_a_read_only_server_offers_no_change(home: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    sample_knowledge.write_knowledge(home, 10)
    monkeypatch.setenv("TILEWRIGHT_READ_ONLY", "1")
    for page, query in (("knowledge", {}), ("kernel_state", {"state": "hybrid_bound"}),
                        ("knowledge", {"show": "states"}), ("technique", {"technique": "TMA"})):  # fmt: skip
        app = open_page(page, **query)
        assert not app.exception
        assert [button.key for button in app.button] == []
    assert not access.may_steer()
    rows = browsing.revisions(files.load())
    assert not any(part(changes_table.cells(row, None, None)["what"], "buttons") for row in rows)
    assert "read-only" in amendments.append(Revision("x", 1.0, "Ada", "why"))


def test_a_run_shows_what_it_was_told_what_it_tried_and_what_it_added(home: Path, open_page: Open) -> None:
    samples.write_run(home / "runs", "told", depths=4, knowledge="on")
    sample_knowledge.write_knowledge(home, 5)
    app = open_page("learning", run="told")
    assert not app.exception
    assert "had been offered" in words(app)
    assert "5 attempts" in words(app)
    found = learning.answers(index.current(), files.load(), "told")
    shown = learning_table.cells(found[0])
    row = replace(found[0], tried=["TMA", "a trick"], outcomes=["faster", ""], others=["TMA", "SIMD"])
    assert part(learning_table.cells(row)["tried"], "note") == (
        "offered by name alone, as known from other states: TMA; not offered: a trick"
    )
    assert part(learning_table.cells(row)["offered"], "note").endswith("; 2 more by name, known from other states")
    assert learning_table.share_offered([(row, "TMA"), (row, "a trick")]).endswith(
        "1 of 2 (50 %) had been offered, 1 of them by name alone, as known from other states."
    )
    assert part(shown["state"], "text") == "memory_bandwidth_saturated"
    assert part(shown["offered"], "note") == "rather not: double buffering"
    (run,) = learning.learning_runs(index.current(), files.load())
    assert part(learning_table.run_cells(run, {"told": "Softmax"})["run"], "text") == "Softmax"
    shown = learning_table.run_cells(replace(run, changes=1, elsewhere=2), {})
    assert (part(shown["changes"], "text"), part(shown["changes"], "note")) == ("1", "2 in another knowledge base")
    assert "Written down in another knowledge base" in words(app)  # what it taught is not in that of this home
    assert learning_table.address("a b") == "learning?run=a%20b"
    assert "There is no run" in words(open_page("learning", run="nowhere"))


def test_what_a_run_without_memory_taught_is_said_to_be_in_the_run_alone(home: Path, open_page: Open) -> None:
    folder = samples.write_run(home / "runs", "alone", depths=4, strategy="kernelblaster", knowledge="seed")
    folder.settings_file.write_text(folder.settings_file.read_text().replace('"seed"', '"off"'))
    app = open_page("learning", run="alone")
    assert not app.exception
    assert "no base holds these, and no prompt told of them" in words(app)
    (run,) = learning.learning_runs(index.current(), files.load())
    assert run.elsewhere == len(learning.taught(index.current(), "alone")) > 0
    assert part(learning_table.run_cells(run, {})["changes"], "note") == f"{run.elsewhere} in the run alone"
    assert "counts for its own questions" in learning_table.where_taught("seed", is_here=False)
    assert "in memory, a knowledge base of its own" in learning_table.where_taught("own:memory", is_here=False)


def test_what_is_exported_can_be_imported_elsewhere_and_contradictions_are_shown_side_by_side(
    home: Path, open_page: Open, tmp_path: Path
) -> None:
    sample_knowledge.write_knowledge(home, 20)
    file, other = tmp_path / "there.jsonl", tmp_path / "other"
    file.write_bytes(exchange_panel.file_text())
    assert merging.import_file(file, Prefer.THEIRS, folder=other).attempts == 20
    mine = replace(files.load().techniques["TMA"], about="Let one thread move <tiles>.")
    files.append_revision(changes.change("clearer", "Ada", techniques=[mine]))
    exported.write(file, files.load())
    files.append_revision(changes.change("other words", "Bob", techniques=[replace(mine, about="Mine.")]))
    (found,) = merging.conflicts(files.load(), exported.read(file))
    shown = exchange_panel.cells(found)
    assert part(shown["name"], "note") == "technique"
    assert (shown["mine"], shown["theirs"]) == ("about: Mine.", "about: Let one thread move <tiles>.")
    app = open_page("knowledge", show="changes")
    app.button(key="import_knowledge").click().run()
    app.file_uploader[0].upload("there.jsonl", file.read_bytes(), "application/jsonl").run()
    assert "1 thing in it differs" in words(app)
    app.segmented_control(key="import_prefer").set_value("take what the file says").run()
    app.button(key="import_yes").click().run()
    assert not app.exception
    assert files.load().techniques["TMA"].about == "Let one thread move <tiles>."


def test_a_file_that_is_no_knowledge_base_is_refused_by_name(home: Path, open_page: Open) -> None:
    app = open_page("knowledge", show="changes")
    app.button(key="import_knowledge").click().run()
    app.file_uploader[0].upload("notes.jsonl", b"hello\n", "application/jsonl").run()
    assert "notes.jsonl is no exported knowledge base" in words(app).replace("\\", "")


def test_the_picture_has_a_row_per_technique_and_an_edge_per_pair(home: Path, open_page: Open) -> None:
    files.append_evidence([replace(ATTEMPT, technique="coalesced access")], home / "knowledge")
    open_page("knowledge")
    edges = technique_graph.edges_of(files.load().reckoning())
    assert len(edges) == len(seed.revision().priors)
    (tried,) = [edge for edge in edges if edge.kind == technique_graph.FASTER]
    assert (tried.state, tried.technique) == ("cache_inefficient", "coalesced access")
    assert technique_graph.edges_of(files.load().reckoning(), is_tried_only=True) == [tried]
    lefts, rights = technique_graph.places(edges)
    assert (len(lefts), len(rights)) == (16, len(seed.revision().techniques))
    traces = {trace["name"]: trace for trace in technique_graph.figure(edges)["data"]}
    assert "1 attempt, 1 faster, mean gain 1.30×" in traces["faster"]["text"][0]
    assert {"slower", "no measurable difference", "failed only"}.isdisjoint(traces)
    assert traces["faster"]["customdata"][0] == "coalesced access"
    assert traces["technique"]["customdata"] == list(rights)


@pytest.mark.parametrize(
    ("outcomes", "kind"),
    [
        ({Outcome.SAME: 0.94}, "no measurable difference"),
        ({Outcome.SAME: 1.04, Outcome.INCORRECT: None}, "no measurable difference"),
        ({Outcome.FASTER: 1.06, Outcome.SAME: 0.9}, "faster"),
        ({Outcome.SLOWER: 0.9, Outcome.SAME: 1.04}, "slower"),
        ({Outcome.FASTER: 1.5, Outcome.SLOWER: 0.9}, "faster"),
        ({Outcome.FASTER: 1.1, Outcome.SLOWER: 0.5}, "slower"),
        ({Outcome.INCORRECT: None}, "failed only"),
    ],
)
def test_an_edge_of_the_picture_says_what_the_outcomes_of_its_attempts_say(
    outcomes: dict[Outcome, float | None], kind: str
) -> None:
    rows = [replace(ATTEMPT, outcome=outcome, gain=gain) for outcome, gain in outcomes.items()]
    edge = technique_graph.Edge("bound", "SIMD", "memory", figures_of(tally(rows), 0.0, 0.5))
    assert edge.kind == kind
    told = technique_graph.hover(edge)
    assert f"{len(outcomes)} attempt" in told
    for word, outcome in {"slower": Outcome.SLOWER, "no measurable difference": Outcome.SAME}.items():
        assert (f"1 {word}" in told) == (outcome in outcomes)


def test_the_picture_of_sequences_has_n_and_q_on_its_edges(home: Path, open_page: Open) -> None:
    first = replace(ATTEMPT, technique="coalesced access", parent_hash="a", child_hash="b", gain=1.5)
    then = replace(ATTEMPT, candidate_id="c002", technique="operator fusion", parent_hash="b", child_hash="c", gain=2.0)
    failed = replace(then, candidate_id="c003", child_hash="d", outcome=Outcome.INCORRECT, gain=None)
    files.append_evidence([first, then, failed], home / "knowledge")
    laid = Revision("r", 1.0, "run", "why", transitions=(Transition("operator fusion", "coalesced access"),))
    files.append_revision(laid, home / "knowledge")
    app = open_page("knowledge", show="picture", edges="technique to technique")
    assert not app.exception
    assert "Q adds up the logarithms" in words(app)
    known = files.load().techniques
    edges = technique_graph.edges_between(browsing.edges(files.load()), known)
    ends = {(one.state, one.technique): (one.figures.attempts, round(one.value or 0.0, 3)) for one in edges}
    assert ends == {
        ("start", "coalesced access"): (1, 0.405),
        ("coalesced access", "operator fusion"): (2, -0.307),
        ("operator fusion", "coalesced access"): (0, 0.0),
    }
    traces = technique_graph.figure(edges)["data"]
    (labels,) = [trace["text"] for trace in traces if trace["name"] == "N and Q"]
    assert labels == ["N 1 · Q +0.41", "N 2 · Q -0.31"]
    assert any("N 2 · Q -0.31" in text for trace in traces if trace["name"] == "faster" for text in trace["text"])


def test_a_picture_of_two_hundred_techniques_has_a_row_for_each_name() -> None:
    figures = figures_of(Tally(3, 2, 1, timed=3), 0, 0.5)
    edges = [
        technique_graph.Edge(f"technique {n}", f"technique {(n * step) % 200}", "memory", figures, 0.5)
        for n in range(200)
        for step in (3, 7)
    ]
    lefts, rights = technique_graph.places(edges)
    assert len(lefts) == len(rights) == 200
    for places in (lefts, rights):
        heights = sorted(places.values())
        gaps = [b - a for a, b in pairwise(heights)]
        assert min(gaps) * technique_graph.ROW_PX * 200 >= technique_graph.ROW_PX - 1e-6
    assert not [one for one in technique_graph.figure(edges)["data"] if one["name"] == "N and Q"]
    rows = [browsing.EdgeRow(f"a{n}", f"b{n}", figures_of(Tally(n), 0, 0.5), 0.5) for n in range(500)]
    shown = technique_graph.edges_between(rows, {})
    assert min(one.figures.attempts for one in shown) == 100, "of more edges than can be read those tried most"


def test_a_run_that_walked_the_graph_shows_its_walks_on_its_pages(home: Path, open_page: Open) -> None:
    folder = samples.write_run(home / "runs", "walked", depths=3, knowledge="on", strategy="graph_search")
    taken = WeighedEdge("c001", "start", "tile", 0, 0.0, 0.2, 0.2, True)
    journal = Journal(folder.journal_file)
    journal.append(DepthFinished(99, 1, DepthOutcome.ACCEPTED, "c002", "c001", False, False, "", 0.5, (taken,)))
    journal.close()
    app = open_page("learning", run="walked")
    assert not app.exception
    assert "Edges of the graph that it took" in words(app)
    shown = words(open_page("candidate", run="walked", candidate="c002", tab="Prompts and replies"))
    assert "Walk through the graph of techniques" in shown
    assert "start → tile" in shown


def test_a_failure_rule_is_shown_with_its_kernels_worded_and_turned_off(home: Path, open_page: Open) -> None:
    sample_knowledge.write_knowledge(home)
    told, faded, waiting = sorted(files.load(home / "knowledge").rules(), key=lambda one: one.status)
    assert (told.status, faded.status, waiting.status) == ("active", "faded", "waiting")
    app = open_page("knowledge", show="failure rules", rule=told.rule_id)
    assert "One stays *waiting* until 2 kernels failed so and a repair said how it mended one" in words(app)
    assert "3 failure rules" in words(app)
    assert "Showing 1–3 of 3 failure rules" in words(app)
    assert not app.exception
    assert "as the first repair that mended it says" in words(app)
    app.button(key=f"edit:{told.rule_id}").click().run()
    app.text_area(key="rule_words").set_value("B is (N, K)")
    app.text_input(key="change_by").set_value("Ada")
    app.text_input(key="change_why").set_value("shorter")
    app.button(key="rule_yes").click().run()
    app.button(key=f"switch:{told.rule_id}").click().run()
    app.text_input(key="change_by").set_value("Ada")
    app.text_input(key="change_why").set_value("no longer needed")
    app.button(key="switch_yes").click().run()
    now = changes.rule_of(files.load(home / "knowledge"), told.rule_id)
    assert now
    assert (now.words, now.status) == ("B is (N, K)", "off")


def test_the_words_of_a_failure_rule_agree_with_its_counts() -> None:
    case = FailureCase("r1", "c001", 1.0, "cute", "cpu", "expected `;` before `x", task="softmax", model="m")
    mend = replace(case, candidate_id="c002", signature="", mends=case.signature)
    silent = rule_of([case, mend])
    assert part(failure_rules.cells(silent)["failure"], "text") == "expected “;” before x"
    assert "mended by a repair that did not say how" in str(failure_rules.cells(silent)["failure"])
    assert (silent.mended, silent.waits_for) == (1, "a repair that says how it mended it")
    told = rule_of([case, replace(case, run_id="r2"), replace(mend, words="end the line before")])
    assert (told.status, told.told, told.waits_for) == ("active", 0, "")
    assert "not mended yet" in str(failure_rules.cells(rule_of([case]))["failure"])


def rule_of(cases: list[FailureCase]) -> FailureRule:
    (found,) = failures.rules(failures.tally(cases), {})
    return found


def test_a_knowledge_folder_that_is_none_leaves_what_is_shipped(home: Path, open_page: Open) -> None:
    (home / "knowledge").write_text("")
    app = open_page("knowledge")
    assert not app.exception
    assert index.known().damaged == 1
