"""Every program that measures pages runs to its end, at its smallest, in the tests' own Chromium."""

from __future__ import annotations

import re
from contextlib import nullcontext
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext

from tests.browser.conftest import forget
from tests.test_benchmarks import BROWSING, run

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("name", BROWSING)
def test_a_program_that_opens_pages_runs(home: Path, visitor: BrowserContext, name: str) -> None:
    assert re.search("kB|paint", run(name, *BROWSING[name], pages=lambda: nullcontext(visitor.new_page)))
    forget(visitor)
