"""What happens in a run, one frozen record per kind of event. Knows the vocabulary, not the files it is written to.

run.py            its engines, steps, depths, state and limits
kernels.py        a kernel written, patched, built, checked, timed, profiled, tuned
model_calls.py    what is asked of a language model and what comes back
knowledge.py      what is asked of the knowledge base, and taught
people.py         questions, approvals, commands
"""

from __future__ import annotations

from storage.run.events.kernels import AttemptFailed as AttemptFailed
from storage.run.events.kernels import CandidateCreated as CandidateCreated
from storage.run.events.kernels import Checked as Checked
from storage.run.events.kernels import Compiled as Compiled
from storage.run.events.kernels import DeploymentSeen as DeploymentSeen
from storage.run.events.kernels import Imported as Imported
from storage.run.events.kernels import PatchTried as PatchTried
from storage.run.events.kernels import Profiled as Profiled
from storage.run.events.kernels import ProfileFailed as ProfileFailed
from storage.run.events.kernels import Ranked as Ranked
from storage.run.events.kernels import SweepStarted as SweepStarted
from storage.run.events.kernels import Timed as Timed
from storage.run.events.kernels import VariantChecked as VariantChecked
from storage.run.events.kernels import VariantCompiled as VariantCompiled
from storage.run.events.kernels import VariantTimed as VariantTimed
from storage.run.events.knowledge import Consulted as Consulted
from storage.run.events.knowledge import RulesTold as RulesTold
from storage.run.events.knowledge import Taught as Taught
from storage.run.events.model_calls import CallFailed as CallFailed
from storage.run.events.model_calls import CallSent as CallSent
from storage.run.events.model_calls import ClassProposed as ClassProposed
from storage.run.events.model_calls import DiagnosisWritten as DiagnosisWritten
from storage.run.events.model_calls import Diverged as Diverged
from storage.run.events.model_calls import ModelCalled as ModelCalled
from storage.run.events.model_calls import ReviewWritten as ReviewWritten
from storage.run.events.model_calls import ToolAnswered as ToolAnswered
from storage.run.events.model_calls import ToolCalled as ToolCalled
from storage.run.events.people import ApprovalAsked as ApprovalAsked
from storage.run.events.people import ApprovalSettled as ApprovalSettled
from storage.run.events.people import CommandAcknowledged as CommandAcknowledged
from storage.run.events.people import CommandEffective as CommandEffective
from storage.run.events.people import CommandRefused as CommandRefused
from storage.run.events.people import QuestionAsked as QuestionAsked
from storage.run.events.run import BaselineMeasured as BaselineMeasured
from storage.run.events.run import BudgetChanged as BudgetChanged
from storage.run.events.run import BudgetWarned as BudgetWarned
from storage.run.events.run import CompilerShown as CompilerShown
from storage.run.events.run import DepthFinished as DepthFinished
from storage.run.events.run import EngineStarted as EngineStarted
from storage.run.events.run import LimitMeasured as LimitMeasured
from storage.run.events.run import PlaceTaken as PlaceTaken
from storage.run.events.run import RunEnded as RunEnded
from storage.run.events.run import RunStarted as RunStarted
from storage.run.events.run import StateChanged as StateChanged
from storage.run.events.run import StepFinished as StepFinished
from storage.run.events.run import StepStarted as StepStarted

Event = (
    RunStarted
    | EngineStarted
    | LimitMeasured
    | BaselineMeasured
    | CompilerShown
    | PlaceTaken
    | StepStarted
    | StepFinished
    | CallSent
    | CallFailed
    | ModelCalled
    | ClassProposed
    | CandidateCreated
    | PatchTried
    | AttemptFailed
    | DiagnosisWritten
    | ReviewWritten
    | QuestionAsked
    | ApprovalAsked
    | ApprovalSettled
    | Diverged
    | Imported
    | Compiled
    | Checked
    | Timed
    | Profiled
    | ProfileFailed
    | DeploymentSeen
    | SweepStarted
    | VariantCompiled
    | VariantChecked
    | VariantTimed
    | Consulted
    | Ranked
    | ToolCalled
    | ToolAnswered
    | RulesTold
    | Taught
    | DepthFinished
    | CommandAcknowledged
    | CommandEffective
    | CommandRefused
    | StateChanged
    | BudgetWarned
    | BudgetChanged
    | RunEnded
)
