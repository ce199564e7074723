"""What people have set in a run and still holds: base kernels, rules, the model; and what each command has led to."""

from __future__ import annotations

from dataclasses import dataclass

from storage.command_arguments import ModelChoice
from storage.database import Database
from storage.queries import fetch
from storage.records import CommandKind, Verdict
from storage.verbs import RULES, Rule


@dataclass(frozen=True, slots=True)
class OrdersRow:
    """`next_base` and `pinned` are candidate ids; `model` is the one asked for by a person, None for the run's own."""

    next_base: str | None = None
    pinned: str | None = None
    rules: tuple[Rule, ...] = ()
    model: str | None = None


def orders(db: Database, run_id: str) -> OrdersRow:
    """What is in force now; nothing for a run that is not in the index."""
    sql = """SELECT command_id, kind, argument, effective_seq FROM steering WHERE run_id = ?
        AND effective_seq IS NOT NULL AND kind IN
        ('roll_back', 'set_base', 'pin', 'unpin', 'ban', 'require', 'lift', 'set_model') ORDER BY effective_seq"""
    base, pinned, model, rules = None, None, None, list[Rule]()
    for command_id, kind, argument, seq in fetch.tuples(db, sql, [run_id]):
        match CommandKind(kind):
            case CommandKind.SET_BASE:
                base = (argument, seq)
            case CommandKind.PIN | CommandKind.UNPIN | CommandKind.ROLL_BACK:
                base, pinned = None, argument if kind == CommandKind.PIN else None
            case CommandKind.SET_MODEL:
                model = ModelChoice.parse(argument).model
            case CommandKind.LIFT:
                words = " ".join(argument.split())
                rules = [rule for rule in rules if words not in (rule.command_id, rule.text)]
            case verb if verb in RULES:
                rules.append(Rule(command_id, verb, " ".join(argument.split())))
    waits = base and not _has_started(db, run_id, *base)
    return OrdersRow(base[0] if base and waits else None, pinned, tuple(rules), model)


def _has_started(db: Database, run_id: str, candidate_id: str, after_seq: int) -> bool:
    sql = """SELECT count(*) FROM steps WHERE run_id = ? AND phase = 'started' AND kind = 'optimise'
        AND candidate_id = ? AND seq > ?"""
    return bool(fetch.tuples(db, sql, [run_id, candidate_id, after_seq])[0][0])


def effects(db: Database, run_id: str) -> dict[str, str]:
    """What each command led to, by command id, as far as that can be seen from what the engine did afterwards."""
    return {**_started_depths(db, run_id), **_kernels(db, run_id), **_calls(db, run_id), **_prompts(db, run_id)}


def engine_began(db: Database, run_id: str) -> float | None:
    """When the last engine took the run up, in seconds since the epoch."""
    sql = "SELECT max(time) FROM steps WHERE run_id = ? AND phase = 'resumed'"
    found: float | None = fetch.tuples(db, sql, [run_id])[0][0]
    return found


_IN_FORCE = "SELECT * FROM steering WHERE run_id = $run AND effective_seq IS NOT NULL"


def _started_depths(db: Database, run_id: str) -> dict[str, str]:
    sql = f"""SELECT s.command_id, arg_min(m.depth, m.seq), arg_min(m.step, m.seq),
        (SELECT min(c.number) FROM numbered c WHERE c.run_id = $run AND c.candidate_id = s.argument)
        FROM ({_IN_FORCE}) s JOIN steps m ON m.run_id = $run AND m.phase = 'started' AND m.kind = 'optimise'
            AND m.candidate_id = s.argument AND m.seq > s.effective_seq
        WHERE s.kind IN ('roll_back', 'set_base', 'pin') GROUP BY s.command_id, s.argument"""
    return {
        name: f"depth {depth} started from kernel {number} at step {step}"
        for name, depth, step, number in fetch.tuples(db, sql, {"run": run_id})
    }


_BECAME = {
    Verdict.PASSED: "correct",
    Verdict.COMPILE_ERROR: "does not compile",
    Verdict.INCORRECT: "gives wrong results",
    Verdict.RUNTIME_ERROR: "crashed",
    Verdict.TIMEOUT: "took too long",
    Verdict.OUT_OF_MEMORY: "ran out of memory",
    Verdict.REFUSED: "was refused",
}


def _kernels(db: Database, run_id: str) -> dict[str, str]:
    sql = f"""SELECT s.command_id, a.number, a.verdict, a.speedup FROM ({_IN_FORCE}) s
        JOIN (SELECT * FROM attempts WHERE run_id = $run) a ON a.step = s.effective_step WHERE s.kind = 'submit'"""
    return {
        name: f"it is kernel {number}: {_BECAME[Verdict(verdict)] if verdict else 'not judged yet'}"
        + (f", {speedup:.2f}× over eager" if speedup else "")
        for name, number, verdict, speedup in fetch.tuples(db, sql, {"run": run_id})
    }


def _calls(db: Database, run_id: str) -> dict[str, str]:
    sql = f"""SELECT s.command_id, arg_min(m.step, m.seq), arg_min(m.model, m.seq) FROM ({_IN_FORCE}) s
        JOIN model_calls m ON m.run_id = $run AND m.seq > s.effective_seq
        WHERE s.kind IN ('retry', 'set_model') GROUP BY s.command_id"""
    return {
        name: f"step {step} was answered by {model}"
        for name, step, model in fetch.tuples(db, sql, {"run": run_id})
    }  # fmt: skip


def _prompts(db: Database, run_id: str) -> dict[str, str]:
    """How many writing steps carried a rule, and whether the first optimisation after a switch saw a profile."""
    sql = f"""SELECT s.command_id, s.kind, arg_min(m.step, m.seq), count(DISTINCT m.step),
            arg_min(m.is_profile_exposed, m.seq) FROM ({_IN_FORCE}) s
        JOIN model_calls m ON m.run_id = $run AND m.seq > s.effective_seq
            AND (m.role = 'optimise' OR (s.kind <> 'expose' AND m.role IN ('repair', 'synthesise')))
        LEFT JOIN steering l ON l.run_id = $run AND l.kind = 'lift' AND l.argument = s.command_id
        WHERE s.kind IN ('ban', 'require', 'expose') AND m.seq < coalesce(l.effective_seq, 9e15)
        GROUP BY s.command_id, s.kind"""
    return {
        name: f"the prompt of step {step} showed {'a' if seen else 'no'} profile" if kind == "expose"
        else f"in the prompts of {steps} {'step' if steps == 1 else 'steps'}, first of step {step}"
        for name, kind, step, steps, seen in fetch.tuples(db, sql, {"run": run_id})
    }  # fmt: skip
