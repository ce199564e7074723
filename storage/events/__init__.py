"""What happens in a run, one frozen record per kind of event. Knows the vocabulary, not the files it is written to.

run.py            its engines, steps, depths, state and limits
kernels.py        a kernel written, patched, built, checked, timed, profiled, tuned
model_calls.py    what is asked of a language model and what comes back
knowledge.py      what is asked of the knowledge base, and taught
people.py         questions, approvals, commands
"""

from __future__ import annotations

from storage.events.kernels import AttemptFailed as AttemptFailed
from storage.events.kernels import CandidateCreated as CandidateCreated
from storage.events.kernels import Checked as Checked
from storage.events.kernels import Compiled as Compiled
from storage.events.kernels import Imported as Imported
from storage.events.kernels import PatchTried as PatchTried
from storage.events.kernels import Profiled as Profiled
from storage.events.kernels import ProfileFailed as ProfileFailed
from storage.events.kernels import Ranked as Ranked
from storage.events.kernels import SweepStarted as SweepStarted
from storage.events.kernels import Timed as Timed
from storage.events.kernels import VariantChecked as VariantChecked
from storage.events.kernels import VariantCompiled as VariantCompiled
from storage.events.kernels import VariantTimed as VariantTimed
from storage.events.knowledge import Consulted as Consulted
from storage.events.knowledge import RulesTold as RulesTold
from storage.events.knowledge import Taught as Taught
from storage.events.model_calls import CallFailed as CallFailed
from storage.events.model_calls import CallSent as CallSent
from storage.events.model_calls import ClassProposed as ClassProposed
from storage.events.model_calls import DiagnosisWritten as DiagnosisWritten
from storage.events.model_calls import Diverged as Diverged
from storage.events.model_calls import ModelCalled as ModelCalled
from storage.events.model_calls import ReviewWritten as ReviewWritten
from storage.events.model_calls import ToolAnswered as ToolAnswered
from storage.events.model_calls import ToolCalled as ToolCalled
from storage.events.people import ApprovalAsked as ApprovalAsked
from storage.events.people import ApprovalSettled as ApprovalSettled
from storage.events.people import CommandAcknowledged as CommandAcknowledged
from storage.events.people import CommandEffective as CommandEffective
from storage.events.people import CommandRefused as CommandRefused
from storage.events.people import QuestionAsked as QuestionAsked
from storage.events.run import BaselineMeasured as BaselineMeasured
from storage.events.run import BudgetChanged as BudgetChanged
from storage.events.run import BudgetWarned as BudgetWarned
from storage.events.run import CompilerShown as CompilerShown
from storage.events.run import DepthFinished as DepthFinished
from storage.events.run import EngineStarted as EngineStarted
from storage.events.run import LimitMeasured as LimitMeasured
from storage.events.run import PlaceTaken as PlaceTaken
from storage.events.run import RunEnded as RunEnded
from storage.events.run import RunStarted as RunStarted
from storage.events.run import StateChanged as StateChanged
from storage.events.run import StepFinished as StepFinished
from storage.events.run import StepStarted as StepStarted

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
