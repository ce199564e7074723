"""How far the tests are, in one line: how many are done, for how long, how many failed, and what takes long.

On a terminal the line is drawn over and over; elsewhere a new one is written twice a minute. pytest's own reports stay.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator

import pytest

from tests.browser.chromium import NOT_RUN

LONG_S = 5.0
REDRAW_S, PLAIN_S = 0.5, 30.0
Status = tuple[str, str, str | tuple[str, dict[str, bool]]]


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """One line for all instead of a dot for each, unless `-v` asks for a line each."""
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None and config.get_verbosity() <= 0 and config.option.capture != "no":
        config.pluginmanager.register(Progress(reporter), "progress")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What a machine without a browser did not run is told in one line, with the remedy."""
    reasons = [report.longrepr[2] for report in terminalreporter.stats.get("skipped", []) if report.longrepr]
    if missed := [reason.removeprefix("Skipped: ") for reason in reasons if NOT_RUN in reason]:
        terminalreporter.write_line(f"{len(missed)} browser tests were not run: {missed[0]}", yellow=True)


class Progress:
    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self.reporter = reporter
        self.began = self.told_at = time.monotonic()
        self.running: dict[str, float] = {}
        self.total = self.done = self.failed = 0
        self.is_over = threading.Event()
        self.writing = threading.Lock()

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        if session.config.pluginmanager.hasplugin("dsession"):  # tests run elsewhere; one that hangs is told too
            threading.Thread(target=self._redraw, daemon=True).start()
        self.session = session

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.running[nodeid] = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.running.pop(nodeid, None)
        self.done += 1
        self._tell()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed += 1
            with self.writing:
                self._erase()
                self.reporter.write_line(f"{'FAILED' if report.when == 'call' else 'ERROR'} {report.nodeid}", red=True)

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self) -> Generator[None, Status, Status]:
        category, _, word = yield
        return category, "", word  # no dot for each test

    def pytest_sessionfinish(self) -> None:
        self.is_over.set()
        with self.writing:
            self._erase()

    def _redraw(self) -> None:
        while not self.is_over.wait(REDRAW_S):
            self._tell()

    def _tell(self) -> None:
        with self.writing:
            if self.is_over.is_set() or time.monotonic() - self.told_at < (REDRAW_S if self._is_live else PLAIN_S):
                return
            self.told_at = time.monotonic()
            if self._is_live:
                width = self.reporter._tw.fullwidth - 1
                self.reporter.rewrite(self.line()[:width], erase=True)
            else:
                self.reporter.write_line(self.line())

    @property
    def _is_live(self) -> bool:
        return bool(self.reporter.isatty)

    def _erase(self) -> None:
        if self._is_live:
            self.reporter.rewrite("", erase=True)

    def line(self) -> str:
        now = time.monotonic()
        of = self.session.testscollected
        said = [
            f"{self.done} of {of} tests" if of else "collecting tests",
            clock(now - self.began),
            f"{self.failed} failed",
        ]
        if self.running:
            slowest = min(self.running, key=lambda nodeid: self.running[nodeid])
            if now - self.running[slowest] > LONG_S:
                said.append(f"{now - self.running[slowest]:.0f} s in {slowest.removeprefix('tests/')}")
        return " · ".join(said)


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
