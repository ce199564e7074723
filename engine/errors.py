"""Our own failures. A bad kernel is never one of these: it is a result with a Verdict.

EngineError
├── TaskError             the task file cannot be used as it is
├── NetworkCaptureError   a network cannot be captured as it is given
├── EvaluationModeNeeded  no package can be made of a run, but of one like it in evaluation mode
├── PromptError           a prompt file and its slots do not agree
├── ToolchainError        compiler, headers or workers cannot do their work on this machine
│   ├── ProfileUnavailable   no profile can be had here or for this kernel; the run goes on
│   └── BaselineUnavailable  torch.compile cannot be timed here or for this task; the run goes on
├── ModelError            the model gave no usable reply
│   ├── OffRecordingError    the recording holds no further reply for this kernel
│   ├── CallError            one call to a model came to nothing; it says why, what it cost and whether to try again
│   └── AnswerNeeded         a person is to reply and has not yet
├── BudgetExhausted       the next model call would exceed a limit of the run
├── StopRequested         a person asked the engine to stop while a step was in flight
└── PersonNeeded          the run waits for a person, and its engine is not to wait with it
"""

from __future__ import annotations

from storage.run.models import CallFailure, TokenUsage


class EngineError(Exception):
    """Root of all failures a caller of the engine may want to catch; the message says what to do."""


class TaskError(EngineError):
    """The task file cannot be used: not found, no valid Python, or a name is missing."""


class EvaluationModeNeeded(EngineError):
    """No package can be made of a run as it is; one of the same task in evaluation mode can be packaged."""


class PromptError(EngineError):
    """A prompt file has a slot that was not filled, or was given a slot it does not have."""


class NetworkCaptureError(EngineError):
    """A network cannot be captured as it is given; the message says what to do."""


class ToolchainError(EngineError):
    """This machine lacks something the toolchain needs, or one of our own workers broke."""


class ProfileUnavailable(ToolchainError):
    """No profile could be taken; correctness and timing stand."""


class BaselineUnavailable(ToolchainError):
    """The second baseline could not be timed; speed-ups over eager stand."""


class ModelError(EngineError):
    """The model could not be reached or its reply cannot be used."""


class OffRecordingError(ModelError):
    """The run left the recorded path: the recording holds no further reply for this kernel."""


class CallError(ModelError):
    """One call gave no usable reply. `text` is what came of it all the same, `usage` what the endpoint counted.

    `retry_after_s` is how long the endpoint asks to wait. `is_lasting`: another try would fail in the same way.
    """

    def __init__(
        self,
        failure: CallFailure,
        message: str,
        *,
        is_charged: bool = False,
        is_lasting: bool = False,
        retry_after_s: float | None = None,
        text: str = "",
        usage: TokenUsage | None = None,
    ) -> None:
        super().__init__(message)
        self.failure = failure
        self.is_charged = is_charged
        self.is_lasting = is_lasting
        self.retry_after_s = retry_after_s
        self.text = text
        self.usage = usage


class AnswerNeeded(ModelError):
    """A person is to reply to the next call and has not yet; the run waits."""


class BudgetExhausted(EngineError):
    """The next model call would exceed a limit of the run; the message says which."""


class StopRequested(EngineError):
    """Stop was asked for; the step in flight is dropped and done again on resume."""


class PersonNeeded(EngineError):
    """The run can only go on when a person has done something, and its engine was started to end then."""
