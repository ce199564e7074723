"""Commands from people: what they have set that still holds, what each has led to, and what waits for a person."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from storage.index.database import Database
from storage.index.queries import fetch
from storage.index.queries.listing import STANDING
from storage.results.vocabulary import FAILED, Verdict
from storage.run.method_words import AS_STORED, MethodWords
from storage.run.settings import Switch
from storage.run.steering.command_arguments import MANUAL, NO_CALLS, Fallback
from storage.run.steering.steering_state import SteeringState
from storage.run.steering.verbs import VERBS, Command, CommandKind, Result, verbs_with


@dataclass(frozen=True, slots=True)
class CommandRow:
    """One command. Times are seconds since the epoch, None for what has not happened.

    `effective_step` is the first step it governs; `note` says what it changed or, when refused, why.
    """

    command_id: str
    kind: CommandKind
    argument: str
    asked_by: str
    asked_at: float
    acknowledged_at: float | None
    effective_at: float | None
    refused_at: float | None
    effective_step: int | None
    note: str


@dataclass(frozen=True, slots=True)
class SteeringMark:
    """Where on the curve a person steered: the depth in which a command came into force."""

    seq: int
    at: float
    step: int
    depth: int
    kind: CommandKind
    argument: str
    asked_by: str
    note: str


def commands(db: Database, run_id: str) -> list[CommandRow]:
    """Every command ever sent to a run, oldest first, those the engine has not read included."""
    sql = """SELECT command_id, kind, argument, asked_by, asked_at, acknowledged_at, effective_at, refused_at,
        effective_step, note FROM steering WHERE run_id = ? AND kind IS NOT NULL ORDER BY asked_at, command_id"""
    return fetch.rows(db, CommandRow, sql, [run_id])


def steering_state(db: Database, run_id: str) -> SteeringState:
    """What is in force now, as the engine has it; nothing for a run that is not in the index."""
    sql = """
    WITH held AS (SELECT * FROM steering WHERE run_id = $run AND effective_seq IS NOT NULL AND kind IS NOT NULL)
    SELECT effective_seq AS seq, 'command' AS what, command_id AS name, kind, argument, 0 AS depth FROM held
    UNION ALL SELECT seq, phase, candidate_id, kind, '', depth FROM steps WHERE run_id = $run AND (phase = 'resumed'
        OR (phase = 'started' AND candidate_id IN (SELECT trim(argument) FROM held WHERE kind = 'set_base')))
    UNION ALL SELECT seq, 'answered', model, '', '', depth FROM model_calls WHERE run_id = $run AND model = $manual
    ORDER BY seq"""
    start = fetch.tuples(db, "SELECT collect FROM runs WHERE run_id = ?", [run_id])
    state = SteeringState(collect=Switch(start[0][0]) if start else Switch.AUTO)
    for _, what, name, kind, argument, depth in fetch.tuples(db, sql, {"run": run_id, "manual": MANUAL}):
        match what:
            case "command":
                state = state.after(Command(name, CommandKind(kind), argument, "", 0.0))
            case "started":
                state = state.after_step(kind, depth, name)
            case "resumed":
                state = state.after_engine()
            case "answered":
                state = state.after_reply(name)
    return state


def strategy(db: Database, run_id: str) -> str:
    """The name of a run's search method; empty for a run that is not in the index."""
    found = fetch.tuples(db, "SELECT strategy FROM runs WHERE run_id = ?", [run_id])
    return str(found[0][0]) if found else ""


def pending_hints(db: Database, run_id: str) -> tuple[str, ...]:
    """Hints that no prompt has carried yet, oldest first, those the engine has not read included."""
    sql = """SELECT argument FROM steering WHERE run_id = ? AND kind = 'hint' AND effective_at IS NULL
        AND refused_at IS NULL ORDER BY asked_at, command_id"""
    return tuple(text for (text,) in fetch.tuples(db, sql, [run_id]))


def steering_marks(db: Database, run_id: str) -> list[SteeringMark]:
    """Commands in force, by the depth they came into force in."""
    sql = """
    WITH begun AS (SELECT seq, step, depth FROM steps WHERE run_id = $run AND phase = 'started'),
        entered AS (SELECT step, max(depth) AS depth FROM begun GROUP BY step),
        asked AS (SELECT * FROM steering WHERE run_id = $run AND effective_seq IS NOT NULL AND kind IS NOT NULL)
    SELECT a.effective_seq AS seq, a.effective_at AS at, a.effective_step AS step,
        coalesce(own.depth, before.depth, 0) AS depth, a.kind, a.argument, a.asked_by, a.note
    FROM asked a LEFT JOIN entered own ON own.step = a.effective_step
    ASOF LEFT JOIN begun before ON before.seq < a.effective_seq ORDER BY a.effective_seq"""
    return fetch.rows(db, SteeringMark, sql, {"run": run_id})


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


@dataclass(frozen=True, slots=True)
class DivergenceRow:
    """A replayed run left the path of its recording; `is_bridged` says that a reply could be found all the same."""

    seq: int
    step: int
    role: str
    candidate_id: str | None
    is_bridged: bool
    reason: str


@dataclass(frozen=True, slots=True)
class ImportRow:
    """What another system recorded about a candidate: its words and milliseconds, never mixed with ours."""

    candidate_id: str
    file: str
    status: str
    latency_ms: float | None
    baseline_latency_ms: float | None
    message: str


def open_question(db: Database, run_id: str) -> QuestionRow | None:
    """The call that waits for a person, or None."""
    if not fetch.has_rows(db, "questions", run_id):
        return None
    sql = """SELECT q.step, q.call, q.role, q.depth, q.candidate_id, q.prompt_blob, coalesce(q.expects, '') AS expects,
        c.source_blob FROM (SELECT * FROM questions w WHERE run_id = $run
            AND seq > coalesce((SELECT max(seq) FROM steps WHERE run_id = $run AND phase = 'finished'), 0)
            AND NOT EXISTS (SELECT 1 FROM model_calls m WHERE m.run_id = $run AND m.seq > w.seq AND m.step = w.step)
            ORDER BY seq DESC LIMIT 1) q
    LEFT JOIN candidates c ON c.run_id = q.run_id AND c.candidate_id = q.candidate_id"""
    return fetch.one(db, QuestionRow, sql, {"run": run_id})


def open_approval(db: Database, run_id: str) -> ApprovalRow | None:
    """The step that waits for a yes, or None."""
    if not fetch.has_rows(db, "leaves", run_id):
        return None
    sql = """WITH since AS (SELECT max(seq) AS seq FROM (
        SELECT seq FROM states WHERE run_id = $run AND state <> 'waiting'
        UNION ALL SELECT seq FROM steps WHERE run_id = $run AND phase <> 'resumed'
        UNION ALL SELECT seq FROM leaves WHERE run_id = $run AND kind IS NULL
        UNION ALL SELECT effective_seq FROM steering WHERE run_id = $run AND kind IN ('approve', 'skip')))
    SELECT l.time AS at, l.step, l.kind, l.depth, l.candidate_id, a.number, a.summary, l.fallback, l.after_s
    FROM (SELECT * FROM leaves WHERE run_id = $run AND kind IS NOT NULL ORDER BY seq DESC LIMIT 1) l
    LEFT JOIN (SELECT candidate_id, number, summary FROM numbered WHERE run_id = $run) a
        ON a.candidate_id = l.candidate_id
    WHERE l.seq > coalesce((SELECT seq FROM since), 0)"""
    return fetch.one(db, ApprovalRow, sql, {"run": run_id})


def divergences(db: Database, run_id: str) -> list[DivergenceRow]:
    """Where a replayed run left its recording, oldest first."""
    sql = "SELECT seq, step, role, candidate_id, is_bridged, reason FROM divergences WHERE run_id = ? ORDER BY seq"
    return fetch.rows(db, DivergenceRow, sql, [run_id])


def imported(db: Database, run_id: str, candidate_id: str) -> ImportRow | None:
    """What was recorded elsewhere about a candidate, or None for one of our own."""
    sql = """SELECT candidate_id, file, status, latency_ms, baseline_latency_ms, message FROM imports
        WHERE run_id = ? AND candidate_id = ? ORDER BY seq DESC LIMIT 1"""
    return fetch.one(db, ImportRow, sql, [run_id, candidate_id])


def waiting_runs(db: Database) -> list[str]:
    """Runs whose last word is that they wait for a person, left for it or not; whether their engines live is not known
    here."""
    sql = f"SELECT run_id FROM {STANDING} WHERE state = 'waiting' ORDER BY run_id"
    return [name for (name,) in fetch.tuples(db, sql)]


def effects(db: Database, run_id: str, words: MethodWords = AS_STORED) -> dict[str, str]:
    """What each command led to, by command id, as far as that can be seen from what the engine did afterwards."""
    return {
        **_started_depths(db, run_id, words),
        **_kernels(db, run_id),
        **_calls(db, run_id),
        **_prompts(db, run_id, words),
    }


def engine_began(db: Database, run_id: str) -> float | None:
    """When the last engine took the run up, in seconds since the epoch."""
    sql = "SELECT max(time) FROM steps WHERE run_id = ? AND phase = 'resumed'"
    found: float | None = fetch.tuples(db, sql, [run_id])[0][0]
    return found


def _is(*results: Result) -> str:
    """True of a command `s` that is to be seen in one of these."""
    return f"s.kind IN ({_listed(verbs_with(*results))})"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


_IN_FORCE = "SELECT * FROM steering WHERE run_id = $run AND effective_seq IS NOT NULL"


def _started_depths(db: Database, run_id: str, words: MethodWords) -> dict[str, str]:
    """The first depth whose calls are about the kernel of a command, a depth left out that had begun with it before."""
    begun = f"phase = 'started' AND kind NOT IN ({_listed(NO_CALLS)})"
    sql = f"""SELECT s.command_id, arg_min(m.depth, m.seq), arg_min(m.step, m.seq),
        (SELECT min(c.number) FROM numbered c WHERE c.run_id = $run AND c.candidate_id = s.argument)
        FROM ({_IN_FORCE}) s JOIN (SELECT * FROM steps WHERE run_id = $run AND {begun}) m
            ON m.candidate_id = s.argument AND m.seq > s.effective_seq
        WHERE {_is(Result.DEPTH)} AND NOT EXISTS (SELECT 1 FROM steps p WHERE p.run_id = $run AND {begun}
            AND p.candidate_id = s.argument AND p.depth = m.depth AND p.seq < s.effective_seq)
        GROUP BY s.command_id, s.argument"""
    return {
        name: f"{words.distinct} {depth} started from kernel {number} at step {step}"
        for name, depth, step, number in fetch.tuples(db, sql, {"run": run_id})
    }


_BECAME = {Verdict.PASSED: "correct", **FAILED}


def _kernels(db: Database, run_id: str) -> dict[str, str]:
    sql = f"""SELECT s.command_id, a.number, a.verdict, a.speedup FROM ({_IN_FORCE}) s
        JOIN (SELECT * FROM attempts WHERE run_id = $run) a ON a.step = s.effective_step WHERE {_is(Result.KERNEL)}"""
    return {
        name: f"it is kernel {number}: {_BECAME[Verdict(verdict)] if verdict else 'not judged yet'}"
        + (f", {speedup:.2f}× over eager" if speedup else "")
        for name, number, verdict, speedup in fetch.tuples(db, sql, {"run": run_id})
    }


def _calls(db: Database, run_id: str) -> dict[str, str]:
    sql = f"""SELECT s.command_id, m.step, m.model FROM ({_IN_FORCE}) s
        ASOF JOIN (SELECT seq, step, model FROM model_calls WHERE run_id = $run) m ON s.effective_seq < m.seq
        WHERE {_is(Result.CALL)}"""
    return {
        name: f"step {step} was answered by {model}"
        for name, step, model in fetch.tuples(db, sql, {"run": run_id})
    }  # fmt: skip


def _prompts(db: Database, run_id: str, words: MethodWords) -> dict[str, str]:
    """How many prompts carried a rule, and whether the first one after a switch that can show a profile did."""
    roles = {
        "with_rules": [*words.roles(has_rules=True)], "with_profile": [*words.roles(can_show_profile=True)],
    }  # fmt: skip
    # A step counts once for a rule, at its first call after the rule: the one whose predecessor came before.
    sql = f"""WITH calls AS (SELECT *, lag(seq, 1, 0) OVER (PARTITION BY is_told, step ORDER BY seq) AS before FROM (
            SELECT seq, step, is_profile_exposed, TRUE AS is_told FROM model_calls
            WHERE run_id = $run AND list_contains($with_rules::VARCHAR[], role)
            UNION ALL SELECT seq, step, is_profile_exposed, FALSE FROM model_calls
            WHERE run_id = $run AND list_contains($with_profile::VARCHAR[], role))),
         lifted AS (SELECT argument, min(effective_seq) AS seq FROM steering WHERE run_id = $run AND kind = 'lift'
            GROUP BY argument)
        SELECT s.command_id, s.kind, arg_min(m.step, m.seq), count(*), arg_min(m.is_profile_exposed, m.seq)
        FROM (SELECT *, {_is(Result.PROMPTS)} AS is_told FROM ({_IN_FORCE}) s) s
        LEFT JOIN lifted l ON l.argument = s.command_id
        JOIN calls m ON m.is_told = s.is_told AND m.seq > s.effective_seq AND m.before <= s.effective_seq
            AND m.seq < coalesce(l.seq, 9e15)
        WHERE {_is(Result.PROMPTS, Result.PROFILE_IN_PROMPT)} GROUP BY s.command_id, s.kind"""
    return {
        name: f"the prompt of step {step} showed {'a' if seen else 'no'} profile"
        if VERBS[kind].result is Result.PROFILE_IN_PROMPT
        else f"in the prompts of {steps} {'step' if steps == 1 else 'steps'}, first of step {step}"
        for name, kind, step, steps, seen in fetch.tuples(db, sql, {"run": run_id, **roles})
    }  # fmt: skip
