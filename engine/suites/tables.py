"""A suite's figures as tables and sentences of text: what the page shows and what every export writes. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engine.suites.formats import (
    NONE,
    PAID_NOTHING,
    UNKNOWN,
    closed,
    counted,
    estimate,
    interval,
    minutes,
    money,
    name,
    part,
    percent,
    times,
    tokens,
)
from storage.results.check_records import left_out_in_words
from storage.results.profile_results import bound_by
from storage.suites import statistics
from storage.suites.curves import fast_curve
from storage.suites.reaching import SPENT, reaching
from storage.suites.records import CellState, Purpose
from storage.suites.results import TRY, BestKernel
from storage.suites.standing import Suite
from storage.suites.statistics import Estimate
from storage.suites.summary import (
    ALL,
    Against,
    ArmFigures,
    CellResult,
    Paired,
    Results,
    alike,
    figures,
    paired,
    share_of_tasks,
)
from storage.suites.summary import paper_rows as rows_of_paper

SURE = 0.05  # chance of the sign test below which one arm is called better
FEWEST = next(tasks for tasks in itertools.count(1) if statistics.sign_test(tasks, 0) < SURE)
"""Of as many tasks the sign test can call an arm better, where all go the same way; of fewer it never can."""
MOST_GROUPS = 3  # whose figures go into a sentence
SMALL = ("no", "one", "two", "three", "four", "five")  # in words, up to FEWEST
PAPER = "CuTeGen, arXiv 2604.01489, Table 2: RTX 4090, CUDA 13.0, PyTorch 2.8.0, GPT-5"
KERNELBENCH_TOLERANCE = 1e-4
KERNELBENCH_EXCESSIVE = 10.0
ARM = "one set of settings, such as a method with a model: every task is run with each of them"
AGAINST = "the baseline arm; for an arm that differs from another in its knowledge base alone that one"
FAST_P = "share of runs whose kernel is correct and more than p times as fast (papers: fast_p)"
PASS_AT = "share of tasks with a correct kernel within the first {k} tries"
COMPILED_AT = "share of tasks with a kernel that compiles within the first {k} tries"


@dataclass(frozen=True, slots=True)
class Heading:
    """A column; `about` says what is in it. Numbers stand right."""

    label: str
    about: str = ""
    is_number: bool = True


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table of text with a title and what must be known to read it."""

    title: str
    columns: tuple[Heading, ...]
    rows: tuple[tuple[str, ...], ...]
    about: str = ""
    row_abouts: Mapping[str, str] = field(default_factory=dict)
    """What is in a row, by its first text."""


def headline(results: Results) -> list[str]:
    """Which arm, how much, how sure, at what cost; a sentence an arm and a comparison. Of a suite that only
    checks whether everything works: whether it does."""
    if results.suite.defined.checks is Purpose.WORKS:
        return [whether_it_works(results)]
    compared = alike(results)
    sentences = [
        sentence
        for arm in compared.arms
        for sentence in (_arm_in_words(figures(compared, arm), compared), *_of_its_own(results, compared, arm))
    ]
    if compared is not results:
        sentences.insert(0, f"{_on_which(compared)} Two arms are compared on the tasks that both have ended.")
    if len(results.devices) > 1:
        sentences.append(
            f"Several devices: {', '.join(results.devices)}; speed-ups of different devices do not compare."
        )
    if len(results.measured) > 1:
        sentences.append(
            f"Measured in several classes: {'; '.join(results.measured)}. Speed-ups of different ones do not compare."
        )
    return [sentence for sentence in [*sentences, *(comparison(pair) for pair in comparisons(results))] if sentence]


def whether_it_works(results: Results) -> str:
    """How many runs have made a correct, timed kernel, and which have ended without one."""
    made = sum(cell.speedup is not None for cell in results.cells)
    said = f"{made} of {counted(len(results.cells), 'run')} {'has' if made == 1 else 'have'} a correct, timed kernel"
    if failed := [cell for cell in results.counted if cell.speedup is None]:
        left = "; ".join(cell.cell.words + (f" ({why})" if (why := cell.standing.reason) else "") for cell in failed)
        return f"does not work: {said}. Without one: {left}."
    if made == len(results.cells):
        return f"works: {said}."
    early = made > results.suite.counts[CellState.FINISHED]
    return f"so far: {said}.{' A run goes on after its first one.' if early else ''}"


def comparisons(results: Results, kernel_class: str = ALL) -> list[Paired]:
    """Every arm against the one that it is compared with: mostly all others against the baseline arm."""
    against = [(arm, results.suite.baseline_of(arm)) for arm in results.arms]
    return [paired(results, arm, baseline, kernel_class) for arm, baseline in against if arm != baseline]


def compared(results: Results) -> tuple[Results, str]:
    """What a table of arms counts, and where the suite is not complete the words for that."""
    compared = alike(results)
    return compared, "" if compared is results else f" {_on_which(compared)}"


def _on_which(compared: Results) -> str:
    tasks = counted(len({cell.cell.task for cell in compared.cells}), "task")
    if compared.suite.defined.is_example:
        return f"Not every task was run in every arm: the figures of its arms are of the {tasks} that all of them have."
    return f"The suite is not complete: the figures of its arms are of the {tasks} that all of them have ended so far."


def _arm_in_words(stats: ArmFigures, results: Results) -> str:
    if not stats.cells:
        return f"{stats.arm}: no run has ended yet."
    marked = " that is marked clean" if results.only_clean else ""
    if stats.mean is None:
        return f"{stats.arm}: no correct kernel{marked} in {counted(stats.cells, 'run')}."
    sure = f" (95 % interval {spread} over tasks)" if (spread := interval(stats.mean)) else ""
    of = f"the {stats.solved} of {stats.tasks} tasks with a correct kernel{marked}"
    of = f"all {stats.tasks} tasks" if stats.solved == stats.tasks > 1 else of
    where = f" on {', '.join(results.devices)}" if results.devices else ""
    better = (
        f" {estimate(stats.over_best)} over the best alternative, of tasks where one was timed;"
        if stats.over_best
        else ""
    )
    return (
        f"{stats.arm}: {times(stats.mean.value)} over eager PyTorch{sure}, geometric mean of {of}"
        f"{where};{better} {_paid(stats)} {minutes(stats.minutes)} of engine time in "
        f"{counted(stats.cells, 'run')}."
    )


def _of_its_own(results: Results, compared: Results, arm: str) -> list[str]:
    """An arm's figures over all tasks that it has, where others lack some of them, and of each group that these are of,
    a sentence each; none where all have the same."""
    shared, own = set(compared.of(arm)), figures(results, arm)
    if own.tasks == len(shared) or own.mean is None:
        return []
    said = [f"{arm}, all its {counted(own.tasks, 'task')}: {_twice(own)}."]
    groups = [(kind, set(tasks)) for kind in results.classes if (tasks := results.of(arm, kind))]
    if 1 < len(groups) <= MOST_GROUPS:
        told = [(name(kind), figures(results, arm, kind)) for kind, tasks in groups if tasks != shared]
        said += [f"{arm}, {stats.tasks} of these, {kind}: {_twice(stats)}." for kind, stats in told if stats.mean]
    return said


def _twice(stats: ArmFigures) -> str:
    """Over eager and over the best alternative."""
    over_best = f", {estimate(stats.over_best)} over the best alternative" if stats.over_best else ""
    return f"{estimate(stats.mean)} over eager{over_best}"


def _paid(stats: ArmFigures) -> str:
    if stats.is_unrecorded:
        return "tokens and cost not recorded,"
    if stats.tokens == 0 and stats.cost_usd == 0:
        return "no model was paid (recorded replies),"
    return f"{money(stats.cost_usd)}, {tokens(stats.tokens)} tokens and"


def comparison(pair: Paired) -> str:
    """What the pairs say, with how sure that is."""
    left = (
        f" Left out, because the arms have measured them in different classes: {', '.join(pair.unlike)}."
        if pair.unlike
        else ""
    )
    if not pair.tasks:
        none = "no other task has ended in both" if pair.unlike else "no task has ended in both yet"
        return f"{pair.arm} against {pair.baseline}: {none}.{left}"
    if pair.ratio is None:
        ratio = "no task is solved by both"
    else:
        sure = f", 95 % interval {spread}" if (spread := interval(pair.ratio)) else ", too few tasks for an interval"
        ratio = f"{times(pair.ratio.value)} as fast at the median{sure}"
    if pair.tasks < FEWEST:
        return f"{pair.arm} against {pair.baseline}: {ratio}; {_of_few(pair)}.{left}"
    split = f"faster on {pair.faster}, slower on {pair.slower}, level on {pair.level} of {pair.tasks} tasks"
    verdict = "no difference is shown"
    if pair.chance < SURE:
        verdict = f"{pair.arm if pair.faster > pair.slower else pair.baseline} is better"
    return f"{pair.arm} against {pair.baseline}: {ratio}; {split} (sign test p = {pair.chance:.2g}): {verdict}.{left}"


def _of_few(pair: Paired) -> str:
    """How arms compare on fewer tasks than the sign test needs."""
    whole = {1: "the one task", 2: "both tasks"}.get(pair.tasks, f"all {pair.tasks} tasks")
    ways = {"faster": pair.faster, "slower": pair.slower, "level": pair.level}
    alike_on = [way for way, tasks in ways.items() if tasks == pair.tasks]
    split = f"{alike_on[0]} on {whole}" if alike_on else (
        f"{', '.join(f'{way} on {tasks}' for way, tasks in ways.items())} of {counted(pair.tasks, 'task')}"
    )  # fmt: skip
    few = f"{SMALL[pair.tasks]} {'is' if pair.tasks == 1 else 'are'} too few"
    return f"{split}; {few} to tell whether other tasks agree (that takes {FEWEST})"


def arms_table(results: Results) -> TextTable:
    """How good each arm is, over all tasks and per class; of a suite under way over those that all arms have ended."""
    results, on_which = compared(results)
    about = f"A task counts once: its repeats are averaged first.{on_which}"
    columns = (
        Heading("Arm", ARM, False),
        Heading("Kernel class", "all tasks together first", False),
        Heading("Solved", "tasks with a correct kernel in at least one repeat"),
        Heading("Speed-up over eager", "geometric mean over solved tasks, 95 % interval (Student, of the logarithms)"),
        Heading(
            "Over the best alternative", "the faster of eager and the other baselines that the run has timed, if any"
        ),
        Heading(
            "Used where faster",
            "what you would have gained over the best alternative if you used a kernel only where it is faster: a task "
            "without such a kernel counts as 1×; geometric mean over the tasks whose alternatives were timed",
        ),
        Heading("Valid", "share of runs with a correct kernel, 95 % interval (Wilson)"),
        Heading(
            "fast_1", "share of runs whose kernel is correct and faster than eager PyTorch (papers: fast_p, p = 1)"
        ),
        Heading("fast_1 over the best", "share of runs whose kernel is correct and faster than the best alternative"),
        Heading("Of the limit", "hardware limit's time over the kernel's, geometric mean"),
        Heading(
            "SOL score",
            "speed of light: how near the kernel is to what the hardware can do at most: 1 at that limit, 0.5 as fast "
            "as eager PyTorch, less where slower; mean over runs (after SOL-ExecBench)",
        ),
        Heading(
            "Gap to the limit closed",
            "how much of the time between eager PyTorch and the hardware limit is saved: 100 % is at the limit; mean "
            "over runs, none where kernels slower than eager lose more than the others save",
        ),
    )
    rows = [
        (
            arm, name(kernel_class) or "all", f"{stats.solved} of {stats.tasks}", estimate(stats.mean),
            estimate(stats.over_best), estimate(stats.used), part(stats.valid), part(stats.fast_1),
            part(stats.fast_1_best),
            percent(stats.limit_share.value if stats.limit_share else None),
            NONE if stats.sol_score is None else f"{stats.sol_score:.2f}", closed(stats.gap_closed),
        )
        for kernel_class in _classes(results) for arm in results.arms
        if (stats := figures(results, arm, kernel_class)).cells
    ]  # fmt: skip
    return TextTable("How fast", columns, tuple(rows), about)


def reaching_table(results: Results) -> TextTable:
    """What each arm takes to come to shares of the hardware limit, by class."""
    results, on_which = compared(results)
    columns = (
        Heading("Arm", is_number=False), Heading("Kernel class", "all tasks together first", False),
        Heading("Of the limit", "share of the hardware limit"),
        Heading("Reached", "runs that came there, of those whose limit is known"),
        *(Heading(axis[0].upper() + axis[1:], "median until it is reached, 95 % interval") for axis in SPENT),
    )  # fmt: skip
    rows = [
        (
            arm, name(kernel_class) or "all", percent(way.share), f"{way.reached} of {way.runs}",
            *(_until(median) if way.is_by_half else "not reached" for _, median in way.medians),
        )
        for kernel_class in _classes(results) for arm in results.arms for way in reaching(results, arm, kernel_class)
    ]  # fmt: skip
    about = (
        "Medians by the method of Kaplan and Meier: a run that ended without reaching the share counts as one that "
        "needs more than it had spent. “not reached” where fewer than half reached it; – where it was not recorded."
        f"{on_which}"
    )
    if rows and (unknown := _without_limit(results)):
        about += f" Not counted, since no hardware limit is known: {', '.join(unknown)}."
    return TextTable("To a share of the hardware limit", columns, tuple(rows), about)


def _without_limit(results: Results) -> list[str]:
    """The tasks with a run whose limit is not known."""
    return list(dict.fromkeys(cell.cell.task for cell in results.cells if cell.result and not cell.result.limit_ms))


def _until(median: Estimate | None) -> str:
    if median is None:
        return NONE
    low, high = ("" if end is None else f"{end:.3g}" for end in (median.low, median.high))
    return f"{median.value:.3g} ({low or '?'} to {high or 'more'})"


def costs_table(results: Results, kernel_class: str = ALL) -> TextTable:
    """How often kernels pass in each arm, and what they cost, a column an arm."""
    results, on_which = compared(results)
    per_arm = [stats for arm in results.arms if (stats := figures(results, arm, kernel_class)).cells]
    within = sorted({k for stats in per_arm for k, _ in stats.pass_at})
    rows = [("Tries with a correct kernel", *(percent(stats.correct_share) for stats in per_arm))]
    rows += [(f"Pass@{k}", *(percent(dict(stats.pass_at).get(k)) for stats in per_arm)) for k in within]
    rows += [(f"Compiled@{k}", *(percent(dict(stats.compiled_at).get(k)) for stats in per_arm)) for k in within]
    rows.append(("Model calls", *(f"{stats.calls:,}" for stats in per_arm)))
    rows.append(("Correct kernels", *(f"{stats.kernels:,}" for stats in per_arm)))
    rows.append(("Gains", *(f"{stats.gains:,}" for stats in per_arm)))
    for what, count in (("", 1), (" per correct kernel", 0), (" per gain", 0)):
        shares = [count or (stats.gains if "gain" in what else stats.kernels) for stats in per_arm]
        pairs = list(zip(per_arm, shares, strict=True))
        told = [(stats, 0 if stats.is_unrecorded else n) for stats, n in pairs]
        rows.append((f"Tokens{what}", *(_used(stats, n) for stats, n in told)))
        rows.append((f"Cost{what}", *(_spent(stats, n) for stats, n in told)))
        rows.append((f"Engine time{what}", *(minutes(stats.per(stats.minutes, n)) for stats, n in pairs)))
        rows.append((f"Device time{what}", *(minutes(stats.per(stats.device_minutes, n)) for stats, n in pairs)))
    about = (
        f"{TRY} Pass@k and Compiled@k: a kernel that is correct, or compiles, within the first k tries; mean over "
        f"tasks. A gain is a kernel that was faster than the best before it in its run beyond the noise, also where "
        f"both are slower than eager PyTorch.{on_which}"
    )
    columns = (Heading("What", is_number=False), *(Heading(stats.arm) for stats in per_arm))
    abouts = {f"Pass@{k}": PASS_AT.format(k=k) for k in within}
    if any(stats.tokens == 0 and stats.calls for stats in per_arm):
        abouts |= dict.fromkeys(("Tokens", "Cost"), "the replies are recorded: no model was called")
    if any(stats.is_unrecorded for stats in per_arm):
        abouts |= dict.fromkeys(("Tokens", "Cost"), "– where replies were written elsewhere: not recorded")
    abouts |= {f"Compiled@{k}": COMPILED_AT.format(k=k) for k in within}
    return TextTable("How often it works, and at what cost", columns, tuple(rows) if per_arm else (), about, abouts)


def _used(stats: ArmFigures, n: int) -> str:
    """Tokens for each of n; recorded replies have used none, which is no figure that was measured."""
    return tokens(stats.per(stats.tokens, n)) if n and stats.tokens != 0 else NONE


def _spent(stats: ArmFigures, n: int) -> str:
    """Dollars for each of n, in the pages' words where there are none."""
    if not n or not stats.calls:
        return NONE
    return PAID_NOTHING if stats.cost_usd == 0 else money(stats.per(stats.cost_usd, n))


def paired_table(results: Results) -> TextTable:
    """Arms against the baseline arm, task by task."""
    columns = (
        Heading("Arm", ARM, False), Heading("Against", AGAINST, False),
        Heading("Tasks of", is_number=False),
        Heading("Median ratio", "of the best kernels of tasks that both have solved; 95 % interval from six tasks on"),
        Heading("Faster", "tasks, those that only this arm has solved included"),
        Heading("Slower", "tasks, those that only the other arm has solved included"),
        Heading("Level", "tasks that differ by less than two measurements of one kernel do"),
        Heading("Only this", "tasks that only this arm has solved"), Heading("Only the other"),
        Heading("Sign test p", "chance of a split at least as uneven if neither arm is better"),
    )  # fmt: skip
    rows = [
        (
            pair.arm, pair.baseline, name(pair.kernel_class) or "all", estimate(pair.ratio), str(pair.faster),
            str(pair.slower), str(pair.level), str(pair.only_arm), str(pair.only_baseline), f"{pair.chance:.2g}",
        )
        for kernel_class in _classes(results) for pair in comparisons(results, kernel_class) if pair.tasks
    ]  # fmt: skip
    return TextTable("Arms compared in pairs", columns, tuple(rows))


def fast_table(results: Results, bars: Sequence[float], against: Against) -> TextTable:
    """fast_p of each arm at some speed-ups."""
    results, on_which = compared(results)
    curves = [(arm, fast_curve(results, arm, against)) for arm in results.arms]
    columns = (Heading("Arm", ARM, False), *(Heading(f"p = {bar:g}", FAST_P) for bar in bars))
    rows = tuple((arm, *(percent(curve.at(bar)) for bar in bars)) for arm, curve in curves if curve)
    unknown = sum(curve.unknown for _, curve in curves if curve)
    left = f" {counted(unknown, 'run')} without such a baseline not counted." if unknown else ""
    about = f"Share of runs with a correct kernel that is more than p times as fast as {against}.{left}{on_which}"
    return TextTable(f"fast_p over {against}", columns, rows, about)


def paper_table(results: Results) -> TextTable | None:
    """The paper's table beside ours; None where the suite has no figures of a paper."""
    paper_rows = rows_of_paper(results)
    if not paper_rows:
        return None
    columns = (
        Heading("Task", is_number=False), Heading("Class", is_number=False), Heading("Paper"),
        *map(Heading, results.arms),
    )  # fmt: skip
    rows = [
        (name(row.task), name(row.kernel_class), times(row.paper), *(estimate(row.ours[arm]) for arm in results.arms))
        for row in paper_rows
    ]
    for kernel_class in dict.fromkeys([row.kernel_class for row in paper_rows]):
        same = [row for row in paper_rows if row.kernel_class == kernel_class]
        label = f"geometric mean, {name(kernel_class) or 'no class yet'}"
        rows.append((label, counted(len(same), "task"), *(_mean_of(same, arm) for arm in (None, *results.arms))))
    rows.append(
        (
            "geometric mean, all",
            counted(len(paper_rows), "task"),
            *(_mean_of(paper_rows, arm) for arm in (None, *results.arms)),
        )
    )
    ours = ", ".join(results.devices) or "nothing measured yet"
    about = (
        f"Speed-up over eager PyTorch. Paper: {PAPER}. Ours: {ours}. Kernel, baseline and device differ between the "
        "two, so only the pattern compares. A row's interval is that of the measurement, or over repeats. As in the "
        "paper, softmax and log-softmax count as activations."
    )
    return TextTable("Table 2 of the paper beside ours", columns, tuple(rows), about)


def _mean_of(rows: Sequence[object], arm: str | None) -> str:
    values = [
        value for row in rows
        if (value := row.paper if arm is None else row.ours[arm].value if row.ours[arm] else None) is not None  # type: ignore[attr-defined]
    ]  # fmt: skip
    if not values:
        return NONE
    return times(statistics.geometric_mean(values)) + ("" if len(values) == len(rows) else f" (of {len(values)})")


def cells_table(results: Results) -> TextTable:
    """Every cell that has a run, with its best kernel."""
    columns = (
        Heading("Task", is_number=False), Heading("Class", is_number=False), Heading("Arm", is_number=False),
        Heading("Repeat"), Heading("State", is_number=False), Heading("Speed-up"), Heading("95 % interval"),
        Heading("Latency"),
        Heading("Over the best alternative", "eager, or a faster baseline that the run has timed, which is named"),
        Heading("Of the limit", "the hardware limit of the task over the kernel's latency"),
        Heading("Own share", "of a call's time in the kernel's own code; the rest is operators left to PyTorch"),
        Heading("Bound by", "what sets that limit; then what the kernel's profile says", False),
        Heading("To look at", "checks whose finding could change the verdict", False),
        Heading("Run", is_number=False),
    )  # fmt: skip
    rows = []
    for cell in (cell for cell in results.cells if cell.standing.run_id):
        best = best_of(cell)
        rows.append((
            name(cell.cell.task), name(cell.kernel_class), cell.cell.arm, str(cell.cell.repeat),
            str(cell.standing.state), times(cell.speedup),
            interval(Estimate(best.speedup, best.low, best.high)) if best else "",
            f"{best.latency_ms:.4g} ms" if best else NONE, over_alternative(cell) or NONE,
            percent(cell.result.limit_ms / best.latency_ms if best and cell.result and cell.result.limit_ms else None),
            percent(best.own_share if best else None), _bound(cell),
            ", ".join(dict.fromkeys(best.flags)) if best else "",
            cell.standing.run_id or NONE,
        ))  # fmt: skip
    return TextTable("Every run", columns, tuple(rows))


def headroom_table(results: Results) -> TextTable:
    """What was left of the suite's budget: which cells got more steps of it, and why."""
    columns = (
        Heading("Task", is_number=False), Heading("Arm", is_number=False), Heading("Repeat"),
        Heading("More steps", "beyond those of the run's settings"),
        Heading("Left", "of the kernel's time, by the hardware limit, when it was decided last"),
        Heading("Expected", "what the next steps were expected to save: of the kernel's time, or of the total time"),
        Heading("Why", is_number=False),
    )  # fmt: skip
    rows = [
        (
            name(standing.cell.task), standing.cell.arm, str(standing.cell.repeat), str(standing.more_steps),
            percent(weighed.left), f"{100 * weighed.saving:.1f} %" if weighed.saving else NONE, standing.headroom,
        )
        for standing in results.suite.planned if (weighed := standing.weighed)
    ]  # fmt: skip
    about = (
        "Once every run has had the steps of its settings, more are given where they are expected to save most, by "
        "what attempts on such kernels have gained and what the hardware limit leaves. Arms that got more of them do "
        "not compare with others."
    )
    return TextTable("What was left of the budget", columns, tuple(rows), about)


def _bound(cell: CellResult) -> str:
    """The side that sets a limit which is not known is not told."""
    run = cell.result
    if run is None:
        return NONE
    profiled = f"profile: {bound_by(run.bound)[0]}" if run.bound else ""
    return "; ".join(filter(None, [run.limited_by if run.limit_ms else "", profiled])) or NONE


def best_of(cell: CellResult) -> BestKernel | None:
    """A cell's best kernel."""
    return cell.result.best if cell.result else None


def over_alternative(cell: CellResult) -> str:
    """A cell's best kernel over the best alternative, by name; empty where none beside eager was timed."""
    if cell.speedup is None or cell.result is None or not cell.result.second_speedup:
        return ""
    faster = max((1.0, "eager PyTorch"), (cell.result.second_speedup, cell.result.second_name))
    return f"{times(cell.speedup / faster[0])} over {faster[1]}"


def scorecard(results: Results) -> TextTable:
    """The seven properties of the survey, a row each and a column an arm (Li et al., section II.E)."""
    results, on_which = compared(results)
    arms = [arm for arm in results.arms if results.of(arm)]
    by_arm = {arm: figures(results, arm) for arm in arms}
    rows = {
        "Correctness": lambda stats: (
            f"valid {part(stats.valid)}; {percent(stats.correct_share)} of all kernels correct"
        ),
        "Acceleration": lambda stats: (
            f"{estimate(stats.mean)} over eager; {estimate(stats.over_best)} over the best alternative; "
            f"{estimate(stats.used)} used where faster"
        ),
        "Robustness": _robust,
        "Efficiency": _efficient,
    }
    lines = [(what, *(cell(by_arm[arm]) for arm in arms)) for what, cell in rows.items()]
    lines.append(("Versatility", *(_covered(results, arm) for arm in arms)))
    lines.append(("Portability", *(_portable(results, arm) for arm in arms)))
    lines.append(("Reproducibility", *(_reproduced(results, arm) for arm in arms)))
    columns = (Heading("Property", is_number=False), *(Heading(arm, is_number=False) for arm in arms))
    about = "Properties after Li et al., Recent Advances in Deep Learning Kernel Optimization Using LLMs, II.E."
    about += on_which
    return TextTable("Scorecard", columns, tuple(lines) if arms else (), about)


def _robust(stats: ArmFigures) -> str:
    seeds = f"{stats.trials:,} trials with secret seeds and distributions passed by the best kernels"
    if stats.left_out:
        seeds += f"; {left_out_in_words(stats.left_out)}"
    sizes = "no task names other sizes"
    if stats.shapes_held[1]:
        sizes = f"right at other sizes: {stats.shapes_held[0]} of {stats.shapes_held[1]}"
    specials = "NaN and infinities were not tried"
    if stats.specials_held[1]:
        specials = f"NaN and infinities as the reference: {stats.specials_held[0]} of {stats.specials_held[1]}"
    return f"{seeds}; {sizes}; {specials}"


def _efficient(stats: ArmFigures) -> str:
    if not stats.kernels:
        return "no correct kernel"
    if stats.is_unrecorded or stats.tokens == 0:
        time = minutes(stats.per(stats.minutes, stats.kernels))
        paid = "tokens and cost not recorded" if stats.is_unrecorded else "no model was paid (recorded replies)"
        return f"{paid}; {time} a correct kernel"
    each = tokens(stats.per(stats.tokens, stats.kernels)), money(stats.per(stats.cost_usd, stats.kernels))
    return f"{each[0]} tokens, {each[1]} and {minutes(stats.per(stats.minutes, stats.kernels))} a correct kernel"


def _covered(results: Results, arm: str) -> str:
    cells = [cell for repeats in results.of(arm).values() for cell in repeats]
    runs = [cell.result for cell in cells if cell.result]
    classes = ", ".join(dict.fromkeys(name(cell.kernel_class) for cell in cells if cell.kernel_class)) or NONE
    languages = ", ".join(sorted({run.language for run in runs})) or NONE
    precisions = ", ".join(sorted({run.best.precision for run in runs if run.best and run.best.precision})) or NONE
    return f"classes: {classes}; languages: {languages}; precision: {precisions}"


def _portable(results: Results, arm: str) -> str:
    devices = {cell.result.device for cells in results.of(arm).values() for cell in cells if cell.result} - {""}
    again = [
        judged for (cell, device), judged in results.suite.judged.items() if cell.arm == arm and device not in devices
    ]
    measured = f"measured on {', '.join(sorted(devices)) or NONE}"
    if not again:
        return f"{measured}; no kernel was judged again on another device"
    right = sum(judged.verdict == "passed" for judged in again)
    others = ", ".join(sorted({judged.device for judged in again}))
    return f"{measured}; {right} of {len(again)} kernels that were judged again on {others} are correct there"


def _reproduced(results: Results, arm: str) -> str:
    again = [judged for (cell, _), judged in results.suite.judged.items() if cell.arm == arm]
    if not again:
        return "not judged again yet"
    return (
        f"{sum(not judged.differs for judged in again)} of {len(again)} kernels that were judged again came out alike"
    )


def portability_table(results: Results) -> TextTable:
    """Kernels that were judged again by the device, with the figures of their runs."""
    devices = sorted({device for _, device in results.suite.judged})
    columns = (
        Heading("Task", is_number=False), Heading("Arm", is_number=False), Heading("Repeat"),
        Heading("In its run", "speed-up over eager on the run's device"), *(Heading(device) for device in devices),
        Heading("What differs", is_number=False),
    )  # fmt: skip
    rows = []
    for cell in results.cells:
        again = [results.suite.judged.get((cell.cell, device)) for device in devices]
        if any(again):
            differs = "; ".join(text for judged in again if judged for text in judged.differs)
            cells = ((times(o.speedup) if o.speedup else o.verdict) if o else NONE for o in again)
            head = name(cell.cell.task), cell.cell.arm, str(cell.cell.repeat), times(cell.speedup)
            rows.append((*head, *cells, differs or "nothing"))
    about = "Kernels judged again with the command reproduce, by device: speed-up over eager there, or the verdict."
    return TextTable("Judged again", columns, tuple(rows), about)


def kernelbench_table(results: Results) -> TextTable:
    """Each best kernel by our rules and, as far as it follows from what was measured, by KernelBench's."""
    columns = (
        Heading("Task", is_number=False), Heading("Arm", is_number=False), Heading("Repeat"),
        Heading("Ours", "median of paired ratios"),
        Heading("Ratio of mean times", "KernelBench divides the mean times of its trials; here the means of our pairs"),
        Heading("Pairs", "timed pairs; KernelBench's default is 100 trials of each side"),
        Heading(
            "Largest error", "absolute, against float64, over all our trials: some scale the inputs up, so that "
            "results and their errors are large"
        ),
        Heading(
            "Relative error",
            "what decides: over the value plus the root mean square of all values, in the trial "
            "nearest its tolerance, and what is allowed there"
        ),
        Heading("Within 1e-4", "KernelBench's fp32 rule: |difference| <= 1e-4 + 1e-4 |reference|", False),
        Heading("Over 10×", "KernelBench flags a speed-up beyond 10 as excessive", False),
    )  # fmt: skip
    rows = [
        (
            name(cell.cell.task), cell.cell.arm, str(cell.cell.repeat), times(best.speedup), times(best.ratio_of_means),
            str(best.pairs), _small(best.max_abs_error), _of_allowed(best), _tolerated(best),
            "flagged" if best.ratio_of_means > KERNELBENCH_EXCESSIVE else "no",
        )
        for cell in results.counted if (best := best_of(cell))
    ]  # fmt: skip
    about = (
        "What cannot be told from our measurements: KernelBench checks with its own seeds on the task's own inputs "
        "against the reference in its own precision, we check against float64 on wider inputs; where our largest error "
        "is above 1e-4 the rule's relative part decides, element by element, and that is not kept; it is likely "
        "where the relative error is a tenth of the tolerance or less. Its timer repeats one call on the same inputs "
        "in the kernel's own process. For its own word give an exported kernel to KernelBench's "
        "evaluator: the file is in its form."
    )
    return TextTable("In KernelBench's terms", columns, tuple(rows), about)


def kernelbench_fast(results: Results) -> TextTable:
    """fast_p as KernelBench's tables have it."""
    results, on_which = compared(results)
    bars = (0.0, 1.0, 2.0)

    def is_fast(cell: CellResult, bar: float) -> bool:
        best = best_of(cell)
        return best is not None and best.ratio_of_means > bar

    columns = (Heading("Arm", ARM, False), *(Heading(f"fast_{bar:g}", FAST_P) for bar in bars))
    rows = tuple(
        (arm, *(part(share_of_tasks(tasks, lambda cell, bar=bar: is_fast(cell, bar))) for bar in bars))  # type: ignore[misc]
        for arm in results.arms if (tasks := results.of(arm))
    )  # fmt: skip
    about = "Share of runs that are correct by our rules and more than p times as fast by the ratio of mean times."
    about += on_which
    return TextTable("fast_p by the ratio of mean times", columns, rows, about)


def _small(value: float | None) -> str:
    return NONE if value is None else f"{value:.2g}"


def _of_allowed(best: BestKernel) -> str:
    error = _small(best.max_error)
    return error if best.tolerance is None or best.max_error is None else f"{error} of {_small(best.tolerance)}"


def _tolerated(best: BestKernel) -> str:
    if best.max_abs_error is None:
        return UNKNOWN
    if best.max_abs_error <= KERNELBENCH_TOLERANCE:
        return "yes"
    return "likely" if best.max_error is not None and best.max_error <= KERNELBENCH_TOLERANCE / 10 else "cannot be told"


def _classes(results: Results) -> list[str]:
    """All tasks, and each class where there are several."""
    return [ALL, *results.classes] if len(results.classes) > 1 else [ALL]


def planned_word(suite: Suite) -> str:
    """What a cell without a run is called: nobody goes on with an example."""
    return "not run" if suite.defined.is_example else str(CellState.PLANNED)


def progress_line(suite: Suite) -> str:
    """How far the suite is: "20 of 26 runs finished, 2 running", "all 26 runs finished"."""
    counts, runs = suite.counts, len(suite.planned)
    if counts[CellState.FINISHED] == runs:
        return f"all {runs} runs finished" if runs > 1 else "1 run finished"
    words = {CellState.PLANNED: planned_word(suite)}
    others = [f"{counts[state]} {words.get(state, state)}" for state in CellState
              if counts[state] and state is not CellState.FINISHED]  # fmt: skip
    return ", ".join([f"{counts[CellState.FINISHED]} of {counted(runs, 'run')} finished", *others])


def progress_with_size(suite: Suite) -> str:
    """The same with why there are so many runs: "0 of 4 runs finished, 4 planned (2 tasks × 2 arms)"."""
    defined = suite.defined
    parts = [counted(len(defined.tasks), "task"), counted(len(defined.arms), "arm")]
    parts += [counted(defined.repeats, "repeat")] if defined.repeats > 1 else []
    return f"{progress_line(suite)} ({' × '.join(parts)})"
