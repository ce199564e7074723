"""Where the pages come from that a program opens in a Chromium."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.chromium import of_program

# Within it, each call opens a page; tests hand in one that opens them in their own Chromium.
Pages = Callable[[], AbstractContextManager[Callable[[], Page]]]


@contextmanager
def of_new_visitors() -> Iterator[Callable[[], Page]]:
    """Each page is of somebody who has never been here: nothing is fetched or compiled before it."""
    with _chromium() as browser:
        yield lambda: browser.new_page(viewport={"width": 1280, "height": 900})


@contextmanager
def of_one_visitor() -> Iterator[Callable[[], Page]]:
    """What the first page fetches and compiles the others have."""
    with _chromium() as browser:
        yield browser.new_context(reduced_motion="reduce").new_page


@contextmanager
def _chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        args = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=of_program(), args=args)
        yield browser
        browser.close()
