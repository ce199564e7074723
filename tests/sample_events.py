"""The story of a synthetic run as events: what an engine would have journaled. Knows no files."""

from __future__ import annotations

import difflib
import json
import random
from dataclasses import replace

from storage.knowledge.records import Advised, Bottleneck, Category, ToldRule, WeighedEdge
from storage.results.evaluation_results import CompileResult, TimingResult, Tunable
from storage.results.hardware_limit import HardwareLimit
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.blobs import text_hash
from storage.run.journal import Entry
from storage.run.models import CallFailure
from storage.run.settings import DepthOutcome, Origin, RunSettings, RunState, StepKind
from storage.run.steering.command_arguments import CONSULT, TEACH, TUNE, Fallback
from storage.run.steering.verbs import Command, CommandKind
from tests import sample_profiles
from tests.sample_checks import LOST_STRUCTURE, SUSPICIOUS, TIMED
from tests.sample_results import BROKEN, BUILT, COMPILED, IDEAS, KERNEL, NOT_COMPILED, RIGHT, TURNED_AWAY, WRONG

JUDGE, REWRITE = "judge", "rewrite"
POINT = {
    "bottleneck": "Shared memory: 4-way bank conflicts on the store of the tile (line 12).",
    "change": "Swizzle the tile's layout.",
    "plan": "Compose the layout with Swizzle<3, 2, 3>; loads and stores stay as they are.",
}


GEMM_RULE = ToldRule("rule-0:0", "no instance of function template `cute::gemm`", "pass B as (N, K)", 4, 2)


class Script:
    """Collects events and the texts they refer to."""

    def __init__(self, settings: RunSettings, seed: int) -> None:
        self.settings = settings
        self.random = random.Random(seed)
        self.second = NOT_COMPILED if seed % 3 == 2 else COMPILED
        self.entries: list[Entry] = []
        self.texts: set[str] = set()
        self.commands: list[Command] = []
        self.now = settings.created_at
        self.step = 0
        self.depth = 0
        self.sources: dict[str, list[str]] = {}
        self.best_id: str | None = None
        self.best = 0.0
        self.base: str | None = None

    def play(self, ending: str) -> None:
        self.emit(ev.RunStarted(self.settings.run_id, self.settings.task_name))
        if ending == "new":
            return
        self.emit(ev.EngineStarted(4242, False))
        self.emit(ev.LimitMeasured(HardwareLimit("sample device", 40.0, 2400.0, 12_582_912, 2_147_483_648)))
        last = self.settings.budget.depths
        stop_at = last if ending == "finished" else max(1, last // 2)
        for depth in range(stop_at):
            self.depth = depth
            self.play_depth()
        self.end(ending)

    def emit(self, event: ev.Event, seconds: float = 0.05) -> None:
        self.now += seconds
        self.entries.append(Entry(len(self.entries) + 1, round(self.now, 3), event))

    def keep(self, text: str) -> str:
        self.texts.add(text)
        return text_hash(text)

    def play_depth(self) -> None:
        if self.depth == 2:
            self.steer(CommandKind.HINT, "try 128-bit loads")
            self.attend()
        if self.depth == 3:
            self.steer(CommandKind.EXPOSE, "on")
        if self.base:
            self.look_up(self.base)
        name = self.write(StepKind.OPTIMISE if self.base else StepKind.SYNTHESISE, self.base)
        for repair in range(1, 4):
            if self.judge(name, repair - 1) is Verdict.PASSED:
                return self.measure(name)
            self.diagnose(name)
            if repair == 2:
                self.fail_patch(name)
            name = self.write(StepKind.REPAIR, name, repair)
        self.judge(name, 3)
        return self.settle(DepthOutcome.GIVEN_UP, name, False, "still wrong after 3 repairs")

    def attend(self) -> None:
        """A person has taken part: a yes by silence, an answer that was wanted, a replay that went its own way."""
        step = self.step + 1
        self.emit(ev.ApprovalAsked(step, StepKind.OPTIMISE, self.depth, self.base, Fallback.YES, 60.0))
        self.emit(ev.ApprovalSettled(step, True, "nobody said anything for 60 seconds, which means yes"))
        prompt = self.keep('[{"role": "user", "text": "Make it faster."}]')
        self.emit(ev.QuestionAsked(step, 0, StepKind.OPTIMISE, self.depth, self.base, prompt))
        self.emit(
            ev.Diverged(step, 0, StepKind.OPTIMISE, self.base, True, "the recording holds no reply for this kernel")
        )
        if self.base:
            self.emit(ev.Imported(self.base, "node_4.json", "PASS", 1.25, 2.5))

    def look_up(self, name: str) -> None:
        """Before each change: what the knowledge base answers, and in depth 2 what the run teaches it."""
        if self.settings.knowledge == "off":
            return
        self.begin(CONSULT, name)
        words = "Fetch wider words.", "Helps streams.", "Hurts short rows."
        found = (
            Advised(IDEAS[1], Category.MEMORY, *words, 1.4, 0.7, 5, 4, 0, 1),
            Advised("double buffering", Category.LATENCY, *words, 1.1, 0.4, 4, 1, 2, 1, True, "memory_latency_bound"),
        )
        is_known = self.depth > 1
        state, bound = ("memory_bandwidth_saturated", Bottleneck.MEMORY) if is_known else ("", None)
        why = "device memory busy" if is_known else "the kernel has no profile"
        share = {"share of the device memory's peak": 91.0} if is_known else {}
        self.emit(
            ev.Consulted(
                self.step, self.depth, name, state, bound, 0.9 * is_known, found, "evidence:10", ("a tail",), why, share
            )
        )
        self.finish(CONSULT, 0.1, "answered")
        if self.depth == 2:
            self.begin(TEACH, name)
            revision = self.keep('{"revision_id":"sample:9","at":1.0,"by":"sample","why":"wider words"}')
            self.emit(ev.Taught(self.step, self.depth, "sample:9", "wider words help here", revision))
            self.finish(TEACH, 0.1, "taught")

    def write(self, kind: str, parent: str | None, repair: int = 0) -> str:
        self.begin(kind, parent)
        if self.settings.knowledge != "off" and kind == StepKind.OPTIMISE:
            self.emit(ev.RulesTold(self.step, self.depth, (GEMM_RULE,)))
            tried = (self.step, 0, 0, "check")
            self.emit(ev.ToolCalled(*tried, self.depth, parent, source := self.keep("class ModelNew: ...")))
            answer = self.keep("It compiles, and it passes the check in 14 trials.")
            self.emit(ev.ToolAnswered(*tried, source, "passed", "it passes the check in 14 trials", answer, 2.5))
        exposed = kind == StepKind.OPTIMISE and self.depth >= 3
        self.call(str(kind), parent, 0, exposed)
        if parent and kind != REWRITE:
            edits = self.keep('[{"action": "replace", "line_number": 12, "num_lines": 1, "new_code": "..."}]')
            self.emit(ev.PatchTried(self.step, 0, parent, "edits", True, 2, "applied as edits", edits))
        name = f"c{len(self.sources) + 1:03d}"
        idea = "fix the copy's layout" if repair else IDEAS[self.depth % len(IDEAS)]
        old = self.sources[parent] if parent else []
        new = [*old, f"  // {idea}", f"  auto t{len(self.sources)} = make_layout(Shape<_{8 * (self.depth + 1)}>{{}});"]
        if len(new) > 24:
            new = new[4:]
        self.sources[name] = new
        source, before = KERNEL.format(body="\n".join(new)), KERNEL.format(body="\n".join(old))
        lines = list(difflib.unified_diff(before.splitlines(), source.splitlines(), parent or "", name, lineterm=""))
        added = sum(x.startswith("+") and not x.startswith("+++") for x in lines)
        removed = sum(x.startswith("-") and not x.startswith("---") for x in lines)
        origin = Origin.REPAIR if repair else Origin.OPTIMISATION if parent else Origin.SYNTHESIS
        self.emit(
            ev.CandidateCreated(
                self.step, name, parent, self.base, self.depth, 0, repair, origin, self.keep(source),
                self.keep("\n".join(lines) + "\n") if parent else None, added, removed, idea,
                (LOST_STRUCTURE,) if repair == 2 and self.depth % 8 == 1 else (),
                *((idea, round(1.05 + 0.07 * (self.depth % 9), 2)) if kind == StepKind.OPTIMISE else ()),
            )
        )  # fmt: skip
        self.finish(kind, 6.0, "created")
        return name

    def judge(self, name: str, repair: int) -> Verdict:
        is_wrong = (self.depth % 4 == 1 and repair == 1) or self.depth % 7 == 6
        built = self.build(repair)
        self.begin(StepKind.COMPILE, name)
        log = self.keep(built.diagnostics or "ptxas info: Used 96 registers, 34816 bytes smem")
        self.emit(ev.Compiled(self.step, name, built, log), 2.0)
        self.finish(StepKind.COMPILE, built.seconds, built.verdict)
        if not built.is_ok:
            return built.verdict
        self.begin(StepKind.CHECK, name)
        checked = WRONG if is_wrong else RIGHT
        self.emit(ev.Checked(self.step, name, checked), 1.0)
        self.finish(StepKind.CHECK, checked.seconds, checked.verdict)
        return checked.verdict

    def build(self, repair: int) -> CompileResult:
        if self.depth % 8 == 7 and repair == 0:
            return TURNED_AWAY
        return BROKEN if self.depth % 4 == 1 and repair == 0 else BUILT

    def tune(self, name: str, timed: TimingResult) -> None:
        """Two variants were tried: one is slower, one does not compile."""
        self.begin(TUNE, name)
        self.emit(ev.SweepStarted(self.step, self.depth, name, (Tunable("kTile", 64, (32, 64, 128)),), 4))
        for number, (tile, built) in enumerate(((32, BUILT), (128, BROKEN)), 1):
            self.emit(ev.VariantCompiled(self.step, name, number, {"kTile": tile}, built))
        slower = replace(timed, candidate_ms=tuple(1.2 * ms for ms in timed.candidate_ms))
        self.emit(ev.VariantTimed(self.step, name, 1, True, slower))
        self.emit(ev.VariantChecked(self.step, name, 1, RIGHT))
        self.finish(TUNE, 6.0, "unchanged")

    def measure(self, name: str) -> None:
        self.begin(StepKind.TIME, name)
        gain = 0.93 if self.depth % 5 == 4 else 1.0 + 1.5 / (2 + self.depth) ** 1.5
        speedup = 0.6 if not self.best else self.best * gain
        pairs = [self.random.gauss(1.0, 0.01) for _ in range(20)]
        timed = TimingResult(
            tuple(2.0 / speedup * p for p in pairs), tuple(2.0 * p * self.random.gauss(1.0, 0.005) for p in pairs),
            "eager", 3.0, {"clock": "locked"}, SUSPICIOUS if self.depth % 5 == 3 else TIMED,
        )  # fmt: skip
        self.emit(ev.Timed(self.step, name, timed), 3.0)
        if not self.best:
            self.emit(self.second, 9.0)
        self.finish(StepKind.TIME, 3.0, "passed")
        if self.settings.knowledge != "off" and self.depth == 2:
            self.tune(name, timed)
        if self.depth >= 1:
            self.profile(name)
        is_best = timed.speedup > self.best
        if is_best:
            self.best, self.best_id = timed.speedup, name
        self.settle(DepthOutcome.ACCEPTED, name, is_best, "")
        self.base = name

    def settle(self, outcome: DepthOutcome, name: str | None, is_best: bool, reason: str) -> None:
        exposed = self.depth >= 3
        ended = ev.DepthFinished(self.step, self.depth, outcome, name, self.base, exposed, is_best, reason)
        if self.settings.strategy == "graph_search" and self.base:
            taken = WeighedEdge(self.base, "start", IDEAS[1], 0, 0.0, 0.3, 0.3, True)
            ended = replace(ended, reward=0.25, weighed=(taken, replace(taken, target="split-K", is_taken=False)))
        self.emit(ended)

    def profile(self, name: str) -> None:
        self.begin(StepKind.PROFILE, name)
        if self.depth == 2:
            self.emit(ev.ProfileFailed(self.step, name, "the profiler's counters are locked for this user"))
            self.finish(StepKind.PROFILE, 1.0, "unavailable")
            return
        make = sample_profiles.on_host if self.settings.toolchain == "cpu" else sample_profiles.on_device
        found = make(self.depth, 2.0 / max(self.best, 0.1), text_hash(name)[:16])
        lines = "\n".join(f"{m.name} {m.unit} {m.value}" for m in found.metrics)
        raw = self.keep(f"raw profiler report of {name}\n{lines}")
        self.emit(ev.Profiled(self.step, name, found, raw), 4.0)
        self.finish(StepKind.PROFILE, 4.0, "profiled")

    def diagnose(self, name: str) -> None:
        self.begin(StepKind.DIAGNOSE, name)
        self.call(StepKind.DIAGNOSE, name, 0)
        self.emit(ev.DiagnosisWritten(self.step, name, self.keep(f"Cause: the layouts of {name}'s copy do not match.")))
        self.finish(StepKind.DIAGNOSE, 3.0, "written")

    def fail_patch(self, name: str) -> None:
        self.begin(StepKind.REPAIR, name)
        for call, rung in enumerate(("edits", "reask")):
            self.call(StepKind.REPAIR, name, call)
            reason = "edit 1: line 40 does not read as given"
            self.emit(ev.PatchTried(self.step, call, name, rung, False, 0, reason, None))
        self.finish(StepKind.REPAIR, 8.0, "patch_failed")

    def call(self, role: str, name: str | None, call: int, exposed: bool = False) -> None:
        cost = None if self.settings.model == "unpriced" else 0.012
        prompt = self.prompt(f"# {role}\nKernel {name}, depth {self.depth}, call {call}.\n")
        reply = self.keep(f"Reply to {role} of {name} at depth {self.depth}, call {call}.\n")
        if self.depth == 2:
            self.fail_call(role, name, call, prompt)
        self.emit(
            ev.ModelCalled(
                self.step, call, role, self.depth, name, self.settings.model, prompt, reply,
                5200, 1400, 4000, 300, cost, 5.5, "stop", exposed,
            ),
            4.0,
        )  # fmt: skip

    def prompt(self, text: str) -> str:
        source = "\n".join(self.sources.get(self.base or "", [])) or "no kernel yet"
        told = {
            "Reference module": "The reference:\nclass Model(nn.Module): ...\n\n",
            "Kernel": f"The kernel:\n{source}\n\n",
            "Measured so far": f"Measured: {1 + self.depth / 4:.3g}x\n\n",
            "Instructions": text,
        }  # fmt: skip
        sections = [[name, len(piece)] for name, piece in told.items()]
        system = {"role": "system", "text": "You write kernels.\n", "sections": [["Instructions", 19]]}
        return self.keep(json.dumps([system, {"role": "user", "text": "".join(told.values()), "sections": sections}]))

    def fail_call(self, role: str, name: str | None, call: int, prompt: str) -> None:
        head = (self.step, call, 0, role, self.depth, name, self.settings.model, prompt)
        self.emit(ev.CallSent(*head, 5000, 0.005, None))
        said, free = "too many requests, HTTP 429: slow down", (0, 0, 0, 0, 0.0)
        self.emit(ev.CallFailed(*head, CallFailure.RATE_LIMITED, said, False, False, None, *free, 0.2, 2.0))

    def steer(self, kind: CommandKind, argument: str = "", is_read: bool = True) -> None:
        command = Command(f"{len(self.commands):012x}", kind, argument, "ada", round(self.now, 3))
        self.commands.append(command)
        if is_read:
            self.emit(ev.CommandAcknowledged(command, self.step + 1), 0.3)
            self.emit(ev.CommandEffective(command.command_id, self.step + 1, f"from step {self.step + 1}"))

    def begin(self, kind: str, name: str | None) -> None:
        self.step += 1
        self.emit(ev.StepStarted(self.step, kind, self.depth, name))

    def finish(self, kind: str, seconds: float, outcome: str) -> None:
        self.emit(ev.StepFinished(self.step, kind, seconds, str(outcome)))

    def end(self, ending: str) -> None:
        if ending in ("finished", "stopped", "failed"):
            self.emit(ev.BudgetWarned("tokens", 1_600_000.0, 2_000_000.0))
            self.emit(ev.BudgetChanged(replace(self.settings.budget, tokens=4_000_000)))
            error = self.keep("Traceback (most recent call last): ...") if ending == "failed" else None
            self.emit(ev.RunEnded(RunState(ending), f"{ending} after {self.depth + 1} depths", self.best_id, error))
            return
        if ending == "paused":
            self.steer(CommandKind.PAUSE)
            self.emit(ev.StateChanged(RunState.PAUSED, "paused by a person"))
            return
        refused = Command("refused-0000", CommandKind.ROLL_BACK, "c999", "ada", self.now)
        self.commands.append(refused)
        self.emit(ev.CommandAcknowledged(refused, self.step + 1))
        self.emit(ev.CommandRefused(refused.command_id, self.step + 1, "this run has no kernel c999"))
        self.steer(CommandKind.HINT, "watch the bank conflicts", is_read=False)
        self.depth += 1
        self.begin(StepKind.OPTIMISE, self.base)
        if ending == "waiting":
            self.emit(ev.StateChanged(RunState.WAITING, "the recording holds no further reply for this kernel"))


class JudgedScript(Script):
    """A run by coder–judge: in round 3 the judge cannot be read, in round 4 the rewrite does not compile."""

    def play_depth(self) -> None:
        if self.base and not self.review(self.base):
            return self.settle(DepthOutcome.GIVEN_UP, None, False, "the judge's reply could not be read")
        name = self.write(REWRITE if self.base else StepKind.SYNTHESISE, self.base)
        if self.judge(name, 0) is Verdict.PASSED:
            return self.measure(name)
        return self.settle(DepthOutcome.GIVEN_UP, name, False, "the kernel does not compile")

    def build(self, repair: int) -> CompileResult:
        return BROKEN if self.depth == 4 else BUILT

    def review(self, name: str) -> bool:
        """The judge's step; tells whether it could be read."""
        self.begin(JUDGE, name)
        problems = ("No JSON object was found in the reply.",) * 2 if self.depth == 3 else ("",)
        for call, problem in enumerate(problems):
            self.call(JUDGE, name, call, exposed=True)
            text = self.keep("It is slow." if problem else json.dumps(POINT))
            summary = "" if problem else POINT["bottleneck"]
            self.emit(ev.ReviewWritten(self.step, call, JUDGE, self.depth, name, text, summary, problem))
        self.finish(JUDGE, 4.0, "unreadable" if problems[0] else "written")
        return not problems[0]
