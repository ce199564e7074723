"""Every question a page can ask about a run, and the sentences that it makes of the answers."""

from __future__ import annotations

from typing import Any

from pages.parts.run import feed_sentences
from storage.index import queries
from storage.index.database import Database

OF_A_RUN = (
    "run", "attempts", "depths", "steps", "current_step", "feed", "commands", "steering_state", "pending_hints",
    "steering_marks", "model_calls", "limit", "states", "problems",
    "events", "version", "outcome_counts", "baseline", "baselines", "points", "failures", "unapplied", "depth_spread",
    "rises", "exposures", "error_groups", "count_error_groups", "family", "roll_backs", "last_seq",
    "open_question", "open_approval", "divergences", "last_prompt",
)  # fmt: skip
OF_A_CANDIDATE = (
    "candidate", "evaluation", "timing_samples", "correctness_errors", "metrics", "metric_changes", "profile",
    "diagnoses", "patches", "model_calls", "profiled_ancestor",
    "check_records", "imported", "neighbours", "timelines",
)  # fmt: skip


def ask_everything(db: Database, run_id: str) -> dict[str, Any]:
    """Answers by name; those about candidates by name and id."""
    answers = {name: getattr(queries, name)(db, run_id) for name in OF_A_RUN}
    answers["sentences"] = feed_sentences.items(db, run_id)
    for attempt in [*answers["attempts"][-2:], None]:
        candidate_id = attempt.candidate_id if attempt else "no-such-candidate"
        answers |= {f"{n} {candidate_id}": getattr(queries, n)(db, run_id, candidate_id) for n in OF_A_CANDIDATE}
    return answers
