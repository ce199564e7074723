"""Everything a screen asks of the index: functions of a Database that return frozen rows. Knows no files.

runs.py, listing.py         runs as the overview and monitoring show them
attempts.py, points.py      a run's kernels: one by one, as a family, depths, a filtered list; the points of its curve
evaluations.py, profiles.py one kernel's results, with the checks behind them and the baselines
calls.py                    model calls, what came of their edits, and what they cost
call_outcomes.py            what calls came to, and what they cost by that; imported by itself
waiting.py                  who waited for what, in one run or in several; imported by itself
steps.py, feed.py           what happens and what came of it
news.py                     what a person wants to be told of, wherever that person looks
troubles.py                 failures by kind, and what may need a person
commands.py, steering.py    commands, what they led to, and people
compare.py                  several runs side by side
suites.py                   what the runs of a suite have come to; imported by itself
model_figures.py            what each model's kernels have come to, and what they cost
device_results.py           what came of runs by model of device, and of one kernel on several; imported by itself
forecast.py                 what runs so far took, for what a new one will take
predictions.py, sweeps.py   gains foretold and measured; sweeps over what a kernel declares open to tuning
retrieved.py, walks.py      what the knowledge base had answered; walks through the graph of techniques
tries.py                    how often a model's kernels pass
learning.py                 what runs asked of the knowledge base, were told, tried then and added; imported by itself
fetch.py                    results as records, lines of journals as events
"""

from storage.index.queries.attempts import NEWEST as NEWEST
from storage.index.queries.attempts import AttemptRow as AttemptRow
from storage.index.queries.attempts import CandidateRow as CandidateRow
from storage.index.queries.attempts import DepthRow as DepthRow
from storage.index.queries.attempts import FamilyRow as FamilyRow
from storage.index.queries.attempts import KernelFilter as KernelFilter
from storage.index.queries.attempts import KernelRow as KernelRow
from storage.index.queries.attempts import NeighbourRow as NeighbourRow
from storage.index.queries.attempts import RollBackRow as RollBackRow
from storage.index.queries.attempts import attempts as attempts
from storage.index.queries.attempts import candidate as candidate
from storage.index.queries.attempts import count_kernels as count_kernels
from storage.index.queries.attempts import depths as depths
from storage.index.queries.attempts import family as family
from storage.index.queries.attempts import kernels as kernels
from storage.index.queries.attempts import neighbours as neighbours
from storage.index.queries.attempts import roll_backs as roll_backs
from storage.index.queries.calls import AllowanceRow as AllowanceRow
from storage.index.queries.calls import CostRow as CostRow
from storage.index.queries.calls import DiagnosisRow as DiagnosisRow
from storage.index.queries.calls import FailedTryRow as FailedTryRow
from storage.index.queries.calls import ModelCallRow as ModelCallRow
from storage.index.queries.calls import PatchRateRow as PatchRateRow
from storage.index.queries.calls import PatchRow as PatchRow
from storage.index.queries.calls import PromptRow as PromptRow
from storage.index.queries.calls import ReviewRow as ReviewRow
from storage.index.queries.calls import SpendingRow as SpendingRow
from storage.index.queries.calls import ToolCallRow as ToolCallRow
from storage.index.queries.calls import allowance as allowance
from storage.index.queries.calls import conversation as conversation
from storage.index.queries.calls import count_unusable_replies as count_unusable_replies
from storage.index.queries.calls import diagnoses as diagnoses
from storage.index.queries.calls import failed_tries as failed_tries
from storage.index.queries.calls import kernel_cost as kernel_cost
from storage.index.queries.calls import last_prompt as last_prompt
from storage.index.queries.calls import model_calls as model_calls
from storage.index.queries.calls import patch_rates as patch_rates
from storage.index.queries.calls import patches as patches
from storage.index.queries.calls import prompt_before as prompt_before
from storage.index.queries.calls import reviews as reviews
from storage.index.queries.calls import spending as spending
from storage.index.queries.calls import tool_calls as tool_calls
from storage.index.queries.calls import unusable_replies as unusable_replies
from storage.index.queries.commands import CommandRow as CommandRow
from storage.index.queries.commands import commands as commands
from storage.index.queries.compare import ConditionsRow as ConditionsRow
from storage.index.queries.compare import ReachedRow as ReachedRow
from storage.index.queries.compare import RunChoice as RunChoice
from storage.index.queries.compare import TimedRow as TimedRow
from storage.index.queries.compare import comparable_runs as comparable_runs
from storage.index.queries.compare import conditions as conditions
from storage.index.queries.compare import reached as reached
from storage.index.queries.compare import timed_kernels as timed_kernels
from storage.index.queries.evaluations import BaselineRow as BaselineRow
from storage.index.queries.evaluations import CorrectnessErrorRow as CorrectnessErrorRow
from storage.index.queries.evaluations import ElsewhereRow as ElsewhereRow
from storage.index.queries.evaluations import EvaluationRow as EvaluationRow
from storage.index.queries.evaluations import OutcomeCount as OutcomeCount
from storage.index.queries.evaluations import TimingSamples as TimingSamples
from storage.index.queries.evaluations import WorkloadRow as WorkloadRow
from storage.index.queries.evaluations import baseline as baseline
from storage.index.queries.evaluations import baseline_beside as baseline_beside
from storage.index.queries.evaluations import baselines as baselines
from storage.index.queries.evaluations import baselines_elsewhere as baselines_elsewhere
from storage.index.queries.evaluations import check_records as check_records
from storage.index.queries.evaluations import correctness_errors as correctness_errors
from storage.index.queries.evaluations import deployment as deployment
from storage.index.queries.evaluations import evaluation as evaluation
from storage.index.queries.evaluations import fastest_baselines as fastest_baselines
from storage.index.queries.evaluations import outcome_counts as outcome_counts
from storage.index.queries.evaluations import timelines as timelines
from storage.index.queries.evaluations import timing_samples as timing_samples
from storage.index.queries.evaluations import workloads as workloads
from storage.index.queries.feed import BaseChange as BaseChange
from storage.index.queries.feed import EventRow as EventRow
from storage.index.queries.feed import FeedKernel as FeedKernel
from storage.index.queries.feed import FeedRow as FeedRow
from storage.index.queries.feed import ProblemRow as ProblemRow
from storage.index.queries.feed import events as events
from storage.index.queries.feed import feed as feed
from storage.index.queries.feed import problems as problems
from storage.index.queries.feed import states as states
from storage.index.queries.forecast import PaceRow as PaceRow
from storage.index.queries.forecast import TokensRow as TokensRow
from storage.index.queries.forecast import pace as pace
from storage.index.queries.forecast import tokens_per_call as tokens_per_call
from storage.index.queries.listing import Archive as Archive
from storage.index.queries.listing import Choices as Choices
from storage.index.queries.listing import GroupBy as GroupBy
from storage.index.queries.listing import GroupRow as GroupRow
from storage.index.queries.listing import Listing as Listing
from storage.index.queries.listing import RunFilter as RunFilter
from storage.index.queries.listing import RunSort as RunSort
from storage.index.queries.listing import RunTotals as RunTotals
from storage.index.queries.listing import choices as choices
from storage.index.queries.listing import groups as groups
from storage.index.queries.listing import listing as listing
from storage.index.queries.listing import run_totals as run_totals
from storage.index.queries.listing import unfinished_runs as unfinished_runs
from storage.index.queries.model_figures import ModelRow as ModelRow
from storage.index.queries.model_figures import model_figures as model_figures
from storage.index.queries.news import NewsRow as NewsRow
from storage.index.queries.news import news as news
from storage.index.queries.points import FEW_POINTS as FEW_POINTS
from storage.index.queries.points import DepthSpreadRow as DepthSpreadRow
from storage.index.queries.points import ExposureRow as ExposureRow
from storage.index.queries.points import FailureRow as FailureRow
from storage.index.queries.points import KernellessRow as KernellessRow
from storage.index.queries.points import PointRow as PointRow
from storage.index.queries.points import RiseRow as RiseRow
from storage.index.queries.points import UnappliedRow as UnappliedRow
from storage.index.queries.points import depth_spread as depth_spread
from storage.index.queries.points import exposures as exposures
from storage.index.queries.points import failures as failures
from storage.index.queries.points import kernelless as kernelless
from storage.index.queries.points import points as points
from storage.index.queries.points import rises as rises
from storage.index.queries.points import unapplied as unapplied
from storage.index.queries.predictions import CalibrationRow as CalibrationRow
from storage.index.queries.predictions import PredictionRow as PredictionRow
from storage.index.queries.predictions import calibration as calibration
from storage.index.queries.predictions import measured_predictions as measured_predictions
from storage.index.queries.predictions import prediction as prediction
from storage.index.queries.profiles import CutRow as CutRow
from storage.index.queries.profiles import MetricChangeRow as MetricChangeRow
from storage.index.queries.profiles import MetricRow as MetricRow
from storage.index.queries.profiles import ProfileRow as ProfileRow
from storage.index.queries.profiles import UnshownRow as UnshownRow
from storage.index.queries.profiles import advice as advice
from storage.index.queries.profiles import cut_profiles as cut_profiles
from storage.index.queries.profiles import executed_share as executed_share
from storage.index.queries.profiles import main_kind as main_kind
from storage.index.queries.profiles import metric_changes as metric_changes
from storage.index.queries.profiles import metrics as metrics
from storage.index.queries.profiles import planned_exposure as planned_exposure
from storage.index.queries.profiles import profile as profile
from storage.index.queries.profiles import profiled_ancestor as profiled_ancestor
from storage.index.queries.profiles import profiled_kernels as profiled_kernels
from storage.index.queries.profiles import source_lines as source_lines
from storage.index.queries.profiles import unshown as unshown
from storage.index.queries.retrieved import RetrievalRow as RetrievalRow
from storage.index.queries.retrieved import retrieval as retrieval
from storage.index.queries.retrieved import retrieved as retrieved
from storage.index.queries.retrieved import told_rules as told_rules
from storage.index.queries.runs import RunRow as RunRow
from storage.index.queries.runs import RunSpeedup as RunSpeedup
from storage.index.queries.runs import StateCount as StateCount
from storage.index.queries.runs import Totals as Totals
from storage.index.queries.runs import arithmetic as arithmetic
from storage.index.queries.runs import best_speedups as best_speedups
from storage.index.queries.runs import count_examples as count_examples
from storage.index.queries.runs import count_own_runs as count_own_runs
from storage.index.queries.runs import count_replays as count_replays
from storage.index.queries.runs import count_runs as count_runs
from storage.index.queries.runs import demo_run as demo_run
from storage.index.queries.runs import first_example as first_example
from storage.index.queries.runs import limit as limit
from storage.index.queries.runs import limit_measured_at as limit_measured_at
from storage.index.queries.runs import limit_speedup as limit_speedup
from storage.index.queries.runs import limits_of_others as limits_of_others
from storage.index.queries.runs import lowest_latency as lowest_latency
from storage.index.queries.runs import marks as marks
from storage.index.queries.runs import of_ids as of_ids
from storage.index.queries.runs import overview as overview
from storage.index.queries.runs import overview_version as overview_version
from storage.index.queries.runs import run as run
from storage.index.queries.runs import state_counts as state_counts
from storage.index.queries.runs import titles as titles
from storage.index.queries.runs import totals as totals
from storage.index.queries.runs import version as version
from storage.index.queries.steering import ApprovalRow as ApprovalRow
from storage.index.queries.steering import QuestionRow as QuestionRow
from storage.index.queries.steering import SteeringMark as SteeringMark
from storage.index.queries.steering import divergences as divergences
from storage.index.queries.steering import effects as effects
from storage.index.queries.steering import engine_began as engine_began
from storage.index.queries.steering import first_model as first_model
from storage.index.queries.steering import imported as imported
from storage.index.queries.steering import is_by_hand as is_by_hand
from storage.index.queries.steering import open_approval as open_approval
from storage.index.queries.steering import open_question as open_question
from storage.index.queries.steering import pending_hints as pending_hints
from storage.index.queries.steering import steering_marks as steering_marks
from storage.index.queries.steering import steering_state as steering_state
from storage.index.queries.steering import strategy as strategy
from storage.index.queries.steering import waiting_roll_back as waiting_roll_back
from storage.index.queries.steering import waiting_runs as waiting_runs
from storage.index.queries.steps import StageTime as StageTime
from storage.index.queries.steps import StepRow as StepRow
from storage.index.queries.steps import count_events as count_events
from storage.index.queries.steps import counted_until as counted_until
from storage.index.queries.steps import current_step as current_step
from storage.index.queries.steps import finished_steps as finished_steps
from storage.index.queries.steps import last_seq as last_seq
from storage.index.queries.steps import steps as steps
from storage.index.queries.steps import time_by_stage as time_by_stage
from storage.index.queries.steps import typical_seconds as typical_seconds
from storage.index.queries.sweeps import SweepRow as SweepRow
from storage.index.queries.sweeps import VariantRow as VariantRow
from storage.index.queries.sweeps import sweep as sweep
from storage.index.queries.sweeps import variants as variants
from storage.index.queries.tries import RankingRow as RankingRow
from storage.index.queries.tries import TryRow as TryRow
from storage.index.queries.tries import rankings as rankings
from storage.index.queries.tries import tries as tries
from storage.index.queries.troubles import ErrorGroupRow as ErrorGroupRow
from storage.index.queries.troubles import TroubleRow as TroubleRow
from storage.index.queries.troubles import count_error_groups as count_error_groups
from storage.index.queries.troubles import error_groups as error_groups
from storage.index.queries.troubles import troubles as troubles
from storage.index.queries.walks import TakenRow as TakenRow
from storage.index.queries.walks import WeighedRow as WeighedRow
from storage.index.queries.walks import taken as taken
from storage.index.queries.walks import walk as walk
