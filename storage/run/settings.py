"""What a run was asked to do, and the closed sets of what happens in it. Knows no file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from storage.codec import EpochSeconds
from storage.results.baselines import OwnBaseline
from storage.results.policy import Policy
from storage.results.vocabulary import KernelClass
from storage.run.forks import Fork
from storage.run.models import Options
from storage.run.saved_models import Saved
from storage.run.steering.command_arguments import AskFirst


class RunState(StrEnum):
    """Where a run stands. LOST is never written: it is what a free lock without a final event means."""

    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    WAITING = "waiting"
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"
    LOST = "lost"

    @property
    def is_finished(self) -> bool:
        """True when no engine will work on the run unless a person resumes it."""
        return self in (RunState.FINISHED, RunState.STOPPED, RunState.FAILED)

    @property
    def is_over(self) -> bool:
        """True when no engine works on the run, whether it ended or its engine is gone."""
        return self.is_finished or self is RunState.LOST


class Origin(StrEnum):
    """Which act created a candidate."""

    SYNTHESIS = "synthesis"
    OPTIMISATION = "optimisation"
    REPAIR = "repair"
    MANUAL = "manual"
    IMPORTED = "imported"
    FORKED = "forked"
    TUNED = "tuned"
    COMPILED = "compiled"


class Start(StrEnum):
    """Whose kernel is a run's first: the model's, or the one that torch.compile generates."""

    MODEL = "model"
    COMPILED = "compiled"


class StepKind(StrEnum):
    """The loop's moves, in the words shown on screen."""

    SYNTHESISE = "synthesise"
    COMPILE = "compile"
    CHECK = "check"
    TIME = "time"
    PROFILE = "profile"
    DIAGNOSE = "diagnose"
    REPAIR = "repair"
    OPTIMISE = "optimise"
    SUBMIT = "submit"


EVALUATIONS = (StepKind.COMPILE, StepKind.CHECK, StepKind.TIME, StepKind.PROFILE)


class Switch(StrEnum):
    """A person's override of a schedule."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


class DepthOutcome(StrEnum):
    """How one depth ended."""

    ACCEPTED = "accepted"
    GIVEN_UP = "given_up"
    IMPORTED = "imported"


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of a run; None means no limit."""

    depths: int = 10
    """Step indexes."""
    model_calls: int | None = None
    tokens: int | None = None
    """Input and output tokens together."""
    cost_usd: float | None = None
    wall_s: float | None = None
    """Engine time, not time spent paused or dead."""
    target_speedup: float | None = None
    """The run stops once its best kernel has it."""
    stagnation_depths: int | None = None
    """The run stops after so many step indexes without gain."""
    limit_share: float | None = None
    """The run stops once its best kernel reaches this share of the hardware limit, from above 0 to 1, or once what is
    left to it is below the noise."""


# Of run.json: raised when a run must go on by the rules that it was made with. 1: profiles are shown one depth earlier.
SETTINGS_VERSION = 2


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompt files that a run began with. `hash` tells all of them, `shipped` those that Tilewright brings.

    `files` are the texts, by name, of a person's pack in `folder`. Runs made before prompts were kept have no hash.
    """

    hash: str = ""
    shipped: str = ""
    folder: str = ""
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What the pack is called; empty without one."""
        return self.folder.replace("\\", "/").rstrip("/").split("/")[-1]

    @property
    def in_words(self) -> str:
        """For people: the first characters of the hash, and the pack; empty where nothing was kept."""
        if not self.hash or not self.folder:
            return f"shipped, {self.hash[:12]}" if self.hash else ""
        count = f"{len(self.files)} {'file' if len(self.files) == 1 else 'files'}"
        return f"{self.name}, {self.hash[:12]} ({count} in place of the shipped ones, {self.shipped[:12]})"


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What `run.json` fixes when a run starts."""

    run_id: str
    task_name: str
    task_source: str
    """The reference, with size overrides already in place."""
    kernel_class: KernelClass
    class_is_proposed: bool
    """Whether the model names the kernel class, since nobody else has."""
    sizes: Mapping[str, int | float]
    """What overrides the task's sizes, by module-level name."""
    toolchain: str
    model: str
    strategy: str = "cutegen"
    strategy_options: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)
    language: str = "cute"
    device: str = ""
    """The GPU as CUDA_VISIBLE_DEVICES names it; empty for the first that is visible."""
    collect: Switch = Switch.AUTO
    """Whether kernels are profiled: by the method's own rule, always or never."""
    policy: Policy = field(default_factory=Policy)
    own_baseline: OwnBaseline | None = None
    """What the person would run instead, timed as the other baselines are."""
    model_options: Options = ()
    saved_models: Saved = ()
    """What `models.toml` said, when the run was made, of the models that the two before name; never a key."""
    ask_first: AskFirst = field(default_factory=AskFirst)
    """Which steps wait for a person's yes."""
    prompts: Prompts = field(default_factory=Prompts)
    knowledge: str = "off"
    """The base that the run asks: off, on (what runs have learned, and the seed), seed, empty (only what this run
    learns), or the path of another one, which is only read."""
    recording: str | None = None
    """The file of recorded replies that stand in for the model's."""
    reply_seconds: float = 0.0
    """How long a recorded reply takes to come in."""
    budget: Budget = field(default_factory=Budget)
    tune: int = 0
    """How many variants of an accepted kernel's tunables are tried at most."""
    compiler_hint: bool = False
    """Whether the model is shown what torch.compile writes for the task before it writes a first kernel."""
    start: Start = Start.MODEL
    """Whose kernel is the first: the model's, or what torch.compile writes where it calls no library."""
    width: int = 1
    """How many step indexes are at work at once, where those of the method are independent of each other."""
    weight: float = 1.0
    """The run's share of a device that others want too; the cells of a suite have one share."""
    task_place: str = ""
    """Where the task stands in a network, in words; empty for one that stands in none."""
    suite: str = ""
    """The suite that the run is a cell of; empty without one."""
    created_at: EpochSeconds = 0.0
    is_demo: bool = False
    is_example: bool = False
    """A run that came with Tilewright; it was made elsewhere and counts in no total."""
    forked_from: Fork | None = None
    replay_of: str | None = None
    """The run whose journal is told once more; nothing is done then."""
    replay_speed: float = 1.0
    """How many times as fast as it was a replay is told."""
    version: int = SETTINGS_VERSION


def of_suite(name: str) -> str:
    """Who asks of a run what its suite does."""
    return f"suite {name}"


LEFT = "waits for a person: "  # how the reason of a run begins that was left because it waits
