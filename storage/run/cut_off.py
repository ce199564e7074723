"""Work in steps that were cut off, by the end of an engine, a pause or a problem: how long it took, as far as the
journal tells. Decides nothing, touches no file.

A step's end tells how long the step took since it was taken up last (`StepFinished.seconds`). What was done in it
before counts here: from where the step or the engine began to the last result, reply or failure that the engine wrote
of it, or to the engine's own word that the run ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from storage.run import events as ev

EVALUATED = (ev.Compiled, ev.Checked, ev.Timed, ev.Profiled, ev.VariantCompiled, ev.VariantChecked, ev.VariantTimed,
             ev.BaselineMeasured, ev.DeploymentSeen)  # fmt: skip
_WORK = (*EVALUATED, ev.ProfileFailed, ev.ModelCalled, ev.CallFailed, ev.ToolAnswered)


@dataclass(slots=True)
class CutOff:
    """The fold. Where several steps are in flight, time counts once however many of them were at work.

    Attributes:
        steps: in flight, by number, the one last at work at the end.
        since: since when there was work that no step's end has counted, in epoch seconds; None where there is none.
        until: the last moment at which there was work for sure.
        began: since when the engine has been at it, without a pause.
        parts: earlier work, from when to when, that the end of a step in flight may yet count.
    """

    steps: dict[int, None] = field(default_factory=dict)
    since: float | None = None
    until: float = 0.0
    began: float = 0.0
    parts: list[tuple[float, float]] = field(default_factory=list)

    @property
    def step(self) -> int:
        """The step in flight that was at work last; 0 where none is in flight."""
        return next(reversed(self.steps), 0)

    @property
    def known_s(self) -> float:
        """What is known to have gone into the steps in flight and was not told as cut off."""
        now = 0.0 if self.since is None else self.until - self.since
        return now + sum(ended - began for began, ended in self.parts)

    def take(self, event: ev.Event, at: float) -> tuple[int, float]:
        """Take the next event of a journal; the step that it shows to have been cut off, and after how many seconds of
        work; 0 seconds where it shows none."""
        at = max(at, self.until)
        match event:
            case ev.StepStarted(step=step):
                self._work(step, at, at)
            case ev.StepFinished(step=step, seconds=seconds):
                return self._finish(step, seconds or 0.0, at)
            case ev.StateChanged():
                self._break_off(at)
            case ev.EngineStarted() | ev.RunEnded():
                if isinstance(event, ev.RunEnded) and self.since is not None:
                    self.until = at
                self._break_off(at)
                return self.step, self._counted(at)
            case _ if isinstance(event, _WORK) and self.steps:
                self._work(getattr(event, "step", self.step), self.began, at)
            case _:
                pass
        return 0, 0.0

    def _work(self, step: int, since: float, at: float) -> None:
        self.steps.pop(step, None)
        self.steps[step] = None
        self.since = since if self.since is None else self.since
        self.until = at

    def _finish(self, step: int, seconds: float, at: float) -> tuple[int, float]:
        """The end of a step counts the work of its last seconds, whoever did it."""
        self.steps.pop(step, None)
        self.since, self.until = at if self.steps else None, at
        return step, self._counted(at - seconds)

    def _break_off(self, at: float) -> None:
        if self.since is not None and self.until > self.since:
            self.parts.append((self.since, self.until))
        self.since, self.began, self.until = None, at, at

    def _counted(self, before: float) -> float:
        parts, self.parts = self.parts, []
        return sum(max(0.0, min(ended, before) - began) for began, ended in parts)
