"""Every prompt that the shipped methods can send, from long made-up runs: each step, kernel class, toolchain and
architecture, with kernels, reports and histories about as long as they get. Text only: nothing is built or run."""

from __future__ import annotations

import functools
import json
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from engine.evaluator import languages, tasks
from engine.evaluator.build.device.build import MAX_LINES, MAX_WIDTH
from engine.evaluator.request import Evaluator
from engine.evaluator.toolchain_table import GPU, TABLE, device_of
from engine.knowledge.transitions import shortened
from engine.search.actions import Action, Ask, Finish
from engine.search.context import RunContext
from engine.search.llm import Completion, Message, OnText, Purpose
from engine.search.llm.recording import read_recording
from engine.search.methods import catalogue
from engine.search.methods.loading import open_strategy
from engine.search.methods.options import Value
from engine.search.patching.reply import find_python
from engine.search.prompting import PROMPTS
from engine.search.steps.ask import ask_model
from storage import codec
from storage.knowledge.failures import MOST_TOLD
from storage.knowledge.records import ToldRule
from storage.results.evaluation_results import Mismatch
from storage.results.hardware_limit import HardwareLimit
from storage.results.policy import EVERYTHING, Draws, Policy, SpecialValues, StateDict, Strides, Weights
from storage.results.vocabulary import KernelClass
from storage.run import events as ev
from storage.run.blobs import Blobs, text_hash
from storage.run.journal import Journal
from storage.run.record import Record
from storage.run.settings import Budget, RunSettings
from storage.run.steering.verbs import Command, CommandKind
from tests.engine.contexts import open_context
from tests.engine.search.methods.test_contract import Play
from tests.guard.engine_side import MemoryJournal, NoToolchain

SEEDS = (0, 1)
MOST_ACTIONS = 600
DEPTHS = 10
# What lets a method ask all that it can.
OPTIONS: Mapping[str, dict[str, Value]] = {"best_of": {"max_repairs": 2}, "evolve": {"founders": 2, "crossover": 0.5}}
TELLING = 30  # characters that a line has at least to tell which prompt file it is from
REPORT = "\n".join(f"candidate.py:{n}: error: ".ljust(MAX_WIDTH, "x") for n in range(MAX_LINES))
FINDING = "The view of B has the strides of A, so each tile is read from the wrong rows of memory. " * 45
POINT = "The store of each tile meets four-way bank conflicts, because neighbouring threads write one bank. " * 4
PROFILE = "\n".join(f"  launch {n}: {'memory pipe busy 41 %, waits for loads 63 %; ' * 2}" for n in range(25))
DIFF = "\n".join(f"{'+-'[n % 2]}  auto tile_{n} = local_tile(view, shape, make_coord(block, _));" for n in range(80))
SUMMARY = "stage both operands through a ring of three buffers in shared memory, so that loads and products overlap"
HEAT = tuple(tuple(float(i > j) for j in range(16)) for i in range(16))
WRONG = Mismatch((3, 7), 1.25, 0.5, 4_096, 65_536, 0.75, 0.6, (4_096, 4_096), HEAT, "ones and zeros")
FACTS = {
    "processors": 132, "memory_gb_s": 4022.5, "rates_gflop_s": {"fp32": 60_200.0, "tf32": 420_000.0, "bf16": 810_000.0},
    "cores": 66, "vector_bits": 512, "l1_bytes": 49_152, "l2_bytes": 52_428_800, "l3_bytes": 110_100_480,
    "shared_bytes": 233_472, "block_shared_bytes": 232_448, "registers": 65_536, "warps": 64, "blocks": 32,
    "has_clusters": True, "cluster_blocks": 16,
}  # fmt: skip
SIGNATURE = "forward(ids=int64[2, 64], mask=None) returns {'logits': float32[2, 64], 'past': (float32[2, 64], None)}"
LAID_OUT = [{"name": "weight", "shape": [8, 3, 2, 2], "stride": [12, 1, 6, 3]}]
# Sections whose text a run brings; that of the others is the prompt files'.
OF_THE_RUN = {
    "Kernel", "Reference module", "What failed", "Diagnosis", "Last change", "Repairs so far", "Steps so far",
    "Profile", "Judge's point", "Why the last reply was not used", "assistant",
    "State of the kernel", "Known states", "Known techniques", "Technique drawn", "Predicted and measured",
    "Analysis of the differences", "Second parent",
}  # fmt: skip
POLICIES = (  # the longest tasks of the first two classes have weights
    Policy(
        mode="train", weights=Weights.FIXED, state_dict=StateDict.ANY, draws=Draws.SEEDED, strides=Strides.ANY,
        secret_sizes=True,
    ),
    Policy(library_operators=(EVERYTHING,), special_values=SpecialValues.REQUIRED),
    Policy(dtype="bf16"),
    Policy("tf32", library_operators=("conv2d", "matmul"), other_sizes=({"N": 96}, {"N": 1000})),
    Policy("half", backward=True),
    Policy(workloads=({"N": 96}, {"N": 1000}), recorded="/networks/speaker/regions/norm/recorded-0.safetensors"),
    Policy(rules=1),
)  # fmt: skip
PLACE = "It stands at layers.0.norm and 31 more."
STATISTICS = "\n\n# In training mode nn.BatchNorm1d updates its statistics.\n"
RECURRENT = "\n\nclass Encoder(nn.Module):\n    def __init__(self):\n        self.layers = nn.GRU(8, 8, 2)\n"
IMPORTED = "from storage.results.vocabulary import KernelClass\n"


@dataclass(frozen=True, slots=True)
class Asked:
    """One prompt. `step` is what the method calls it; one that asks once more says so with a number from 1."""

    strategy: str
    step: str
    kernel_class: KernelClass
    toolchain: str
    language: str
    architecture: str
    messages: tuple[Message, ...]

    @property
    def size(self) -> int:
        """Characters of all messages."""
        return sum(len(message.text) for message in self.messages)

    @property
    def sections(self) -> list[tuple[str, str, str]]:
        """(role, name, text) of each section in order; a message without sections is one, named after its role."""
        found = []
        for message in self.messages:
            at = 0
            for name, length in message.sections or ((message.role, len(message.text)),):
                found.append((message.role, name, message.text[at : at + length]))
                at += length
        return found


@functools.cache
def telling_lines() -> Mapping[str, str]:
    """Lines that stand in one prompt file only, and in which."""
    found: dict[str, str] = {}
    twice = set[str]()
    for file in sorted(path for path in PROMPTS.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
        for line in {one.strip() for one in file.read_text(encoding="utf-8").splitlines()}:
            if len(line) >= TELLING and "{{" not in line:
                twice |= {line} & set(found)
                found[line] = file.relative_to(PROMPTS).as_posix()
    return {line: file for line, file in found.items() if line not in twice}


@functools.cache
def files_in(text: str) -> frozenset[str]:
    """The prompt files that a text is made of, as far as lines tell."""
    known = telling_lines()
    return frozenset(known[line.strip()] for line in text.splitlines() if line.strip() in known)


@functools.cache
def longest_kernel() -> str:
    """The longest kernel that a recorded reply holds."""
    files = sorted((tasks.SHIPPED / "recordings").glob("*.jsonl"))
    replies = [line.reply for file in files for line in read_recording(file).lines]
    return max(filter(None, map(find_python, replies)), key=len)


def limit_of(architecture: str) -> HardwareLimit:
    """A measured device. Without an architecture it is as runs made before devices were described have it."""
    plain = {
        "device": "device 0",
        "bandwidth_gb_s": 4022.5,
        "peak_gflop_s": 60_200.0,
        "min_bytes": 10**6,
        "min_flop": 10**9,
    }
    told = {"facts": {**FACTS, "architecture": architecture}, "signature": SIGNATURE, "laid_out": LAID_OUT}
    found: HardwareLimit = codec.from_plain(HardwareLimit, plain | (told if architecture else {}))
    return found


def _example(one: dict[str, str]) -> dict[str, str]:
    """An example of an edge of the longest kind."""
    code = shortened(["  auto value = copy(source, target);"] * 60)
    return one | {"think": POINT, "before": code, "after": code}


OF_CLASS: Mapping[tuple[str, KernelClass], Mapping[str, str]] = {
    ("kernelblaster", KernelClass.OTHER): {"agent": "minimal"}
}


class LongPlay(Play):
    """A run in memory whose kernels, reports and replies are about as long as they get."""

    def __init__(self, name: str, seed: int, context: RunContext, kernel_class: KernelClass) -> None:
        super().__init__(name, seed, self._longer)
        self._blobs, self._texts = context.blobs, 0
        self.settings: RunSettings = replace(
            self.settings,
            budget=Budget(depths=DEPTHS),
            strategy_options={**OPTIONS.get(name, {}), **OF_CLASS.get((name, kernel_class), {})},
            kernel_class=kernel_class,
        )
        self.record = self.record_at(0)

    def _longer(self, text: str) -> str:
        if text.startswith("class ModelNew"):
            return self._put(f"# {self._new()}\n{longest_kernel()}")
        point = f"{self._new()}: {POINT}"
        if text.startswith('{"technique '):  # examples of edges, by technique
            return self._put(
                json.dumps({name: [_example(one) for one in own] for name, own in json.loads(text).items()})
            )
        return self._put(
            json.dumps(dict.fromkeys(json.loads(text), point)) if text.startswith("{") else FINDING + point
        )

    def _new(self) -> str:
        self._texts += 1
        return f"text {self._texts}"

    def _put(self, text: str) -> str:
        return self._blobs.put(text)

    def carry_out(self, action: Action) -> Generator[ev.Event]:
        """The events of an action, as long as they get."""
        for event in super().carry_out(action):
            match event:
                case ev.Compiled(result=result) if not result.is_ok:
                    yield replace(event, result=replace(result, diagnostics=f"{self._new()}: {REPORT}"))
                case ev.Checked(result=result) if result.verdict.value != "passed":
                    yield replace(
                        event, result=replace(result, message=f"{self._new()}: outputs differ.", mismatch=WRONG)
                    )
                case ev.Profiled(result=result):
                    yield replace(event, result=replace(result, summary=f"{self._new()}: {PROFILE}"))
                case ev.CandidateCreated():
                    told = f"{self._new()}: {SUMMARY}"
                    yield replace(event, summary=told, diff_blob=self._put(f"{DIFF}\n+// {told}"))
                case _:
                    yield event

    def record_at(self, count: int) -> Record:
        """The record after so many events, with a person's hint and rule, and as many failure rules as there may be."""
        record = Record.of(self.settings, [])
        record.apply(ev.LimitMeasured(limit_of("")))
        record.apply(ev.CompilerShown(self._put("void fused_by_the_compiler();")))
        for kind, text in ((CommandKind.HINT, "mind the tail"), (CommandKind.BAN, "inline assembly")):
            record.apply(ev.CommandAcknowledged(Command(kind, kind, text, "someone", 0.0), 1))
        record.apply(ev.CommandEffective(CommandKind.BAN, 1, ""))
        rules = tuple(
            ToldRule(f"rule-{n}", "no instance of function template " * 3, POINT, 4, 2) for n in range(MOST_TOLD)
        )
        record.apply(ev.RulesTold(1, 0, rules))
        for event in self.record.events[len(record.events) : count] if count else ():
            record.apply(event)
        return record


class QuickBlobs(Blobs):
    """In memory: thousands of texts are put here and read again, and none must outlive the test."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._texts: dict[str, str] = {}

    def put(self, text: str) -> str:
        """Store a text, return its hash."""
        name = text_hash(text)
        self._texts[name] = text
        return name

    def get(self, name: str) -> str:
        """Read a text."""
        return self._texts[name]


class Useless:
    """A model whose replies cannot be used; keeps what it is asked."""

    name = "useless"

    def __init__(self) -> None:
        self.asked: list[tuple[Message, ...]] = []

    def terms(self, purpose: Purpose) -> None:
        """Free, and without limits."""

    def complete(self, messages: list[Message], purpose: Purpose, on_text: OnText) -> Completion:
        """An edit of a line that the kernel does not have."""
        self.asked.append(tuple(messages))
        edit = {"action": "replace", "line_number": 3, "num_lines": 1, "old_code": ["no such line"], "new_code": ["x"]}
        return Completion(f"{POINT}\n```json\n{json.dumps([edit] * 12)}\n```\n", self.name, "stop", 1.0)


Kind = tuple[str, bool, bool]


def questions(play: LongPlay, context: RunContext) -> Iterator[tuple[Kind, Ask, int, tuple[Message, ...]]]:
    """Each question of a run: its kind, after how many events it is asked, and its prompt."""
    context.record = play.record
    for _ in range(MOST_ACTIONS):
        action = context.strategy.next(play.record)
        if isinstance(action, Finish):
            break
        if isinstance(action, Ask):
            about = play.record.candidates.get(action.about or "")
            kind = (action.label, about is not None and about.has_failed, action.shows_profile)
            yield kind, action, len(play.record.events), tuple(action.prompt(context, action))
        for event in play.carry_out(action):
            play.record.apply(event)


def moments(play: LongPlay, context: RunContext) -> list[tuple[Ask, int]]:
    """Of each kind of question in a run the one with the longest prompt, and after how many events it is asked."""
    longest: dict[Kind, tuple[int, Ask, int]] = {}
    for kind, ask, count, said in questions(play, context):
        size = sum(len(message.text) for message in said)
        if size > longest.get(kind, (0,))[0]:
            longest[kind] = (size, ask, count)
    return [(ask, count) for _, ask, count in longest.values()]


_TOLD_APART: dict[tuple[str, str, str], list[str]] = {}  # architectures by method, toolchain and language
PAIRS = [(toolchain, language) for toolchain in TABLE for language in languages.of_toolchain(toolchain)]


def every_prompt(
    folder: Path, strategy: str, kernel_class: KernelClass, seeds: tuple[int, ...] = SEEDS, *, asks_again: bool = True
) -> Iterator[Asked]:
    """The longest prompt of each kind of question, for each toolchain, language and architecture, and where
    `asks_again` those that follow it."""
    for seed in seeds:
        play, context = a_run(folder, strategy, kernel_class, seed)
        for ask, count in moments(play, context):
            for toolchain, language in PAIRS:
                context.toolchain, context.record = cast(Evaluator, NoToolchain(toolchain)), play.record_at(count)
                context.record.settings = replace(play.settings, language=language)
                here = (toolchain, language)
                if (strategy, *here) not in _TOLD_APART:
                    _TOLD_APART[strategy, *here] = architectures(context, ask)
                for architecture in _TOLD_APART[strategy, *here]:
                    context.record.limit = limit_of(architecture)
                    said = tuple(ask.prompt(context, ask))
                    yield Asked(strategy, ask.label, kernel_class, *here, architecture, said)
                for number, said in enumerate(asked_again(context, ask) if asks_again else (), 1):
                    again = f"{ask.label}, again {number}"
                    yield Asked(strategy, again, kernel_class, *here, architecture, said)


def a_run(folder: Path, strategy: str, kernel_class: KernelClass, seed: int) -> tuple[LongPlay, RunContext]:
    """A made-up run on the cpu toolchain that has not begun. Each class has a policy, so that all policies are told."""
    context = open_context(folder)
    context.blobs = QuickBlobs(context.blobs.folder)
    policy = POLICIES[list(KernelClass).index(kernel_class) % len(POLICIES)]
    task = task_of(kernel_class)
    source = task.source + (STATISTICS + IMPORTED if policy.mode == "train" else "")
    source += RECURRENT if kernel_class is KernelClass.OTHER else ""
    place = PLACE if policy.recorded else ""
    context.strategy, context.task = open_strategy(strategy), replace(task, policy=policy, source=source, place=place)
    context.toolchain = cast(Evaluator, NoToolchain("cpu"))
    return LongPlay(strategy, seed, context, kernel_class), context


def asked_again(context: RunContext, ask: Ask) -> list[tuple[Message, ...]]:
    """The prompts that follow where no reply can be used. What came of them stays in the context's record."""
    model, journal = Useless(), cast(Journal, MemoryJournal([]))
    step = context.record.steps_finished + 1
    context.record.sent[step, 0] = 0  # the first prompt has gone: no base is asked any more
    ask_model(replace(context, model=model, journal=journal, step=step), ask)
    return model.asked[1:]


def architectures(context: RunContext, ask: Ask) -> list[str]:
    """One architecture for each that prompts tell apart, and none, as in runs of before."""
    is_gpu = device_of(context.toolchain.name) == GPU
    names = [f"sm_{n}" for n in range(70, 130)] if is_gpu else ["avx512", "avx2", "sse"]
    found: dict[frozenset[str], str] = {}
    for name in ["", *names]:
        context.record.limit = limit_of(name)
        found.setdefault(files_in(ask.prompt(context, ask)[0].text), name)
    return list(found.values())


@functools.cache
def task_of(kernel_class: KernelClass) -> tasks.Task:
    """The shipped task of a class with the longest source; of a class without tasks the longest of all."""
    files = [tasks.find(path.stem) for path in sorted(tasks.SHIPPED.glob("*/*.py"))]
    own = [file for file in files if file.kernel_class is kernel_class] or files
    return max(own, key=lambda file: len(file.text)).task("cpu")


def every_one(folder: Path) -> Iterator[Asked]:
    """Of all shipped methods and classes; half the classes from one made-up run, half from another.

    What asks again carries the first prompt and says nothing of a class: of each half the longest task shows it.
    """
    halves = [list(KernelClass)[number :: len(SEEDS)] for number in range(len(SEEDS))]
    for strategy in catalogue.names():
        for seed, half in zip(SEEDS, halves, strict=True):
            longest = max(half, key=lambda one: len(task_of(one).source))
            for one in half:
                yield from every_prompt(folder / strategy / one, strategy, one, (seed,), asks_again=one is longest)
