"""Commands from people: what they have set that still holds, what each has led to, and what waits for a person."""

from __future__ import annotations

from dataclasses import dataclass

from storage.index.database import Database
from storage.index.queries import fetch
from storage.index.queries.commands import CommandRow, commands, in_force
from storage.index.queries.points import GAP, PLACE, SIBLINGS
from storage.index.queries.runs import STANDING
from storage.results.vocabulary import Verdict
from storage.run.events import ApprovalAsked, Diverged, Imported, QuestionAsked
from storage.run.method_words import AS_STORED, MethodWords
from storage.run.steering.command_arguments import MANUAL, NO_CALLS, Fallback
from storage.run.steering.steering_state import SteeringState
from storage.run.steering.verbs import VERBS, CommandKind, Result, verbs_with


@dataclass(frozen=True, slots=True)
class SteeringMark:
    """Where on the curve a person steered: the depth in which a command came into force. `x` is its place on the axis
    of depths, which stays: right of all that was there before it, and of the depths that had ended. A stop governs
    nothing that comes after it: it follows at once what was there, None where there was nothing."""

    seq: int
    at: float
    step: int
    depth: int
    kind: CommandKind
    argument: str
    asked_by: str
    note: str
    x: float | None = None


def steering_state(db: Database, run_id: str) -> SteeringState:
    """What is in force now, as the engine has it; nothing for a run that is not in the index."""
    stored = fetch.of_run(db, run_id, "steering")
    return (fetch.record(SteeringState, stored[0]) if stored else None) or SteeringState()


def strategy(db: Database, run_id: str) -> str:
    """The name of a run's search method; empty for a run that is not in the index."""
    stored = fetch.of_run(db, run_id, "strategy")
    return str(stored[0]) if stored else ""


def first_model(db: Database, run_id: str) -> str:
    """The model that a run was started with; empty for a run that is not in the index."""
    stored = fetch.of_run(db, run_id, "model")
    return str(stored[0]) if stored else ""


def is_by_hand(db: Database, run_id: str) -> bool:
    """Whether a person writes a run's replies. Those of an example were written by a language model."""
    stored = fetch.of_run(db, run_id, "model", "is_example")
    return stored is not None and stored[0] == MANUAL and not stored[1]


def pending_hints(db: Database, run_id: str) -> tuple[str, ...]:
    """Hints that no prompt has carried yet, oldest first, those the engine has not read included."""
    return tuple(
        row.argument
        for row in commands(db, run_id)
        if row.kind is CommandKind.HINT and row.effective_at is None and row.refused_at is None
    )


def steering_marks(db: Database, run_id: str) -> list[SteeringMark]:
    """Commands in force, by the depth they came into force in."""
    rows = in_force(db, run_id, *CommandKind)
    asked = {
        "run": run_id,
        "seqs": [row.effective_seq for row in rows],
        "steps": [row.effective_step for row in rows],
    }
    places = fetch.tuples(db, _PLACES, asked) if rows else []
    return [
        SteeringMark(
            row.effective_seq or 0, row.effective_at or 0.0, row.effective_step or 0, depth, row.kind, row.argument,
            row.asked_by, row.note, behind if row.kind is CommandKind.STOP else place,
        )
        for row, (depth, behind, place) in zip(rows, places, strict=True)
    ]  # fmt: skip


LEAD = 0.72  # from where a depth begins on the axis to its last kernel

# Trap: the depth of the step that a command governs is known once that step has begun. Its place must not wait for it.
_PLACES = f"""
WITH asked AS (SELECT unnest($seqs::BIGINT[]) AS seq, unnest($steps::BIGINT[]) AS step),
 begun AS (SELECT step, seq, first_seq, depth FROM steps WHERE run_id = $run),
 placed AS (SELECT seq, {PLACE} + {GAP} / 2 AS x FROM kernels WHERE run_id = $run {SIBLINGS}
    UNION ALL SELECT seq, depth - 0.25 FROM steps WHERE run_id = $run AND outcome = 'patch_failed'
    UNION ALL SELECT seq, depth + 0.1 FROM depths WHERE run_id = $run AND candidate_id IS NULL),
 reached AS (SELECT seq, max(x) OVER (ORDER BY seq) AS x FROM placed),
 ended AS (SELECT seq, max(depth) OVER (ORDER BY seq) + 1 AS depth FROM depths WHERE run_id = $run)
SELECT coalesce(own.depth, before.depth, 0), reached.x,
    greatest(reached.x, greatest(first.depth, ended.depth, 0) - {LEAD})
FROM asked a
LEFT JOIN begun own ON own.step = a.step
ASOF LEFT JOIN begun before ON before.seq < a.seq
ASOF LEFT JOIN begun first ON first.first_seq < a.seq
ASOF LEFT JOIN reached ON reached.seq < a.seq
ASOF LEFT JOIN ended ON ended.seq < a.seq ORDER BY a.seq
"""


def waiting_roll_back(db: Database, run_id: str) -> str | None:
    """Id of the kernel that the run goes back to with its next step; None where none is to be gone back to, or a step
    has begun since."""
    rows = in_force(db, run_id, CommandKind.ROLL_BACK)
    sql = "SELECT count(*) FROM steps WHERE run_id = ? AND seq > ?"
    is_begun = not rows or fetch.tuples(db, sql, [run_id, rows[-1].effective_seq])[0][0]
    return None if is_begun else rows[-1].argument


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """A call that waits for a person's answer. `expects` is a key of REPLY_TAKES, or empty; `source_blob` is the kernel
    it is about, None for a first one."""

    step: int
    call: int
    role: str
    depth: int
    candidate_id: str | None
    prompt_blob: str
    expects: str
    source_blob: str | None


@dataclass(frozen=True, slots=True)
class ApprovalRow:
    """A step that waits for a yes, asked for at `at`; silence for `after_s` seconds means the fallback."""

    at: float
    step: int
    kind: str
    depth: int
    candidate_id: str | None
    number: int | None
    summary: str | None
    fallback: Fallback
    after_s: float


def open_question(db: Database, run_id: str) -> QuestionRow | None:
    """The call that waits for a person, or None."""
    stored = fetch.of_run(db, run_id, "question")
    asked = fetch.record(QuestionAsked, stored[0]) if stored else None
    if asked is None:
        return None
    sql = "SELECT source_blob FROM kernels WHERE run_id = ? AND candidate_id = ?"
    source = next((blob for (blob,) in fetch.tuples(db, sql, [run_id, asked.candidate_id])), None)
    return QuestionRow(
        asked.step, asked.call, asked.role, asked.depth, asked.candidate_id, asked.prompt_blob, asked.expects, source
    )


def open_approval(db: Database, run_id: str) -> ApprovalRow | None:
    """The step that waits for a yes, or None."""
    approval, asked_at = fetch.of_run(db, run_id, "approval", "approval_asked_at") or (None, None)
    asked = fetch.record(ApprovalAsked, approval)
    if asked is None or asked_at is None:
        return None
    sql = "SELECT number, summary FROM kernels WHERE run_id = ? AND candidate_id = ?"
    number, summary = next(iter(fetch.tuples(db, sql, [run_id, asked.candidate_id])), (None, None))
    return ApprovalRow(
        asked_at, asked.step, asked.kind, asked.depth, asked.candidate_id, number, summary, asked.fallback,
        asked.after_s,
    )  # fmt: skip


def divergences(db: Database, run_id: str) -> list[Diverged]:
    """Where a replayed run left its recording, oldest first."""
    return [entry.event for entry in fetch.events(db, run_id, Diverged)]


def imported(db: Database, run_id: str, candidate_id: str) -> Imported | None:
    """What was recorded elsewhere about a candidate, or None for one of our own."""
    return next((entry.event for entry in reversed(fetch.of_kernel(db, run_id, candidate_id, Imported))), None)


def waiting_runs(db: Database) -> list[str]:
    """Runs whose last word is that they wait for a person, left for it or not; whether their engines live is not known
    here."""
    sql = f"SELECT run_id FROM runs WHERE {STANDING} = 'waiting' ORDER BY run_id"
    return [name for (name,) in fetch.tuples(db, sql)]


@dataclass(frozen=True, slots=True)
class DepthBegun:
    """A step index began with the kernel of a command."""

    depth: int
    number: int | None
    step: int


@dataclass(frozen=True, slots=True)
class KernelMade:
    """What a person submitted is a kernel of the run."""

    number: int
    verdict: Verdict | None
    speedup: float | None


@dataclass(frozen=True, slots=True)
class CallAnswered:
    """A call was answered by another model."""

    step: int
    model: str


@dataclass(frozen=True, slots=True)
class RuleCarried:
    """The prompts of so many steps carried a rule, that of `first` before all others."""

    steps: int
    first: int


@dataclass(frozen=True, slots=True)
class ProfileAsked:
    """The first prompt that could show a profile was written."""

    step: int
    is_shown: bool


Effect = DepthBegun | KernelMade | CallAnswered | RuleCarried | ProfileAsked


def effects(db: Database, run_id: str, words: MethodWords = AS_STORED) -> dict[str, Effect]:
    """What each command led to, by command id, as far as that can be seen from what the engine did afterwards."""
    return {
        **_started_depths(db, run_id),
        **_kernels(db, run_id),
        **_calls(db, run_id),
        **_prompts(db, run_id, words),
    }


def engine_began(db: Database, run_id: str) -> float | None:
    """When the last engine took the run up, in seconds since the epoch."""
    stored = fetch.of_run(db, run_id, "engine_began_at")
    return stored[0] if stored else None


def _shown_by(db: Database, run_id: str, *results: Result) -> list[CommandRow]:
    """Commands in force of which something is to be seen in one of these."""
    return in_force(db, run_id, *verbs_with(*results))


def _started_depths(db: Database, run_id: str) -> dict[str, DepthBegun]:
    """The first depth whose calls are about the kernel of a command, a depth left out that had begun with it before."""
    sql = """SELECT first_seq, depth, step FROM steps WHERE run_id = $run AND candidate_id = $candidate
        AND NOT list_contains($without::VARCHAR[], kind) ORDER BY seq"""
    by_command = {}
    for command in _shown_by(db, run_id, Result.DEPTH):
        asked = {"run": run_id, "candidate": command.argument, "without": list(NO_CALLS)}
        begun, since = fetch.tuples(db, sql, asked), command.effective_seq or 0
        before = {depth for seq, depth, _ in begun if seq < since}
        first = next(((depth, step) for seq, depth, step in begun if seq > since and depth not in before), None)
        if first is not None:
            named = "SELECT number FROM kernels WHERE run_id = ? AND candidate_id = ?"
            number = next((n for (n,) in fetch.tuples(db, named, [run_id, command.argument])), None)
            by_command[command.command_id] = DepthBegun(first[0], number, first[1])
    return by_command


def _kernels(db: Database, run_id: str) -> dict[str, KernelMade]:
    shown = _shown_by(db, run_id, Result.KERNEL)
    sql = "SELECT step, number, verdict, speedup FROM kernels WHERE run_id = ? AND list_contains(?::BIGINT[], step)"
    by_step = {
        step: KernelMade(number, Verdict(verdict) if verdict else None, speedup)
        for step, number, verdict, speedup in fetch.tuples(
            db, sql, [run_id, [command.effective_step for command in shown]]
        )
    }
    return {
        command.command_id: by_step[command.effective_step] for command in shown if command.effective_step in by_step
    }


def _calls(db: Database, run_id: str) -> dict[str, CallAnswered]:
    sql = "SELECT step, model FROM calls WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT 1"
    return {
        command.command_id: CallAnswered(step, model)
        for command in _shown_by(db, run_id, Result.CALL)
        for step, model in fetch.tuples(db, sql, [run_id, command.effective_seq])
    }


def _prompts(db: Database, run_id: str, words: MethodWords) -> dict[str, Effect]:
    """How many prompts carried a rule, and whether the first one after a switch that can show a profile did."""
    sql = """SELECT seq, step, is_profile_exposed FROM calls WHERE run_id = $run
        AND list_contains($roles::VARCHAR[], role) ORDER BY seq"""
    lifted = {row.argument: row.effective_seq for row in reversed(in_force(db, run_id, CommandKind.LIFT))}
    by_command: dict[str, Effect] = {}
    for command in _shown_by(db, run_id, Result.PROMPTS, Result.PROFILE_IN_PROMPT):
        is_rule = VERBS[command.kind].result is Result.PROMPTS
        roles = words.roles(has_rules=True) if is_rule else words.roles(can_show_profile=True)
        since, until = command.effective_seq or 0, lifted.get(command.command_id)
        calls = fetch.tuples(db, sql, {"run": run_id, "roles": [*roles]})
        # A step counts once for a rule, at its first call after the rule.
        steps: dict[int, bool] = {}
        for seq, step, seen in calls:
            if seq > since and (until is None or seq < until):
                steps.setdefault(step, seen)
        if not steps:
            continue
        first, seen = next(iter(steps.items()))
        by_command[command.command_id] = RuleCarried(len(steps), first) if is_rule else ProfileAsked(first, seen)
    return by_command
