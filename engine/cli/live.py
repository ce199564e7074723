"""What a foreground run shows on a terminal, and the plain lines it prints elsewhere. Knows events, not steps."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.journal import Entry
from storage.run.method_words import PLAIN, MethodWords
from storage.run.record import Candidate, Record
from storage.run.settings import DepthOutcome

SHOWN_ROWS = 14


class LiveView:
    """A journal listener. On a terminal: a table that redraws itself; otherwise one line per notable event."""

    def __init__(self, console: Console, record: Record, words: MethodWords) -> None:
        self._console = console
        self._record = record
        self._words = words
        self._started = time.monotonic()
        self._live = (
            Live(get_renderable=self._render, console=console, refresh_per_second=4) if console.is_terminal else None
        )

    def __enter__(self) -> LiveView:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def __call__(self, entry: Entry) -> None:
        """Take one event."""
        line = sentence(entry.event, self._words)
        if line and not self._live:
            self._console.print(line, highlight=False, soft_wrap=True)

    def _render(self) -> RenderableType:
        record, budget = self._record, self._record.budget
        ended = min(record.step_index, budget.depths + 1)
        done, most = self._words.completed(ended, budget.depths)
        bar = Table.grid(padding=(0, 1))
        bar.add_row(
            ProgressBar(total=max(most, 1), completed=done, width=40),
            self._words.progress(ended, budget.depths),
        )
        return Group(self._now(), bar, attempts_table(list(record.candidates.values()), self._words))

    def _now(self) -> Text:
        record, step, best = self._record, self._record.in_flight, self._record.best
        where = f"at {self._words.distinct} {min(step.depth, record.budget.depths)}" if step else ""
        doing = f"{step.kind} {named(step.candidate_id)} {where}" if step else str(record.state)
        gain = f", best {best.timed.speedup:.3g}x ({named(best.candidate_id)})" if best and best.timed else ""
        seconds = time.monotonic() - self._started
        return Text(f"{record.settings.task_name}: {doing}{gain}, {record.usage.model_calls} calls, {seconds:.0f} s")


def next_commands(record: Record) -> str:
    """The best kernel of a run that has ended, and what takes it out of the run; empty where none is correct."""
    best = record.best
    if best is None:
        return ""
    timed = best.trusted
    gain = f", {timed.speedup:.3g}x eager" if timed else ", not timed"
    slow = " (slower than eager)" if timed and timed.speedup_interval[1] < 1 else ""
    run_id = record.settings.run_id
    return (
        f"best: {named(best.candidate_id)}{gain}{slow}. Next: python -m engine export {run_id} --output fast.py, "
        f"or python -m engine package {run_id} --output fast"
    )


def attempts_table(attempts: list[Candidate], words: MethodWords) -> Table:
    """Attempts as rows, the latest last."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("kernel", words.step, "from", "verdict", "speed-up", "latency", "what changed"):
        table.add_column(heading, no_wrap=heading != "what changed", min_width=len(heading))
    if len(attempts) > SHOWN_ROWS:
        table.add_row("…", "", "", "", "", "", f"{len(attempts) - SHOWN_ROWS} earlier kernels")
    for candidate in attempts[-SHOWN_ROWS:]:
        table.add_row(*_row(candidate))
    return table


def _row(candidate: Candidate) -> tuple[str, ...]:
    timed, created = candidate.trusted, candidate.created
    verdict = candidate.verdict or "…"
    style = "green" if verdict == Verdict.PASSED else "yellow" if verdict == "…" else "red"
    gain = f"{timed.speedup:.3g}x\n{interval(*timed.speedup_interval)}x" if timed else ""
    latency = f"{timed.latency_ms:.4g} ms" if timed else ""
    return (
        number(created.candidate_id),
        str(created.depth),
        number(created.parent_id) if created.parent_id else "",
        f"[{style}]{verdict}[/]",
        gain,
        latency,
        escape(created.summary),
    )


def interval(low: float, high: float) -> str:
    """A 95 % interval as the command line tells it: "1.56 to 1.66"."""
    return f"{low:.3g} to {high:.3g}"


def number(candidate_id: str) -> str:
    """A kernel's number within its run, from its id."""
    return candidate_id.removeprefix("c").lstrip("0")


def named(candidate_id: str | None) -> str:
    """A kernel as people call it; empty without one."""
    return f"kernel {number(candidate_id)}" if candidate_id else ""


def sentence(event: ev.Event, words: MethodWords = PLAIN) -> str:
    """One event as a line of text; empty for those not worth one."""
    match event:
        case ev.CandidateCreated(candidate_id=name, origin=origin, depth=depth, summary=what):
            return f"{named(name)}: {origin} at {words.distinct} {depth}: {what}"
        case ev.Compiled(candidate_id=name, result=built):
            return f"{named(name)}: {'compiled' if built.is_ok else built.verdict} ({built.seconds:.1f} s)"
        case ev.Checked(candidate_id=name, result=checked):
            about = checked.message.splitlines()[0].partition(". ")[0] if checked.message else "check"
            return f"{named(name)}: {checked.verdict} ({about})"
        case ev.Timed(candidate_id=name, result=timed):
            if timed.untrusted:
                return f"{named(name)}: correct, not timed: {timed.untrusted}"
            spread = interval(*timed.speedup_interval)
            return f"{named(name)}: {timed.speedup:.3g}x over eager, {timed.latency_ms:.4g} ms ({spread}x)"
        case ev.SweepStarted(candidate_id=name, most=most):
            return f"{named(name)}: up to {most} variants of its tunables"
        case ev.VariantTimed(candidate_id=name, number=variant, result=timed, is_brief=brief) if variant:
            how = " (briefly)" if brief else ""
            return f"{named(name)}, variant {variant}: {timed.speedup:.3g}x over eager, {timed.latency_ms:.4g} ms{how}"
        case ev.PatchTried(is_applied=False, reason=reason):
            return f"patch not applied: {reason.splitlines()[0]}"
        case ev.StepFinished(kind=kind, outcome="patch_failed" | "unreadable"):
            return f"{kind}: the reply could not be used"
        case ev.DepthFinished(depth=depth, outcome=outcome, reason=reason, is_best=best):
            word = "accepted" if outcome is DepthOutcome.ACCEPTED else f"abandoned: {reason}"
            return f"{words.step} {depth} {word}{', new best' if best else ''}"
        case ev.StateChanged(state=state, reason=reason):
            return f"{state}: {reason}"
        case ev.RunEnded(state=state, reason=reason):
            return f"{state}: {reason}"
        case _:
            return ""
